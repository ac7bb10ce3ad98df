"""Word manipulation and word noise: languages, kept words, and each perturbation's own rules."""

from __future__ import annotations

import re
import unicodedata
from itertools import permutations

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.recipes import resolve_step
from falter.records.errors import InvalidValue
from falter.records.ids import step_seed
from falter.records.interfaces import Perturbation
from falter.records.rng import Rng
from falter.records.types import Prompt, Recipe, Section
from falter.testing.samples import SAMPLES
from falter.text.spans import diff_spans
from falter.text.words import kept_words

LANGUAGES = ("de", "en", "es", "fr", "it", "nl", "pt")
FAMILY = [p for p in perturbations if p.family == "words"]
NAMES = [p.name for p in FAMILY]
MANIPULATION = {
    "typos", "drop_stop_words", "punctuation_spaces", "space_sequences", "word_split", "word_merge",
}  # fmt: skip
QUESTIONS = {
    "de": "Welche Straße führt am Großen Platz nicht weiter, wenn keine Brücke offen ist?",
    "en": "Which of the three roads does not go on, when the old bridge isn't open to anybody?",
    "es": "¿Cuál es la capital de España y por qué no hay ninguna región en el norte?",
    "fr": "Où est l'équipe que l'Amérique n'a jamais bue, et qu'est-ce que c'est aujourd'hui ?",
    "it": "Perché l'acqua dell'oceano è salata, e quando un'altra città non c'è mai stata?",
    "nl": "Welke ijsbeer eet geen vis, en waarom is het eiland nooit zonder sneeuw?",
    "pt": "Por que não há avião em São Paulo, e nunca chove sem vento?",
}
KEPT = {
    "de": ("nicht", "keine"),
    "en": ("three", "not", "isn't", "anybody"),
    "es": ("no", "ninguna"),
    "fr": ("n'", "jamais"),
    "it": ("un'", "non", "mai"),
    "nl": ("geen", "nooit", "zonder"),
    "pt": ("não", "nunca", "sem"),
}


def changed(text: str, *steps: str) -> bool:
    prompt = Prompt(sections=(Section(name="input", kind="input", text=text),))
    recipe = Recipe(label="test", steps=tuple(map(parse_step, steps)))
    return apply_recipe("k", prompt, recipe, 0, 0).status == "changed"


def test_groups() -> None:
    """The Brittlebench group has its six; every other word perturbation is word noise."""
    groups = {p.name: p.group for p in FAMILY}
    assert {name for name, group in groups.items() if group == "word manipulation"} == MANIPULATION
    assert set(groups.values()) == {"word manipulation", "word noise"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [p.name for p in FAMILY if p.languages and len(p.languages) > 1])
def test_languages(name: str, language: str) -> None:
    """Whatever looks at words changes a question of each language and keeps what it denies."""
    bare = name == "drop_diacritics" and language in ("en", "nl")
    assert bare != changed(QUESTIONS[language], f"{name}:rate=1,language={language}")
    for seed in range(10):
        made = perturb(QUESTIONS[language], f"{name}:rate=1,language={language}", seed=seed)
        lost = [word for word in KEPT[language] if word not in made]
        assert not lost, made


@pytest.mark.parametrize("language", LANGUAGES)
def test_kept_words_alone_are_nothing_to_change(language: str) -> None:
    """A text of negations, quantifiers and number words has no word that noise may touch."""
    text = " ".join(sorted(word for word in kept_words(language) if len(word) > 1))
    for name in ("typos", "spelling", "word_split", "word_merge", "ocr", "homoglyphs", "leetspeak"):
        assert not changed(text, f"{name}:rate=1,language={language}"), name


@pytest.mark.parametrize("name", NAMES)
def test_japanese(name: str) -> None:
    """Japanese works or is refused with the languages that do; no other rules are applied to it."""
    known = perturbations.get(name).languages
    text = "日本の首都はどこですか。山はすべての島にないですか？"
    if known is None or "ja" in known:
        step = resolve_step(name, {"rate": 1.0} if known is None else {"rate": 1, "language": "ja"})
        made = perturb(text, step)
        assert made != text
        assert "すべて" in made and "ない" in made
    else:
        with pytest.raises(InvalidValue, match=f"expected one of: {', '.join(sorted(known))}$"):
            resolve_step(name, {"language": "ja"})


def test_elisions() -> None:
    """The word behind an elision is an ordinary word; what leans on it is left alone."""
    for text, language in (("l'océan", "fr"), ("dell'oceano", "it"), ("d'água", "pt")):
        head = text[: text.index("'") + 1]
        for seed in range(20):
            made = perturb(text, f"typos:rate=1,language={language}", seed=seed)
            assert made.startswith(head) and made != text
    assert not changed("l'océan", "typos:language=en")
    assert not changed("aujourd'hui n'", "typos:language=fr")


def test_letters_without_capitals() -> None:
    """No slip makes SS of an ß, and capitals leave such words alone."""
    for seed in range(200):
        assert "SS" not in perturb("Platz Post Paul Pfarrer", "typos:language=de,rate=1", seed=seed)
    text = "Die Straße heißt so"
    assert perturb(text, "casing:style=upper,language=de") == "DIE Straße heißt SO"
    assert "SS" not in perturb(text, "casing:style=random,language=de")
    assert perturb("İstanbul ılık dish", "casing:style=upper") == "İstanbul ılık DISH"
    assert perturb("İstanbul Iğdır Dish", "casing") == "İstanbul Iğdır dish"


def test_agents_stay_in_every_language() -> None:
    """The word for *by* stays, and so does the auxiliary of a passive."""
    drop = "drop_stop_words:language="
    assert perturb("por qué va por la calle", drop + "es") == "por qué va por calle"
    assert perturb("Por que vai", drop + "pt") == "Por que vai"
    assert (
        perturb("Wer wird von der Katze gefressen?", drop + "de") == "Wer wird von Katze gefressen?"
    )
    assert perturb("Qui est mangé par le chat ?", drop + "fr") == "Qui est mangé par chat ?"


def test_dutch_ij_stays_whole() -> None:
    """A word is never split inside ij, and takes both letters as its capital."""
    for seed in range(30):
        made = perturb("vrijheid blijven ijzer", "word_split:rate=1,language=nl", seed=seed)
        assert made.count("ij") == 3
    assert perturb("ijzer is hard", "casing:style=title,language=nl") == "IJzer Is Hard"


@pytest.mark.parametrize(
    ("style", "want"),
    [
        ("lower", "it's NASA: what did anna see? plan A and x, at 3 km."),
        ("upper", "IT'S NASA: WHAT DID ANNA SEE? PLAN A AND x, AT 3 km."),
        ("title", "It's NASA: What Did Anna See? Plan A And x, At 3 km."),
        ("sentence", "It's NASA: what did anna see? Plan A and x, at 3 km."),
    ],
)
def test_casing(style: str, want: str) -> None:
    """Each style; acronyms, labels, variables and units stay."""
    text = "It's NASA: what did Anna see? Plan A and x, at 3 km."
    assert perturb(text, f"casing:style={style}") == want


def test_casing_in_other_languages() -> None:
    """An elided word has its own capital, and single letters are words between words."""
    title, upper = "casing:style=title,language=", "casing:style=upper,language="
    assert perturb("l'eau de l'Amérique", title + "fr") == "L'Eau De L'Amérique"
    assert perturb("pan y agua, o vino; x e y", upper + "es") == "PAN Y AGUA, O VINO; x e y"
    assert perturb("¿qué es?", "casing:style=sentence,language=es") == "¿Qué es?"


def test_random_casing_changes_every_word_it_takes() -> None:
    """Letter by letter, never back to the same word."""
    text = "small words are cased at random"
    for seed in range(50):
        made = perturb(text, "casing:style=random", seed=seed)
        assert made.lower() == text
        assert all(a != b for a, b in zip(text.split(), made.split(), strict=True))


def test_i_stays_in_sentences() -> None:
    """Sentence case leaves the English I alone."""
    assert perturb("Then I Said I'm Here", "casing:style=sentence") == "Then I said I'm here"


@pytest.mark.parametrize(
    "text",
    [
        "3,5 and 1.5 at 12:30", "A. one", "Dr. No", 'He "said" (so)', "What?! No... e.g. x", "a, 3",
        "well-known o'clock",
    ],
)  # fmt: skip
def test_marks_that_carry_meaning_stay(text: str) -> None:
    """Marks in numbers and abbreviations, after labels, before numbers, in runs, and pairs."""
    assert not changed(text, "punctuation:rate=1")


def test_punctuation() -> None:
    """Marks go, stand twice or change; a question mark never becomes another mark."""
    text = "One, two; so: yes. Really (or not)?"
    assert perturb(text, "punctuation:rate=1,kind=drop") == "One two so yes Really (or not)"
    assert (
        perturb(text, "punctuation:rate=1,kind=double")
        == "One,, two;; so:: yes.. Really (or not)??"
    )
    assert perturb(text, "punctuation:rate=1,kind=swap") == "One; two, so; yes! Really (or not)?"
    assert perturb("¿Y tú ?", "punctuation:rate=1,kind=drop") == "Y tú "
    assert perturb("本は、何。", "punctuation:rate=1,kind=swap") == "本は，何．"


def test_whitespace_never_joins_words() -> None:
    """The words, the numbers and what is between them stay apart."""
    text = "Add 3 km to the road, please; then (if you can) say 5. It helps: a lot"
    for seed in range(30):
        made = perturb(text, "whitespace:rate=1", seed=seed)
        assert made != text
        assert re.findall(r"\w+", made) == re.findall(r"\w+", text)
        assert "3 km" in made


def test_whitespace_kinds() -> None:
    """Each kind does what it says; headings, lists and tables get no line break."""
    text = "One road, two cars"
    assert perturb(text, "whitespace:rate=1,kind=tab") == "One\troad,\ttwo\tcars"
    assert perturb(text, "whitespace:rate=1,kind=line_break") == "One\nroad,\ntwo\ncars"
    assert perturb(text, "whitespace:rate=1,kind=missing") == "One road,two cars"
    extra = perturb(text, "whitespace:rate=1,kind=extra")
    assert extra.split() == text.split() and "  " in extra and "    " not in extra
    for block in ("# A big title", "- an item here", "1. an item", "| a cell | a cell |"):
        assert not changed(block, "whitespace:rate=1,kind=line_break")
    assert not changed("see: 5, (x", "whitespace:rate=1,kind=missing")


def test_spelling_takes_from_the_table() -> None:
    """Only words that the table knows, each as people misspell it."""
    assert perturb("definitely zyx", "spelling:rate=1") != "definitely zyx"
    assert not changed("zyx", "spelling:rate=1")
    assert perturb("Beautiful", "spelling:rate=1")[0] == "B"


def test_letters_change_within_words() -> None:
    """Scanner noise, look-alikes and l33t change some letters of words, and nothing else."""
    text = "The quick harbour clock (in Rome) will not ring 12 times"
    for seed in range(30):
        for name in ("ocr", "homoglyphs", "leetspeak"):
            made = perturb(text, f"{name}:rate=1", seed=seed)
            assert made != text
            assert made.endswith("12 times") and "not" in made.split()
            assert [w.strip("()") != "" for w in made.split()] == [True] * len(text.split())
        alike = perturb(text, "homoglyphs:rate=1", seed=seed)
        assert len(alike) == len(text)


def test_leet_leaves_a_letter() -> None:
    """A word never becomes a number."""
    for seed in range(20):
        for word in ("toast", "zoos"):
            assert any(map(str.isalpha, perturb(word, "leetspeak", seed=seed)))


def test_leet_makes_no_sum() -> None:
    """A plus stands beside no digit: *837+3r* would be arithmetic."""
    made = [perturb("better letter stile", "leetspeak:rate=1", seed=seed) for seed in range(60)]
    assert any("+" in text for text in made)
    assert not [text for text in made if re.search(r"\d\+|\+\d", text)]


def test_letters_that_stand_for_something_stay() -> None:
    """They are joined to no word and keep their letter; an article may go."""
    text = "Which step explains how to find the value of a in 6a = 72, where a is whole?"
    for seed in range(30):
        assert " a in 6a = 72, where a " in perturb(text, "word_merge:rate=1", seed=seed)
        assert perturb(text, "homoglyphs:rate=1", seed=seed).count(" a ") == 2
    assert "abook" in perturb("Take a book home", "word_merge:rate=1")


def test_no_negation_is_cut_out_of_a_word() -> None:
    """Two gaps could leave the *no* of *know*, and the *one* of *money*."""
    for seed in range(30):
        made = perturb("They know whose money is another's", "space_sequences:rate=1", seed=seed)
        assert not {"no", "now", "one", "on", "not"} & set(made.split()) - {"on"}, made


def test_ocr_makes_no_other_word() -> None:
    """What a scanner misreads is no word known to be right."""
    for seed in range(100):
        made = perturb("hat form clear bead tire", "ocr:rate=1", seed=seed).split()
        assert not {"bat", "farm", "dear", "head", "fire"} & set(made)


def test_invisible_characters() -> None:
    """To the eye the text is the same; no character comes into names, numbers or code."""
    text = 'Did Eve Moreau say "yes" to the 12 km of `old code` in the café yesterday?'
    for seed in range(20):
        made = perturb(text, "invisible:rate=1", seed=seed)
        seen = unicodedata.normalize("NFC", made.replace("\u200b", "").replace("\u00a0", " "))
        assert seen.replace("“", '"').replace("”", '"') == text
        assert all(part in made for part in ("Moreau", "12 km", "`old code`"))
    assert perturb(text, "invisible:quotes,rate=1").count("”") == 1
    assert perturb("a café", "invisible:mojibake,rate=1") == "a cafÃ©"
    assert not changed("a café", "invisible:zero_width,protect=café")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Their car", {"There car", "They're car"}),
        ("it’s late", {"its late"}),
        ("I see Rose Waters", {"I sea Rose Waters"}),
        ("won for one and no", {"won for one and no"}),
        ("a two-way street", {"a two-way street"}),
    ],
)
def test_homophones(text: str, wanted: set[str]) -> None:
    """Words that sound the same, capitals kept; no number word, negation, name or compound."""
    assert {perturb(text, "homophones", seed=seed) for seed in range(12)} <= wanted


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("What is the answer", "What's the answer"),
        ("I do not know what it is.", "I don't know what it is."),
        ("Who is it?", "Who is it?"),
        ("That is, as I am told, so.", "That is, as I'm told, so."),
        ("They said you cannot.", "They said you can't."),
        ("I don’t", "I do not"),
        ("it is what you’re told it is", "it’s what you are told it is"),
        ("Why don't you go?", "Why do you not go?"),
        ("Aren't I late, isn't he?", "Am I not late, is he not?"),
        ("If you can't I will", "If you cannot I will"),
        ("he's WHAT IS it", "he's WHAT IS it"),
    ],
)
def test_contractions(text: str, want: str) -> None:
    """Full forms become short and short ones full; no negation is lost."""
    assert perturb(text, "contractions") == want


def test_contractions_one_way() -> None:
    """Contracting and expanding can be asked for alone."""
    text = "It is true that you can't."
    assert perturb(text, "contractions:kind=contract") == "It's true that you can't."
    assert perturb(text, "contractions:kind=expand") == "It is true that you cannot."
    assert not changed("I'm here", "contractions:kind=contract")


def test_synonyms() -> None:
    """The same form of another word; articles follow, capitals stay, names are left alone."""
    assert perturb("An excellent beverage", "synonyms:rate=1") == "An exceptional beverage"
    assert perturb("the cemeteries", "synonyms:rate=1") == "the graveyards"
    assert perturb("an adversary", "synonyms:rate=1") == "an enemy"
    assert perturb("an airplane", "synonyms:rate=1") == "an aircraft"
    for text in ("the Movie fund", "bicycle-made", "near Cemetery"):
        assert not changed(text, "synonyms:rate=1")
    made = {perturb("he was astonished by it", "synonyms:rate=1", seed=s) for s in range(9)}
    assert made == {"he was amazed by it", "he was astounded by it"}


def test_an_article_that_an_earlier_step_changed_is_left_alone() -> None:
    """A synonym that needs the article waits where the article is not its own to change."""
    prompt = Prompt(
        sections=(Section(name="i", kind="input", text="an airplane", protected=((0, 2),)),)
    )
    assert not perturbations.get("synonyms").applies(prompt)


def _rng(perturbation: Perturbation, occurrence: int) -> Rng:
    return Rng(step_seed(0, perturbation.name, perturbation.version, occurrence, "k", 0))


SHORT = [
    sample
    for sample in SAMPLES
    if sum(len(section.text) for section in sample.prompt.sections) < 1000
]


@pytest.mark.parametrize("first", NAMES)
def test_chains_of_two(first: str) -> None:
    """In every ordered pair the second step leaves the first one's edits, and both are told."""
    one = perturbations.get(first)
    for sample in SHORT:
        once = one(sample.prompt, _rng(one, 0))
        for second in NAMES:
            other = perturbations.get(second)
            twice = other(once, _rng(other, int(first == second)))
            for was, mid, end in zip(
                sample.prompt.sections, once.sections, twice.sections, strict=True
            ):
                segments = diff_spans(was.text, end)  # raises where the edits do not rebuild
                assert "".join(segment.after for segment in segments) == end.text
                kept = {mid.text[e.new_start : e.new_end] for e in mid.edits}
                assert kept <= {end.text[e.new_start : e.new_end] for e in end.edits}, second


def test_order_of_a_chain_is_kept() -> None:
    """A recipe applies its steps in its own order, each with its own draws."""
    prompt = SAMPLES[0].prompt
    differ = 0
    for first, second in permutations(("typos", "casing", "whitespace", "punctuation", "ocr"), 2):
        steps = (resolve_step(first), resolve_step(second))
        made = apply_recipe("k", prompt, Recipe(label="x", steps=steps), 0, 0).prompt
        a, b = perturbations.get(first), perturbations.get(second)
        assert made == b(a(prompt, _rng(a, 0)), _rng(b, 0))
        back = apply_recipe("k", prompt, Recipe(label="x", steps=steps[::-1]), 0, 0).prompt
        differ += made != back
    assert differ > 4
