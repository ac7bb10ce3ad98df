"""Adapt requests to a server's API dialect.

Fields that the server rejects (HTTP 400 or 422) are renamed or dropped, once per model.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from falter.clients.answers import RequestRefused
from falter.clients.settings import client_tables
from falter.records.chats import system_text
from falter.records.errors import EndpointError
from falter.records.types import Message

ADAPTABLE_STATUSES = (400, 422)
# "Unsupported parameter: 'max_tokens' is not supported" and "`seed` is deprecated" quote the field;
# "'7b' model" quotes none.
QUOTED_FIELD = re.compile(r"""['"`]([A-Za-z_][\w.]*)['"`]""")
# Where nothing is quoted: "temperature: Extra inputs are not permitted", "temperature is not
# supported by the provider". It also finds other words ("route: …"), so only a field counts that
# may be renamed or dropped.
SUBJECT = re.compile(r"\b([a-z][a-z_]*)(?=:| is not | is no longer | is deprecated| not supported)")
# A refusal of the field, not of its value: neither "max_tokens is too large: 9000" nor "top_p must
# be below 1" matches, since dropping the field would hide the user's mistake.
UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed)|(?:does not|doesn't) support"
    r"|unknown|unrecogni[sz]ed|unexpected|forbidden|deprecated|no longer|cannot find"
    r"|may only be set",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Habit:
    """A change of the request body: the refusal that asks for it, its description, and a note.

    The note is added to responses. A `late` habit may be learnt after the first answer, too. The
    requests that it changes were all refused before, so no condition has an answer to the
    unchanged form.
    """

    refused: re.Pattern[str]
    change: str
    note: str
    late: bool = False


SYSTEM = "the system turn"


def habits_of(client: str) -> dict[str, Habit]:
    """Return name -> habit for a client: changes of its body that concern no single field."""
    return {
        name: Habit(**{**row, "refused": re.compile(row["refused"])})
        for name, row in client_tables()[client]["habits"].items()
    }


class Dialect:
    """A server's dialect of an API: the fields that it calls by another name or does not take.

    The dialect is learnt from refusals: HTTP 400 or 422, with a message that names a field. Nothing
    is guessed from a model's name. The provider defines the permitted changes. `renames` are other
    names of fields, used if the refusal mentions them. `may_drop` are fields that are left out if
    the refusal says that they are not supported. A field with a value out of range is not dropped,
    since the user has to correct the value.

    Before the first answer, a refusal changes the dialect and the request is sent again. An answer
    settles the dialect: a request that is refused later fails, so that all conditions are sent
    alike. Each response's `served_by` names the fields that were left out. The model's record does
    not, since its hash is in the keys of requests that were planned before.

    Changes that concern no field are habits. `learnt` holds their names, and the client applies
    them. One habit folds a system turn that a chat template refuses into the first user turn; see
    `turns`. `changes` describes all changes for display and storage.
    """

    __slots__ = (
        "_droppable", "_habits", "_renamed", "_renames", "dropped", "learnt", "settled", "version",
    )  # fmt: skip

    def __init__(
        self,
        renames: Mapping[str, str] = MappingProxyType({}),
        may_drop: Collection[str] = (),
        habits: Mapping[str, Habit] = MappingProxyType({}),
    ) -> None:
        self._habits = {**habits_of("any"), **habits}
        self.learnt: list[str] = []
        self._renames = dict(renames)
        self._droppable = frozenset(may_drop)
        self._renamed: dict[str, str] = {}
        self.dropped: frozenset[str] = frozenset()
        self.settled = False
        self.version = 0

    def fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a body as this server takes them."""
        return {
            self._renamed.get(name, name): value
            for name, value in fields.items()
            if name not in self.dropped
        }

    def turns(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return a chat's turns; if learnt, the system turn is folded into the first user turn."""
        if SYSTEM not in self.learnt:
            return messages
        system = system_text(messages)
        others = [message for message in messages if message[0] != "system"]
        if not system:
            return messages
        if not others or others[0][0] != "user":
            return [("user", system), *others]
        return [("user", f"{system}\n\n{others[0][1]}"), *others[1:]]

    def rename(self, field: str) -> None:
        """Send a field under its other name from now on."""
        self._renamed[field] = self._renames[field]
        self.version += 1

    @property
    def changes(self) -> dict[str, str]:
        """Every field that the server refused, with the change that was made, in words."""
        renamed = {name: f"sent as {other}" for name, other in self._renamed.items()}
        learnt = {name: self._habits[name].change for name in self.learnt}
        return renamed | dict.fromkeys(sorted(self.dropped), "not sent") | learnt

    def require(self, sampling: Mapping[str, Any]) -> None:
        """Raise `EndpointError` if a condition sets a field that is not sent.

        Without this field the condition would equal the baseline.
        """
        for name in sorted(self.dropped & sampling.keys()):
            raise EndpointError(f"the condition sets {name}, which the server does not support")

    def note(self, served_by: str | None) -> str | None:
        """Return a note for a response: its server, and the fields that were not sent."""
        notes = [f"asked without {', '.join(sorted(self.dropped))}"] if self.dropped else []
        notes += [self._habits[name].note for name in self.learnt]
        return ", ".join([*([served_by] if served_by else []), *notes]) or None

    def learn(self, refusal: RequestRefused) -> str | None:
        """Make the change that a refusal asks for; return the field's name, or None without one."""
        if refusal.status not in ADAPTABLE_STATUSES:
            return None
        for name, habit in self._habits.items():
            open_ = name not in self.learnt and (habit.late or not self.settled)
            if open_ and habit.refused.search(refusal.said):
                self.learnt.append(name)
                self.version += 1
                return name
        if self.settled:
            return None
        field = self._refused_field(refusal)
        other = self._renames.get(field)
        if not UNSUPPORTED.search(f"{refusal.code.replace('_', ' ')} {refusal.said}"):
            return None
        if other and field not in self._renamed and re.search(rf"\b{other}\b", refusal.said):
            self.rename(field)
        elif field in self._droppable - self.dropped:
            self.dropped |= {field}
            self.version += 1
        else:
            return None
        return field

    def _refused_field(self, refusal: RequestRefused) -> str:
        """Return the field that a refusal names, or else the first field in its message.

        Further fields in the message are often the server's list of fields that it takes.
        """
        quoted = [refusal.field] if refusal.field else QUOTED_FIELD.findall(refusal.said)
        if quoted:
            return str(quoted[0]).rpartition(".")[2]
        known = {*self._renames, *self._droppable}
        return next((name for name in SUBJECT.findall(refusal.said) if name in known), "")
