"""What build servers read: JUnit, the summary of a step, annotations. No token is ever held."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from falter import experiment, figures
from falter.core.errors import printable

__all__ = ["junit", "step_summary", "workflow_commands"]

# What XML 1.0 has no way to hold; anything a model or a data file says may have it.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LONGEST = 300


def junit(result: experiment.GateResult) -> bytes:
    """A test suite with a case for each line: passed, failed with its numbers, or skipped.

    Missing answers are an error of a case of their own.
    """
    verdicts = [line.verdict for line in result.lines]
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(f"falter gate: {result.model} on {result.task}"),
        tests=str(len(result.lines) + bool(result.failed)),
        failures=str(verdicts.count("fail")),
        errors=str(int(bool(result.failed))),
        skipped=str(sum(_skips(result, verdict) for verdict in verdicts)),
        time="0",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("run", result.run), ("signature", result.signature)):
        ElementTree.SubElement(properties, "property", name=name, value=_xml(value))
    for line in result.lines:
        case = _case(suite, result, line.name)
        text = _xml(experiment.line_text(result, line))
        if line.verdict == "fail":
            failure = ElementTree.SubElement(case, "failure", message=text, type="falter.gate")
            failure.text = _xml("\n\n".join([text, *_examples(result, line.name, line.kind)]))
        elif _skips(result, line.verdict):
            ElementTree.SubElement(case, "skipped", message=text)
        else:
            ElementTree.SubElement(case, "system-out").text = text
    if result.failed:
        case = _case(suite, result, "all answers")
        text = _xml(result.failed_text)
        ElementTree.SubElement(case, "error", message=text, type="falter.gate").text = text
    suites = ElementTree.Element("testsuites", name="falter gate")
    suites.append(suite)
    ElementTree.indent(suites)
    return (
        b"<?xml version='1.0' encoding='utf-8'?>\n"
        + ElementTree.tostring(suites, "unicode").encode()
        + b"\n"
    )


def _case(
    suite: ElementTree.Element, result: experiment.GateResult, name: str
) -> ElementTree.Element:
    place = f"falter.gate.{result.task}"
    return ElementTree.SubElement(
        suite, "testcase", name=_xml(name), classname=_xml(place), time="0"
    )


def _skips(result: experiment.GateResult, verdict: str) -> bool:
    return verdict == "undecided" and result.undecided != "pass"


def _examples(result: experiment.GateResult, name: str, kind: str) -> Iterator[str]:
    if kind == "drop":
        yield from map(_example, experiment.lost_examples(result, name))


def _example(example: figures.Example) -> str:
    after = "".join(segment.after for segment in example.segments)
    return (
        f"{example.item}: expected {_short(example.expected)}, answered "
        f"{_short(example.baseline.answer)} as asked and {_short(example.perturbed.answer)} "
        f"to:\n{_short(after)}"
    )


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _xml(text: str) -> str:
    return _NOT_XML.sub("�", text)


def step_summary(path: Path, text: str) -> None:
    """Add to the summary of the step that the build server shows."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text.rstrip("\n") + "\n")


def workflow_commands(result: experiment.GateResult) -> Iterator[str]:
    """Workflow commands: an error for each line that fails, a warning for each undecided one."""
    for line in result.lines:
        if line.verdict == "pass":
            continue
        kind = "error" if line.verdict == "fail" else "warning"
        yield f"::{kind} title={_property(f'falter gate: {line.name}')}::" + _data(
            experiment.line_text(result, line)
        )
    if result.failed:
        yield f"::error title=falter gate::{_data(result.failed_text)}"


def _data(text: str) -> str:
    """A text that cannot end the command and begin another."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
