"""Sample prompts for the perturbation property suite. All text written for falter."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from falter.records.chats import chat_sections
from falter.records.render import choice_block
from falter.records.types import Demonstration, Prompt, Section, SectionKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A prompt, and the strings in its input that no perturbation may touch."""

    name: str
    prompt: Prompt
    untouchable: tuple[str, ...] = field(default=())


def _prompt(text: str) -> Prompt:
    return Prompt(
        sections=(
            Section(name="system", kind="system", text="Answer with care."),
            Section(name="instruction", kind="instruction", text="Answer the question.\n"),
            Section(name="input", kind="input", text=text),
            Section(name="choices", kind="choices", text="\nA. 12 metres\nB. none of them"),
            Section(name="cue", kind="cue", text="\nAnswer:"),
        ),
        choices=("12 metres", "none of them"),
        labels=("A", "B"),
        target=1,
    )


def _shot(text: str) -> Prompt:
    sections = (Section(name="input", kind="input", text="Which sea is the saltiest of all?"),)
    base = _prompt(text)
    demonstration = Demonstration(sections=sections, answer="The Dead Sea")
    return Prompt(
        sections=base.sections,
        demonstrations=(demonstration, demonstration),
        choices=base.choices,
        labels=base.labels,
        target=base.target,
    )


def _sections(*parts: tuple[SectionKind, str]) -> tuple[Section, ...]:
    """Sections named by their kind and number."""
    return tuple(
        Section(name=f"{kind}#{n}", kind=kind, text=text) for n, (kind, text) in enumerate(parts)
    )


def _listing(choices: tuple[str, ...], target: int, rule: str, cue: str) -> Prompt:
    """A prompt that lists its options under labels, as a task's template does."""
    labels = tuple("ABCDEFGH"[: len(choices)])
    block = choice_block(labels, choices, "{label}. {text}\n")
    return Prompt(
        sections=_sections(
            ("instruction", "Choose one of the options.\n\nQuestion: "),
            ("input", "A train leaves in the morning, and which river does it cross first?"),
            ("instruction", "\n"),
            ("choices", block),
            ("output_format", rule),
            ("cue", cue),
        ),
        choices=choices,
        labels=labels,
        answer_as="label",
        target=target,
    )


def _listed_shot() -> Prompt:
    base = _listing(("Danube", "Rhine", "Elbe"), 1, "\n\nGive the letter only.", "\nAnswer:")
    shorter = _listing(("Ganges", "Nile"), 0, "\n\nGive the letter only.", "\nAnswer:")
    demonstration = Demonstration(sections=shorter.sections, answer="A")
    return replace(
        base, demonstrations=(demonstration, Demonstration(sections=base.sections, answer="C"))
    )


_RIVERS = ("the Danube", "the Rhine", "both A and B", "the Elbe", "the Oder", "none of the above")
_DOCUMENTS = Prompt(
    sections=_sections(
        ("system", "You are a help desk."),
        ("instruction", "Answer from the documents.\nRules:\n- Be brief.\n- Cite a source.\n"),
        ("instruction", "  - by its number\n- Be kind.\n\nDocument 1: "),
        ("document", "The printer wants paper.\n\nIt stands in room 12."),
        ("instruction", "\nDocument 2: "),
        ("document", "The scanner is new.\n* It copies.\n* It sends mail."),
        ("instruction", "\nDocument 3: "),
        ("document", "[1] Ask for a card.\n[2] Wait a day."),
        ("instruction", "\n\nQuestion:\n"),
        ("input", "Why does the printer not print?"),
        ("output_format", "\n\nReply in one sentence, with the number of a document."),
        ("cue", "\nReply briefly.\nAnswer:"),
    ),
    target="It has no paper.",
)
_INLINE = Prompt(
    sections=_sections(
        ("instruction", "Add the numbers in "),
        ("input", "a basket of 3 and a basket of 4,\nand say how many it is"),
        ("instruction", ".\n\nNothing else is wanted."),
    ),
    target="7",
)

_PROSE = (
    "Which of the following birds, when the winter comes to the northern forests, does not "
    "travel south with all the others? It stays, and hides under the snow at night."
)
_MATHS = (
    "Let x^2 - 3x + 2 = 0 and y = -5. A train covers 3.5 km in 12 minutes and costs $1,200. "
    "What is (1-1)+5 when the value of 24 = 2p is halved at 20 °C on 3 March 2020?"
)
_CODE = (
    "What does this function return when it is called with `limit=3`?\n"
    "```python\ndef total(limit):\n    return sum(range(limit))\n```\n"
    "Please explain the answer in a short sentence."
)
_UNFENCED = (
    "Read the following lines and say what they print.\n"
    "import os\nfor i in range(3):\n    print(os.getcwd(), i)\nThen describe the result."
)
_LATEX = (
    r"Show that $\frac{a}{b} \leq c$ holds for every vector in \(\mathbb{R}^n\), given"
    "\n\\begin{align}\n a &= b \\\\ c &= d\n\\end{align}\nwhere the matrix is positive."
)
_ADDRESSES = (
    "Write to ada@example.org or open https://example.org/a?b=c, then read /etc/hosts and "
    "{name} in my_file.txt with GPT-4, NASA and camelCase [12], because <b>bold</b> matters."
)

_LOOK_UP = {
    "name": "get_invoice",
    "description": "Look up an invoice by its `number`, as in invoice_number.",
    "parameters": {
        "type": "object",
        "properties": {
            "invoice_number": {"type": "string", "description": "The number on the paper."},
            "withLines": {"type": "boolean", "default": False},
        },
        "required": ["invoice_number"],
    },
}
_CANCEL = {
    "name": "cancel_order",
    "description": "Cancel an order that has not shipped",
    "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
}
_SYSTEM = {"role": "system", "content": "You help customers. Use get_invoice for bills."}
_ASK = {"role": "user", "content": "Please cancel order A-1042, which I placed twice. Thanks!"}
_MADE = {"id": "c1", "name": "get_invoice", "arguments": {"invoice_number": "20931"}}
_CALLED: tuple[dict[str, object], ...] = (
    {"role": "user", "content": "What do I owe on invoice 20931, and is it not due yet?"},
    {"role": "assistant", "content": "I look it up.", "calls": [_MADE]},
    {"role": "tool", "id": "c1", "content": '{"total": "48.20 EUR"}'},
)
_CHUNKS = (
    Section(name="doc_1", kind="document", text="Lamps may be returned within 30 days."),
    Section(name="between", kind="instruction", text="\n\n"),
    Section(name="doc_2", kind="document", text="We ship from Utrecht. The lamps are boxed."),
)
_CANCELLED = '[{"name": "cancel_order", "arguments": {"order_id": "A-1042"}}]'
CHATS: tuple[Sample, ...] = (
    Sample(name="chat: one turn", prompt=Prompt(sections=chat_sections([_ASK]), target="done")),
    Sample(
        name="chat: tools",
        prompt=Prompt(
            sections=chat_sections([_SYSTEM, _ASK], [_LOOK_UP, _CANCEL]),
            target=_CANCELLED,
            contrast='[{"say": "What is on invoice 7?"}]',
        ),
        untouchable=("1042",),
    ),
    Sample(
        name="chat: after a result",
        prompt=Prompt(
            sections=chat_sections([_SYSTEM, *_CALLED], [_LOOK_UP, _CANCEL]), target="48.20"
        ),
        untouchable=("20931", "48.20"),
    ),
    Sample(
        name="chat: many turns",
        prompt=Prompt(
            sections=chat_sections([*_CALLED, _ASK, _SYSTEM, _ASK], [_LOOK_UP, _CANCEL]),
            target=_CANCELLED,
        ),
    ),
    Sample(
        name="chat: documents",
        prompt=Prompt(
            sections=chat_sections(
                [{"role": "user", "content": "{documents}\n\nHow long may I keep a lamp?"}],
                documents=_CHUNKS,
            ),
            target="30",
        ),
    ),
    Sample(name="chat: empty", prompt=Prompt(sections=chat_sections([{**_ASK, "content": ""}]))),
)
"""Conversations, which every perturbation has to leave whole: turns, links, tools."""
SAMPLES: tuple[Sample, ...] = (
    Sample(name="prose", prompt=_prompt(_PROSE), untouchable=("not", "all")),
    Sample(name="few-shot", prompt=_shot(_PROSE), untouchable=("not", "all")),
    Sample(
        name="maths",
        prompt=_prompt(_MATHS),
        untouchable=(
            "x^2 - 3x + 2 = 0",
            "-5",
            "3.5 km",
            "12",
            "$1,200",
            "(1-1)+5",
            "24 = 2p",
            "20 °C",
        ),
    ),
    Sample(
        name="code",
        prompt=_prompt(_CODE),
        untouchable=(
            "`limit=3`",
            "```python\ndef total(limit):\n    return sum(range(limit))\n```",
        ),
    ),
    Sample(
        name="unfenced code",
        prompt=_prompt(_UNFENCED),
        untouchable=("\nimport os\nfor i in range(3):\n    print(os.getcwd(), i)\n",),
    ),
    Sample(
        name="LaTeX",
        prompt=_prompt(_LATEX),
        untouchable=(
            r"$\frac{a}{b} \leq c$",
            r"\(\mathbb{R}^n\)",
            "\\begin{align}\n a &= b \\\\ c &= d\n\\end{align}",
        ),
    ),
    Sample(
        name="addresses",
        prompt=_prompt(_ADDRESSES),
        untouchable=(
            "ada@example.org",
            "https://example.org/a?b=c",
            "/etc/hosts",
            "{name}",
            "my_file.txt",
            "GPT-4",
            "NASA",
            "camelCase",
            "[12]",
            "<b>",
            "</b>",
        ),
    ),
    Sample(
        name="emoji", prompt=_prompt("Where did the 👩‍🚀 go with her 🐕, and why is it so cold? 🥶")
    ),
    Sample(name="accents", prompt=_prompt("Où est né Émile? Das Mädchen heißt Grüße, cafe\u0301.")),
    Sample(name="right to left", prompt=_prompt("מהי בירת צרפת? ما هي عاصمة فرنسا؟")),
    Sample(
        name="Chinese and Japanese", prompt=_prompt("法国的首都是什么？日本の首都はどこですか。")
    ),
    Sample(name="white space", prompt=_prompt(" \t\n\u00a0\u2003\n")),
    Sample(name="one letter", prompt=_prompt("a")),
    Sample(name="control characters", prompt=_prompt("The \x00 old \x1b[0m \ud7ff \ufffd words.")),
    Sample(
        name="many options",
        prompt=_listing(_RIVERS, 3, "\n\nGive the letter only.", "\n\nAnswer:"),
    ),
    Sample(name="listed few-shot", prompt=_listed_shot()),
    Sample(
        name="two options",
        prompt=_listing(("yes", "no"), 0, "", " Reply with care: A or B?\nIt is"),
    ),
    Sample(name="documents", prompt=_DOCUMENTS, untouchable=("12", "[1]", "[2]")),
    Sample(name="inline", prompt=_INLINE, untouchable=("3", "4")),
    Sample(name="empty", prompt=_prompt("")),
    Sample(name="no section", prompt=Prompt(sections=())),
    Sample(name="huge", prompt=_prompt((_PROSE + " " + _MATHS + "\n") * 12)),
    *CHATS,
)
