"""The relevance protocol: known effects come back, and nothing is lost without a word."""

from __future__ import annotations

import asyncio
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
from falter.measures.relevance import geval_score, position_shift
from falter.perturbations import perturbations
from falter.perturbations.rewriting import RewritePerturbation
from falter.protocols import protocols
from falter.protocols.protocol import UserSettings, placed_parts
from falter.protocols.relevance import _claim
from falter.protocols.relevance.summaries import changes_between, place_in_original
from falter.records.errors import FalterError, UsageError
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
from falter.report.forms.latex import as_latex
from falter.rewrites.bank import hand_written
from falter.scorers import scorers
from falter.scorers.base import TextScorer
from falter.scorers.summary_rating import ENTAILMENT, RATINGS, option_chances
from falter.store.rewrites import put_rewrites
from falter.store.store import Store
from falter.tasks import tasks
from falter.tasks.sizes import described_rows, sized_by_description, sizes
from falter.testing import Scripted
from falter.weights.downloads import MINILM, find_weights
from falter.weights.embedding import encoder_named, minilm
from local_server import Asked, LocalServer
from tex import compiled, needs_tex

ARTICLES, LENGTH, LOST = 32, 6, 0.4
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
    assert (relevant[-2].value, relevant[6]) == (pytest.approx(-lost), round(lost * ARTICLES))
    assert relevant[-1] < 0.001
    assert (top[-2].value, top[6], top[-1]) == (pytest.approx(0.0), 0, None)
    text = result.figure("answer").text
    assert "it matters which sentences change, these sentences cost more (p <0.001)." in text[0]
    assert f"all {5 * ARTICLES} answers were read" in text[-1]


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
    curves = {curve.label: curve.points for curve in result.figure("source-positions").curves}
    assert curves["original"] == curves["expected summary"] != curves["relevant sentences"]
    assert sum(share.value for _, share in curves["original"]) == pytest.approx(1.0)


def test_charts_and_the_papers_table(whole: falter.Result) -> None:
    """Changes and moved sources as forests, Table 1, kept lengths, and the article that fell."""
    lost = sum(map(gives_up, range(ARTICLES))) / ARTICLES
    drawn = {row.label: row.estimate for row in whole.figure("changes").rows}
    assert drawn["ROUGE-1, relevant sentences"].value == pytest.approx(-lost)
    moved = {row.label: row.estimate.value for row in whole.figure("source-changes").rows}
    assert moved["relevant sentences"] == pytest.approx(lost)
    first, *_ = whole.figure("table-1").rows
    assert first[:2] == ("own", "ROUGE-1") and first[2].value == pytest.approx(-lost)
    kept = {row[2]: row[3:] for row in whole.figure("lengths").rows}
    assert kept["original"][0] == ARTICLES and kept["original"][1].value == 1.0
    (example,) = whole.figure("example").examples
    assert example.baseline.right and not example.perturbed.right
    assert any(part.kind == "edit" for part in example.segments)


@pytest.mark.parametrize(
    ("differ", "articles", "p", "claim"),
    [
        (5, 5, None, "only 5 of them differ, so nothing is claimed"),
        (9, 12, 0.2, "undecided (p = 0.200), too few articles to show a moderate effect"),
        (90, 120, 0.2, "undecided (p = 0.200)"),
        (9, 12, 0.03, "it matters which sentences change, these sentences cost more (p = 0.030)"),
    ],
)
def test_what_is_claimed_follows_the_test(
    differ: int, articles: int, p: float | None, claim: str
) -> None:
    """Nothing from fewer than six articles that differ, undecided above .05."""
    assert _claim(-0.2, p, differ, articles, 0.05) == claim


def test_ways_of_choosing_sentences_can_be_named(tmp_path: Path) -> None:
    """ROUGE-1 and the number of sentences, each beside its own control; asking again is added."""
    settings = prepared(tmp_path) | {"limit": 6, "scorer": "summary_rouge1"}
    way = "method=rouge1,top=2"
    settings["recipes"] = [f"paraphrase_relevant:{way}", f"paraphrase_irrelevant:{way}"]
    result = falter.run(**settings)
    assert [row[3] for row in result.figure("relative-change").rows] == [
        "relevant sentences, top 2, by rouge1", "irrelevant sentences, top 2, by rouge1",
        "same article again",
    ]  # fmt: skip
    assert [row[4] for row in result.figure("controls").rows] == [
        "irrelevant sentences, top 2, by rouge1"
    ]
    assert "nothing is claimed" in result.figure("answer").text[0]


def test_an_article_without_a_rewrite_leaves_both_sides_and_is_counted(tmp_path: Path) -> None:
    """As is the sentence that came back as it was, with its rewriter."""
    result = falter.run(**prepared(tmp_path, identical=20) | {"limit": 12})
    (row, *_) = result.figure("relative-change").rows
    (rewriter,) = result.figure("rewriters").rows
    left_out = rewriter[3] // LENGTH
    assert row[4:6] == (12 - left_out, left_out) and left_out >= 2
    assert rewriter[:3] == ("somebody", 12 * LENGTH, (12 - left_out) * LENGTH)
    assert rewriter[5].value == pytest.approx(left_out / 12)
    (meaning, *_) = result.figure("rewrite-meaning").rows
    assert meaning[2:4] == (12 - left_out, 12 - left_out)
    assert 0.5 < meaning[4].value < 1.0
    assert (
        result.figure("answer")
        .text[0]
        .startswith(f"{left_out * LENGTH} of {12 * LENGTH} rewrites by somebody cannot be used")
    )


def test_a_judge_sees_what_got_lost(tmp_path: Path) -> None:
    """Ratings and entailment by likelihood; MENLI's combination has both."""
    scorer = ["summary_rouge1", "summary_bertscore"]
    settings = {**prepared(tmp_path), "judge": "rater", "limit": 3, "scorer": scorer}
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
    """And whether a summary follows: as with likelihoods, between yes and no."""
    settings = {**prepared(tmp_path), "judge": "writing_rater", "limit": 3}
    result = falter.run(**settings)
    assert [part.part.name for part in result.parts] == ["greedy", "rating", "entailment"]
    ratings = {row[2]: row for row in result.figure("rating").rows}
    assert ratings["original"][4].value == 5.0
    entailed = {row[2]: row for row in result.figure("entailment").rows}
    assert entailed["original"][4].value == 1.0
    assert entailed["relevant sentences"][5].value == pytest.approx(
        2.0 * ratings["relevant sentences"][5].value / 3.0
    )


def test_any_server_says_whether_a_summary_follows(tmp_path: Path) -> None:
    """The judge of entailment is a model by name; on the wire are both texts and the question."""

    def answer(asked: Asked) -> tuple[int, object]:
        message = {"role": "assistant", "content": "Maybe."}
        return 200, {"choices": [{"message": message, "finish_reason": "stop"}]}

    async def run() -> tuple[falter.Result, LocalServer]:
        async with LocalServer(answer) as server:
            judge = {"name": "openai:nli", "base_url": server.base_url}
            settings = {**prepared(tmp_path), "judge": judge, "limit": 2, "parts": ["entailment"]}
            return await asyncio.to_thread(falter.run, **settings), server

    result, server = asyncio.run(run())
    prompts = {asked.body["messages"][-1]["content"] for asked in server.posted}
    assert {asked.body["model"] for asked in server.posted} == {"nli"}
    cue = "Does the second follow from the first?"
    for prompt in prompts:
        assert prompt.count(" text:\n| ") == 2
        assert prompt.endswith("\nReply with yes, no or maybe and nothing else.\n" + cue)
    assert [row[4].value for row in result.figure("entailment").rows] == [0.0] * 5


def test_bertscore_with_an_encoder_by_name(tmp_path: Path) -> None:
    """The bundled encoder as a folder gives the numbers that it gives by itself."""
    folder = tmp_path / "my-encoder"
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "model.onnx").symlink_to(find_weights(MINILM))
    minilm()._tokenizer.save(str(folder / "tokenizer.json"))
    scorer = ["summary_bertscore", f"summary_bertscore:{folder}"]
    result = falter.run(**{**prepared(tmp_path), "limit": 2, "scorer": scorer})
    rows = result.figure("relative-change").rows
    named = [row for row in rows if row[2] == "BERTScore (my-encoder)"]
    assert [row[3:] for row in named] and len(named) == len(rows) / 2
    values = [[row[7].value for row in rows if row[2] == name]
              for name in ("BERTScore", "BERTScore (my-encoder)")]  # fmt: skip
    assert values[0] == values[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scorer": "summary_bertscore:roberta"}, "no encoder 'roberta'"),
        ({"scorer": "summary_rouge1:roberta"}, "takes no argument after a colon"),
        ({"judge": "nowhere:nli"}, "Unknown client 'nowhere'"),
    ],
)
def test_unknown_encoders_and_judges_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    """Before anything is sent, with what can be named."""
    with pytest.raises(FalterError, match=message) as refused:
        falter.run(**{**prepared(tmp_path), **settings})
    named = "tokenizer.json" if "encoder" in message else ""
    assert named in (refused.value.hint or "")
    with Store(tmp_path / "falter.db") as store:
        assert store.runs() == []


def test_an_export_without_hidden_states_is_refused(tmp_path: Path) -> None:
    """MiniLM under another name for its output, as an export for another task has it."""
    weights = find_weights(MINILM)
    assert weights is not None
    other = weights.read_bytes().replace(b"last_hidden_state", b"logits_of_a_model")
    (tmp_path / "model.onnx").write_bytes(other)
    minilm()._tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(FalterError, match="the first output is 'logits_of_a_model'"):
        encoder_named(str(tmp_path))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("Yes.", 1.0), ("**no**", 0.0), ("Answer: maybe", 0.5), ("", None), ("yes or no", None),
        ("The second follows from the first; there is no contradiction.", None),
        ("No doubt about it: it follows.", None), ("The answer is not yes.", None),
    ],
)  # fmt: skip
def test_a_judge_writes_one_word_and_nothing_else(written: str, value: float | None) -> None:
    scorer = scorers.get("entailment_written")
    assert isinstance(scorer, TextScorer)
    assert scorer.read(written, None).value == value  # type: ignore[arg-type]


def test_people_rate_without_knowing_whose_summary_it_is(
    whole: falter.Result, tmp_path: Path
) -> None:
    """A sheet goes out, two raters' copies come back, the best arm is named."""
    store = whole.store
    text = summary_sheet(store, articles=8, seed=3)
    rows = list(csv.DictReader(io.StringIO(text.lstrip("\ufeff"))))
    assert rows.pop(0)["faithfulness"] == "0 or 1"  # how to rate
    assert len(rows) == 24
    together = [numbers_in(row["article"])[0] for row in rows]
    assert together == [article for article in together[::3] for _ in range(3)]
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
    assert "    faithfulness  1.00 [0.63, 1.00]    sd 0.00  8 rated" in printed
    assert "  raters agree on faithfulness: alpha 1.00 [" in printed
    assert "  best, article by article: expected summary 8, original 8, relevant" in printed
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
    for saved in (
        whole.replace(",", ";").encode(),
        whole.replace(",", "\t").encode("utf-16"),
        whole.replace(",4,", ",4.0,").replace("Word", "Wört").encode("latin-1"),
    ):
        files[0].write_bytes(saved)
        assert summary_ratings(store, files, articles=8, seed=3) == rated
    empty = tmp_path / "empty.csv"
    empty.write_text(text)
    (nothing,) = summary_ratings(store, [empty], articles=8, seed=3).values()
    assert nothing.best == ()
    assert "best: nothing was rated" in invoke("ratings", "import", str(empty), *drawn)[1]
    spoilt = {
        "coherence is '6'": whole.replace(",4,", ",6,").encode(),
        "appears twice": (whole + whole.partition("\n")[2]).encode(),
        "no column 'coherence'": whole.replace("coherence", "other").encode(),
        "no column 'row'": whole.replace("row", "line", 1).encode(),
        "coherence is 'é'": whole.replace(",4,", ",\xe9,").encode("latin-1"),
        "is not a CSV sheet": (whole + "x" * 20_000_000).encode(),
    }
    for message, content in spoilt.items():
        files[0].write_bytes(content)
        with pytest.raises(UsageError, match=message):
            summary_ratings(store, files, articles=8, seed=3)


def test_a_sentence_is_found_again_where_a_rewrite_made_two_of_it() -> None:
    before, after = ["a", "b", "c", "d"], ["a", "x", "y", "c", "z"]
    changes = changes_between(before, after)
    assert [place_in_original(n, changes, 4) for n in range(5)] == [0, 1, 1, 2, 3]
    shorter = changes_between(before, ["x", "c", "d"])
    assert [place_in_original(n, shorter, 4) for n in range(3)] == [0, 2, 3]
    assert place_in_original(2, changes_between(before, before), 4) == 2


def test_a_sentence_added_after_the_last_one_counts_as_the_last_one() -> None:
    """Its place is one of the original article's, so the shift of the sources can be computed."""
    before = ["a", "b"]
    changes = changes_between(before, ["a", "b", "new", "newer"])
    places = [place_in_original(n, changes, len(before)) for n in range(4)]
    assert places == [0, 1, 1, 1]
    shift = position_shift([[0, 1]], [places], [len(before)], replications=2)
    assert shift.after.shares is not None


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
    assert [n for n in names if f"`{n}`" not in page and f"--figure {n}`" not in page] == []


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


def test_planned_data_sets_share_no_prompt() -> None:
    """So that a plan's calls are its cells; Reddit has as many stories as the paper tests on."""
    with sized_by_description():
        xsum, reddit = (described_rows(name) for name in ("xsum", "reddit_tifu"))
    assert xsum and reddit
    assert not {row["document"] for row in xsum} & {row["documents"] for row in reddit}
    assert sizes()["reddit_tifu"]["rows"] == tasks.get("reddit_tifu").test_items == 4214


def test_a_test_part_is_drawn_by_the_hash_of_the_text(tmp_path: Path) -> None:
    """The same stories wherever they stand; a file of one's own is taken whole."""
    rows = [{"documents": f"Story {n}.", "tldr": f"Short {n}."} for n in range(30)]
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    task = tasks.get("reddit_tifu")
    whole = task(str(path)).items
    part = replace(task, test_items=10)._test_part(whole, None)
    assert len(whole) == 30 and len(part) == 10
    assert [item.key for item in part] == [i.key for i in whole if i in part]
    assert part[::-1] == replace(task, test_items=10)._test_part(whole[::-1], None)


@needs_tex
def test_the_latex_of_all_figures_compiles(whole: falter.Result, tmp_path: Path) -> None:
    compiled(as_latex(whole.study), tmp_path)
