"""Mails, earlier turns and documents around what is asked; values, words and letters otherwise."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from falter.analysis.meaning_checks import Rewording, meaning
from falter.engine.task_loading import load_task
from falter.perturbations import apply_recipe, parse_step, perturb
from falter.perturbations.surroundings import PIECE_KINDS, pool
from falter.records.chats import chat_sections, turns
from falter.records.render import messages, plain
from falter.records.types import Prompt, Recipe, Section
from falter.tasks.chats import Chat
from falter.text.meaning import meaning_flags

QUESTION = "What is the capital of France, and why is it not the largest city?"


def applied(prompt: Prompt, step: str, key: str = "k") -> tuple[Prompt, str]:
    made = apply_recipe(key, prompt, Recipe(label="x", steps=(parse_step(step),)), 0, 0)
    return made.prompt, made.status


def chat(said: str, system: str = "You help.") -> Prompt:
    said_and_told = [{"role": "system", "content": system}, {"role": "user", "content": said}]
    return Prompt(sections=chat_sections(said_and_told))


@pytest.mark.parametrize("kind", PIECE_KINDS)
def test_pieces_around_a_prompt_hold_no_number_and_no_negation(kind: str) -> None:
    pieces = ["\n".join(piece) if isinstance(piece, list) else piece for piece in pool(kind)]
    assert len(set(pieces)) == len(pieces) >= 8
    for piece in pieces:
        assert not meaning_flags("", piece), piece


@pytest.mark.parametrize("step", ["email_noise", "code_switch", "emoji:", "tone_rules"])
def test_what_is_asked_stays_in_one_piece(step: str) -> None:
    """Nothing is put around a text that is worked on, as the system turn of a chat may say."""
    step = step.rstrip(":")
    made = {plain(applied(chat(QUESTION), step, str(n))[0]) for n in range(30)}
    assert len(made) > 4 and all(QUESTION in text for text in made)
    rule = "Summarise the mail in one sentence."
    assert applied(chat(QUESTION, rule), step)[1] == "not_applicable"
    if step == "emoji":
        assert all(re.search(r"city\? \W\Z", text) for text in made)
    if step == "email_noise":
        assert applied(chat("The aim of it was to"), step)[1] == "not_applicable"
        assert applied(chat(QUESTION), "email_noise:part=header")[1] == "changed"
        wrote, said = perturb(QUESTION, "email_noise:quoted").splitlines()[-2:]
        assert re.fullmatch(r"\w.* wrote:", wrote) and said.startswith("> ")


@pytest.mark.parametrize(
    ("step", "either", "other"),
    [
        ("code_switch:fr", "Bonsoir", "journée"), ("code_switch:it", "Buonasera", "giornata"),
        ("code_switch:fr", "Bonjour", "soirée"), ("code_switch:pt", "Bom dia", "abraço"),
    ],
)  # fmt: skip
def test_greetings_end_a_sentence_and_fit_the_farewell(step: str, either: str, other: str) -> None:
    made = [perturb(QUESTION, step, seed=n) for n in range(60)]
    assert all(text[: text.index(QUESTION)].rstrip()[-1] in ".!?" for text in made)
    assert {(either in text, other in text) for text in made} == {
        (True, False), (False, True), (False, False)
    }  # fmt: skip


def test_earlier_turns_stand_before_the_conversation() -> None:
    """Behind the system turn and the tools; of another subject than anything that is said."""
    task = load_task("tools:core")
    for item in task.items[:20]:
        clean = task.templates["open"].build(item)
        after, status = applied(clean, "earlier_turns:turns=3", item.key)
        assert status == "changed" and after.target == clean.target
        before, now = turns(messages(clean)), turns(messages(after))
        lead = len(before) and before[0]["role"] == "system"
        assert [t["role"] for t in now[lead : lead + 6]] == ["user", "assistant"] * 3
        assert now[:lead] + now[lead + 6 :] == before
    documents = load_task("rag:core")
    with_documents = documents.templates["open"].build(documents.items[0])
    for other in (Prompt(sections=(Section(name="i", kind="input", text=QUESTION),)),
                  with_documents):  # fmt: skip
        assert applied(other, "earlier_turns")[1] == "not_applicable"


def test_earlier_turns_lose_nothing_between_turns() -> None:
    """The end of one turn and the beginning of the next are no address."""
    before = chat("Hello, who repairs printers?", "Sort requests: hardware or software.")
    after, status = applied(before, "earlier_turns")
    row = Rewording(item="1", before=before, after=after, status="changed")
    lost = meaning([row], task="t", recipe="earlier_turns", group="g").lost
    assert status == "changed" and not any(lost.values()), lost


def test_more_documents_leave_the_own_ones_in_order() -> None:
    task = load_task("rag:core")
    for item in task.items:
        clean = task.templates["open"].build(item)
        own = [s.text for s in clean.sections if s.kind == "document"]
        for place in ("begin", "between", "end"):
            after, _ = applied(clean, f"document_noise:count=4,place={place}", item.key)
            texts = plain(after).split("\n\n")
            assert len(texts) == len(plain(clean).split("\n\n")) + 4
            kept = [text for text in texts if text in own]
            assert kept == own and after.sections[1].opens
            added = [n for n, text in enumerate(texts[1:-1], 1) if text not in own]
            assert {"begin": added[0] == 1, "end": added[-1] == len(own) + 4}.get(place, True)
            for text in set(texts) - set(own) - {texts[0], texts[-1]}:
                assert not re.search(rf"\b{item.target}\b", text, re.IGNORECASE)
    numbered = Chat(each="[{n}] {text}").build(task.items[0])
    assert applied(numbered, "document_noise")[1] == "not_applicable"


MONTHS = "January February March April May June July August September October November December"


def read_date(text: str) -> date:
    """A day as `2026-03-05`, `5 March 2026` or `March 5, 2026`."""
    parts = text.replace(",", "").split()
    if len(parts) == 1:
        return date.fromisoformat(text)
    day, month = parts[:2] if parts[0].isdigit() else parts[1::-1]
    return date(int(parts[2]), MONTHS.split().index(month) + 1, int(day))


def test_dates_and_times_in_other_forms_are_read_back() -> None:
    for n in range(0, 730, 3):
        day = date(2023, 12, 30) + timedelta(days=n)
        month, number, year = MONTHS.split()[day.month - 1], day.day, day.year
        for text in (str(day), f"{number} {month} {year}", f"{month} {number}, {year}"):
            made = perturb(f"Come on {text} please.", "formats", seed=n)
            new = made.removeprefix("Come on ").removesuffix(" please.")
            assert new != text and read_date(new) == day
    for hour in range(13, 24):
        assert perturb(f"Go at {hour}:05 now.", "formats") == f"Go at {hour - 12}:05 pm now."
        assert perturb(f"Go at {hour - 12} pm.", "formats") == f"Go at {hour}:00."


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("It costs $1,200 or €1500.50, and 12000 people pay.",
         "It costs $1200 or €1500.50, and 12000 people pay."),
        ("a 5 kg bag, 1 km, 2.5 GB and 3 kg",
         "a 5 kilogram bag, 1 kilometre, 2.5 gigabytes and 3 kilograms"),
    ],
)  # fmt: skip
def test_numbers_and_units_in_other_forms(text: str, want: str) -> None:
    assert perturb(text, "formats") == want


@pytest.mark.parametrize(
    "text",
    [
        "Closed from 9 to 13 March, and on 1 and 2 May.", "On 03/04/2026, or on 31 February 2026.",
        "Order 50117, part 1,2,3, f(1,200), `2026-01-05`, x = 1,200 and https://a.example/2026-01-05",
        "A score of 14:05, a ratio of 20:00, 9:30 and 5 m.", "2 GB/minute, 12 kg/m and part 1.2.3",
    ],
)  # fmt: skip
def test_what_another_form_could_change_stays(text: str) -> None:
    assert perturb(text, "formats") == text


def test_what_the_answer_copies_keeps_its_form() -> None:
    """Other dates take the form of the one that stays."""
    text = "Due on 5 May 2026; note 2026-06-07 and June 7, 2026 at 7 pm."
    after, _ = applied(Prompt(sections=(Section(name="i", kind="input", text=text),),
                              target="5 May 2026"), "formats")  # fmt: skip
    want = "Due on 5 May 2026; note 7 June 2026 and 7 June 2026 at 19:00."
    assert after.sections[0].text == want


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Away from August 1 to August 15.", ["Away from 1 August to 15 August."]),
        ("From 9 to 13 March, or on March 14.", ["From 9 to 13 March, or on 14 March."]),
        ("It is May 3, 4 and 5, then 6 June.", ["It is May 3, 4 and 5, then June 6."]),
        ("From May 2, 2026 to 5 June 2026.",
         ["From 2 May 2026 to 5 June 2026.", "From May 2, 2026 to June 5, 2026.",
          "From 2026-05-02 to 2026-06-05."]),
        ("Go from 9 am until 17:00.", ["Go from 09:00 until 17:00.", "Go from 9 am until 5 pm."]),
        ("Go at 08:15, by 17:45.", []), ("Go from 14:00 to 16:30.", []),
        ("Go from 14:00 until 17:45.", ["Go from 2 pm until 5:45 pm."]),
        ("Is 7 p.m. or 9 p.m., or 11 p.m.?", ["Is 19:00 or 21:00, or 23:00?"]),
        ("It costs $1,500, not €1200.",
         ["It costs $1500, not €1200.", "It costs $1,500, not €1,200."]),
    ],
)  # fmt: skip
def test_values_of_one_kind_get_one_form(text: str, forms: list[str]) -> None:
    assert {perturb(text, "formats", seed=n) for n in range(20)} == set(forms or [text])


@pytest.mark.parametrize(
    ("text", "step", "want"),
    [
        ("Thanks, are you going to book it tomorrow?", "chat_speak",
         "Thx, r u gonna book it tmrw?"),
        ("If u = 3, do you know x because of it?", "chat_speak",
         "If u = 3, do you know x cuz of it?"),
        ("Not all of you are going to Rome.", "chat_speak", "Not all of u are going to Rome."),
        ("Das schöne Mädchen wohnt schon in Köln.", "drop_diacritics:language=de",
         "Das schoene Maedchen wohnt schon in Koeln."),
        ("¿Cuántos años habló papá de la canción?", "drop_diacritics:language=es",
         "¿Cuantos años hablo papa de la cancion?"),
        ("Où est le pêcheur, et le réseau des invités ?", "drop_diacritics:language=fr",
         "Où est le pecheur, et le reseau des invites ?"),
    ],
)  # fmt: skip
def test_words_as_chats_and_plain_keyboards_write_them(text: str, step: str, want: str) -> None:
    assert perturb(text, step) == want


def test_words_of_a_long_target_keep_their_accents() -> None:
    section = Section(name="i", kind="input", text="Das Netz für Gäste ist seit früh schön grün.")
    prompt = Prompt(sections=(section,), target="net: Gäste\nlight: grün\nroom: A1\nat: 9\nby: Jo")
    after, _ = applied(prompt, "drop_diacritics:language=de")
    assert after.sections[0].text == "Das Netz fuer Gäste ist seit frueh schoen grün."
