"""Model-made perturbations: what they ask for, where rewrites go, and what they leave alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.language import LANGUAGES, language_name
from falter.perturbations.paraphrase import TONES
from falter.perturbations.rewriting import RewritePerturbation
from falter.records.errors import InvalidValue, UsageError
from falter.records.render import plain
from falter.records.rng import Rng
from falter.records.types import Demonstration, Prompt, Recipe, Rewrite, Section

TASK = (
    ("instruction", "instruction", "Choose the right answer.\n\nQuestion: "),
    ("question", "input", " Which sea is not salty? "),
    ("instruction#2", "instruction", "\n"),
    ("choices", "choices", "A. the Baltic\nB. none"),
    ("output_format", "output_format", "\n\nReply with the letter."),
    ("cue", "cue", "\nAnswer:"),
)
SHOWN = (
    ("instruction", "instruction", "Choose the right answer.\n\nQuestion: "),
    ("question", "input", "Which sea is dead?"),
    ("instruction#2", "instruction", "\n"),
    ("choices", "choices", "A. the Dead Sea\nB. none"),
    ("output_format", "output_format", "\n\nReply with the letter."),
    ("cue", "cue", "\nAnswer:"),
)
ARTICLE = (
    "The river rose by two metres. Its valley is green in spring. The town lost a bridge to the "
    "flood. People fish there on Sundays. Repairs will take a year."
)


def sections(parts: Any) -> tuple[Section, ...]:
    return tuple(Section(name=n, kind=k, text=t) for n, k, t in parts)


PROMPT = Prompt(
    sections=sections(TASK),
    demonstrations=(Demonstration(sections=sections(SHOWN), answer="A"),),
    choices=("the Baltic", "none"),
    labels=("A", "B"),
    answer_as="label",
    target=1,
)
SUMMARY = Prompt(
    sections=sections((
        ("documents", "document", ARTICLE), ("instruction", "instruction", "\n\nSum it up.")
    )),
    target="A flood took the town's bridge.",
)  # fmt: skip


class Bank:
    """Answers from a function or a mapping of texts; remembers what it was asked."""

    def __init__(self, answers: Callable[[str], str | None] | Mapping[str, str]) -> None:
        self._answers = answers if callable(answers) else answers.get
        self.asked: list[str] = []

    def find(self, key: str, text: str) -> Rewrite | None:
        self.asked.append(text)
        new = self._answers(text)
        return Rewrite(
            key=key, perturbation="p", version=1, params={}, source=text, draw=0, author="a",
            status="refused" if new is None else "ok", text=new,
        )  # fmt: skip


def made(name: str) -> RewritePerturbation:
    found = perturbations.get(name)
    assert isinstance(found, RewritePerturbation)
    return found


def run(step: str, bank: Any, prompt: Prompt = PROMPT, key: str = "k") -> tuple[Prompt, str]:
    steps = tuple(map(parse_step, step.split("+")))
    done = apply_recipe(key, prompt, Recipe(label="t", steps=steps), 0, 0, bank)
    return done.prompt, done.status


@pytest.mark.parametrize("name", ["paraphrase_lexical", "paraphrase_syntactic", "paraphrase_free",
                                  "tone"])  # fmt: skip
def test_the_input_is_rewritten_inside_its_white_space(name: str) -> None:
    """Only the input changes; what stands around its text stays."""
    bank = Bank(str.upper)
    after, status = run(name, bank)
    assert status == "changed"
    assert bank.asked == ["Which sea is not salty?"]
    assert after.sections[1].text == " WHICH SEA IS NOT SALTY? "
    changed = [s.name for s, t in zip(after.sections, PROMPT.sections, strict=True) if s != t]
    assert changed == ["question"]
    assert (after.target, after.demonstrations) == (1, PROMPT.demonstrations)


def test_without_a_usable_rewrite_the_prompt_is_the_original() -> None:
    assert run("paraphrase_free", Bank(lambda _: None)) == (PROMPT, "no_rewrite")


def test_without_a_bank_the_error_says_how_to_get_one() -> None:
    with pytest.raises(UsageError, match="falter rewrites prepare"):
        perturb("Which sea is it?", "paraphrase_free")


def test_what_an_earlier_step_wrote_is_left_alone() -> None:
    """A rewrite behind noise finds nothing; noise behind a rewrite edits what is left."""
    bank = Bank({"Which sea is not salty?": "Which sea has no salt?"})
    assert run("punctuation_spaces+paraphrase_free", bank)[1] == "not_applicable"
    after, status = run("paraphrase_free+punctuation_spaces", bank)
    assert (status, after.sections[1].text) == ("changed", " Which sea has no salt ? ")
    assert run("paraphrase_free+tone", bank)[1] == "not_applicable"


@pytest.mark.parametrize("text", ["", "  ", "3 + 4 = ?", "`x = 1`", "12 km", "{name}"])
def test_nothing_to_say_in_other_words(text: str) -> None:
    """Text without a word outside what is protected is not applicable."""
    prompt = Prompt(sections=(Section(name="q", kind="input", text=text),))
    assert run("paraphrase_free", Bank(str.upper), prompt) == (prompt, "not_applicable")


def test_parts_that_a_section_protects_have_to_come_back() -> None:
    text = "Say ACME and go."
    section = Section(name="q", kind="input", text=text, protected=((4, 8),))
    prompt = Prompt(sections=(section,))
    kept, status = run("tone", Bank({text: "Please say ACME, then leave."}), prompt)
    assert status == "changed"
    (span,) = kept.sections[0].protected
    assert kept.sections[0].text[slice(*span)] == "ACME"
    assert run("tone", Bank({text: "Please leave."}), prompt)[1] == "no_rewrite"


@pytest.mark.parametrize(
    ("source", "new", "problem"),
    [
        ("It runs 3.5 km in 12 minutes.", "In 12 minutes it covers 3.5  km.", None),
        (
            "It runs 3.5 km in 12 minutes.",
            "In twelve minutes it covers 3.5 km.",
            "'12 minutes' is lost",
        ),
        ("Call `f(x)` twice.", "Twice, call f(x).", "'`f(x)`' is lost"),
        ("NASA and NASA again.", "NASA, twice.", None),
        ("Is it so?", "It is so.", "'?' is lost"),
        ("Open https://a.example/b now.", "Open the page now.", "is lost"),
        ("Fill in {name}.", "Fill in the name.", "'{name}' is lost"),
    ],
)
def test_what_a_rewrite_has_to_keep(source: str, new: str, problem: str | None) -> None:
    """Numbers and protected text have to be there, white space and repetitions aside."""
    found = made("paraphrase_free").problem(source, new, {})
    assert (found is None) if problem is None else problem in str(found)


def test_patterns_of_the_user_have_to_stay_too() -> None:
    """They are part of what is asked, are spelled out, and another pattern is another rewrite."""
    tone = made("tone")
    asked = tone.asked(protect=["blue widget"])
    assert asked == {"tone": "formal", "protect": ["blue widget"]}
    assert "`blue widget`" in plain(tone.request("The blue widget works.", asked))
    assert tone.problem("The blue widget works.", "It works.", asked) == "'blue widget' is lost"
    assert tone.key("x", 0) != tone.key("x", 0, protect=["blue widget"])


def test_keys_say_everything_that_was_asked() -> None:
    """Tone, text, draw and the name of what was asked; not the scope."""
    tone = made("tone")
    keys = {
        tone.key("x", 0), tone.key("y", 0), tone.key("x", 1), tone.key("x", 0, tone="angry"),
        made("paraphrase_free").key("x", 0),
    }  # fmt: skip
    assert len(keys) == 5
    assert tone.key("x", 0) == tone.key("x", 0, scope=("document",))


def test_every_tone_has_its_own_words() -> None:
    asked = {plain(made("tone").request("Is it so?", {"tone": tone})) for tone in TONES}
    assert len(asked) == len(TONES) == 7
    assert made("tone").parameters[-1].options == tuple(TONES)


def test_a_text_with_the_closing_tag_stays_inside() -> None:
    prompt = made("tone").request("a </text> b", {"tone": "formal"})
    assert plain(prompt).endswith("<text_>\na </text> b\n</text_>")
    assert "between <text_> and </text_>" in plain(prompt)


# --- templates -------------------------------------------------------------------------------

TEMPLATE = (
    "Choose the right answer.\n\nQuestion: {question}\n{choices}\n\nReply with the letter.\nAnswer:"
)
REWORDED = (
    "Pick what is correct.\n\nThe question: {question}\n{choices}\n\nGive only the letter.\nResult:"
)


def test_a_template_is_reworded_as_a_whole() -> None:
    """One text for all items; its parts go back to their sections, in the examples too."""
    bank = Bank({TEMPLATE: REWORDED})
    after, status = run("template_paraphrase", bank)
    assert (status, bank.asked) == ("changed", [TEMPLATE])
    assert plain(after) == (
        "Pick what is correct.\n\nThe question: Which sea is dead?\nA. the Dead Sea\nB. none\n\n"
        "Give only the letter.\nResult: A\n\n"
        "Pick what is correct.\n\nThe question:  Which sea is not salty? \nA. the Baltic\nB. none"
        "\n\nGive only the letter.\nResult:"
    )
    assert [s.name for s in after.sections] == [s.name for s in PROMPT.sections]


@pytest.mark.parametrize(
    "new",
    [
        REWORDED.replace("{question}", "{frage}"),
        REWORDED.replace("{choices}", ""),
        REWORDED.replace("{choices}", "{choices} {choices}"),
        REWORDED.replace("\n\nThe", "\nThe"),
        REWORDED.replace("\n\nGive", "\nGive\n"),
        REWORDED.replace("\nResult:", ""),
        "{choices}" + REWORDED.replace("{choices}", ""),
    ],
)
def test_a_template_that_does_not_fit_is_no_rewrite(new: str) -> None:
    """Names in braces and lines have to be where they were."""
    assert made("template_paraphrase").problem(TEMPLATE, new, {}) is not None
    assert run("template_paraphrase", Bank({TEMPLATE: new})) == (PROMPT, "no_rewrite")


def test_braces_of_the_template_itself_are_told_from_names() -> None:
    parts = (("instruction", "instruction", "Fill {q} as in {x}: "), ("q", "input", "sea"))
    prompt = Prompt(sections=sections(parts))
    bank = Bank({"Fill {q} as in {x}: {q_}": "Complete {q} like {x}: {q_}"})
    after, status = run("template_paraphrase", bank, prompt)
    assert (status, plain(after)) == ("changed", "Complete {q} like {x}: sea")


# --- sentences -------------------------------------------------------------------------------


def test_the_sentences_behind_the_summary_are_reworded() -> None:
    bank = Bank(str.upper)
    after, status = run("paraphrase_relevant", bank, SUMMARY)
    assert status == "changed"
    assert bank.asked == ["The town lost a bridge to the flood."]
    assert after.sections[0].text == ARTICLE.replace(bank.asked[0], bank.asked[0].upper())
    two = Bank(str.upper)
    run("paraphrase_relevant:top=2", two, SUMMARY)
    assert len(two.asked) == 2 and bank.asked[0] in two.asked


def test_the_control_rewords_as_many_others_and_never_a_relevant_one() -> None:
    """For every item and draw, and as many; where there are too few, none."""
    relevant = Bank(str.upper)
    run("paraphrase_relevant:top=2", relevant, SUMMARY)
    drawn = set()
    for n in range(40):
        bank = Bank(str.upper)
        run("paraphrase_irrelevant:top=2", bank, SUMMARY, key=str(n))
        assert len(bank.asked) == 2 and not set(bank.asked) & set(relevant.asked)
        drawn.update(bank.asked)
    assert len(drawn) == 3
    assert run("paraphrase_irrelevant:top=3", Bank(str.upper), SUMMARY)[1] == "not_applicable"


def test_both_share_their_rewrites() -> None:
    one, other = made("paraphrase_relevant"), made("paraphrase_irrelevant")
    assert one.key("A sentence.", 0) == other.key("A sentence.", 0, top=3)


def test_a_summary_that_shares_no_word_has_no_sentence() -> None:
    prompt = replace(SUMMARY, target="Zzz.")
    assert run("paraphrase_relevant", Bank(str.upper), prompt) == (prompt, "not_applicable")
    assert run("paraphrase_relevant", Bank(str.upper), replace(SUMMARY, target=None))[1] == (
        "not_applicable"
    )


# --- languages -------------------------------------------------------------------------------


def tagged(text: str) -> str:
    return f"‹{text}›"


def test_the_whole_prompt_is_translated() -> None:
    """Template, input, options, examples; labels, white space and the target's place stay."""
    bank = Bank(tagged)
    after, status = run("translate:to=fr-CA", bank)
    assert status == "changed"
    assert after.choices == ("‹the Baltic›", "‹none›")
    assert (after.labels, after.target) == (("A", "B"), 1)
    body = "".join(s.text for s in after.sections)
    assert body == (
        "‹Choose the right answer.\n\nQuestion:›  ‹Which sea is not salty?› \nA. ‹the Baltic›\n"
        "B. ‹none›\n\n‹Reply with the letter.›\n‹Answer:›"
    )
    (shown,) = after.demonstrations
    assert shown.answer == "A"
    assert "‹Which sea is dead?›" in "".join(s.text for s in shown.sections)


def test_a_text_target_is_translated_and_a_number_is_not() -> None:
    question = Section(name="q", kind="input", text="Which one?")
    for target, expected in (("the cow", "‹the cow›"), ("42", "42"), (None, None)):
        prompt = Prompt(sections=(question,), target=target)
        assert run("translate", Bank(tagged), prompt)[0].target == expected


def test_options_that_become_the_same_leave_the_item_out() -> None:
    bank = Bank(lambda text: "lo mismo" if text in PROMPT.choices else tagged(text))
    assert run("translate", bank) == (PROMPT, "no_rewrite")


def test_prompt_input_and_answer_in_different_languages() -> None:
    """The template stays English, and a line before the cue names the answer's language."""
    asked: list[tuple[str, Any]] = []
    maker = made("crosslingual")

    class Noting:
        def find(self, key: str, text: str) -> Rewrite | None:
            to = next(t for t in ("de", "ja") if maker.wanted(text, 0).perturbation and key == (
                made("translate").key(text, 0, to=t)))  # fmt: skip
            asked.append((text, to))
            return Bank(lambda text: f"{to}:{text}").find(key, text)

    after, status = run("crosslingual:input=de,answer=ja", Noting())
    assert status == "changed"
    assert "".join(s.text for s in after.sections) == (
        "Choose the right answer.\n\nQuestion:  de:Which sea is not salty? \nA. ja:the Baltic\n"
        "B. ja:none\n\nReply with the letter.\nAnswer in Japanese.\nAnswer:"
    )
    assert dict(asked)["Which sea is dead?"] == "de"
    assert dict(asked)["A. the Dead Sea\nB. none"] == "ja"


@pytest.mark.parametrize("first", ["en", "es", "fr", "fr-CA", "de", "nl", "it", "ja", "pt-BR"])
def test_all_pairs_of_languages(first: str) -> None:
    """Nine by nine, English included; with English on both sides only the line is added."""
    for second in ("en", "es", "fr", "fr-CA", "de", "nl", "it", "ja", "pt-BR"):
        bank = Bank(tagged)
        after, status = run(f"crosslingual:input={first},answer={second}", bank)
        assert status == "changed"
        assert f"\nAnswer in {LANGUAGES[second]}.\nAnswer:" in plain(after)
        assert ("‹Which sea is not salty?›" in plain(after)) == (first != "en")
        assert (after.choices[0] == "‹the Baltic›") == (second != "en")


def test_an_input_without_words_has_no_language() -> None:
    prompt = Prompt(sections=(Section(name="q", kind="input", text="3 + 4"),))
    assert run("crosslingual", Bank(tagged), prompt) == (prompt, "not_applicable")


def test_tags_of_languages() -> None:
    assert language_name("pt-BR") == "Brazilian Portuguese"
    assert language_name("haw") == "the language with the tag haw"
    for wrong, hint in (("pt-br", "'pt-BR'"), ("Spanish", None), ("", None)):
        with pytest.raises(InvalidValue, match="a language tag") as caught:
            parse_step(f"translate:to={wrong}" if wrong else "translate:to=e")
        assert hint is None or hint in str(caught.value)


def test_names_may_stay_in_a_translation() -> None:
    """A word or a few with capitals may be the same; a sentence may not."""
    may = made("translate").may_repeat
    assert all(map(may, ("Paris", "Leonardo da Vinci", "hotel")))
    assert not any(map(may, ("Which sea is it?", "the red sea")))
    assert not made("tone").may_repeat("Paris")


def test_a_perturbation_of_your_own_is_bound_like_the_others() -> None:
    """The same rng and bank give the same prompt, and texts tells what to prepare."""
    free = made("paraphrase_free")
    assert free.texts(PROMPT, Rng(0)) == ("Which sea is not salty?",)
    assert free.applies(PROMPT)
    bound = free.bind(Bank(str.upper), 0)
    assert bound(PROMPT, Rng(0)) == bound(PROMPT, Rng(1))
