"""A panel's first request goes out alone where a server must give more than text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from falter.engine.sending import Progress
from falter.records.errors import EndpointError, PreflightError
from falter.records.interfaces import Client
from falter.records.types import Request, Response
from falter.scorers.constrained import constrained_answer
from falter.store.store import Store

ITEMS = 3
"""One prompt may be too long for a server, or refused by its filter; three tell of the server."""


async def probe(
    requests: Iterable[Request], client: Client, store: Store, progress: Progress
) -> None:
    """Ask a server for one item of a panel, and store the answer: the run does not ask again.

    Raises `PreflightError` when the server gives no log-probabilities of given texts, or does not
    hold the model to the possible answers, for any of three items or at all.
    """
    misfits: list[str] = []
    for request in islice(_one_an_item(requests), ITEMS):
        if not store.claim(store.missing([request.key])):
            return
        try:
            if request.scores:
                (response,) = await client.score_many([request])
            else:
                response = await client.generate(request)
            misfit = _misfit(request, response)
            if misfit is None:
                store.put_responses([(request, response)])
        except EndpointError as error:
            reason = f"gives no log-probabilities of given answers: {error.message}"
            raise _unfit(client, request, reason) from error
        finally:
            store.release([request.key])
        progress.sent += 1
        progress.prompt_tokens += response.usage.prompt_tokens
        progress.completion_tokens += response.usage.completion_tokens
        if misfit is None:
            return
        misfits.append(misfit)
    if misfits:
        raise _unfit(client, request, misfits[0])


def _unfit(client: Client, request: Request, reason: str) -> PreflightError:
    other = "" if request.scores else ", or name another form with --option hold_by=…"
    return PreflightError(
        f"{client.model.base_url} {reason}",
        hint=f"use a scorer that reads text, such as choice_letter or label{other}",
    )


def _one_an_item(requests: Iterable[Request]) -> Iterator[Request]:
    """The first request of each item, if it is for more than text."""
    seen = set()
    for request in requests:
        if not request.scores and request.answers is None:
            return
        key = request.variant.item.key
        if key not in seen:
            seen.add(key)
            yield request


def _misfit(request: Request, response: Response) -> str | None:
    """Return the reason to refuse the server; None if it fits, or if the reply tells nothing."""
    if response.failure is not None:
        wanted = "log-probabilities" if request.scores else "held answers"
        return f"failed when it was first asked for {wanted}: {response.failure}"
    if request.scores:
        return None
    text, options, ended = response.text or "", request.answers, response.finish_reason
    answer = constrained_answer(text)
    held = answer in options if options else isinstance(answer, (int, float))
    cut = ended == "length" and text.lstrip()[:1] in ("", "{", "`")  # or the model was thinking
    if held or cut or ended not in (None, "stop", "length"):
        return None
    return f"does not hold the model to given answers: it answered {text[:80]!r}"
