"""How a server wants to be asked: learnt from what it refuses, once a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from falter.clients._answers import RequestRefused
from falter.core.errors import EndpointError

__all__ = ["Shape"]

STATUSES = (400, 422)
QUOTED = re.compile(r"""['"`]([A-Za-z_][\w.]*)['"`]""")
SUBJECT = re.compile(r"\b([a-z][a-z_]*)(?=:| is not | is no longer | is deprecated| not supported)")
UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?(?:supported|permitted|allowed)|(?:does not|doesn't) support"
    r"|unknown|unrecogni[sz]ed|unexpected|forbidden|deprecated|no longer|cannot find",
    re.I,
)


class Shape:
    """The fields that a server has under another name, or does not take at all.

    One API has many dialects, and which one a server speaks shows when it refuses a request: HTTP
    400 or 422, with a message that names a field. Nothing is guessed from a model's name. The
    provider says what may change: `renames` are other names of fields, taken when the refusal
    mentions them; `may_drop` are fields that may be left out when the refusal says that they are
    not supported. A value that is out of range is the user's affair and is not dropped.

    A refusal changes the shape and the request goes out again, before the first answer. An answer
    settles the shape: whatever is refused later fails, so that all conditions are asked alike.
    Each answer's `served_by` says what was left out; the model's record does not, since its hash
    is in the keys of requests that were planned before.

    A new kind of change is one more attribute, learnt in `learn` and applied in `fields` or by the
    client: a system turn folded into the first user turn, for one, where a chat template refuses
    it. `changes` is for whoever shows or stores what was learnt.
    """

    __slots__ = ("_may_drop", "_names", "_renames", "dropped", "settled", "version")

    def __init__(
        self, renames: Mapping[str, str] = MappingProxyType({}), may_drop: Collection[str] = ()
    ) -> None:
        self._renames = dict(renames)
        self._may_drop = frozenset(may_drop)
        self._names: dict[str, str] = {}
        self.dropped: frozenset[str] = frozenset()
        self.settled = False
        self.version = 0

    def fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a body, as this server takes them."""
        return {
            self._names.get(name, name): value
            for name, value in fields.items()
            if name not in self.dropped
        }

    def rename(self, field: str) -> None:
        """Send a field under its other name from now on."""
        self._names[field] = self._renames[field]
        self.version += 1

    @property
    def changes(self) -> dict[str, str]:
        """What was learnt, in words: for each field, what became of it."""
        renamed = {name: f"sent as {other}" for name, other in self._names.items()}
        return renamed | dict.fromkeys(sorted(self.dropped), "not sent")

    def require(self, sampling: Mapping[str, Any]) -> None:
        """Raise when a condition sets what is not sent: its answers would be the baseline's."""
        for name in sorted(self.dropped & sampling.keys()):
            raise EndpointError(f"the condition sets {name}, which the server does not take")

    def note(self, served_by: str | None) -> str:
        """Who served an answer, with what it was asked without."""
        without = f"asked without {', '.join(sorted(self.dropped))}"
        return without if served_by is None else f"{served_by}, {without}"

    def learn(self, refusal: RequestRefused) -> str | None:
        """Change what the refusal asks for, and name the field; None when it asks for nothing."""
        if self.settled or refusal.status not in STATUSES:
            return None
        field = self._field(refusal)
        other = self._renames.get(field)
        if not UNSUPPORTED.search(f"{refusal.code.replace('_', ' ')} {refusal.said}"):
            return None
        if other and field not in self._names and re.search(rf"\b{other}\b", refusal.said):
            self.rename(field)
        elif field in self._may_drop - self.dropped:
            self.dropped |= {field}
            self.version += 1
        else:
            return None
        return field

    def _field(self, refusal: RequestRefused) -> str:
        """The field that a refusal is about: the one it names, else the first that it quotes.

        Those that follow are often the server's list of what it does take.
        """
        quoted = [refusal.field] if refusal.field else QUOTED.findall(refusal.said)
        if quoted:
            return str(quoted[0]).rpartition(".")[2]
        known = {*self._renames, *self._may_drop}
        return next((name for name in SUBJECT.findall(refusal.said) if name in known), "")
