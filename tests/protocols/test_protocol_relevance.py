"""The relevance protocol: known effects come back, and nothing is lost without a word."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import falter
from falter.cli.app import cli
from falter.clients import clients
from falter.engine.ratings import summary_ratings, summary_sheet
from falter.measures.relevance import geval_score
from falter.perturbations import perturbations
from falter.perturbations.rewriting import RewritePerturbation
from falter.protocols import protocols
from falter.protocols.protocol import UserSettings, placed_parts
from falter.protocols.relevance.summaries import changes_between, place_in_original
from falter.records.errors import UsageError
from falter.records.ids import digest
from falter.records.interfaces import Case
from falter.records.types import (
    BASELINE,
    ContinuationScore,
    Item,
    Prompt,
    Request,
    Response,
    Rewrite,
    Variant,
)
from falter.rewrites.bank import hand_written
from falter.scorers import scorers
from falter.scorers.summary_rating import ENTAILMENT, RATINGS, option_chances
from falter.store.rewrites import put_rewrites
from falter.store.store import Store
from falter.testing import Scripted

ARTICLES, LENGTH, LOST = 48, 6, 0.4
TEMPLATE = "Summarise this article in one sentence.\n\n{article}\n\nSummary:"


def sentence(article: int, place: int) -> str:
    """Words that no other sentence has, of letters alone."""
    number = f"{article}x{place}".translate(str.maketrans("0123456789", "abcdefghij"))
    return " ".join(f"{word}{number}" for word in ("Word", "thing", "place")) + "."


def numbers_in(text: str) -> tuple[int, int]:
    """The article and the place of the first sentence of a text."""
    first = text.removeprefix("| ").removeprefix("Otherwise ").split()[0][4:]
    article, place = first.translate(str.maketrans("abcdefghij", "0123456789")).split("x")
    return int(article), int(place)


def reworded(text: str) -> str:
    return f"Otherwise {text[0].lower()}{text[1:]}"


def source_of(article: int) -> int:
    return article % LENGTH


def gives_up(article: int) -> bool:
    """Whether the scripted model loses the main sentence of an article when it is reworded."""
    return int(digest("gives up", article)[7:15], 16) / 16**8 < LOST


def article_number(request: Request) -> int:
    return numbers_in(request.variant.item.fields["article"])[0]


def summarised(request: Request) -> str:
    """The main sentence; the next one where it was reworded and the model gives up."""
    article = article_number(request)
    place = source_of(article)
    hit = request.variant.recipe.label.startswith("paraphrase_relevant")
    if hit and gives_up(article):
        return sentence(article, (place + 1) % LENGTH)
    return sentence(article, place)


def judged(request: Request) -> str:
    """5 for the main sentence, 2 for another; yes and no where entailment is asked."""
    article, place = numbers_in(request.variant.item.fields["summary"])
    good = place == source_of(article)
    if request.variant.prompt.choices == ENTAILMENT:
        return "yes" if good else "no"
    return "5" if good else "2"


@pytest.fixture(scope="module", autouse=True)
def scripted() -> Iterator[None]:
    """The summariser and two judges, known by name for as long as these tests run."""
    made = {
        "summariser": lambda _: Scripted(summarised, name="summariser"),
        "rater": lambda _: Scripted(judged, name="rater"),
        "writing_rater": lambda _: Scripted(judged, name="writing_rater", scores=False),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, connect in made.items():
            patch.setitem(clients._objects, name, connect)
        yield


def rewrite_of(text: str, *, status: str = "ok") -> Rewrite:
    made = perturbations.get("paraphrase_relevant")
    assert isinstance(made, RewritePerturbation)
    rewrite = hand_written(made.wanted(text, 0), reworded(text), "somebody")
    if status == "ok":
        return rewrite
    return replace(rewrite, status=status, text=None, reason="the answer is the text itself")


def prepared(folder: Path, identical: int = 0) -> dict[str, Any]:
    """Data and a store with a rewrite of every sentence; those of some articles came back."""
    lines = []
    rewrites = []
    for n in range(ARTICLES):
        article = [sentence(n, place) for place in range(LENGTH)]
        lines.append({"article": " ".join(article), "gold": article[source_of(n)], "id": n})
        status = "identical" if n < identical else "ok"
        rewrites += [rewrite_of(text, status=status) for text in article]
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    store = folder / "falter.db"
    with Store(store) as opened:
        put_rewrites(opened, rewrites)
    return {
        "protocol": "relevance",
        "data": {"path": str(path), "target": "gold", "key": "id"},
        "template": TEMPLATE,
        "models": ["summariser"],
        "scorer": ["summary_rouge1", "summary_rouge2"],
        "limit": ARTICLES,
        "store": store,
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> falter.Result:
    """Every article with every rewrite."""
    return falter.run(**prepared(tmp_path_factory.mktemp("whole")))


def test_known_effects_come_back(whole: falter.Result) -> None:
    """A model that loses a known share of main sentences, and nothing under the controls."""
    result = whole
    lost = sum(map(gives_up, range(ARTICLES))) / ARTICLES
    grid = result.figure("relative-change")
    by_arm = {row[3]: row for row in grid.rows if row[2] == "ROUGE-1"}
    assert list(by_arm) == [
        "relevant sentences", "irrelevant sentences", "relevant sentences, top 3",
        "same article again",
    ]  # fmt: skip
    for arm, row in by_arm.items():
        expected = -lost if arm.startswith("relevant") else 0.0
        both, left_out, old, new, change, net = row[4:]
        assert (both, left_out) == (ARTICLES, 0)
        assert old.value == 1.0
        assert new.value == pytest.approx(1.0 + expected)
        assert change.value == pytest.approx(expected)
        if expected:
            assert change.low <= -LOST <= change.high < 0.0
            assert net.value == pytest.approx(expected)
    relevant, top = (row for row in result.figure("controls").rows if row[2] == "ROUGE-2")
    assert relevant[-1].value == pytest.approx(-lost)
    assert top[-1].value == pytest.approx(0.0)


def test_sources_move_as_known(whole: falter.Result) -> None:
    """The expected summaries have the sources of the originals; giving up moves them by one."""
    result = whole
    lost = sum(map(gives_up, range(ARTICLES))) / ARTICLES
    rows = {row[2]: row for row in result.figure("source-shift").rows}
    for arm, row in rows.items():
        share = lost if arm.startswith("relevant") else 0.0
        assert row[3] == ARTICLES
        assert row[-2].value == pytest.approx(share), arm
        assert row[-1].value == pytest.approx(1.0 - share)
    positions = {row[2]: row[5:] for row in result.figure("source-positions").rows}
    assert positions["original"] == positions["expected summary"]
    assert sum(positions["original"]) == pytest.approx(1.0)
    assert positions["original"] != positions["relevant sentences"]


def test_an_article_without_a_rewrite_leaves_both_sides_and_is_counted(tmp_path: Path) -> None:
    """As is the sentence that came back as it was, with its rewriter."""
    result = falter.run(**prepared(tmp_path, identical=5))
    (row, *_) = result.figure("relative-change").rows
    assert row[4:6] == (ARTICLES - 5, 5)
    (rewriter,) = result.figure("rewriters").rows
    every = ARTICLES * LENGTH
    assert rewriter[:5] == ("somebody", every, every - 5 * LENGTH, 5 * LENGTH, 0)
    assert rewriter[5].value == pytest.approx(5 / ARTICLES)
    (meaning, *_) = result.figure("rewrite-meaning").rows
    assert meaning[2:4] == (ARTICLES - 5, ARTICLES - 5)
    assert 0.5 < meaning[4].value < 1.0


def test_a_judge_sees_what_got_lost(tmp_path: Path) -> None:
    """Ratings and entailment by likelihood; MENLI's combination has both."""
    scorer = ["summary_rouge1", "summary_bertscore"]
    settings = {**prepared(tmp_path), "judge": "rater", "limit": 10, "scorer": scorer}
    result = falter.run(**settings)
    assert [part.part.name for part in result.parts] == ["greedy", "rating", "entailment"]
    ratings = {row[2]: row for row in result.figure("rating").rows}
    assert ratings["expected summary"][4].value == pytest.approx(5.0)
    assert ratings["original"][4].value == pytest.approx(5.0)
    loss = ratings["relevant sentences"][5].value
    assert loss < 0.0
    assert ratings["relevant sentences"][4].value == pytest.approx(5.0 + loss)
    assert ratings["irrelevant sentences"][5].value == pytest.approx(0.0)
    entailed = {row[2]: row for row in result.figure("entailment").rows}
    assert "expected summary" not in entailed
    assert entailed["original"][4].value == pytest.approx(1.0)
    assert entailed["relevant sentences"][5].value == pytest.approx(2.0 * loss / 3.0)
    f1 = {row[3]: row for row in result.figure("relative-change").rows if row[2] == "BERTScore"}
    new = f1["relevant sentences"][7].value
    expected = 0.3 * entailed["relevant sentences"][4].value + 0.7 * new
    assert entailed["relevant sentences"][6].value == pytest.approx(expected)


def test_a_judge_without_likelihoods_writes_its_rating(tmp_path: Path) -> None:
    """And is not asked for entailment."""
    settings = {**prepared(tmp_path), "judge": "writing_rater", "limit": 4}
    result = falter.run(**settings)
    assert [part.part.name for part in result.parts] == ["greedy", "rating"]
    ratings = {row[2]: row for row in result.figure("rating").rows}
    assert ratings["original"][4].value == 5.0


def test_people_rate_without_knowing_whose_summary_it_is(
    whole: falter.Result, tmp_path: Path
) -> None:
    """A sheet goes out, two raters' copies come back, the best arm is named."""
    store = whole.store
    text = summary_sheet(store, articles=8, seed=3)
    rows = list(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))))
    assert len(rows) == 24
    assert set(rows[0]) == {"row", "article", "summary", "faithfulness", "coherence", "relevance"}
    assert "original" not in text
    files = []
    for rater in ("ann", "bob"):
        for row in rows:
            article, place = numbers_in(row["summary"])
            good = place == source_of(article)
            row.update(faithfulness="1" if good else "0", coherence="4", relevance="")
        files.append(tmp_path / f"{rater}.csv")
        with files[-1].open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    drawn = ["--articles", "8", "--seed", "3", "--store", str(store)]
    sheet = tmp_path / "sheet.csv"
    assert invoke("ratings", "export", "-o", str(sheet), *drawn) == (0, "")
    assert sheet.read_text("utf-8") == text.replace("\r\n", "\n")
    assert invoke("ratings", "export", "-o", str(sheet), *drawn)[0] == 2
    code, printed = invoke("ratings", "import", *map(str, files), *drawn)
    assert code == 0 and "  best: expected summary and original" in printed
    assert "    faithfulness  1.00 [0.35, 1.00]    sd 0.00  8 rated" in printed
    code, printed = invoke("ratings", "import", *map(str, files), *drawn, "--json")
    assert json.loads(printed)[0]["best"] == ["expected summary", "original"]
    assert invoke("ratings", "import", *drawn)[0] == 2
    assert invoke("ratings", "import", str(tmp_path / "none.csv"), *drawn)[0] == 2
    rated = summary_ratings(store, files, articles=8, seed=3)
    (found,) = rated.values()
    assert found.means["original"]["faithfulness"].value == 1.0
    assert found.means["relevant sentences"]["faithfulness"].value < 1.0
    assert found.means["original"]["relevance"].status == "insufficient_data"
    assert found.best == ("expected summary", "original")
    with pytest.raises(UsageError, match="no row"):
        summary_ratings(store, files, articles=8, seed=4)
    whole = files[0].read_text()
    files[0].write_text(whole.replace(",", ";"))
    assert summary_ratings(store, files, articles=8, seed=3) == rated
    spoilt = {
        "coherence is '6'": whole.replace(",4,", ",6,").encode(),
        "stands there twice": (whole + whole.partition("\n")[2]).encode(),
        "no column 'coherence'": whole.replace("coherence", "other").encode(),
        "no column 'row'": whole.replace("row", "line", 1).encode(),
        "UTF-8": whole.replace(",4,", ",\xe9,").encode("latin-1"),
        "is no sheet": (whole + "x" * 20_000_000).encode(),
    }
    for message, content in spoilt.items():
        files[0].write_bytes(content)
        with pytest.raises(UsageError, match=message):
            summary_ratings(store, files, articles=8, seed=3)


def test_a_sentence_is_found_again_where_a_rewrite_made_two_of_it() -> None:
    before, after = ["a", "b", "c", "d"], ["a", "x", "y", "c", "z"]
    changes = changes_between(before, after)
    assert [place_in_original(n, changes) for n in range(5)] == [0, 1, 1, 2, 3]
    shorter = changes_between(before, ["x", "c", "d"])
    assert [place_in_original(n, shorter) for n in range(3)] == [0, 2, 3]
    assert place_in_original(2, changes_between(before, before)) == 2


def invoke(*arguments: str) -> tuple[int, str]:
    """A command's exit code, and what it prints."""
    result = CliRunner().invoke(cli, arguments)
    code = getattr(result.exception, "exit_code", result.exit_code)
    return code, result.stdout


# Parts


def test_every_figure_and_part_is_explained(whole: falter.Result) -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocols" / "relevance.md").read_text("utf-8")
    names = [figure.name for figure in whole.figures]
    names += ["rating", "entailment", "sampled", "greedy"]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_presets_ask_what_they_say() -> None:
    protocol = protocols.get("relevance")
    names = {
        preset: [part.name for part in protocol.parts(UserSettings(preset=preset, judge=True))]
        for preset in protocol.presets
    }
    assert names == {
        "quick": ["greedy", "rating", "entailment"],
        "bundled": ["sampled", "greedy", "rating", "entailment"],
        "paper": ["sampled", "greedy", "rating", "entailment"],
    }
    sampled = protocol.parts(UserSettings(preset="paper"))[0]
    assert sampled.experiment["tasks"] == ["cnn_dailymail", "xsum", "reddit_tifu", "news_summary"]
    assert sampled.experiment["sampling"] == {"temperature": 0.7}
    assert sampled.experiment["repeats"] == 3
    settings = UserSettings(preset="quick", tasks=(("basics", "choices"),))
    placed, left_out = placed_parts(protocol.parts(settings), settings)
    assert placed == ()
    assert "an open answer" in left_out[0].reason


def test_the_quick_preset_needs_no_rewriter(tmp_path: Path) -> None:
    """Every bundled article has a rewrite of whatever sentence is drawn."""
    result = falter.run(
        protocol="relevance", models=["simulated"], limit=3, seed=11, scorer="summary_rouge1",
        store=tmp_path / "falter.db",
    )  # fmt: skip
    assert [row[4:6] for row in result.figure("relative-change").rows] == [(3, 0)] * 4


# Scorers of a judge


def case(choices: tuple[str, ...], logprobs: list[float]) -> Case:
    item = Item(task="t", key="k", fields={}, choices=choices)
    prompt = Prompt(sections=(), choices=choices, labels=tuple("ABCDE"[: len(choices)]))
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    scores = tuple(ContinuationScore(logprob=value, tokens=1) for value in logprobs)
    return Case(variant=variant, response=Response(key="r", scores=scores))


def test_a_rating_is_the_expected_one() -> None:
    """The number that G-Eval's formula gives for the same chances."""
    chances = [0.05, 0.1, 0.15, 0.3, 0.4]
    score = scorers.get("summary_rating_likelihood").score(
        case(RATINGS, [math.log(p) for p in chances])
    )
    percent = json.loads(score.extracted or "")
    assert percent == pytest.approx([100 * p for p in chances])
    rating = geval_score(percent).value
    assert rating == pytest.approx(3.9)
    assert score.value == pytest.approx((rating - 1.0) / 4.0)


def test_entailment_less_contradiction() -> None:
    logprobs = [math.log(p) for p in (0.6, 0.1, 0.3)]
    score = scorers.get("entailment_likelihood").score(case(ENTAILMENT, logprobs))
    assert score.value == pytest.approx(0.75)


def test_chances_need_numbers() -> None:
    """A floor that servers send in place of a number is none."""
    assert option_chances([]) is None
    assert option_chances([-9999.0, -9999.0]) is None
    assert option_chances([float("nan"), -1.0]) is None
    assert option_chances([-1000.0, -1000.0]) == (0.5, 0.5)
    scorer = scorers.get("summary_rating_likelihood")
    assert scorer.score(case(RATINGS, [-1.0, float("inf"), -1.0, -1.0, -1.0])).outcome == "failed"
    assert scorer.score(case(RATINGS, [-1.0])).outcome == "failed"
    assert scorer.score(case(("a", "b"), [-1.0, -2.0])).outcome == "failed"


@pytest.mark.parametrize(
    ("reply", "value"),
    [("4", 0.75), ("Rating: 5/5", 1.0), ("I give it 1 out of 5.", 0.0), ("3 or 4", None),
     ("4.5", None), ("6", None), ("good", None)],
)  # fmt: skip
def test_a_written_rating_is_one_number(reply: str, value: float | None) -> None:
    base = case(RATINGS, [])
    told = replace(base, response=Response(key="r", text=reply))
    assert scorers.get("summary_rating").score(told).value == value
