"""Places where a rule of grammar may be written in another way, none inside another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from falter.core.records import Prompt, Section, Span
from falter.core.rng import Rng
from falter.perturbations.additions import prose_at
from falter.perturbations.base import (
    PROTECT,
    choice,
    prompt_perturbation,
    protected_spans,
    scope_parameter,
    site_perturbation,
    with_section,
)
from falter.perturbations.letters import lowered_words
from falter.perturbations.spacing import loose_marks
from falter.perturbations.vocabulary import table
from falter.text import (
    Replacement,
    letter_symbols,
    mentioned_words,
    merged,
    names,
    overlaps,
    passive_auxiliaries,
    replace_spans,
    sentences,
)

_WORD = re.compile("[a-z]+")


class Rule(NamedTuple):
    """What is found, what is written there, and words of which one stands in all that is found.

    The words, in small letters, spare the search of a text that has none of them.
    """

    pattern: re.Pattern[str]
    write: Callable[[re.Match[str]], str]
    words: frozenset[str]


def rule_places(text: str, blocked: Sequence[Span], rules: Iterable[Rule]) -> list[Replacement]:
    """What the rules would write, and where: not in names, mentioned words and symbols."""
    words = frozenset(_WORD.findall(text.lower()))
    found: list[Replacement] = []
    for pattern, write, needed in rules:
        if not words.isdisjoint(needed):
            found += [(*match.span(), write(match)) for match in pattern.finditer(text)]
    if not found:
        return []
    found.sort()
    closed = merged((*blocked, *names(text), *mentioned_words(text), *letter_symbols(text)))
    taken: list[Replacement] = []
    for start, end, new in found:
        after_last = not taken or start >= taken[-1][1]
        if after_last and text[start:end] != new and not overlaps(closed, start, end):
            taken.append((start, end, new))
    return taken


# Mistakes of learners of English, as rules: where each may be made, and what is written then.


def _phrases_rule(*pairs: tuple[str, str]) -> Rule:
    """A set phrase written as another: *depend on* as *depend of*."""
    table = dict(pairs)
    pattern = re.compile(rf"\b({'|'.join(sorted(map(re.escape, table), key=len, reverse=True))})\b")
    longest = frozenset(max(phrase.split(), key=len) for phrase in table)
    return Rule(pattern, lambda match: table[match[1]], longest)


def _rule(pattern: str, write: Callable[[re.Match[str]], str], words: str) -> Rule:
    return Rule(re.compile(pattern), write, frozenset(words.split()))


_UNCOUNTED = (
    "advice", "baggage", "equipment", "evidence", "feedback", "furniture", "homework",
    "information", "knowledge", "luggage", "music", "software", "traffic",
)  # fmt: skip
# Where such a noun ends its group of words: in *traffic jam* and *music teacher* it does not.
_NOUN_ENDS = (
    r"(?=[.,;:?!)]|\Z|\s(?:about|and|are|as|at|because|but|by|can|could|did|do|does|for|from|had|has"
    r"|have|he|if|in|into|is|it|of|on|or|she|so|than|that|they|to|was|we|were|when|which|while|who"
    r"|will|with|would|you)\b)"
)
_VERBS = (
    "asks", "becomes", "begins", "believes", "belongs", "breaks", "brings", "builds", "buys",
    "calls", "comes", "contains", "costs", "decides", "drinks", "drives", "earns", "eats",
    "feels", "finds",
    "gets", "gives", "grows", "happens", "helps", "keeps", "knows", "learns", "likes", "lives",
    "loses", "loves", "makes", "means", "moves", "needs", "pays", "plays", "produces", "reads",
    "runs", "says", "sees", "sells", "sends", "shows", "sings", "sleeps", "spends", "starts",
    "takes", "tells", "thinks", "uses", "wants", "walks", "wears", "wins", "works", "writes",
)  # fmt: skip
# Without the article these would say another amount, or another one.
_COUNTING = (
    "most|least|same|other|others|rest|more|less|fewer|only|first|second|third|last|next|few|little"
    "|lot|lots|couple|pair|dozen|hundred|thousand|million|billion|half|quarter|single|double|total"
    "|dead|living|poor|rich|old|young|blind|deaf|sick|right|left|past|future|whole|number|day|week|month|year|hour|minute|second|time|piece|certain|one|two|three|four|five|board|case"
)
_PAST = (
    ("become", "became"), ("begin", "began"), ("bring", "brought"), ("build", "built"),
    ("buy", "bought"), ("come", "came"), ("drink", "drank"), ("eat", "ate"), ("find", "found"),
    ("get", "got"), ("give", "gave"), ("go", "went"), ("happen", "happened"), ("have", "had"),
    ("make", "made"), ("say", "said"), ("sell", "sold"), ("spend", "spent"), ("start", "started"),
    ("take", "took"), ("use", "used"), ("want", "wanted"), ("win", "won"), ("write", "wrote"),
)  # fmt: skip
_PAST_OF = dict(_PAST)
_PLAIN_PAST = "|".join(verb if verb != "use" else r"use(?! to\b)" for verb in _PAST_OF)
_NO_SUBJECT = "the|an?|this|that|these|those|my|your|his|her|its|our|their|some|any|no|each|every"
_LEARNER_RULES: tuple[Rule, ...] = (
    # articles: the and a are left out where they count nothing, a stands for an
    _rule(rf"the (?<=[a-z] the )(?!(?:{_COUNTING})\b)(?=[a-z]{{3,}})", lambda match: "", "the"),
    _rule(rf"\b((?:as|be|had|has|have|is|of|to|under|was|with) )an? (?!(?:{_COUNTING})\b)"
          r"(?=[a-z]{3,})", lambda match: match[1], "a an"),
    _rule(r"\ban(?= [aeiou][a-z]{2,})", lambda match: "a", "an"),
    # agreement
    _rule(rf"(?<=\b[Hh]e )({'|'.join(_VERBS)})\b|(?<=\b[Ss]he )({'|'.join(_VERBS)})\b"
          rf"|(?<=\b[Ii]t )({'|'.join(_VERBS)})\b",
          lambda match: match[0][:-1] if not match[0].endswith("ies") else match[0][:-3] + "y",
          " ".join(_VERBS)),
    _rule(r"\b(?:people) are\b", lambda match: "people is", "people"),
    _rule(rf"\b(?:{'|'.join(_UNCOUNTED)})\b{_NOUN_ENDS}", lambda match: match[0] + "s",
          " ".join(_UNCOUNTED)),
    # did + past
    _rule(rf"\b(did (?!(?:{_NO_SUBJECT}) )(?:I|[a-z]+) )({_PLAIN_PAST})\b",
          lambda match: match[1] + _PAST_OF[match[2]], "did"),
    # prepositions that a word asks for, so that another one does not change the sense
    _phrases_rule(
        ("depend on", "depend of"), ("depends on", "depends of"),
        ("interested in", "interested on"),
        ("listen to", "listen"), ("different from", "different of"), ("married to", "married with"),
        ("good at", "good in"), ("bad at", "bad in"), ("consists of", "consists in"),
        ("responsible for", "responsible of"), ("afraid of", "afraid from"),
        ("example of", "example for"), ("reason for", "reason of"), ("full of", "full with"),
        ("discuss the", "discuss about the"), ("explain why", "explain me why"),
        ("according to", "according with"), ("capable of", "capable to"),
        ("in the world", "on the world"),
        *((f"{be} used to make", f"{be} used for make")
          for be in ("are", "be", "been", "is", "was", "were")),  # not *he used to make money*
    ),
)  # fmt: skip


def learner_errors(text: str, blocked: Sequence[Span]) -> list[Replacement]:
    """The mistakes that can be made in a text, none inside another."""
    return rule_places(text, blocked, _LEARNER_RULES)


# English as it is spoken elsewhere than in grammars: features that many dialects share.


def _swapped(pattern: str, words: Mapping[str, str]) -> Rule:
    """A rule that writes other words for some, in a pattern that says where they stand."""
    either = "|".join(sorted(words, key=len, reverse=True))
    whole = re.compile(pattern.replace("WORD", f"(?P<word>{either})"))

    def write(match: re.Match[str]) -> str:
        start, end = (at - match.start() for at in match.span("word"))
        return match[0][:start] + words[match["word"]] + match[0][end:]

    needed = (max(re.findall("[a-z]+", key.lower()), key=len) for key in words)
    return Rule(whole, write, frozenset(needed))


_PARTICIPLES = {
    "broken": "broke", "chosen": "chose", "come": "came", "drunk": "drank", "eaten": "ate",
    "forgotten": "forgot", "given": "gave", "gone": "went", "seen": "saw", "spoken": "spoke",
    "stolen": "stole", "taken": "took", "written": "wrote",
}  # fmt: skip
_ADJECTIVE_STEMS = (
    "bigg|cheap|clever|fast|great|hard|heavi|high|larg|light|long|old|short|slow|small|strong|tall"
    "|wid|young"
)
_PLAIN = ("bad", "cheap", "close", "loud", "quick", "slow", "smooth", "soft", "strong")
_GRADED = (
    "(?:bad|big|close|cold|early|far|fast|good|hard|heavy|high|hot|important|large|late|long|low"
    "|nice|old|short|slow|small|strong|well)"
)
# A sentence may follow these as their content, whose *that* is no relative pronoun.
_CONTENT = (
    "argument|assumption|belief|case|chance|claim|conclusion|condition|danger|degree|doubt|effect"
    "|evidence|extent|fact|fear|feeling|guarantee|hope|hypothesis|idea|impression|law|likelihood"
    "|myth|news|notion|odds|opinion|possibility|premise|principle|probability|proof|proposition"
    "|reason|report|result|risk|rule|rumou?r|same|sense|sign|so|statement|story|suggestion|theorem"
    "|theory|thought|threat|time|truth|view|warning|way|word|worry"
)
_ADVERB_END = (
    r"(?=[.,;:?!]|\Z| (?:across|and|as|at|by|down|from|in|into|on|over|than|through|to|up)\b)"
)

FEATURES: dict[str, tuple[Rule, ...]] = {
    # a name after that of the Electronic World Atlas of Varieties of English, from memory
    "adverbs_as_adjectives": (
        _swapped(rf"(?<=[a-z] )WORD{_ADVERB_END}", {f"{word}ly": word for word in _PLAIN}),
        _swapped(rf"\bWORD (?={_GRADED}\b)", {"really": "real"}),
    ),
    "aint": (
        _swapped(r"\b(?<=[a-z] )WORD\b", {"is not": "ain't", "are not": "ain't"}),
        _swapped(r"\bWORD(?!\w)", {"isn't": "ain't", "aren't": "ain't", "isn’t": "ain’t"}),
    ),
    "double_superlatives": (
        Rule(
            re.compile(rf"(?<=\bthe )({_ADJECTIVE_STEMS})est\b(?! common\b)"),
            lambda match: f"most {match[0]}",
            frozenset(f"{stem}est" for stem in _ADJECTIVE_STEMS.split("|")),
        ),
    ),
    "for_to": (_swapped(r"\bWORD (?=[a-z])", {"in order to": "for to"}),),
    "invariant_dont": (
        _swapped(r"\b(?:[Hh]e|[Ss]he|[Ii]t) WORD(?!\w)", {"doesn't": "don't", "doesn’t": "don’t"}),
        _swapped(r"\b(?:[Hh]e|[Ss]he|[Ii]t) WORD\b", {"does not": "don't"}),
    ),
    "past_for_participle": (_swapped(r"\b(?:has|have|had) WORD\b", _PARTICIPLES),),
    "reflexives": (_swapped(r"\bWORD\b", {"himself": "hisself", "themselves": "theirselves"}),),
    "relative_what": (
        _swapped(
            rf"(?<!such )\b(?:[Tt]he|[Aa]n?) (?!(?:{_CONTENT})s? )"
            r"[a-z]{3,} WORD (?=(?:is|are|was|were|has|had|can|lives?|makes?|eats?|[a-z]{3,}s)\b)",
            {"that": "what", "who": "what"},
        ),
    ),
    "stative_progressive": (
        _swapped(
            r"(?:^|(?<=[.!?,:] )|(?<= and )|(?<= but ))I WORD (?=[a-z])",
            {"want": "am wanting", "need": "am needing", "think": "am thinking"},
        ),
    ),
    "them_for_those": (
        _swapped(r"\bWORD (?=(?!is\b|was\b)[a-z]{2,}s\b)", {"those": "them"}),
    ),
    "there_is": (
        _swapped(r"\bWORD (?=[a-z\d])", {"there are": "there's", "There are": "There's",
                                          "there were": "there was", "There were": "There was"}),
    ),
    "was_for_were": (
        _swapped(r"\b(?:[Ww]e|[Tt]hey|[Yy]ou) WORD\b", {"were": "was"}),
    ),
    "zero_s": (
        _swapped(
            r"\b(?:[Hh]e|[Ss]he|[Ii]t) WORD\b",
            {f"{verb}s": verb for verb in (
                "ask", "buy", "come", "contain", "cost", "drink", "eat", "get", "give", "grow",
                "know", "like", "live", "make", "mean", "need", "pay", "play", "run", "say", "sell",
                "spend", "take", "use", "walk", "want", "work", "write",
            )},
        ),
    ),
}  # fmt: skip
_ALL = tuple(rule for rules in FEATURES.values() for rule in rules)
_FEATURE = choice(
    "feature",
    ("any", *sorted(FEATURES)),
    "any",
    "one of the features; any: all that the text allows",
)


def _dialect_sites(
    text: str, blocked: Sequence[Span], feature: str, language: str
) -> list[Replacement]:
    found = rule_places(text, blocked, _ALL if feature == "any" else FEATURES[feature])
    if not any(new.startswith("ain") for _, _, new in found):
        return found
    passives = {start for start, _ in passive_auxiliaries(text, language)}
    return [site for site in found if site[0] not in passives or not site[2].startswith("ain")]


@site_perturbation(
    "dialect",
    version=2,
    title="features of dialects",
    sites=_dialect_sites,
    family="wording",
    group="everyday wording",
    parameters=(_FEATURE,),
    invariants=("target", "choices", "numbers", "code", "negations", "lines"),
    languages=("en",),
)
def dialect(text: str, site: Replacement, rng: Rng, feature: str, language: str) -> Replacement:
    """Writes features that many dialects of English share: *them birds*, *she don't*.

    They are no portrait of a dialect, and need a speaker's review.
    """
    return site


# The way something is said, by rule: the tone of a request, a learner's grammar, speech.


_WORDING, _EVERYDAY = "wording", "everyday wording"
_WORDING_KEEPS = ("target", "choices", "numbers", "code", "negations")
TONES = ("casual", "chatty", "formal", "impatient", "polite")
_TONE = choice("tone", ("any", *TONES), "any", "how the request is made; any: drawn for each item")


@cache
def _phrases() -> dict[str, dict[str, list[str]]]:
    phrases: dict[str, dict[str, list[str]]] = table("tones_en.json")
    return phrases


# Words around a text that is itself worked on would be worked on, too.
_TEXT_AS_OBJECT = re.compile(
    r"\b(?:translat\w*|summari\w*|paraphras\w*|rephras\w*|rewrit\w*|reword\w*|proofread\w*|shorten\w*"
    r"|sentiment|politeness|formality|tone|(?:correct|continue|complete|finish) (?:the|this))\b",
    re.IGNORECASE,
)
_SENTENCE_ENDS = re.compile(r"[.?!][\"'”’)\]]?\Z")
_RULES_OF_A_TASK = ("system", "instruction", "output_format", "cue")


def _can_tone(prompt: Prompt, tone: str, language: str) -> bool:
    return prose_at(prompt) is not None and not any(
        s.kind in _RULES_OF_A_TASK and _TEXT_AS_OBJECT.search(s.text) for s in prompt.sections
    )


@prompt_perturbation(
    "tone_rules",
    version=2,
    title="another tone around the question",
    family=_WORDING,
    group=_EVERYDAY,
    scope=("input",),
    parameters=(_TONE,),
    invariants=(*_WORDING_KEEPS, "lines"),
    languages=("en",),
    eligible=_can_tone,
)
def tone_rules(prompt: Prompt, rng: Rng, tone: str, language: str) -> Prompt:
    """Puts polite, casual, formal, impatient or chatty words around the input, by rule.

    The input itself stays as it is, word for word.
    """
    at = prose_at(prompt)
    if at is None:
        return prompt
    chosen = _phrases()[rng.choice(TONES) if tone == "any" else tone]
    before, after = rng.choice(chosen["before"]), rng.choice(chosen["after"])
    section = prompt.sections[at]
    start, end = len(section.text) - len(section.text.lstrip()), len(section.text.rstrip())
    changes: list[Replacement] = []
    if before:
        changes.append((start, start, f"{before} "))
    if after and _SENTENCE_ENDS.search(section.text, start, end):
        changes.append((end, end, f" {after}"))
    return with_section(prompt, at, replace_spans(section, changes))


# A learner's English


def _error_sites(text: str, blocked: Sequence[Span], language: str) -> list[Replacement]:
    return learner_errors(text, blocked)


@site_perturbation(
    "learner",
    version=2,
    title="a learner's mistakes",
    sites=_error_sites,
    family=_WORDING,
    group=_EVERYDAY,
    default_rate=0.5,
    invariants=(*_WORDING_KEEPS, "lines"),
    languages=("en",),
)
def learner(text: str, site: Replacement, rng: Rng, language: str) -> Replacement:
    """Makes mistakes that learners of English make: articles, agreement, set prepositions.

    Only mistakes that leave one way to understand the sentence; names, numbers, negations and
    letters that are symbols stay.
    """
    return site


# Speech

_FILLERS = ("um", "uh", "er", "you know")
_SOUNDS = _FILLERS[:-1]
# Elsewhere *you know* may read as a question or a claim: *did you know*, *what you know*.
_ASIDE = re.compile(
    r"(?<=\b(?:of|in|on|at|by) )(?=(?:the|an?|my|your|his|her|its|our|their|this|these|those)\b)"
)
_GAP = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_EVERY = 9  # words between two fillers, on average
_APART = 12  # characters between two fillers, at least


def _can_say(prompt: Prompt, scope: Sequence[str], protect: Sequence[str], language: str) -> bool:
    return prompt.program is None and any(
        section.kind in scope and any(True for _ in _spoken(prompt, section, protect, Rng(0)))
        for section in prompt.sections
    )


def _spoken(
    prompt: Prompt, section: Section, protect: Sequence[str], rng: Rng
) -> Iterator[Replacement]:
    text, closed = section.text, protected_spans(prompt, section, protect)
    yield from ((start, end, "") for start, end in loose_marks(text, closed))
    yield from ((a, b, text[a:b].lower()) for a, b in lowered_words(text, closed))
    closed = merged((*closed, *names(text), *mentioned_words(text)))
    last = -_APART
    for gap in _GAP.finditer(text):
        inside = overlaps(closed, gap.start(), gap.end())
        if rng.random() * _EVERY < 1 and not inside and gap.end() - last >= _APART:
            last = gap.end()
            aside = _ASIDE.match(text, last)
            yield last, last, f"{rng.choice(_FILLERS if aside else _SOUNDS)} "


@prompt_perturbation(
    "voice",
    version=2,
    title="dictated text",
    family=_WORDING,
    group=_EVERYDAY,
    scope=("input",),
    parameters=(PROTECT, scope_parameter(("input",))),
    invariants=(*_WORDING_KEEPS, "lines"),
    languages=("en",),
    eligible=_can_say,
)
def voice(
    prompt: Prompt, rng: Rng, scope: Sequence[str], protect: Sequence[str], language: str
) -> Prompt:
    """Writes the input as a dictation has it: small letters, no punctuation, fillers.

    Numbers stay in figures, as dictation writes them; names lose their capitals.
    """
    sections = list(prompt.sections)
    for at, section in enumerate(sections):
        if section.kind in scope and section.text:
            changes = sorted(set(_spoken(prompt, section, protect, rng)))
            sections[at] = replace_spans(section, changes)
    return prompt.with_sections(tuple(sections))


# Questions asked in other words by rule: what has one form that surely fits is changed.


Form = tuple[Replacement, ...]
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


def _forms(text: str, start: int, end: int) -> Iterator[Form]:
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


def _question_sites(text: str, blocked: Sequence[Span], language: str) -> list[tuple[Form, ...]]:
    sites: list[tuple[Form, ...]] = []
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
    sites=_question_sites,
    family="wording",
    group="everyday wording",
    invariants=("target", "choices", "numbers", "code", "negations", "lines"),
    languages=("en",),
)
def paraphrase_rules(text: str, site: Sequence[Form], rng: Rng, language: str) -> list[Replacement]:
    """Asks a question in other words where a rule surely fits: *Tell me what the capital is.*

    Requests for questions, active and passive, other question words. Every other word stays.
    """
    return list(rng.choice(site))
