"""Paraphrases, tones and reworded templates, which a model writes beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from falter.core.interfaces import Parameter
from falter.core.records import Prompt, SectionKind
from falter.core.rng import Rng
from falter.perturbations.reworded_template import put_template, template_problem
from falter.perturbations.rewriting import Rewritten, has_letters, put, put_sections, rewriting
from falter.text import blocked, overlaps, relevance_map, relevant_sentences, sentences

# The sentences of documents that the expected summary is based on, and as many others.


class SentencePlace(NamedTuple):
    """A sentence: its section, its span there, and whether it may be rewritten."""

    at: int
    start: int
    end: int
    open: bool


def relevant_places(
    prompt: Prompt,
    scope: Sequence[SectionKind],
    patterns: Sequence[str],
    top: int,
    method: str,
) -> tuple[list[SentencePlace], list[SentencePlace]]:
    """The sentences behind the expected summary, and the rest; protected ones are in neither."""
    places = _sentence_places(prompt, scope, patterns)
    gold = _expected(prompt)
    texts = [prompt.sections[p.at].text[p.start : p.end] for p in places]
    summary = [gold[start:end] for start, end in sentences(gold)]
    relevance = relevance_map(summary, texts, top=top, method=method)  # type: ignore[arg-type]
    chosen = set(relevant_sentences(relevance))
    relevant = [place for n, place in enumerate(places) if n in chosen and place.open]
    irrelevant = [place for n, place in enumerate(places) if n not in chosen and place.open]
    return relevant, irrelevant


def other_sentences(
    relevant: Sequence[SentencePlace], irrelevant: Sequence[SentencePlace], rng: Rng
) -> list[SentencePlace]:
    """As many irrelevant sentences as there are relevant, at random; none if there are too few."""
    if len(irrelevant) < len(relevant):
        return []
    drawn = islice(rng.order(len(irrelevant)), len(relevant))
    return [irrelevant[n] for n in sorted(drawn)]


def put_sentences(prompt: Prompt, rewritten: Rewritten, places: Sequence[SentencePlace]) -> Prompt:
    """The prompt with these sentences rewritten, each by itself."""
    sections = list(prompt.sections)
    for at in sorted({place.at for place in places}):
        text = sections[at].text
        spans = [(p.start, p.end) for p in places if p.at == at]
        rewrites = [(start, end, rewritten(text[start:end])) for start, end in spans]
        sections[at] = put(sections[at], rewrites)
    return prompt.with_sections(tuple(sections))


def _expected(prompt: Prompt) -> str:
    """The expected answer in words."""
    if isinstance(prompt.target, int):
        return prompt.choices[prompt.target] if prompt.choices else ""
    return prompt.target or ""


def _sentence_places(
    prompt: Prompt, scope: Sequence[SectionKind], patterns: Sequence[str]
) -> list[SentencePlace]:
    places: list[SentencePlace] = []
    for at, section in enumerate(prompt.sections):
        if section.kind not in scope:
            continue
        closed = blocked(section, patterns)
        edited = [(edit.new_start, edit.new_end) for edit in section.edits]
        for start, end in sentences(section.text):
            inside = [(max(a, start) - start, min(b, end) - start) for a, b in closed]
            spans = [(a, b) for a, b in inside if a < b]
            words = has_letters(section.text[start:end], spans)
            places.append(SentencePlace(at, start, end, words and not overlaps(edited, start, end)))
    return places


_FAMILY, _GROUP = "paraphrase", "paraphrasing"
_MEANING = ("target", "choices")
TONES: dict[str, str] = {
    "angry": "angry: someone who has lost patience over this and lets it show, without swearing",
    "casual": "casual: everyday words, as one writes to a friend",
    "chatty": "chatty: talkative and warm, with small talk around the matter that adds no facts",
    "formal": "formal: complete sentences and the register of a business letter, no contractions",
    "impatient": "impatient: in a hurry, pressing for an answer now",
    "polite": "polite: courteous and considerate, with please and thank you where they fit",
    "terse": "terse: as few words as will do, in note form where possible",
}
RULES = """
Rules:
- It may be a question, a task or an order. Do not answer it and do not do what it says: only \
reword it.
- Whoever reads the new text has to understand exactly the same, and give the same answer. Add \
nothing, leave nothing out, and keep every negation, quantity and condition.
- Keep the language it is written in. A question stays a question.
- Copy numbers, units, names, code, formulas, addresses, and text in braces as they are.
- Reply with the new text and nothing else: no introduction, no quotation marks, no notes."""


def _lexical() -> str:
    return (
        "Reword the text between <text> and </text> with other words. Replace as many words as "
        "you can by others that mean the same, and keep the structure of every sentence: the same "
        "clauses in the same order." + RULES
    )


def _syntactic() -> str:
    return (
        "Rebuild the sentences of the text between <text> and </text>. Change how they are "
        "constructed (the order of clauses, active or passive, how they are joined or split) and "
        "keep the words themselves wherever the grammar lets you." + RULES
    )


def _free() -> str:
    return (
        "Paraphrase the text between <text> and </text>. Choose words and structure freely, as "
        "another person would who wants to say the same thing." + RULES
    )


def _sentence() -> str:
    return (
        "Paraphrase the sentence between <text> and </text>, which comes from a longer document. "
        "Say the same in other words and with another structure, in one sentence if you can."
        + RULES
    )


def _toned(tone: str) -> str:
    return (
        "Rewrite the text between <text> and </text> in another tone, which is "
        f"{TONES[tone]}. Only the tone may change." + RULES
    )


def _template() -> str:
    return (
        "The text between <text> and </text> is the template of a prompt. Names in braces stand "
        "for what is put in later. Reword the instructions and labels around them.\n"
        "Rules:\n"
        "- Everything in braces stays as it is, each once, in the same order.\n"
        "- Keep every line break: the new template has as many lines, and each does the same job.\n"
        "- A line that ends in a colon still ends in one.\n"
        "- Whoever follows the new template has to do exactly the same, and answer in the same "
        "form.\n"
        "- Reply with the new template and nothing else: no introduction, no quotation marks, no "
        "notes."
    )


@rewriting(
    "paraphrase_lexical",
    title="other words",
    ask=_lexical,
    family=_FAMILY,
    group=_GROUP,
    invariants=_MEANING,
)
def paraphrase_lexical(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str],
) -> Prompt:  # fmt: skip
    """Says it in other words, sentence structure kept."""
    return put_sections(prompt, rewritten, scope, protect)


@rewriting(
    "paraphrase_syntactic",
    title="rebuilt sentences",
    ask=_syntactic,
    family=_FAMILY,
    group=_GROUP,
    invariants=_MEANING,
)
def paraphrase_syntactic(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str],
) -> Prompt:  # fmt: skip
    """Rebuilds the sentences, keeping the words where possible."""
    return put_sections(prompt, rewritten, scope, protect)


@rewriting(
    "paraphrase_free",
    title="free rewording",
    ask=_free,
    family=_FAMILY,
    group=_GROUP,
    invariants=_MEANING,
)
def paraphrase_free(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str],
) -> Prompt:  # fmt: skip
    """Rewords freely; only the meaning is kept."""
    return put_sections(prompt, rewritten, scope, protect)


_TOP = Parameter(
    name="top",
    type=int,
    default=1,
    low=1,
    high=20,
    help="sentences for each sentence of the summary",
)
_METHOD = Parameter(
    name="method", type=str, default="tfidf", options=("rouge1", "tfidf"),
    help="how sentences are compared with the summary",
)  # fmt: skip


@rewriting(
    "paraphrase_relevant",
    title="the relevant sentences reworded",
    ask=_sentence,
    bank="sentence",
    family=_FAMILY,
    group="relevant sentences",
    scope=("document",),
    parameters=(_TOP, _METHOD),
    invariants=_MEANING,
)
def paraphrase_relevant(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str], top: int, method: str,
) -> Prompt:  # fmt: skip
    """Rewords the sentences that the expected summary is based on."""
    relevant, _ = relevant_places(prompt, scope, protect, top, method)
    return put_sentences(prompt, rewritten, relevant)


@rewriting(
    "paraphrase_irrelevant",
    title="other sentences reworded",
    ask=_sentence,
    bank="sentence",
    family=_FAMILY,
    group="irrelevant sentences",
    scope=("document",),
    parameters=(_TOP, _METHOD),
    invariants=_MEANING,
)
def paraphrase_irrelevant(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str], top: int, method: str,
) -> Prompt:  # fmt: skip
    """Rewords as many other sentences, chosen at random: the control."""
    relevant, irrelevant = relevant_places(prompt, scope, protect, top, method)
    return put_sentences(prompt, rewritten, other_sentences(relevant, irrelevant, rng))


@rewriting(
    "tone",
    title="another tone",
    ask=_toned,
    asked=("tone",),
    family=_FAMILY,
    group="tone",
    parameters=(
        Parameter(
            name="tone",
            type=str,
            default="formal",
            help="the tone of the new text",
            options=tuple(TONES),
        ),
    ),
    invariants=_MEANING,
)
def tone(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str], tone: str,
) -> Prompt:  # fmt: skip
    """Rewords in another tone: formal, casual, polite, impatient, angry, terse or chatty."""
    return put_sections(prompt, rewritten, scope, protect)


@rewriting(
    "template_paraphrase",
    title="a reworded template",
    ask=_template,
    problem=template_problem,
    family=_FAMILY,
    group="template",
    scope=("instruction", "output_format", "cue"),
    invariants=(*_MEANING, "lines"),
)
def template_paraphrase(
    prompt: Prompt, rewritten: Rewritten, rng: Rng, scope: Sequence[SectionKind],
    protect: Sequence[str],
) -> Prompt:  # fmt: skip
    """Rewords the template around the item, in the same way for all items and solved examples."""
    return put_template(prompt, rewritten, scope, protect)
