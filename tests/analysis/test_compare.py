"""`falter compare`: runs, models and prompts side by side, paired by item and recipe."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import falter
from every_estimate import every_estimate
from falter.cli.app import cli, invoke
from falter.records.errors import FalterError, StoreError
from falter.records.figures import estimates
from falter.records.ids import short
from falter.records.types import Estimate
from falter.store.store import Store

QUEUES = ("billing", "delivery", "returns")
TICKETS = [
    {"id": f"{queue}-{n}", "ticket": f"About {queue}, number {n}.", "queue": queue, "note": "soon"}
    for n in range(10)
    for queue in QUEUES
]
SHORT = "Which queue?\n{ticket}"
LONG = "Answer with one word: billing, delivery or returns.\n{ticket}\nNote: {note}"


def router(prompt: str) -> str:
    """Right with the long prompt; with the short one only about every second ticket."""
    text = prompt.lower()
    ticket = text[text.index("about") :]
    queue = next(queue for queue in QUEUES if queue in ticket)
    even = any(f"number {n}." in ticket for n in range(0, 10, 2))
    return queue if "answer" in text or even else "unsure"


def other_router(prompt: str) -> str:
    """Always unsure."""
    return "unsure"


def shaky_router(prompt: str) -> str:
    """Right about every ticket as it was written, and about some where its case has changed."""
    steady = any(f"number {n}." in prompt.lower() for n in range(3))
    word, text = ("about", prompt.lower()) if steady else ("About", prompt)
    return next((queue for queue in QUEUES if f"{word} {queue}" in text), "unsure")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    rows = "".join(json.dumps(row) + "\n" for row in TICKETS)
    (folder / "tickets.jsonl").write_text(rows)
    (folder / "short.txt").write_text(SHORT)
    (folder / "long.txt").write_text(LONG)
    return folder


@pytest.fixture(scope="module")
def run(folder: Path) -> Callable[..., falter.Result]:
    """A run on the tickets; what is given changes it."""

    known: dict[str, falter.Result] = {}

    def start(**settings: Any) -> falter.Result:
        key = repr(sorted(settings.items()))
        if key not in known:
            known[key] = fresh(**settings)
        return known[key]

    def fresh(**settings: Any) -> falter.Result:
        store = settings.pop("store", "s.db")
        data = {"path": str(folder / "tickets.jsonl"), "target": "queue", "key": "id"}
        usual: dict[str, Any] = {
            "data": data | settings.pop("data", {}),
            "models": [router],
            "recipes": ["pad_newlines", "casing"],
            "scorer": "exact",
        }
        if "template_file" not in settings:
            usual["template"] = SHORT
        return falter.run(usual | settings, store=folder / store)

    return start


@pytest.fixture(scope="module")
def prompts(run: Callable[..., falter.Result], folder: Path) -> falter.Result:
    """Two prompts in one run, on a store of their own."""
    files = [str(folder / "short.txt"), str(folder / "long.txt")]
    return run(template_file=files, store="prompts.db")


def called(store: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["compare", "--store", str(store), *arguments])


def text_of(comparison: falter.Comparison, name: str) -> str:
    return " ".join(comparison.figure(name).text)


def number(value: object) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def test_two_prompts_in_one_run_are_two_sides(prompts: falter.Result) -> None:
    """Paired by the key, though they use other columns; the long one is right far more often."""
    compared = falter.compare(prompts)
    assert compared.verdict[0].startswith("long is better by 50.0 points [")
    assert "over both recipes; with the clean prompt and under" in compared.verdict[0]
    sides = {row["side"]: row for row in compared.table("sides")}
    assert (sides["short"]["clean_prompt"], sides["long"]["clean_prompt"]) == (0.5, 1.0)
    assert text_of(compared, "sides").startswith("Over the 30 paired items and both recipes")
    better = {row["prompt"]: row["better"] for row in compared.table("better-under")}
    assert better == dict.fromkeys(
        ("clean prompt", "pad_newlines", "casing", "all recipes"), "long"
    )
    (difference,) = compared.table("differences")
    assert difference["sides"] == "long less short"


def test_two_prompts_without_a_column_of_keys_have_the_same_items(
    run: Callable[..., falter.Result], folder: Path
) -> None:
    """The content that makes a key is that of the fields of both."""
    files = [str(folder / "short.txt"), str(folder / "long.txt")]
    data = {"path": str(folder / "tickets.jsonl"), "target": "queue"}
    result = falter.run(
        data=data, template_file=files, models=[router], recipes=["pad_newlines"], scorer="exact",
        store=folder / "keyless.db",
    )  # fmt: skip
    compared = falter.compare(result)
    assert text_of(compared, "sides").startswith("Over the 30 paired items and the one recipe")
    assert "unpaired" not in [figure.name for figure in compared.figures]


def test_a_run_against_itself_shows_nothing(run: Callable[..., falter.Result]) -> None:
    """The same answers under another name: no verdict for anybody, every difference zero."""
    one, other = run(), run(seed=1)
    compared = falter.compare(one, other)
    assert "it is not shown whether" in compared.verdict[0]
    assert all(row["better"] == "undecided" for row in compared.table("better-under"))
    assert "The seeds differ" in text_of(compared, "comparison-warnings")


def test_models_of_one_run_are_sides_and_more_than_two_have_ranks(
    run: Callable[..., falter.Result], folder: Path
) -> None:
    """The best rank counts those shown to be better, the worst those shown to be worse."""
    result = run(models=[router, other_router, "simulated"], store="models.db")
    compared = falter.compare(result)
    ranks = {
        row["side"]: (row["rank_best"], row["rank_worst"]) for row in compared.table("rank-sets")
    }
    assert ranks["function:test_compare:other_router"] == (3, 3)
    assert len(compared.table("differences")) == 3
    assert "Ranks: " in compared.verdict[0]
    two = falter.compare(
        result, models=["function:test_compare:router", "function:test_compare:other_router"]
    )
    assert "function:test_compare:router is better by 50.0 points" in two.verdict[0]


def test_a_side_with_little_to_lose_is_not_simply_called_robust(
    run: Callable[..., falter.Result],
) -> None:
    """One that is never right loses nothing; one that is right less often has less to lose."""
    models = [shaky_router, router, other_router]
    compared = falter.compare(run(models=models, recipes=["casing"], store="shaky.db"))
    said = compared.figure("comparison").text
    never = [sentence for sentence in said if "nothing to lose" in sentence]
    assert len(never) == 1 and never[0].startswith(
        "function:test_compare:other_router is not shown to be more robust: its average drop is "
    )
    less = [sentence for sentence in said if "has less to lose" in sentence]
    assert len(less) == 1
    assert "but with the clean prompt it is right 50.0 points less often" in less[0]


def test_what_does_not_pair_is_counted_and_named(
    run: Callable[..., falter.Result], folder: Path
) -> None:
    """Items of one side alone, items with other data, recipes of one side alone."""
    rows = [dict(row) for row in TICKETS[:-2]]
    rows[0]["ticket"] = "About billing, but another text."
    (folder / "fewer").mkdir(exist_ok=True)
    fewer = folder / "fewer" / "tickets.jsonl"
    fewer.write_text("".join(json.dumps(row) + "\n" for row in rows))
    compared = falter.compare(run(), run(data={"path": str(fewer)}, recipes=["pad_newlines"]))
    left_out = text_of(compared, "unpaired")
    assert "2 items of" in left_out
    assert "another side lacks them: delivery-9 and returns-9. 27 items are paired." in left_out
    assert (
        "1 item has the same key and other data in different runs, and is left out: billing-0."
        in left_out
    )
    assert "1 recipe of" in left_out
    assert left_out.endswith("another side lacks it: casing.")


def test_every_estimate_says_what_it_is_about(prompts: falter.Result) -> None:
    """A signature, a level, and an interval that holds the value."""
    compared = falter.compare(prompts)
    numbers = list(estimates(compared.figure("differences")))
    assert numbers
    for estimate in every_estimate(numbers):
        assert "first less second" in estimate.estimand or "later less earlier" in estimate.estimand
        assert estimate.signature
        assert estimate.group["sides"] == "long less short"
        if estimate.low is not None and estimate.high is not None and estimate.value is not None:
            assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.parametrize("form", ["--json", "--csv", "--md", "--latex"])
def test_every_form_has_it(form: str, prompts: falter.Result, folder: Path) -> None:
    shown = called(folder / "prompts.db", form)
    assert shown.exit_code == 0, shown.output
    assert "long less short" in shown.stdout
    assert "50" in shown.stdout


def test_a_page_and_numbers_are_written(
    prompts: falter.Result, folder: Path, tmp_path: Path
) -> None:
    """And the store stays as it was."""
    page, numbers = tmp_path / "c.html", tmp_path / "c.parquet"
    before = (folder / "prompts.db").read_bytes()
    shown = called(folder / "prompts.db", "--html", str(page), "--parquet", str(numbers))
    assert shown.exit_code == 0, shown.output
    assert "long is better by 50.0 points" in page.read_text("utf-8")
    assert numbers.stat().st_size > 0
    assert (folder / "prompts.db").read_bytes() == before


def test_runs_in_two_stores_have_the_names_that_they_are_given(
    run: Callable[..., falter.Result], folder: Path
) -> None:
    one, other = run(store="a.db"), run(template=LONG, store="b.db")
    names = f"short={one.run.id[7:13]}", f"long={other.run.id[7:13]}@{folder / 'b.db'}"
    shown = called(folder / "a.db", *names)
    assert shown.exit_code == 0, shown.output
    assert "long is better by 50.0 points" in shown.stdout
    differing = {row["setting"]: row for row in falter.compare(one, other).table("what-differs")}
    assert {"run", "template"} <= set(differing)


def refused(*runs: Any, **settings: Any) -> tuple[str, str | None]:
    with pytest.raises(FalterError) as caught:
        falter.compare(*runs, **settings)
    return caught.value.message, caught.value.hint


def test_other_scorers_are_refused(run: Callable[..., falter.Result]) -> None:
    """Their scores do not mean the same."""
    one, other = run(), run(scorer="includes")
    message, hint = refused(one, other)
    assert message.startswith("These results were scored in different ways: ")
    assert "by exact" in message
    assert "by includes" in message
    assert hint is not None
    assert "--scorer" in hint
    both = run(scorer=["includes", "exact"])
    assert "scored by exact" in text_of(falter.compare(one, both), "sides")


def test_other_labels_are_refused(run: Callable[..., falter.Result]) -> None:
    one = run(scorer="label")
    other = run(scorer="label", labels=[*QUEUES, "unsure"])
    message, _ = refused(one, other)
    assert message.startswith("The scorer label used different labels: ")


def test_other_data_are_refused(run: Callable[..., falter.Result], folder: Path) -> None:
    """Another file, no item in common, no recipe in common."""
    named = folder / "letters.jsonl"
    named.write_text((folder / "tickets.jsonl").read_text())
    message, _ = refused(run(), run(data={"path": str(named)}))
    assert message.startswith("These results have no task in common: ")
    (folder / "strange").mkdir(exist_ok=True)
    strange = folder / "strange" / "tickets.jsonl"
    rows = [row | {"id": f"other {row['id']}"} for row in TICKETS]
    strange.write_text("".join(json.dumps(row) + "\n" for row in rows))
    message, _ = refused(run(), run(data={"path": str(strange)}))
    assert message == "These results have no item of tickets in common"
    message, _ = refused(run(), run(recipes=["typos"]))
    assert message.startswith("These results have no recipe in common: ")


def test_other_draws_are_said_first(run: Callable[..., falter.Result]) -> None:
    compared = falter.compare(run(recipes=["typos"]), run(recipes=["typos"], draws=2))
    assert compared.figures[0].name == "comparison-warnings"
    assert "The number of draws differs (" in text_of(compared, "comparison-warnings")


def test_nothing_to_compare_is_refused(run: Callable[..., falter.Result], folder: Path) -> None:
    one = run()
    message, hint = refused(one)
    assert message.endswith(
        "has a single model and prompt, function:test_compare:router, on tickets"
    )
    assert hint == "name a second run, or a run with several models or prompts"
    assert refused(one, one)[0].endswith("is named twice")
    assert refused()[0] == "No run is named"
    assert refused("=", store=folder / "s.db")[0] == "'=' is neither a stored run nor a file"
    assert refused(one, margin=0.0)[0].startswith("The margin 0 is not a difference")
    twice = [f"a={result.run.id[7:15]}" for result in (one, run(seed=1))]
    assert refused(*twice, store=folder / "s.db")[0] == "Two runs are called 'a'"
    assert refused(one, run(seed=1), models=["gpt"])[0] == "Unknown model 'gpt'"
    assert refused(one, run(seed=1), tasks=["basics"])[0] == "Unknown task 'basics'"


def test_mistakes_on_the_command_line(run: Callable[..., falter.Result], folder: Path) -> None:
    """Each has its exact message, exit code 2 and nothing on stdout."""
    store = folder / "mistakes.db"

    def of(name: str, rows: list[dict[str, str]], **settings: Any) -> str:
        (folder / name).mkdir(exist_ok=True)
        path = folder / name / f"{settings.pop('file', 'tickets')}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        usual: dict[str, Any] = {"data": {"path": str(path)}, "recipes": ["casing"]}
        return short(run(**(usual | settings), store=store.name).run.id)

    one = of("one", TICKETS)
    seeded = of("one", TICKETS, seed=1)
    keys = of("keys", [row | {"id": f"other {row['id']}"} for row in TICKETS])
    texts = of("texts", [row | {"ticket": f"{row['ticket']} Soon."} for row in TICKETS])
    task = of("task", TICKETS, file="letters")
    recipe = of("one", TICKETS, recipes=["typos"])
    style = of("one", TICKETS, recipes=["casing:style=upper"])
    known = ", ".join(sorted((one, seeded, keys, texts, task, recipe, style)))
    other_recipe = "run one of them with the other's recipes, with the same parameters"
    table: dict[tuple[str, ...], tuple[str, str]] = {
        (one, "ffff"): ("Unknown run 'ffff'", f"known: {known}"),
        (one, one): (
            f"The run {one} is named twice", "name it once to compare its models",
        ),
        (f"a={one}", f"a={seeded}"): ("Two runs are called 'a'", "give each its own name"),
        (one, keys): (
            "These results have no item of tickets in common",
            "run both on the same data; items are paired by their key, which --key names",
        ),
        (one, texts): (
            "The same keys of tickets stand for different items, as billing-0 does",
            "compare runs on the same data; a key must always name the same item",
        ),
        (one, task): (
            f"These results have no task in common: the run {one} has tickets; the run "
            f"{task} has letters",
            "compare results of the same task, or of a data file of the same name",
        ),
        (one, recipe): (
            f"These results have no recipe in common: {one[:6]}: casing; {recipe[:6]}: typos",
            other_recipe,
        ),
        (one, style): (
            f"These results have no recipe in common: {one[:6]}: casing; {style[:6]}: "
            "casing(style=upper)",
            other_recipe,
        ),
        (one, f"{seeded}@gone.db"): (
            "The store gone.db does not exist", "start a run, or name another store with --store",
        ),
        ("=",): (
            "'=' is neither a stored run nor a file",
            "write RUN, RUN@STORE, FILE or NAME=RUN, as in short=3f1c",
        ),
        (one, seeded, "--margin", "2"): (
            "The margin 2 is not a difference of scores between 0 and 1", "write 2 points as 0.02",
        ),
    }  # fmt: skip
    for arguments, (message, hint) in table.items():
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = invoke(["compare", "--store", str(store), *arguments])
        assert err.getvalue() == f"error: {message}\n\nhint: {hint}\n"
        assert (code, out.getvalue()) == (2, "")


def test_an_unfinished_run_is_refused_unless_it_may_be(
    prompts: falter.Result, folder: Path
) -> None:
    part = folder / "part.db"
    part.write_bytes((folder / "prompts.db").read_bytes())
    with Store(part) as opened:
        opened.db.execute("DELETE FROM responses WHERE key IN (SELECT key FROM responses LIMIT 1)")
    with pytest.raises(StoreError, match="is not finished"):
        falter.compare(prompts.run.id[7:15], store=part)
    shown = called(part, "--partial", "--figure", "all")
    assert shown.exit_code == 0, shown.output
    assert "that never came" in shown.stdout


def test_templates_of_one_name_and_protocols_with_several_are_refused(
    run: Callable[..., falter.Result], folder: Path
) -> None:
    (folder / "fewer").mkdir(exist_ok=True)
    (folder / "fewer" / "short.txt").write_text(LONG)
    files = [str(folder / "short.txt"), str(folder / "fewer" / "short.txt")]
    with pytest.raises(FalterError, match="Two templates are called 'short'"):
        run(template_file=files)
    files = [str(folder / "short.txt"), str(folder / "long.txt")]
    with pytest.raises(FalterError, match="takes one template, not 2"):
        falter.run(
            data={"path": str(folder / "tickets.jsonl"), "target": "queue"},
            template_file=files, models=["simulated"], protocol="brittlebench",
            store=folder / "s.db",
        )  # fmt: skip


LOGS = Path(__file__).parents[1] / "data" / "logs" / "doubling"


def first_difference(compared: falter.Comparison) -> Estimate:
    return next(
        e
        for e in estimates(compared.figure("differences"))
        if e.measure == "compare.score.together"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("inspect/before.eval", "inspect/after.eval"),
        ("lm_eval/before", "lm_eval/after"),
        ("promptfoo/before.json", "promptfoo/after.json"),
        ("inspect/before.eval", "promptfoo/after.json"),
    ],
)
def test_results_of_other_tools_are_paired_by_item(before: str, after: str) -> None:
    """What the tools wrote for the same twelve questions; promptfoo's seventh answer failed."""
    compared = falter.compare(str(LOGS / before), str(LOGS / after))
    failed = "promptfoo" in after
    overall = first_difference(compared)
    assert (overall.value, overall.items) == (5 / 11, 11) if failed else (0.5, 12)
    assert "12 paired items" in text_of(compared, "sides")
    assert ("unpaired" in [figure.name for figure in compared.figures]) == failed
    begins = "Over the 12 paired items it is not" if failed else "after is better by 50.0 points ["
    assert compared.verdict[0].startswith(begins)


def test_one_file_has_its_conditions_as_sides_and_several_need_a_baseline(tmp_path: Path) -> None:
    compared = falter.compare(str(LOGS / "promptfoo" / "both.json"))
    assert [row["side"] for row in compared.table("sides")] == ["before", "after"]
    both, again = str(LOGS / "promptfoo" / "both.json"), str(tmp_path / "again.json")
    assert refused(both, f"again={both}")[0] == f"The file {both} is named twice"
    shutil.copy(both, again)
    message, hint = refused(both, again)
    assert "has several conditions" in message and hint == "name it: --baseline before"
    compared = falter.compare(both, again, baseline="before")
    assert first_difference(compared).value == 0.0


def test_tables_without_a_shared_item_are_compared_unpaired(folder: Path) -> None:
    """Newcombe's interval of 45 of 60 and 30 of 60, and it is said that nothing is paired."""
    for name, right in (("before", 30), ("after", 45)):
        rows = [f"{name} {n},{int(n < right)}" for n in range(60)]
        (folder / f"{name}.csv").write_text("\n".join(["item,correct", *rows]) + "\n")
    compared = falter.compare(str(folder / "before.csv"), str(folder / "after.csv"))
    overall = first_difference(compared)
    assert overall.value == 0.25 and overall.method == "Newcombe, independent samples"
    assert overall.low == pytest.approx(0.076, abs=0.005)  # Newcombe (1998), method 10: .0776
    assert compared.verdict[0].startswith("after is better by 25.0 points [7.")
    assert "The sides have no item in common" in text_of(compared, "unpaired")
    (folder / "few.csv").write_text("item,correct\nx,1\n")
    nothing = falter.compare(str(folder / "before.csv"), str(folder / "few.csv"))
    assert "it is not shown" in nothing.verdict[0] or "cannot be compared" in nothing.verdict[0]


def test_files_that_cannot_be_compared_are_refused(run: Callable[..., falter.Result]) -> None:
    failed = str(LOGS / "inspect" / "failed.eval")
    message, hint = refused(failed, str(LOGS / "inspect" / "after.eval"))
    assert (
        message
        == f"{failed} failed: RuntimeError('the server answered 503'); no sample has a score"
    )
    assert hint == f"run it again: inspect eval-retry {failed}"
    assert refused(run(), str(LOGS / "inspect" / "after.eval"))[0].startswith(
        "Stored runs and files"
    )
    assert refused("gone.eval", "b=gone.csv")[0] == "gone.eval does not exist"
