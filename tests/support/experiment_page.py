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

An experiment file is YAML. `falter init` writes [the example below](#the-example) and a JSON
Schema, with which editors complete and check the file. `falter plan`, `run`, `rewrites` and
`variants` read it. `falter.run` has the same settings as keywords.
`python tests/support/experiment_page.py` generates this page, and a test compares it with the
program.

- An unknown name or an invalid value is an error. A setting without a value (`limit:`) counts as
  not set.
- Paths are relative to the file. On the command line, they are relative to the current folder.
- Options of the command line override the file. `--task` replaces `data` and `template`. `--data`
  replaces `task`, and the file's other settings of `data` stay. `--model` replaces the models.
  `--base-url` and the other connection options apply to all models of the experiment. If
  `--rewriter` or `--judge` gives the same name as the file, the file's other settings of that model
  stay.
- A *recipe* is one way to change the prompt: a perturbation (`typos`), a perturbation with
  parameters (`typos:count=2`, or `typos: {count: 2}`), or a chain of perturbations
  (`word_merge+pad_quotes`, or a list). See [all perturbations](perturbations.md).
- `scorer` is a name, a list of names, or a mapping of tasks to names. On the command line, give
  `--scorer NAME` once or several times, or `--scorer TASK=NAME`.
"""

SECTIONS = (
    ("The experiment", "Settings in bold are required.", EXPERIMENT),
    (
        "A protocol",
        "In addition to the experiment's. [What a protocol is](protocols.md).",
        STUDY,
    ),
    ("Your own data", "Under `data`. [More about data and templates](tasks.md).", DATA),
    (
        "A model",
        "In `models`, `rewriter`, `reader` and `judge`, instead of a bare name. The options apply "
        "to the experiment's models. For the other models, add the role: `--judge-base-url`, "
        "`--rewriter-api`, `--reader-api-key-env` and so on. [More about models](clients.md).",
        MODEL,
    ),
    ("A price", "Under `price` of a model.", PRICE),
    ("How responses are sampled", "Under `sampling`.", SAMPLING),
    (
        "Worker processes",
        "Under `engine`, or only its name. [Ray](scale.md#engines-of-their-own-ray).",
        ENGINE,
    ),
    ("A gate", "Under `gate`, for `falter gate`. [What a gate decides](gate.md).", GATE),
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
    rows = ["| setting | meaning | value | default | option |", "|---|---|---|---|---|"]
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
             "Worker processes": ENGINE,
             "Budget of a gate": BUDGET, "A gate": GATE}  # fmt: skip
    flat = {setting.name for _, setting in spelled_flat().values()}
    spelled = {DATA: ("Columns", "The columns of your own data"),
               MODEL: ("Reach", "The way to reach a model"),
               SAMPLING: ("Writing", "The way responses are sampled")}  # fmt: skip
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
