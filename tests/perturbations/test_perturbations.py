"""The perturbations: what each does, how steps are checked, how chains run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations, site_perturbation
from falter.perturbations.recipes import resolve_step
from falter.records.errors import DuplicateName, InvalidValue, UnknownName
from falter.records.ids import step_seed
from falter.records.registry import Registry
from falter.records.render import plain
from falter.records.rng import Rng
from falter.records.types import Demonstration, Item, Prompt, Recipe, Section, Span, Step
from falter.tasks import Template
from falter.text.words import natural_words

DOCS = Path(__file__).parents[2] / "docs" / "perturbations"
QUESTION = "What is the capital of France, and why is it not the largest city?"


def prompt_of(text: str, *, demonstrations: tuple[Demonstration, ...] = ()) -> Prompt:
    sections = (
        Section(name="system", kind="system", text="Be brief."),
        Section(name="input", kind="input", text=text),
        Section(name="cue", kind="cue", text="\nAnswer:"),
    )
    return Prompt(sections=sections, demonstrations=demonstrations, target="Paris")


def recipe_of(*steps: str) -> Recipe:
    return Recipe(label="test", steps=tuple(map(parse_step, steps)))


def run(text: str, *steps: str, key: str = "k") -> tuple[str, str]:
    after, status, _ = apply_recipe(key, prompt_of(text), recipe_of(*steps), 0, 0)
    return after.sections[1].text, status


def test_statuses() -> None:
    """Baseline, changed, unchanged and not applicable are told apart."""
    assert run(QUESTION) == (QUESTION, "baseline")
    assert run(QUESTION, "typos")[1] == "changed"
    assert run(QUESTION, "typos:rate=0") == (QUESTION, "unchanged")
    assert run("3 + 4 = ?", "typos") == ("3 + 4 = ?", "not_applicable")
    assert run("3 + 4 = ?", "typos:rate=0")[1] == "not_applicable"
    assert run("", "word_merge")[1] == "not_applicable"


def test_chain_is_not_applicable_as_a_whole() -> None:
    """When one step finds nothing, the original prompt comes back."""
    text = "Paris?"
    assert run(text, "punctuation_spaces")[1] == "changed"
    after, status, _ = apply_recipe(
        "k", prompt_of(text), recipe_of("punctuation_spaces", "word_merge"), 0, 0
    )
    assert (after, status) == (prompt_of(text), "not_applicable")


def test_order_matters() -> None:
    """a then b is not b then a."""
    assert run(QUESTION, "word_merge", "word_split") != run(QUESTION, "word_split", "word_merge")


def test_repeated_step_draws_anew() -> None:
    """The same step twice edits other places the second time."""
    once, _ = run(QUESTION, "typos:count=2")
    twice, _ = run(QUESTION, "typos:count=2", "typos:count=2")
    assert once != twice


def test_count_and_rate() -> None:
    """A count makes exactly so many edits; a rate the rounded share, and at least one."""
    made = [
        len(apply_recipe("k", prompt_of(QUESTION), recipe_of(step), 0, 0)[0].sections[1].edits)
        for step in ("typos:count=3", "typos:count=99", "typos:rate=1", "typos:rate=0.001")
    ]
    assert made[0] == 3
    assert made[1] == made[2] > 5
    assert made[3] == 1


def test_items_and_draws_differ() -> None:
    """Item key and draw change the draw, run seed too."""
    base = prompt_of(QUESTION)
    recipe = recipe_of("typos")
    runs = [("a", 0, 0), ("b", 0, 0), ("a", 1, 0), ("a", 0, 1)]
    assert len({plain(apply_recipe(k, base, recipe, s, d)[0]) for k, s, d in runs}) == 4


def test_scope_and_protect() -> None:
    """Scope says which kinds of section are edited, protect what is left alone."""
    step = resolve_step("typos", {"rate": 1, "scope": ["system"], "protect": ["Be"]})
    after, *_ = apply_recipe("k", prompt_of(QUESTION), Recipe(label="x", steps=(step,)), 0, 0)
    assert after.sections[1].text == QUESTION
    assert after.sections[0].text.startswith("Be ")
    assert after.sections[0].text != "Be brief."


def test_sections_share_one_dose() -> None:
    """Places of all sections in scope are taken together."""
    sections = tuple(Section(name=n, kind="input", text=QUESTION) for n in "ab")
    step = parse_step("typos:count=1")
    after, *_ = apply_recipe("k", Prompt(sections=sections), Recipe(label="x", steps=(step,)), 0, 0)
    assert sum(len(section.edits) for section in after.sections) == 1


@pytest.mark.parametrize(
    ("name", "params", "error", "message"),
    [
        ("typo", {}, UnknownName, "did you mean 'typos'?"),
        ("typos", {"rat": 1}, UnknownName, "Unknown parameter of typos 'rat'"),
        ("typos", {"rate": 2}, InvalidValue, "typos.rate is 2; expected a number from 0 to 1"),
        ("typos", {"rate": float("nan")}, InvalidValue, "typos.rate is nan"),
        ("typos", {"rate": "a"}, InvalidValue, "typos.rate is 'a'"),
        ("typos", {"rate": None}, InvalidValue, "typos.rate is None"),
        ("typos", {"count": True}, InvalidValue, "typos.count is True"),
        ("typos", {"count": -1}, InvalidValue, "typos.count is -1"),
        ("typos", {"count": 1.5}, InvalidValue, "typos.count is 1.5"),
        ("typos", {"rate": 0.1, "count": 2}, InvalidValue, "not both"),
        ("typos", {"kind": "keybord"}, InvalidValue, "did you mean 'keyboard'?"),
        ("typos", {"kind": 3}, InvalidValue, "typos.kind is 3"),
        ("typos", {"language": "ja"}, InvalidValue, "one of: de, en, es, fr, it, nl, pt"),
        ("typos", {"scope": ["inputs"]}, InvalidValue, "did you mean 'input'?"),
        ("typos", {"protect": [3]}, InvalidValue, "typos.protect is"),
        ("typos", {"protect": ["("]}, InvalidValue, "a regular expression"),
        ("pad_quotes", {"count": 65}, InvalidValue, "from 0 to 64"),
        ("persona", {"file": "/no/such"}, InvalidValue, "persona.file is '/no/such'"),
    ],
)
def test_bad_steps(
    name: str, params: dict[str, object], error: type[Exception], message: str
) -> None:
    """What is wrong with a step is said before anything runs."""
    with pytest.raises(error, match=re.escape(message)):
        resolve_step(name, params)


def test_steps_are_spelled_out() -> None:
    """A resolved step holds every parameter, equal ones are equal, and resolving is idempotent."""
    step = resolve_step("typos", {"rate": 1})
    assert step == resolve_step("typos", {"rate": 1.0})
    assert type(step.params["rate"]) is float
    assert set(step.params) == {p.name for p in perturbations.get("typos").parameters}
    counted = parse_step("typos:count=4,kind=keyboard")
    assert (counted.params["count"], counted.params["rate"]) == (4, None)
    for one in (step, counted):
        assert resolve_step(one.name, one.params) == one
    assert parse_step("typos:scope=input|choices").params["scope"] == ("input", "choices")


@pytest.mark.parametrize("text", ["", ":", "typos:", "typos:count", "typos:count=1,count=2"])
def test_bad_step_texts(text: str) -> None:
    """A step text that is not of the form is shown with the form."""
    with pytest.raises(InvalidValue, match="name:parameter=value"):
        parse_step(text)


def test_step_text_of_wrong_type() -> None:
    """Values on the command line are checked like others."""
    for text in ("typos:count=x", "typos:rate=x", "typos:count=4.5"):
        with pytest.raises(InvalidValue, match="expected a"):
            parse_step(text)
    with pytest.raises(UnknownName, match="parameter of typos"):
        parse_step("typos:cuont=4")


def test_other_version_is_refused() -> None:
    """A recipe made with another version of a perturbation is not run with this one."""
    step = Step(name="typos", version=99, params=resolve_step("typos").params)
    with pytest.raises(InvalidValue, match=r"typos\.version is 99"):
        apply_recipe("k", prompt_of(QUESTION), Recipe(label="x", steps=(step,)), 0, 0)


@pytest.mark.parametrize("kind", ["all", "charmix", "keyboard", "misspelling"])
def test_typos(kind: str) -> None:
    """Each word is another one of much the same letters, in the same case, never a known word."""
    text = "Although people believe beautiful castles definitely separate their neighbours"
    for seed in range(20):
        words = perturb(text, f"typos:rate=1,kind={kind}", seed=seed).split(" ")
        pairs = list(zip(text.split(" "), words, strict=True))
        assert all(a[0].isupper() == b[0].isupper() for a, b in pairs)
        assert all(a != b for a, b in pairs) or kind == "misspelling"
        assert sum(a != b for a, b in pairs) >= 4


def test_typos_make_no_common_word() -> None:
    """A slip never turns one short common word into another."""
    text = "cat hat form trail angle lose met than desert hit hut pot"
    for seed in range(100):
        for word in perturb(text, "typos:rate=1", seed=seed).split():
            assert word not in {"car", "hot", "from", "trial", "angel", "loose", "meet", "then"}


def test_negations_stay() -> None:
    """Negations, quantifiers and number words survive every word perturbation."""
    text = "not never without every three hundred only"
    for name in ("typos", "word_split", "word_merge", "drop_stop_words"):
        assert run(text, f"{name}:rate=1")[1] == "not_applicable"
    noisy = perturb(text, "space_sequences:rate=1")
    assert noisy.split() == text.split()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("What is the capital of France?", "What capital France?"),
        ("The cat is on the mat", "cat mat"),
        ("Plan A and The Who in World War I won.", "Plan A and The Who World War I won."),
        ("When I asked, I’m told it is.", "When asked, I’m told."),
        ("state-of-the-art is a US thing", "state-of-the-art US thing"),
        ("Is it? The end of the\nline", "? end\nline"),
    ],
)
def test_drop_stop_words(text: str, want: str) -> None:
    """Function words go with one space; names, hyphenated words and acronyms stay."""
    assert perturb(text, "drop_stop_words") == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Why, Anna (and Bob)?", "Why , Anna ( and Bob ) ?"),
        ("don't well-known 3.5 km, U.S. x", "don't well-known 3.5 km , U.S. x"),
        ('He said "stop."', 'He said " stop . "'),
    ],
)
def test_punctuation_spaces(text: str, want: str) -> None:
    """Marks get a space on both sides, unless there is one or the text ends."""
    assert perturb(text, "punctuation_spaces") == want


def test_word_split_and_merge() -> None:
    """Splitting and joining change spaces only."""
    text = "Which animal sleeps longest during winter"
    split, joined = perturb(text, "word_split:rate=1"), perturb(text, "word_merge:rate=1")
    assert split.replace(" ", "") == text.replace(" ", "")
    assert all(len(piece) >= 2 for piece in split.split())
    assert joined == text.replace(" ", "")


def test_space_sequences() -> None:
    """Runs of one to ten spaces come after characters; nothing else changes."""
    made = perturb("Which animal sleeps longest", "space_sequences:rate=0.5", seed=3)
    assert made.replace(" ", "") == "Whichanimalsleepslongest"
    assert max(map(len, re.findall(" +", made))) <= 11


def test_padding_goes_around_everything() -> None:
    """Padding stands behind the system words, before the question and after the answer cue."""
    after, status, _ = apply_recipe("k", prompt_of("Why?"), recipe_of("pad_quotes:count=3"), 0, 0)
    assert status == "changed"
    assert plain(after) == 'Be brief.\n\n"""Why?\nAnswer:"""'
    assert [s.kind for s in after.sections] == ["system", "added", "input", "cue", "added"]


def test_text_before_goes_ahead_of_demonstrations() -> None:
    """With demonstrations, what comes before the prompt comes before the first of them."""
    shown = Demonstration(sections=(Section(name="input", kind="input", text="Q?"),), answer="A")
    prompt = prompt_of("Why?", demonstrations=(shown, shown))
    after, *_ = apply_recipe("k", prompt, recipe_of("pad_quotes:count=2"), 0, 0)
    assert plain(after) == 'Be brief.\n\n""Q? A\n\nQ? A\n\nWhy?\nAnswer:""'


PLEA = "This matters to me."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Why?\nAnswer:", f"Why? {PLEA}\nAnswer:"),
        ("Which?\n- one.\n- two.\nAnswer:", f"Which?\n- one.\n- two.\n\n{PLEA}\nAnswer:"),
        ("See?\n```\nx = 3\n```\nAnswer:", f"{PLEA}\n\nSee?\n```\nx = 3\n```\nAnswer:"),
        ("Mend it. for x in y:\n    print(x)", f"{PLEA}\n\nMend it. for x in y:\n    print(x)"),
        ("Why?", f"Why? {PLEA}"),
        ("Why?\n", f"Why?\n{PLEA}"),
    ],
)
def test_a_plea_stands_before_the_cue_and_off_code(
    text: str, expected: str, tmp_path: Path
) -> None:
    """`place=end` puts it behind everything, as a reading of the paper has it."""
    (tmp_path / "mine.txt").write_text(PLEA, encoding="utf-8")
    prompt = Template.parse("{q}" + ("\nAnswer:" if text.endswith("\nAnswer:") else "")).build(
        Item(task="t", key="k", fields={"q": text.removesuffix("\nAnswer:")})
    )

    def pleaded(**more: str) -> str:
        step = resolve_step("emotion", {"file": str(tmp_path / "mine.txt"), **more})
        return plain(apply_recipe("k", prompt, Recipe(label="e", steps=(step,)), 0, 0).prompt)

    assert pleaded() == expected
    assert pleaded(place="end") == text + ("" if text.endswith("\n") else " ") + PLEA


def test_persona_and_emotion(tmp_path: Path) -> None:
    """A persona stands on a line before the prompt; the user's files serve."""
    path = tmp_path / "mine.txt"
    path.write_text("# mine\nYou are a tester.\n", encoding="utf-8")
    step = resolve_step("persona", {"file": str(path)})
    assert perturb("Why?", step) == "You are a tester.\nWhy?"
    assert perturb("Why?", "persona").endswith(".\nWhy?")


def test_system_words_alone_are_no_prompt() -> None:
    """Without a section besides system words, padding does not apply."""
    prompt = Prompt(sections=(Section(name="s", kind="system", text="Hi."),))
    assert apply_recipe("k", prompt, recipe_of("pad_spaces"), 0, 0) == (
        prompt,
        "not_applicable",
        "pad_spaces",
    )


def test_own_perturbation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's own perturbation takes ten lines and all the machinery."""
    fresh: Registry[object] = Registry("perturbation", "falter.none")
    monkeypatch.setattr("falter.perturbations.base.perturbations", fresh)

    @site_perturbation("shout", sites=natural_words, default_rate=1)
    def shout(text: str, site: Span, rng: Rng) -> tuple[int, int, str]:
        """Puts words in capitals."""
        start, end = site
        return start, end, text[start:end].upper()

    assert shout.summary == "Puts words in capitals."
    after = shout(prompt_of("a small cat"), Rng(0), count=2)
    assert sum(word.isupper() for word in after.sections[1].text.split()) == 2
    with pytest.raises(DuplicateName, match="'shout'"):
        site_perturbation("shout", sites=natural_words)(lambda text, site, rng: None)


def test_seeds_are_fixed() -> None:
    """The same seed gives this text for ever: a change here changes everyone's variants."""
    assert step_seed(0, "typos", 1, 0, "", 0) == 6116301039060474870
    assert (
        perturb(QUESTION, "typos", seed=0)
        == "Waht is th capial of France, and wy is it not the largest city?"
    )


def test_documented() -> None:
    """Every registered perturbation has its section on its family's page, with all parameters."""
    found: list[str] = []
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        parts = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE))
        found += parts
        for name, part in parts.items():
            assert perturbations.get(name).family == page.stem, f"{name} is on the wrong page"
            assert f'"{name}' in part, f"{name} has no example"
            own = {p.name for p in perturbations.get(name).parameters} - {
                "rate", "count", "protect", "scope", "language",
            }  # fmt: skip
            assert all(f"`{parameter}`" in part for parameter in own), name
    assert sorted(found) == perturbations.names()


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_documented_examples_are_true(page: Path) -> None:
    """Every example prints what the page says."""
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 1
    assert result.failed == 0
