"""docs/experiment-file.md and the types of keyword arguments, made from the table of settings.

python tests/support/experiment_page.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from falter.engine.config import (
    DATA,
    ENGINE,
    EXPERIMENT,
    MODEL,
    PRICE,
    SAMPLING,
    STUDY,
    Judges,
    Model,
    spelled_flat,
)
from falter.engine.file_schema import EXAMPLE
from falter.engine.gate_settings import BUDGET, GATE, Margins
from falter.engine.setting_types import (
    Budget,
    Grid,
    Options,
    Placeholders,
    RecipeSteps,
    Scorers,
    Shape,
    Template,
    Value,
)
from falter.engine.settings import Block, Many, Setting

__all__ = ["KEYWORDS", "PAGE", "keywords", "page"]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "experiment-file.md"
KEYWORDS = ROOT / "src" / "falter" / "engine" / "keywords.py"

HEAD = """\
# The experiment file

An experiment file is YAML. `falter init` writes [the one below](#the-example), and beside it a
JSON Schema with which editors complete and check it. `falter plan`, `run`, `rewrites` and
`variants` take it; `falter.run` takes the same settings as keywords. This page is made from the
program's table of settings by `python tests/support/experiment_page.py`, and a test holds it
against the program.

- A name that is not on this page is an error, and so is a value that does not fit. A setting
  without a value (`limit:`) counts as not given.
- Paths are relative to the file; on the command line, to the folder you are in.
- Options are laid over the file. `--task` takes the place of `data` and `template`, `--data` that
  of `task`; what else the file says about your data stays. `--model` replaces the file's models.
  `--base-url` and the other options about reaching a model hold for all models of the experiment.
  What the file says about a rewriter or a judge stays where `--rewriter` or `--judge` gives the
  same name.
- A recipe is a perturbation (`typos`), one with parameters (`typos:count=2`, or
  `typos: {count: 2}`), or a chain of them (`word_merge+pad_quotes`, or a list). Here are
  [all perturbations](perturbations.md).
- `scorer` is a name, a list of names, or a mapping of tasks to these. On the command line it is
  `--scorer NAME`, once or several times, or `--scorer TASK=NAME`.
"""

SECTIONS = (
    ("The experiment", "Those in bold must be there.", EXPERIMENT),
    ("A protocol", "Beside the experiment's. [What a protocol is](protocols.md).", STUDY),
    ("Your own data", "Under `data`. [More about data and templates](tasks.md).", DATA),
    (
        "A model",
        "In `models`, `rewriter` and `judge`, in the place of a bare name. The options are about "
        "the experiment's models; `--judge-` and `--rewriter-` with `base-url`, `api` and "
        "`api-key-env` are about the others. [More about models](clients.md).",
        MODEL,
    ),
    ("A price", "Under `price` of a model.", PRICE),
    ("How answers are written", "Under `sampling`.", SAMPLING),
    (
        "Processes of their own",
        "Under `engine`, or its name alone. [Ray](scale.md#engines-of-their-own-ray).",
        ENGINE,
    ),
    ("A gate", "Under `gate`, for `falter gate`. [What it decides](gate.md).", GATE),
    ("Budget of a gate", "Under `budget` of a gate.", BUDGET),
)


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, about, block in SECTIONS:
        parts += [f"## {title}\n", f"{about}\n", _table(block)]
    parts += ["## The example\n", f"```yaml\n{EXAMPLE}```\n"]
    return "\n".join(parts)


def _table(block: Block[Any]) -> str:
    rows = ["| setting | what it is for | may be | without it | option |", "|---|---|---|---|---|"]
    for setting in block.settings:
        name = f"**`{setting.name}`**" if setting.required else f"`{setting.name}`"
        option = ", ".join(f"`{flag}`" for flag in setting.option.split())
        cells = (name, setting.help, setting.shape.expected, setting.otherwise, option)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


# The types of keyword arguments

ANY_MODEL = '''\

AnyModel = str | Callable[..., Any] | ModelSettings
"""A model's name, a function that answers, or a mapping of how to reach a model."""
'''
ROWS = "    rows: Required[Rows]"

TYPES = '''\
"""The settings of an experiment file as types, for `falter.run(**settings)`.

Made from the table of settings by `python tests/support/experiment_page.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Required, TypedDict

RecipeSettings = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""A perturbation's name, a mapping of it to its parameters, or a chain of these."""


class DataFrame(Protocol):
    """A data frame of pandas or polars."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""


Rows = Sequence[Mapping[str, Any]] | DataFrame
"""Items in memory, for `falter.run`: a list of dictionaries, or a data frame."""
'''


def keywords() -> str:
    """The whole module."""
    below = {"Your own data": DATA, "A price": PRICE, "A model": MODEL, "Sampling": SAMPLING,
             "Processes of their own": ENGINE,
             "Budget of a gate": BUDGET, "A gate": GATE}  # fmt: skip
    flat = {setting.name for _, setting in spelled_flat().values()}
    spelled = {DATA: ("Columns", "The columns of your own data"),
               MODEL: ("Reach", "The way to reach a model"),
               SAMPLING: ("Writing", "The way answers are written")}  # fmt: skip
    parts = [TYPES]
    for about, block in below.items():
        base, settings = "TypedDict", block.settings
        if block in spelled:
            base, beside = spelled[block]
            parts.append(_typed(base, beside, tuple(s for s in settings if s.name in flat)))
            settings = tuple(s for s in settings if s.name not in flat)
        parts.append(_typed(_record(block), about, settings, base))
    parts.append("\nclass RowsSettings(Columns, total=False):\n"
                 f'    """Your own data in memory."""\n\n{ROWS}\n')  # fmt: skip
    parts.append(ANY_MODEL)
    about, settings = "An experiment, or a protocol", (*EXPERIMENT.settings, *STUDY.settings)
    bases = ", ".join(base for base, _ in spelled.values())
    whole = _typed("ExperimentSettings", about, settings, bases)
    return "\n".join([*parts, f"{whole}    model: AnyModel | None\n"])


def _record(block: Block[Any]) -> str:
    return f"{block.make.__name__.removesuffix('Spec')}Settings"


def _typed(name: str, about: str, settings: tuple[Setting, ...], base: str = "TypedDict") -> str:
    lines = [f"\nclass {name}({base}, total=False):", f'    """{about}."""\n']
    for setting in settings:
        kind = python_type(setting.shape)
        needed = setting.required and name != "ExperimentSettings"
        kind = f"Required[{kind}]" if needed else f"{kind} | None"
        lines.append(f"    {setting.name}: {kind}")
    return "\n".join(lines) + "\n"


def python_type(shape: Shape[Any]) -> str:
    """Return the Python type of a value of this shape."""
    match shape:
        case Value(words=words) if words:
            return f"Literal{list(words)}".replace("'", '"')
        case Value(kind=kind):
            return "str | Sequence[str]" if kind is tuple else kind.__name__
        case Budget():
            return "int | str"
        case Block():
            kind = _record(shape)
            return {
                "DataSettings": "str | DataSettings | RowsSettings | Rows",
                "EngineSettings": 'Literal["ray"] | EngineSettings',
            }.get(kind, kind)
        case Judges():
            return "str | ModelSettings | Sequence[str | ModelSettings]"
        case Many(entry=Model()):
            return "AnyModel | Sequence[AnyModel]"
        case Many(entry=entry):
            inner = python_type(entry)
            return f"{inner} | Sequence[{inner}]"
        case Model():
            return "str | ModelSettings"
        case RecipeSteps():
            return "RecipeSettings"
        case Placeholders():
            return "Mapping[str, str]"
        case Options():
            return "Mapping[str, Any]"
        case Template():
            return "str | Mapping[str, str]"
        case Margins():
            return "float | Mapping[str, float]"
        case Grid():
            return "Mapping[str, Sequence[Any]]"
        case Scorers():
            return "str | Sequence[str] | Mapping[str, str | Sequence[str]]"
    raise NotImplementedError(type(shape))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    KEYWORDS.write_text(keywords(), "utf-8")
