"""The bundled language data: shapes, alphabets, and no entry that would change a meaning."""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.records.errors import InvalidValue
from falter.text.words import KEPT_LANGUAGES, kept_words, negations, number_words, quantifiers

SOURCE = Path(falter.__file__).parent
DATA = SOURCE / "perturbations" / "data"
LETTERS = {
    "de": "äöüß",
    "en": "",
    "es": "áéíóúüñ",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "it": "àèéìíòóù",
    "nl": "áèéêëíïóöü",
    "pt": "áâãàçéêíóôõúü",
}
ALPHABET = {
    language: frozenset("abcdefghijklmnopqrstuvwxyz" + more) for language, more in LETTERS.items()
}
OTHERS = sorted(set(KEPT_LANGUAGES) - {"en"})


@cache
def table(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


@cache
def listed(name: str) -> tuple[str, ...]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def test_languages() -> None:
    """Every language with kept words has a keyboard, stop words, common words and misspellings."""
    assert tuple(sorted(LETTERS)) == KEPT_LANGUAGES
    for kind in ("keyboard_{}.json", "stop_words_{}.txt", "common_{}.txt", "misspellings_{}.json"):
        found = {path.name for path in DATA.glob(kind.format("*"))}
        assert found == {kind.format(language) for language in KEPT_LANGUAGES}


@pytest.mark.parametrize("language", KEPT_LANGUAGES)
def test_keyboards(language: str) -> None:
    """Neighbours are other letters of the language, in order, and hold both ways."""
    keys = table(f"keyboard_{language}.json")
    assert set("abcdefghijklmnopqrstuvwxyz") <= set(keys) <= ALPHABET[language]
    for letter, near in keys.items():
        assert near == sorted(set(near)) and letter not in near
        assert all(letter in keys[other] for other in near)
        assert 1 <= len(near) <= 8


def test_national_letters_have_keys() -> None:
    """Letters with a key of their own are on the keyboards."""
    own = {"de": "äöüß", "es": "ñ", "fr": "àçèéù", "it": "àèìòù", "pt": "ç", "nl": "", "en": ""}
    for language, letters in own.items():
        assert set(letters) <= set(table(f"keyboard_{language}.json"))
    assert table("keyboard_de.json")["z"] == ["g", "h", "j", "t", "u"]
    assert "q" in table("keyboard_fr.json")["a"]


@pytest.mark.parametrize("language", KEPT_LANGUAGES)
def test_kept_words(language: str) -> None:
    """Kept words are lower-case words of the language, each in one class."""
    classes = [negations(language), quantifiers(language), number_words(language)]
    kept = kept_words(language)
    assert sum(map(len, classes)) == len(frozenset().union(*classes))
    assert kept >= frozenset().union(*classes)
    assert len(negations(language)) >= 12
    assert len(quantifiers(language)) >= 30
    assert len(number_words(language)) >= 50
    assert all(word.islower() and set(word) <= ALPHABET[language] for word in kept)


CARDINALS = {
    "de": "null zwei drei zehn elf zwölf neunzehn zwanzig dreißig neunzig hundert tausend million",
    "en": "zero one two three ten twelve nineteen twenty thirty ninety hundred thousand million",
    "es": "cero dos tres diez doce diecinueve veinte treinta noventa cien mil millón docena",
    "fr": "zéro deux trois dix douze seize vingt trente soixante cent mille million douzaine",
    "it": "zero due tre dieci dodici diciannove venti trenta novanta cento mille milione dozzina",
    "nl": "nul twee drie tien twaalf negentien twintig dertig negentig honderd duizend miljoen",
    "pt": "zero dois duas três dez doze dezenove vinte trinta noventa cem mil milhão dúzia",
}
INFLECTED = {
    "de": "kein keine keinem keinen keiner keines alle jede jeder zweite zweiten halb hälfte nie",
    "en": "not never none nobody all every first second tenth half dozen twice percent",
    "es": "ningún ninguno ninguna ningunos todo toda todos todas primer primera décima medio nunca",
    "fr": "aucun aucune nul nulle tout toute tous toutes premier première dixième demi demie",
    "it": "nessuno nessuna nessun tutto tutta tutti tutte primo prima decimo mezzo mezza mai",
    "nl": "geen niet nooit alle iedereen eerste tweede tiende half halve helft twaalfde",
    "pt": "nenhum nenhuma nenhuns nenhumas todo toda todos todas primeiro décima meio meia nunca",
}


@pytest.mark.parametrize("language", KEPT_LANGUAGES)
def test_kept_words_are_complete(language: str) -> None:
    """Numbers, negations and quantifiers are there with their inflected forms."""
    assert set(CARDINALS[language].split()) <= number_words(language)
    assert set(INFLECTED[language].split()) <= kept_words(language)


def test_kept_words_of_no_language() -> None:
    """A language without lists is an error that shows those that have them."""
    with pytest.raises(InvalidValue, match="language is 'ja'; expected one of: de, en"):
        kept_words("ja")


QUESTION_WORDS = {
    "de": "wer was wann wo warum wie welche welcher wenn oder und als vor nach",
    "en": "who what when where why how which if or and than before after can could must",
    "es": "quién qué cuándo dónde cómo cuál por_qué si o y que como antes después",
    "fr": "qui que quoi quand où comment quel quelle si ou et comme avant après",
    "it": "chi che cosa quando dove come quale se o e prima dopo",
    "nl": "wie wat wanneer waar hoe waarom welke als of en dan voor na",
    "pt": "quem que quando onde como qual se ou e antes depois",
}


@pytest.mark.parametrize("language", KEPT_LANGUAGES)
def test_stop_words(language: str) -> None:
    """At most 200 function words, without questions, logic, time, and whatever noise keeps."""
    words = listed(f"stop_words_{language}.txt")
    assert 60 <= len(words) <= 200
    assert len(words) == len(set(words))
    assert not set(words) & kept_words(language)
    assert not set(words) & set(QUESTION_WORDS[language].split())
    assert all(set(word) <= ALPHABET[language] | {"'"} and word.islower() for word in words)


@pytest.mark.parametrize("language", KEPT_LANGUAGES)
def test_common_words(language: str) -> None:
    """At least 600 words of 3 to 5 letters, and shorter ones that a dropped letter may leave."""
    words = listed(f"common_{language}.txt")
    assert sum(3 <= len(word) <= 5 for word in words) >= 600
    assert sum(len(word) == 2 for word in words) >= 20
    assert list(words) == sorted(set(words))
    assert all(set(word) <= ALPHABET[language] for word in words)


@pytest.mark.parametrize("language", OTHERS)
def test_misspellings(language: str) -> None:
    """No misspelling is a word of any list, nor fits two words."""
    words = table(f"misspellings_{language}.json")
    right = {*words, *kept_words(language), *listed(f"common_{language}.txt")}
    right |= set(listed(f"stop_words_{language}.txt"))
    wrong = [one for many in words.values() for one in many]
    assert len(words) >= 150
    assert not right & set(wrong)
    assert len(wrong) == len(set(wrong))
    assert not set(words) & kept_words(language)
    for word in [*words, *wrong]:
        assert word.islower() and word.isalpha() and len(word) >= 3
        assert unicodedata.normalize("NFC", word) == word
    assert all(set(word) <= ALPHABET[language] for word in words)


def test_misspellings_are_near() -> None:
    """A misspelling keeps the first letter or its sound, and most of the length."""
    for language in OTHERS:
        for word, many in table(f"misspellings_{language}.json").items():
            assert all(abs(len(word) - len(one)) <= 3 for one in many), word


def test_contractions() -> None:
    """What is expanded can be told in one way; what is contracted is one of two words."""
    pairs = table("contractions_en.json")
    assert set(pairs) == {"contract", "expand"}
    for short, long in pairs["expand"].items():
        assert "'" in short and short.islower() and "'" not in long
        assert not short.endswith(("'s", "'d")) or short == "let's"
    for long, short in pairs["contract"].items():
        assert "'" in short and "'" not in long and long.islower()
        assert long.split()[0][0] == short[0]
    both = {short: long for long, short in pairs["contract"].items()}
    for short in both.keys() & pairs["expand"].keys():
        assert pairs["contract"][pairs["expand"][short]] == short


def test_homophones() -> None:
    """Groups of two or more words, each in one group, and none that noise keeps."""
    groups = table("homophones_en.json")
    words = [word for group in groups for word in group]
    assert len(groups) >= 150 and len(words) == len(set(words))
    assert all(len(group) >= 2 and group == sorted(group) for group in groups)
    assert not set(words) & kept_words("en")
    assert all(word.replace("'", "").isalpha() and word.islower() for word in words)


def test_homoglyphs() -> None:
    """Look-alikes are single letters from other alphabets, of the same case."""
    for letter, alike in table("homoglyphs.json").items():
        assert letter.isascii() and letter.isalpha()
        for other in alike:
            assert len(other) == 1 and not other.isascii() and other.isalpha()
            assert unicodedata.normalize("NFKC", other) != letter
            assert not unicodedata.name(other).startswith(
                "LATIN CAPITAL" if letter.islower() else "LATIN SMALL"
            )


@pytest.mark.parametrize("name", ["leet.json", "ocr.json"])
def test_confusions(name: str) -> None:
    """No sign stands for itself, and only letters, one or two, are replaced."""
    for letters, others in table(name).items():
        assert letters.isalpha() and 1 <= len(letters) <= 2
        assert others and letters not in others and len(others) == len(set(others))
    assert set(table("leet.json")) <= set("abcdefghijklmnopqrstuvwxyz")


def starts_with_vowel_sound(word: str) -> bool:
    return word[0] in "aeiou" and not word.startswith(("use", "using", "usual", "util"))


def test_synonyms() -> None:
    """Synonyms agree in a or an, are no kept words, and no headword is one."""
    table_ = table("synonyms_en.json")
    assert len(table_) >= 500
    for word, others in table_.items():
        assert word.isalpha() and word.islower() and word not in kept_words("en")
        assert others and word not in others and len(others) == len(set(others))
        for other in others:
            assert other.isalpha() and other.islower() and other not in kept_words("en")
            assert starts_with_vowel_sound(word) == starts_with_vowel_sound(other), (word, other)


def test_every_file_has_a_licence() -> None:
    """The licence table names every bundled file, by itself or with its kind."""
    text = (DATA / "LICENSES.md").read_text(encoding="utf-8")
    kinds = {"common", "keyboard", "misspellings", "stop_words"}
    for path in DATA.iterdir():
        kind = path.stem.rpartition("_")[0]
        if kind in kinds:
            assert f"{kind}_" in text
        elif path.name != "LICENSES.md":
            assert path.name in text
