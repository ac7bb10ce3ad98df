"""Files for build servers: JUnit XML, the summary of a step, annotations. No token is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from falter.gate.figures import example_text, lost_examples
from falter.gate.result import GateResult

# Characters that XML 1.0 cannot represent, such as U+0000; a model's response may contain them.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(result: GateResult) -> bytes:
    """Return JUnit XML with a test case for each criterion: passed, failed or skipped.

    A failed case has its numbers and examples. Missing responses are an error of a separate case.
    """
    suites = ElementTree.Element("testsuites", name="falter gate")
    suite = _element(suites, "testsuite", name=f"falter gate: {result.model} on {result.task}")
    properties = _element(suite, "properties")
    _element(properties, "property", name="run", value=result.run)
    _element(properties, "property", name="signature", value=result.signature)
    place = f"falter.gate.{result.task}"
    skipped = ("undecided",) if result.undecided != "pass" else ()
    for criterion in result.lines:
        case = _element(suite, "testcase", name=criterion.name, classname=place, time="0")
        text = result.loss_text(criterion)
        if criterion.verdict == "fail":
            full_text = "\n\n".join([text, *map(example_text, lost_examples(result, criterion))])
            _element(case, "failure", full_text, message=text, type="falter.gate")
        elif criterion.verdict in skipped:
            _element(case, "skipped", message=text)
        else:
            _element(case, "system-out", text)
    if result.failed:
        case = _element(suite, "testcase", name="all answers", classname=place, time="0")
        text = result.failed_text
        _element(case, "error", text, message=text, type="falter.gate")
    for name, tag in (
        ("tests", "testcase"),
        ("failures", "testcase/failure"),
        ("errors", "testcase/error"),
        ("skipped", "testcase/skipped"),
    ):
        suite.set(name, str(len(suite.findall(tag))))
    suite.set("time", "0")
    ElementTree.indent(suites)
    return (
        b"<?xml version='1.0' encoding='utf-8'?>\n"
        + ElementTree.tostring(suites, "unicode").encode()
        + b"\n"
    )


def _element(
    parent: ElementTree.Element, tag: str, text: str | None = None, **attributes: str
) -> ElementTree.Element:
    """Append an element to `parent`; U+FFFD replaces characters that XML cannot represent."""
    valid = {name: _NOT_XML.sub("�", value) for name, value in attributes.items()}
    element = ElementTree.SubElement(parent, tag, valid)
    element.text = None if text is None else _NOT_XML.sub("�", text)
    return element


def step_summary(path: Path, text: str) -> None:
    """Append a text to the file of the step's summary, which the build server shows."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text.rstrip("\n") + "\n")


def workflow_commands(result: GateResult) -> Iterator[str]:
    """Yield GitHub workflow commands: errors for failed criteria, warnings for undecided ones."""
    for line in result.lines:
        if line.verdict != "pass":
            kind = "error" if line.verdict == "fail" else "warning"
            title = _escaped(f"falter gate: {line.name}").replace(":", "%3A").replace(",", "%2C")
            yield f"::{kind} title={title}::{_escaped(result.criterion_text(line))}"
    if result.failed:
        yield f"::error title=falter gate::{_escaped(result.failed_text)}"


def _escaped(text: str) -> str:
    """Return the text escaped so that it cannot end its command and begin another."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
