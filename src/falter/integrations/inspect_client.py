"""`inspect:PROVIDER/MODEL`: any model that Inspect supports, through `get_model(…).generate(…)`.

Inspect returns no log-likelihoods of given answers, so these models generate and do not score.
"""

from __future__ import annotations

import asyncio
import contextvars
import math
import os
import re
import time
from typing import Any

from falter.clients.answers import Answer, failed
from falter.clients.base import BaseClient
from falter.clients.connection import MIN_SECRET_LENGTH, normal_url, read_key
from falter.clients.permits import server_of
from falter.clients.settings import ClientSettings, OptionTable, clients, require
from falter.records.errors import AuthenticationError, InvalidValue, PreflightError
from falter.records.interfaces import Capabilities, Client
from falter.records.types import Model, Request, Response, Sampling, Usage

MAX_REASON_CHARACTERS = 500
OPTIONS = OptionTable.of("inspect")
REASONS = {"max_tokens": "length", "model_length": "length"}
_KEY_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD)\Z", re.IGNORECASE)


class Inspect(BaseClient):
    """Client of an Inspect model. Inspect retries and limits connections as the settings say."""

    def __init__(self, settings: ClientSettings) -> None:
        options = OPTIONS.read(settings)
        if "/" not in settings.name.strip("/"):
            expected = "PROVIDER/MODEL, as in 'inspect:openai/gpt-4o'"
            raise InvalidValue("name", settings.name, expected)
        require("Models of Inspect", "inspect", "inspect_ai")
        self._settings = settings
        self._base_url = None if settings.base_url is None else normal_url(settings.base_url)
        self._null_options = {name for name, value in options.items() if value is None}
        self._given_options = {name: value for name, value in options.items() if value is not None}
        self.capabilities = Capabilities(generates=True, scores=False)
        self.model = Model(
            client="inspect", name=settings.name, base_url=self._base_url, options=options
        )
        self._model: Any = None

    @property
    def address(self) -> str:
        """Server in the settings, or else a note that Inspect chooses the address."""
        return self._base_url or f"the address that Inspect has for {self.model.name}"

    @property
    def key_variable(self) -> str | None:
        """Environment variable of the key: from the settings, or else the provider's."""
        return self._settings.api_key_env or server_of("inspect", self.model.name)[1]

    async def check(self) -> None:
        """Create the model. Raise for an unknown provider, a missing library or a missing key."""
        if self._model is None:
            self._model = self._connect()

    async def generate(self, request: Request) -> Response:
        """Return one response, never from Inspect's own cache.

        The call runs in a separate context, which frees the kilobytes that Inspect records for each
        call.
        """
        await self.check()
        started = time.perf_counter()
        context = contextvars.copy_context()
        asked = asyncio.create_task(self._ask(request), context=context)
        try:
            output = await asked
        except Exception as error:
            return self._failed(request, error)
        if output.error or not output.choices:
            reason = self._without_keys(output.error or "no choices")
            return failed(request, reason[:MAX_REASON_CHARACTERS])
        answer = Answer(
            text=output.completion,
            finish_reason=REASONS.get(output.stop_reason, output.stop_reason),
            usage=_usage(output.usage),
            served_by=output.model or None,
        )
        return answer.response(request, time.perf_counter() - started)

    async def close(self) -> None:
        """Close the provider's connections."""
        if self._model is not None:
            await self._model.api.aclose()
            self._model = None

    def _connect(self) -> Any:
        from inspect_ai.model import GenerateConfig, get_model

        settings = self._settings
        own, known = self._given_options, GenerateConfig.model_fields
        config = GenerateConfig(
            max_connections=settings.concurrency,
            max_retries=settings.max_attempts - 1,
            attempt_timeout=math.ceil(settings.timeout),
            **{name: value for name, value in own.items() if name in known},
        )
        key = None if settings.api_key_env is None else read_key(settings.api_key_env)
        try:
            return get_model(
                settings.name,
                config=config,
                base_url=self._base_url,
                api_key=key,
                memoize=False,
                **{name: value for name, value in own.items() if name not in known},
            )
        except Exception as error:
            raise PreflightError(
                f"Inspect could not load the model '{settings.name}': "
                f"{self._without_keys(str(error))[:MAX_REASON_CHARACTERS]}",
                hint="name it as PROVIDER/MODEL, install the provider's library, and set its key",
            ) from None

    async def _ask(self, request: Request) -> Any:
        from inspect_ai.model import (
            ChatMessageAssistant,
            ChatMessageSystem,
            ChatMessageUser,
            GenerateConfig,
        )

        kinds = {
            "system": ChatMessageSystem,
            "user": ChatMessageUser,
            "assistant": ChatMessageAssistant,
        }
        turns = request.messages or (("user", request.context),)
        return await self._model.generate(
            [kinds[role](content=text) for role, text in turns],
            config=GenerateConfig(**self._sampling(request.sampling)),
            cache=False,
        )

    def _sampling(self, sampling: Sampling) -> dict[str, Any]:
        """Return the sampling settings without a `top_p` of 1, which some providers reject."""
        fields = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if sampling.top_p < 1 else None,
            "max_tokens": sampling.max_tokens,
            "stop_seqs": list(sampling.stop) or None,
            "seed": sampling.seed,
        }
        return {
            name: value
            for name, value in fields.items()
            if value is not None and name not in self._null_options
        }

    def _failed(self, request: Request, error: Exception) -> Response:
        """Return a provider's error as a failed response. Raise if the key was refused."""
        shown = self._without_keys(str(error))
        if _status(error) in (401, 403):
            raise AuthenticationError(
                f"'{self.model.label}' refused the key: {shown[:MAX_REASON_CHARACTERS]}",
                hint="set the provider's key again",
            ) from None
        reason = f"{type(error).__name__}: {shown}"[:MAX_REASON_CHARACTERS]
        return failed(request, reason)

    def _without_keys(self, text: str) -> str:
        """Return the text without the values of environment variables that hold keys.

        Every provider reads variables of its own, so all with the name of a key count, such as
        `OPENAI_API_KEY`. Longer values go first, because a key may begin with another one.
        """
        for name, value in sorted(os.environ.items(), key=lambda pair: -len(pair[1])):
            own = name in (self._settings.api_key_env, self.key_variable)
            if value and (own or (len(value) >= MIN_SECRET_LENGTH and _KEY_VARIABLE.search(name))):
                text = text.replace(value, "…")
        return text


def _status(error: BaseException | None) -> int | None:
    """Return the HTTP status of an exception or of its causes, or None."""
    for _ in range(8):
        if error is None:
            break
        response = getattr(error, "response", None)
        status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
        if isinstance(status, int):
            return status
        error = error.__cause__ or error.__context__
    return None


def _usage(usage: Any) -> Usage:
    """Return the token counts; tokens of a provider's prompt cache count as prompt tokens."""
    if usage is None:
        return Usage()
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return Usage(
        prompt_tokens=max(0, usage.input_tokens + cached),
        completion_tokens=max(0, usage.output_tokens),
    )


@clients.registers("inspect")
def connect(settings: ClientSettings) -> Client:
    """A model of Inspect."""
    return Inspect(settings)
