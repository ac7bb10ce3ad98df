"""One list of what an experiment file may ask for by itself, for every client and task.

A file may come from a stranger. It must not send a secret to an address of its choice, nor run
code. The tables list what is safe. A client, a provider, a type or an option that they lack needs
`--allow-code`, because nobody has looked at what it imports or executes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from falter.clients.settings import clients

_DECODING = "temperature top_p top_k max_tokens seed stop_seqs frequency_penalty presence_penalty"
_ENGINE = (
    "dtype max_model_len gpu_memory_utilization tensor_parallel_size pipeline_parallel_size "
    "quantization revision enforce_eager max_num_seqs max_num_batched_tokens "
    "enable_prefix_caching kv_cache_dtype"
)
# fmt: off
_SAFE_OPTIONS: Mapping[str, frozenset[str] | None] = {
    # Their options are fields of a request's body, or checked one by one.
    "anthropic": None, "gemini": None, "gguf": None, "openai": None, "responses": None,
    "simulated": None, "smollm2": None,
    "hf": frozenset({
        "dtype", "device", "batch_tokens", "cache_mb", "threads", "revision", "system",
    }),
    "vllm": frozenset(_ENGINE.split()),
    "inspect": frozenset(f"{_DECODING} reasoning_effort reasoning_tokens".split()),
    "lm-eval": frozenset({"apply_chat_template"}),
}
# Providers of Inspect, whose models have names of one part or of several: the variable with the
# key, which goes to the provider's own address, or to `base_url`.
_INSPECT = {
    r"mockllm/[^/]+": None, r"openai/[^/]+": "OPENAI_API_KEY",
    r"anthropic/[^/]+": "ANTHROPIC_API_KEY", r"google/[^/]+": "GOOGLE_API_KEY",
    r"mistral/[^/]+": "MISTRAL_API_KEY", r"grok/[^/]+": "XAI_API_KEY",
    r"groq/.+": "GROQ_API_KEY", r"together/.+": "TOGETHER_API_KEY",
    r"fireworks/.+": "FIREWORKS_API_KEY", r"openrouter/.+": "OPENROUTER_API_KEY",
}
_SERVED = (
    "model base_url num_concurrent max_retries max_length max_gen_toks timeout seed batch_size"
)
# Model types of lm-evaluation-harness: the variable with the key, and safe arguments.
_LM_EVAL = {
    "dummy": (None, ""),
    "hf": (None, "pretrained revision dtype device batch_size max_length add_bos_token"),
    "local-completions": ("OPENAI_API_KEY", f"{_SERVED} tokenizer_backend tokenized_requests"),
    "local-chat-completions": ("OPENAI_API_KEY", _SERVED),
    "openai-completions": ("OPENAI_API_KEY", _SERVED),
    "openai-chat-completions": ("OPENAI_API_KEY", _SERVED),
    "anthropic-completions": ("ANTHROPIC_API_KEY", _SERVED),
    "anthropic-chat-completions": ("ANTHROPIC_API_KEY", _SERVED),
}
# Tasks of other libraries that load what is installed; falter's own execute nothing.
SAFE_TASK = re.compile(r"inspect:inspect_evals(\.\w+)*(?<!\.py)@\w+|lm-eval:\w[\w-]*")
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The variables, the address and the code that a file's model asks for.

    `variables` are those that the file names, then the provider's own if `address` is the file's.
    """

    variables: tuple[str, ...] = ()
    address: str | None = None
    code: str = ""


def asked_by(model: Any) -> Asked:
    """Return what a model's settings, or its name, ask for by the tables."""
    spec = {"name": model} if isinstance(model, str) else model
    if not isinstance(spec, Mapping) or not isinstance(spec.get("name"), str):
        return Asked()  # no model at all, which its reader says
    client, _, rest = spec["name"].partition(":")
    if client not in clients:
        return Asked()
    options, headers = spec.get("options"), spec.get("headers")
    given = options.items() if isinstance(options, Mapping) else ()
    named = [spec.get("api_key_env"), *(headers.values() if isinstance(headers, Mapping) else ())]
    address, variable = server_of(client, rest)
    address = address or spec.get("base_url")
    safe = _SAFE_OPTIONS.get(client, frozenset())
    odd = next((n for n, v in given if v not in (None, False) and safe and n not in safe), None)
    code = "" if _is_safe(client, rest) else spec["name"]
    if odd is not None:
        code = f"{spec['name']} with the option {odd}"
    variables = [name for name in (*named, address and variable) if isinstance(name, str)]
    return Asked(variables=tuple(variables), address=address, code=code)


def server_of(client: str, name: str) -> tuple[str | None, str | None]:
    """Return the address in a model's name, and the variable that its library takes a key from."""
    if client == "inspect":
        known = (key for pattern, key in _INSPECT.items() if re.fullmatch(pattern, name))
        return None, next(known, None)
    if client == "lm-eval":
        kind, _, arguments = name.partition(",")
        return _pairs(arguments).get("base_url"), _LM_EVAL.get(kind, (None, ""))[0]
    return None, None


def _is_safe(client: str, name: str) -> bool:
    if client == "inspect":
        return any(re.fullmatch(pattern, name) for pattern in _INSPECT)
    if client == "lm-eval":
        kind, _, arguments = name.partition(",")
        known = _LM_EVAL[kind][1].split() if kind in _LM_EVAL else None
        return known is not None and _pairs(arguments).keys() <= set(known)
    return client in _SAFE_OPTIONS


def _pairs(arguments: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in arguments.split(",") if part)
