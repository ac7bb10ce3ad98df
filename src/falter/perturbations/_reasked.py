"""Questions asked in other words by rule: what has one form that surely fits is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.text import Replacement, mentioned_words, overlaps, sentences

__all__ = ["paraphrase_rules"]

Site = tuple[Replacement, ...]
_TELL = ("Tell me", "Please tell me", "I would like to know", "Can you tell me", "Please say")

# What is the capital of France? → Tell me what the capital of France is.
_WHAT_IS = re.compile(
    r"(?P<asks>What|Who) (?P<is>is|are|was|were) (?=(?:the|an?|your|my|its) )(?P<rest>[^?]{4,90})\?"
)
_NO_PHRASE = re.compile(
    r"[,;:]|\b(?:that|who|whom|which|when|where|while|if|because|although|called|used|known|made"
    r"|like|can|could|does|do|did|is|are|was|were|has|have|had|will|would|should|to|not)\b"
    r"|\w(?:ed|ing)\b|\b(?:of|for|from|in|on|at|with|about|by|into|up|down|out|off|over)\Z"
)
# Which insect lives in a hive? → Tell me which insect lives in a hive.
_SUBJECT = re.compile(
    r"(?P<asks>Which|What|Who|How many|How much) (?P<rest>(?:[a-z][a-z'’-]* ){1,9}[^?,;:]{0,90})\?"
)
_INVERTED = re.compile(
    r"\b(?:am|is|are|was|were|be|do|does|did|has|have|had|can|could|may|might|must|shall|should"
    r"|will|would)\b"
)
_VERB = re.compile(
    r"(?:[a-z]+ ){0,3}?(?:happens?|happened|causes?|caused|lives?|lived|makes?|made|wrote|invented"
    r"|discovered|painted|composed|built|founded|directed|won|began|became|eats?|gives?|gave|takes?"
    r"|took|comes?|came|grows?|grew|holds?|held|keeps?|kept|lies|runs?|ran|says?|said|shows?|showed"
    r"|turns?|turned|uses|used|works|needs|needed|produces?|produced|contains?|contained|protects?"
    r"|provides?|provided|controls?|helps?|helped|carries|carried|swims?|flies|flew|falls?|fell"
    r"|rises?|rose|sets?|spins?|orbits?|shines?|burns?|melts?|measures?|measured|follows?|followed"
    r"|belongs?|connects?|separates?|covers?|covered|lasts?|lasted|stands?|stood|sits?|teaches"
    r"|taught|cooks?|cooked|sells?|sold|fixes|drives?|pulls?|pumps?|cleans?|drinks?|sleeps?) "
)
# Which of the following is true? → Of the following, which is true?
_OF_THESE = re.compile(
    r"(?P<asks>Which|What) (?P<one>one )?(?P<of>of (?:the following|these)) "
    r"(?=(?:best|most likely|correctly|is|are|was|were|can|could|does|do|did|has|have|will|would"
    r"|must|may|might|should)\b)"
)
# Why do veins look blue? → For what reason do veins look blue?
_ADVERBS = (
    (re.compile(r"Why (?=(?:am|are|can|could|did|do|does|has|have|is|must|should|was|were|will"
                r"|would)\b(?!n['’]t))"), ("For what reason ",)),
    (re.compile(r"Where (?=(?:can|could|did|do|does) [^?]{3,90}\?)(?![^?]*\b(?:from|to|at|go|goes"
                r"|come|put|stand|stands|live|lives|lead|leads)\b)"), ("In what place ",)),
    (re.compile(r"How (?=(?:can|could) (?:I|one|people|we|you)\b)"), ("In what way ",)),
)  # fmt: skip
# Who wrote Hamlet? → By whom was Hamlet written?
_PASSIVES = {
    "built": "built", "composed": "composed", "designed": "designed", "directed": "directed",
    "discovered": "discovered", "founded": "founded", "invented": "invented",
    "painted": "painted", "wrote": "written",
}  # fmt: skip
_WHO_MADE = re.compile(
    rf"Who (?P<verb>{'|'.join(_PASSIVES)}) "
    r"(?P<what>(?:the |an? )?(?![^?]*[a-z]{2}s\b)[^?,;:]*?\w)\?"
)
# Find the number … → Work out the number …
_COMMANDS = {
    "Calculate": ("Work out", "Compute"), "Compute": ("Calculate", "Work out"),
    "Describe": ("Give a description of",), "Determine": ("Find out",),
    "Evaluate": ("Work out the value of",), "Find": ("Work out", "Determine"),
    "Explain why": ("Say why", "Give the reason why"), "List": ("Give a list of",),
}  # fmt: skip
_COMMAND = re.compile(rf"(?P<verb>{'|'.join(_COMMANDS)}) (?=the |what |how |why |whether )")


def _forms(text: str, start: int, end: int) -> Iterator[Site]:
    """The ways to ask one sentence: each a few replacements."""
    found = _WHAT_IS.fullmatch(text, start, end)
    if found is not None and _NO_PHRASE.search(found["rest"]) is None:
        asks = found["asks"].lower()
        for tell in _TELL:
            mark = "?" if tell.startswith("Can") else "."
            yield (
                (start, found.start("rest"), f"{tell} {asks} "),
                (end - 1, end, f" {found['is']}{mark}"),
            )
    found = _SUBJECT.fullmatch(text, start, end)
    if (
        found is not None
        and _VERB.match(found["rest"])
        and not _INVERTED.search(found["rest"].partition(" that ")[0])
    ):
        for tell in _TELL:
            asks = text[start].lower()
            mark = "?" if tell.startswith("Can") else "."
            yield ((start, start + 1, f"{tell} {asks}"), (end - 1, end, mark))
    found = _OF_THESE.match(text, start, end)
    if found is not None:
        asks, one, of = found["asks"].lower(), found["one"] or "", found["of"]
        yield ((start, found.end(), f"O{of[1:]}, {asks} {one}"),)
    for pattern, words in _ADVERBS:
        found = pattern.match(text, start, end)
        if found is not None:
            yield from (((start, found.end(), new),) for new in words)
    found = _WHO_MADE.fullmatch(text, start, end)
    if found is not None:
        verb = _PASSIVES[found["verb"]]
        yield ((start, found.start("what"), "By whom was "), (end - 1, end, f" {verb}?"))
    found = _COMMAND.match(text, start, end)
    if found is not None:
        yield from (((*found.span("verb"), new),) for new in _COMMANDS[found["verb"]])


def _sites(text: str, blocked: Sequence[Span], language: str) -> list[tuple[Site, ...]]:
    sites: list[tuple[Site, ...]] = []
    closed = (*blocked, *mentioned_words(text))
    for start, end in sentences(text):
        forms = tuple(
            form
            for form in _forms(text, start, end)
            if not any(overlaps(closed, a, b) for a, b, _ in form)
        )
        if forms:
            sites.append(forms)
    return sites


@site_perturbation(
    "paraphrase_rules",
    version=2,
    title="a question in other words, by rule",
    sites=_sites,
    family="wording",
    group="everyday wording",
    default_rate=1.0,
    invariants=("target", "choices", "numbers", "code", "negations", "lines"),
    languages=("en",),
)
def paraphrase_rules(text: str, site: Sequence[Site], rng: Rng, language: str) -> list[Replacement]:
    """Asks a question in other words where a rule surely fits: *Tell me what the capital is.*

    Requests for questions, active and passive, other question words. Every other word stays.
    """
    return list(rng.choice(site))
