"""One table of settings: the reader, the options, the schema, the example and the page agree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pytest
import yaml

from experiment_page import KEYWORDS, PAGE, SECTIONS, keywords, page
from experiment_schema import experiment_schema
from falter.cli.app import LazyCommand, cli
from falter.clients import ClientSettings
from falter.engine.config import (
    DATA,
    EXPERIMENT,
    MODEL,
    SAMPLING,
    STUDY,
    Experiment,
    ModelSpec,
    identity_settings,
    overlay,
    override,
    read_experiment,
    read_study_settings,
    spelled_flat,
)
from falter.engine.file_schema import EXAMPLE, _block_schema, _setting_lines, schema
from falter.engine.keywords import ExperimentSettings
from falter.engine.resolving import resolve
from falter.engine.setting_types import Place, Value
from falter.engine.settings import Block, Setting, options_of, setting
from falter.records.errors import FalterError, InvalidValue, UnknownName, UsageError
from falter.records.types import Sampling
from falter.tasks.rows import DataSpec

PLAIN: dict[str, Any] = {"task": "basics", "models": ["simulated"]}
OWN: dict[str, Any] = {
    "data": {"path": "my.jsonl", "target": "a"}, "template": "{q}", "models": ["simulated"],
}  # fmt: skip
OPTIONS = [*options_of(EXPERIMENT), *options_of(STUDY)]
BLOCKS = [block for _, _, block in SECTIONS]


def every_setting() -> Iterator[tuple[str, Setting]]:
    for block in BLOCKS:
        yield from ((f"{block.make.__name__}.{entry.name}", entry) for entry in block.settings)


SETTINGS = dict(every_setting())


# What is made from the table


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.make.__name__)
def test_every_field_of_a_record_can_be_set(block: Block[Any]) -> None:
    """A record's field without a setting could never be given."""
    assert {entry.field for entry in block.settings} == {f.name for f in fields(block.make)}


def test_the_page_and_the_types_are_what_the_table_says() -> None:
    """Mend with: python tests/support/experiment_page.py"""
    assert PAGE.read_text("utf-8") == page()
    assert KEYWORDS.read_text("utf-8") == keywords()
    names = {entry.name for entry in (*EXPERIMENT.settings, *STUDY.settings)}
    flat = {"model", *spelled_flat()}
    assert set(get_type_hints(ExperimentSettings)) - flat == names == set(schema()["properties"])


def test_every_option_is_on_the_commands_that_take_an_experiment() -> None:
    """With its spelling, its help, and the words or the metavar of its value."""
    for name in ("run", "plan"):
        command = cli.commands[name]
        assert isinstance(command, LazyCommand)
        options = {parameter.name: parameter for parameter in command.load().params}
        for option in OPTIONS:
            made: Any = options[option.key]
            assert made.opts == option.setting.option.split()
            assert made.help.lower().startswith(option.setting.help.lower())
    assert len({option.key for option in OPTIONS}) == len(OPTIONS)


def test_what_holds_without_a_setting_is_what_the_client_does() -> None:
    """A model's default is that of its client, and the page says so."""
    own = {f.name: f.default for f in fields(ClientSettings)}
    for entry in MODEL.settings:
        if entry.without:
            assert entry.without == str(own[entry.name]).removesuffix(".0"), entry.name


@pytest.mark.parametrize("name", [n for n, s in SETTINGS.items() if s.on or s.off])
def test_an_example_is_what_its_setting_takes(name: str, tmp_path: Path) -> None:
    """By the program and by the schema; a file that it names is there."""
    entry = SETTINGS[name]
    (tmp_path / "prompt.txt").write_text("{q}")
    value = yaml.safe_load(f"{entry.name}: {entry.on or entry.off}")[entry.name]
    entry.shape.parse(value, Place(entry.name, tmp_path))
    block = _block_schema(Block(dict, **{entry.name: entry}))
    jsonschema.Draft202012Validator(block).validate({entry.name: value})


def test_the_example_is_whole_lines_that_are_comments_or_settings() -> None:
    """Each setting with an example is there once; no line is too long to be read at a glance."""
    keys = [line.lstrip("# -").partition(":")[0] for line in EXAMPLE.splitlines()]
    for entry in SETTINGS.values():
        if (entry.on or entry.off) and entry.name != "seed":
            assert keys.count(entry.name) >= 1, entry.name
    assert max(map(len, EXAMPLE.splitlines())) <= 100


def test_an_example_with_every_setting_on_is_an_experiment() -> None:
    """Removing the '#' before a setting is enough; data and protocol replace the task, a grid the
    recipes."""
    data = yaml.safe_load(re.sub(r"^#(?! \S)", "", EXAMPLE, flags=re.MULTILINE))
    experiment_schema().validate(data)
    study, rest = read_study_settings(data)
    assert (study.protocol, study.preset) == ("brittlebench", "quick")
    assert rest.pop("task") == "basics"
    grid = rest.pop("grid")
    assert read_experiment({**rest, "recipes": None, "grid": grid}).grid == (
        ("template", ("own", "other")),
        ("demonstrations", (2, 4)),
        ("noise", ("none", "replace_spaces")),
    )
    found = read_experiment(rest)
    assert found.data == DataSpec(
        path="my.jsonl",
        target="answer",
        choices=("options",),
        fields={"question": "text"},
        key="id",
        drop_duplicates=True,
    )
    assert found.template == "Answer the question.\n\n{question}\nAnswer:\n"
    assert found.models[1].requests_per_minute == 600
    assert found.sampling == Sampling(temperature=0, max_tokens=256)
    assert (found.demonstrations, found.perturb_demonstrations) == (5, True)


# A setting more


def test_a_setting_more_is_one_declaration() -> None:
    """Its option, reader, bounds, schema, example and identity follow from the field."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Patient(Experiment):
        patience: int = setting("hours to wait", "--patience", default=2, low=1, high=9, off="3")

    block = Block(Patient)
    (option,) = [o for o in options_of(block) if o.key == "patience"]
    assert option.over(None, 4) == 4
    with pytest.raises(InvalidValue, match=r"^--patience is 0; expected a whole number from 1 to"):
        option.over(None, 0)
    assert block.parse({**PLAIN, "patience": 3}, Place()).patience == 3
    assert block.parse(PLAIN, Place()).patience == 2
    with pytest.raises(UnknownName, match="did you mean 'patience'"):
        block.parse({**PLAIN, "patiense": 3}, Place())
    assert _block_schema(block)["properties"]["patience"] == {
        "type": "integer", "minimum": 1, "maximum": 9, "description": "hours to wait",
    }  # fmt: skip
    assert list(_setting_lines(option.setting, 20)) == ["#patience: 3        # hours to wait"]
    assert option.setting.otherwise == "2"


# The reader and the schema


def bounded() -> Iterator[tuple[str, Any, bool]]:
    """Values on and beyond the bounds of every number, and whether they fit."""
    for name, entry in SETTINGS.items():
        shape = entry.shape
        if isinstance(shape, Value) and shape.kind in (int, float):
            assert shape.low is not None, name
            for bound, beyond in ((shape.low, shape.low - 1), (shape.high, (shape.high or 0) + 1)):
                if bound is not None:
                    yield name, bound, True
                    yield name, shape.kind(beyond), False
            yield name, True, False
            yield name, "3", False
            yield name, float("nan"), False
            yield name, float("inf"), False
            yield name, 1.5, shape.kind is float and shape.low <= 1.5 <= (shape.high or 2)


def test_a_number_fits_within_its_bounds() -> None:
    """For the program and, where JSON has such a number, for the schema alike."""
    for name, value, fits in bounded():
        entry = SETTINGS[name]
        said = jsonschema.Draft202012Validator(_block_schema(Block(dict, **{entry.name: entry})))
        if fits:
            assert entry.shape.parse(value, Place(name)) == value, name
        else:
            wanted = rf"^{re.escape(name)} is .*; expected a (whole )?number "
            with pytest.raises(InvalidValue, match=wanted):
                entry.shape.parse(value, Place(name))
        if value == value and value != float("inf"):
            assert said.is_valid({entry.name: value}) is fits, (name, value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"limit": 2.0}, "limit is 2.0; expected a whole number of at least 1"),
        ({"limit": "x"}, "limit is 'x'; expected a whole number of at least 1"),
        ({"seed": -1}, "seed is -1; expected a whole number of at least 0"),
        ({"language": " "}, "language is ' '; expected a non-empty text"),
        ({"protect": [1]}, "protect is [1]; expected a text or a list of texts"),
        ({"unparsed": "wrng"}, "unparsed is 'wrng'; expected one of: wrong, excluded\n\nhint: did"),
        ({"perturb_demonstrations": 1}, "perturb_demonstrations is 1; expected true or false"),
        ({"sampling": 3}, "sampling is 3; expected a mapping of names to values"),
        ({"sampling": {"topp": 1}}, "Unknown setting of sampling 'topp'\n\nhint: did you mean"),
        ({"models": [{"nmae": "m"}]}, "Unknown setting of models[0] 'nmae'\n\nhint: did you"),
        ({"models": ["a", {"api": "chat"}]}, "models[1].name is missing"),
        ({"models": [3]}, "models[0] is 3; expected a mapping of names to values"),
        ({"models": ""}, "models[0].name is ''; expected a non-empty text"),
        ({"models": None}, "models is missing"),
        ({"rewriter": {"name": "m", "price": {"input": -1}}}, "rewriter.price.input is -1"),
        ({"recipes": [{"typos": {}, "casing": {}}]}, "recipes[0] is {'typos': {}, 'casing': {}}"),
        ({"recipes": [["typos", {"casing": 3}]]}, "recipes[0][1].casing is 3"),
        ({"recipes": [[]]}, "recipes[0] is []; expected a perturbation's name"),
        ({"template": "{q}"}, "'template' needs 'data'"),
        ({"data": {"path": "x", "target": "a"}}, "sets both 'task' and 'data'"),
        ({"task": None, "data": {"path": "x"}}, "data.target is missing"),
        ({"task": None, **OWN, "template": {"input": 3}}, "template is {'input': 3}"),
        ({"task": None, **OWN, "template_file": "x"}, "'template_file' cannot both be set"),
        ({"task": None}, "The experiment names no task"),
        ({"scorer": []}, "scorer is []; expected a scorer's name, a list of names, or a mapping"),
        ({"scorer": {}}, "scorer is {}; expected"),
        ({"scorer": {"basics": [""]}}, "scorer.basics is ''; expected a non-empty text"),
        ({"scorer": 3}, "scorer is 3; expected"),
        ({3: 1}, "Unknown setting of an experiment '3'"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_does_not_fit_is_an_error_that_says_where(wrong: dict[str, Any], said: str) -> None:
    """The place as the file spells it, the value, and what would do."""
    with pytest.raises(FalterError) as caught:
        read_experiment({**PLAIN, **wrong})
    assert said in str(caught.value)


def test_two_spellings_of_the_task_are_one_list() -> None:
    """`task` comes before `tasks`; either may be a text or a list."""
    found = read_experiment({"task": "basics", "tasks": ["sums", "functions"], "models": "m"})
    assert found.tasks == ("basics", "sums", "functions")
    assert found.models == (ModelSpec(name="m"),)


def test_what_is_none_counts_as_not_given() -> None:
    """Every setting but the models may be there without a value."""
    bare: dict[str, Any] = {entry.name: None for entry in EXPERIMENT.settings}
    assert read_experiment({**bare, **PLAIN}) == read_experiment(PLAIN)
    assert read_experiment({**bare, "task": "basics"}, needs_models=False).models == ()


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """Those of data, template, rewrites and recipes; a data set of the hub has no path."""
    (tmp_path / "t.txt").write_text("{q}")
    given = {
        **OWN, "template": None, "template_file": "t.txt", "rewrites": "bank.jsonl",
        "recipes": [{"template": {"file": "other.txt"}}],
    }  # fmt: skip
    found = read_experiment(given, folder=tmp_path)
    assert found.data is not None and found.data.path == str(tmp_path / "my.jsonl")
    assert (found.template, found.rewrites) == ("{q}", str(tmp_path / "bank.jsonl"))
    assert found.recipes == ((("template", {"file": str(tmp_path / "other.txt")}),),)
    hub = read_experiment({**OWN, "data": {"path": "hub:o/n", "target": "a"}}, folder=tmp_path)
    assert hub.data is not None and hub.data.path == "hub:o/n"


# Scorers


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("exact", "exact"),
        (["exact"], "exact"),
        (["exact", "includes"], ("exact", "includes")),
        ({"sums": "numeric", "basics": ["exact", "includes"]},
         {"sums": "numeric", "basics": ("exact", "includes")}),
    ],
    ids=["a name", "a list of one", "two names", "by task"],
)  # fmt: skip
def test_a_scorer_is_a_name_several_or_those_of_each_task(given: Any, wanted: Any) -> None:
    """One name stays a plain text."""
    assert read_experiment({**PLAIN, "scorer": given}).scorer == wanted
    experiment_schema().validate({**PLAIN, "scorer": given})


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (("exact",), "exact"),
        (("exact", "includes"), ["exact", "includes"]),
        (("sums=numeric",), {"sums": "numeric"}),
        (("mmlu:a=b.csv=exact", "sums=exact", "sums=numeric"),
         {"mmlu:a=b.csv": "exact", "sums": ["exact", "numeric"]}),
    ],
    ids=["a name", "two names", "a task's", "a task's two"],
)  # fmt: skip
def test_scorers_on_the_command_line(typed: tuple[str, ...], wanted: Any) -> None:
    """NAME several times, or TASK=NAME; a task's name may hold a '=' itself."""
    assert overlay(PLAIN, {"scorer": typed})["scorer"] == wanted


def test_a_scorer_is_for_all_tasks_or_for_one() -> None:
    """Both at once says nothing about the tasks that are not named."""
    with pytest.raises(
        InvalidValue, match=r"^--scorer is \['exact', 'sums=numeric'\]; expected a N"
    ):
        overlay(PLAIN, {"scorer": ("exact", "sums=numeric")})


# The command line


@pytest.mark.parametrize(
    "option",
    [o for o in OPTIONS if isinstance(o.setting.shape, Value) and o.setting.shape.low is not None],
    ids=lambda option: option.setting.flag,
)
def test_a_bad_number_is_called_by_its_option(option: Any) -> None:
    """What was typed is named, not its place in a file that nobody wrote."""
    low = option.setting.shape.low
    with pytest.raises(InvalidValue) as caught:
        overlay(OWN, {option.key: option.setting.shape.kind(low - 1)})
    assert caught.value.argument == option.setting.flag


def test_options_are_laid_over_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Blocks keep what is not typed; paths that are typed start where the user is."""
    monkeypatch.chdir(tmp_path)
    file = {
        **OWN,
        "sampling": {"temperature": 1, "stop": ["x"]},
        "rewriter": {"name": "r", "api": "chat"},
    }
    typed = {
        "limit": 4, "sampling__temperature": 0.5, "data__key": "id", "data__choices": ("a,b", "c"),
        "data__fields": ("q=z",), "models__base_url": "http://h/v1", "models__concurrency": 2,
        "template_file": "t.txt", "rewrites": "b.jsonl", "recipes": ("typos", "a+b"),
        "rewriter": "r", "protocol": "brittlebench", "draws": None, "protect": (),
    }  # fmt: skip
    over = overlay({**file, "models": ["m", {"name": "n", "concurrency": 9}]}, typed)
    assert over == {
        "data": {**OWN["data"], "key": "id", "choices": ["a", "b", "c"], "fields": {"q": "z"}},
        "template_file": str(tmp_path / "t.txt"), "rewrites": str(tmp_path / "b.jsonl"),
        "models": [{"name": name, "base_url": "http://h/v1", "concurrency": 2} for name in "mn"],
        "sampling": {"temperature": 0.5, "stop": ["x"]}, "rewriter": {"name": "r", "api": "chat"},
        "recipes": ["typos", "a+b"], "limit": 4, "protocol": "brittlebench",
    }  # fmt: skip
    assert overlay(file, {"rewriter": "s"})["rewriter"] == {"name": "s"}


def test_a_task_and_data_take_each_others_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that is typed replaces the file's data with its template; data replace the task."""
    assert overlay(OWN, {"tasks": ("sums",)}) == {"models": ["simulated"], "tasks": ["sums"]}
    over = overlay({**OWN, "tasks": ["sums"]}, {"data": "hub:o/n", "data__target": "b"})
    assert over == {**OWN, "data": {"path": "hub:o/n", "target": "b"}}
    assert overlay({**PLAIN, "data": None}, {"data": "hub:o/n"})["data"] == {"path": "hub:o/n"}


@pytest.mark.parametrize("option", options_of(DATA), ids=lambda option: option.setting.flag)
def test_a_column_without_data_is_an_error(option: Any) -> None:
    """The option that was typed is named, and the one that is missing."""
    shape = option.setting.shape
    given = "auto" if isinstance(shape, Value) and shape.words else ("a=b",) if shape.many else "a"
    given = True if shape.takes is bool else given
    (column,) = [o for o in OPTIONS if o.setting == option.setting]
    with pytest.raises(UsageError, match=f"^{option.setting.flag} needs --data"):
        overlay(PLAIN, {column.key: given})


@pytest.mark.parametrize("key", ["sampling__temperature", "data__target"])
def test_an_option_over_what_is_no_block_is_an_error(key: str) -> None:
    """The file's words are at fault, and named."""
    name = key.partition("__")[0]
    with pytest.raises(InvalidValue, match=f"^{name} is 3; expected a mapping"):
        overlay({**PLAIN, name: 3}, {key: 1.0 if name == "sampling" else "a"})


def test_models_that_are_not_well_formed_are_left_for_the_reader() -> None:
    """An option lays nothing over them."""
    assert overlay({"models": [3]}, {"models__base_url": "u"}) == {"models": [3]}
    assert overlay({"models": "m"}, {"models__base_url": "u"}) == {
        "models": [{"name": "m", "base_url": "u"}]
    }


# Overrides


def test_an_override_reads_its_own_settings_and_keeps_the_rest() -> None:
    """The same as reading everything at once; what is overridden is checked like a file."""
    user = read_experiment({**PLAIN, "limit": 9, "protect": ["x"], "demonstrations": 2})
    part = {"tasks": ["sums"], "recipes": ["typos", "a+b"], "limit": 4, "sampling": {"top_p": 0.5}}
    whole = {"models": ["simulated"], "protect": ["x"], "demonstrations": 2, **part}
    assert override(user, part) == read_experiment(whole)
    assert override(user, {}) == user
    with pytest.raises(UnknownName, match="did you mean 'recipes'"):
        override(user, {"recipies": []})
    with pytest.raises(InvalidValue, match=r"^draws is 0; expected"):
        override(user, {"draws": 0})


def test_an_override_with_none_goes_back_to_the_default() -> None:
    """As if the user had not said anything; other settings stay."""
    user = read_experiment(
        {**PLAIN, "limit": 9, "scorer": "exact", "demonstrations": 2, "draws": 3}
    )
    bare = override(user, {"limit": None, "scorer": None, "demonstrations": None})
    assert bare == read_experiment({**PLAIN, "draws": 3})


def test_an_override_puts_tasks_in_the_place_of_data() -> None:
    """With the template; without tasks of its own, the user's data and template stay."""
    user = read_experiment(OWN)
    assert override(user, {"limit": 3}) == replace(user, limit=3)
    assert override(user, {"tasks": ["sums"]}) == read_experiment(
        {"task": "sums", "models": "simulated"}
    )
    back = override(override(user, {"task": "sums"}), {"data": OWN["data"], "template": "{q}"})
    assert back == user
    assert override(user, {"template": "Q: {q}"}).template == "Q: {q}"
    with pytest.raises(UsageError, match="needs 'data'"):
        override(user, {"tasks": ["sums"], "template": "{q}"})
    with pytest.raises(UsageError, match="names no task"):
        override(read_experiment(PLAIN), {"tasks": None})


def test_an_override_finds_its_files_in_its_folder(tmp_path: Path) -> None:
    """Without a folder, where the program runs."""
    user = read_experiment(PLAIN)
    assert override(user, {"rewrites": "b"}, folder=tmp_path).rewrites == str(tmp_path / "b")
    assert override(user, {"rewrites": "b"}).rewrites == "b"


# Studies and identities


def test_a_protocols_settings_stand_beside_the_experiments() -> None:
    """They are read by themselves, and the rest is an experiment's."""
    judge = {"name": "openai:j", "api": "chat"}
    study, rest = read_study_settings({**PLAIN, "protocol": "brittlebench", "judge": judge})
    assert (study.protocol, study.preset) == ("brittlebench", None)
    assert study.judges == (ModelSpec(name="openai:j", api="chat"),)
    assert rest == PLAIN
    assert read_study_settings(PLAIN)[0].protocol is None
    several = read_study_settings({"protocol": "enterprise", "judge": [judge, "b"]})[0].judges
    assert [one.name for one in several] == ["openai:j", "b"]
    typed = [overlay({"judge": judge}, {"judge": names})["judge"] for names in (
        ("openai:j",), ("b",), ("openai:j", "b"))]  # fmt: skip
    assert typed == [judge, {"name": "b"}, [judge, {"name": "b"}]]
    with pytest.raises(InvalidValue, match=r"^judge\.api is 'x'; expected one of"):
        read_study_settings({"judge": {"name": "j", "api": "x"}})
    with pytest.raises(UnknownName, match="setting of an experiment 'protocol'"):
        read_experiment({**PLAIN, "protocol": "brittlebench"})


EVERYTHING = {
    **OWN, "limit": 3, "demonstrations": 2, "perturb_demonstrations": True, "level": 0.9,
    "unparsed": "excluded", "language": "de", "protect": ["x"], "seed": 3, "draws": 2,
    "sampling": {"temperature": 1, "max_tokens": 5, "stop": ["x"]}, "scorer": "exact",
}  # fmt: skip


def test_the_identity_of_a_run_is_what_it_always_was() -> None:
    """Word for word, so that runs of earlier versions keep their ids."""
    assert identity_settings(read_experiment(EVERYTHING)) == {
        "limit": 3, "demonstrations": 2, "perturb_demonstrations": True, "level": 0.9,
        "unparsed": "excluded", "language": "de", "protect": ["x"], "template": "{q}",
        "sampling": [1.0, 1.0, 5, ("x",), None],
    }  # fmt: skip
    assert identity_settings(read_experiment(PLAIN)) == {
        "limit": None, "demonstrations": 0, "level": 0.95, "unparsed": "wrong", "language": None,
        "protect": [], "template": None, "sampling": None,
    }  # fmt: skip


@pytest.mark.parametrize("settings", [PLAIN, {**PLAIN, "limit": 3, "sampling": {"top_p": 0.5}}])
def test_a_run_has_the_identity_of_its_settings(settings: dict[str, Any]) -> None:
    """What a run records is what the table marks."""
    experiment = read_experiment(settings)
    assert resolve(experiment).run.experiment == identity_settings(experiment)


def test_sampling_is_read_as_the_record_that_travels() -> None:
    """Without a limit of its own, the scorer's takes the place of the 0."""
    assert read_experiment({**PLAIN, "sampling": {"seed": 4}}).sampling == Sampling(
        seed=4, max_tokens=0
    )
    assert asdict(SAMPLING.parse({"stop": "x"}, Place()))["stop"] == ("x",)
