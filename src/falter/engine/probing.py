"""A panel's first request goes out alone where a server must give more than text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
    hold the model to the possible answers, for any of three items.
    """
    misfits = []
    for request in _one_an_item(requests):
        if not store.claim(store.missing([request.key])):
            return
        try:
            response = await _ask(client, request)
            misfit = _misfit(request, response)
            if misfit is None:
                store.put_responses([(request, response)])
        finally:
            store.release([request.key])
        progress.sent += 1
        progress.prompt_tokens += response.usage.prompt_tokens
        progress.completion_tokens += response.usage.completion_tokens
        if misfit is None:
            return
        misfits.append((request, misfit))
        if len(misfits) == ITEMS:
            break
    if misfits:
        request, misfit = misfits[0]
        wanted, instead = (
            ("gives no log-probabilities of given answers", "choice_letter")
            if request.scores
            else ("does not hold the model to given answers", "choice_letter or label")
        )
        raise PreflightError(
            f"{client.model.base_url} {wanted}: {misfit}",
            hint=f"use a scorer that reads text, such as {instead}"
            + ("" if request.scores else ", or name another form with --option hold_by=…"),
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


async def _ask(client: Client, request: Request) -> Response:
    try:
        if not request.scores:
            return await client.generate(request)
        (response,) = await client.score_many([request])
        return response
    except EndpointError as error:
        return Response(key=request.key, failure=error.message)


def _misfit(request: Request, response: Response) -> str | None:
    """Why the server cannot be used; None where it can, or where a reply tells nothing."""
    if response.failure is not None or request.scores:
        return response.failure
    text, options = response.text or "", request.answers
    answer = constrained_answer(text)
    held = answer in options if options else isinstance(answer, (int, float))
    if held or response.finish_reason not in (None, "stop"):
        return None
    return f"it answered {text[:80]!r}"
