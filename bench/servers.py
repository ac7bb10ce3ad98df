"""Three real servers, each asked in every way: runs, or is refused before a paid request.

python bench/servers.py llama --python VENV/bin/python           # xllamacpp
python bench/servers.py transformers --python VENV/bin/python    # transformers[serving], torch
python bench/servers.py litellm --python VENV/bin/python         # litellm[proxy]
python bench/servers.py llama --python VENV/bin/python --tools FILE.gguf

Each server runs in an environment of its own, behind a relay that counts the requests. llama.cpp
serves SmolLM2, transformers a tiny model with random weights, and litellm a scripted upstream. With
--tools, llama.cpp serves a model of yours by its own chat template, and items of `tools:core` go to
it in three dialects: one table says how many of the tools and turns stand in the prompt that the
server makes of the request, how many calls are native or read from text, and how many are right,
in the clean prompt and with typos.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

import falter
from falter.analysis.table import scored_cells
from falter.cli.listing import weights_here
from falter.engine.scoring import run_scorers
from falter.records.errors import FalterError
from falter.scorers.calls import FROM_TEXT, NATIVE
from falter.store.store import Store

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
PATIENCE = 900
WAYS: dict[str, dict[str, Any]] = {
    "letters": {"task": "basics:core", "scorer": "choice_letter"},
    "labels": {
        "data": {"path": str(EXAMPLES / "tickets.jsonl"), "target": "queue", "key": "key"},
        "template_file": str(EXAMPLES / "route.txt"),
        "scorer": "label",
    },
    "held to the options": {"task": "basics:core", "scorer": "choice_constrained"},
    "likelihood": {"task": "basics:core", "scorer": "choice_likelihood"},
}
SMALL = {"recipes": ["pad_newlines"], "limit": 4, "sampling": {"max_tokens": 32}}
LLAMA = """
import sys, xllamacpp
given = xllamacpp.CommonParams()
given.model.path, given.port, given.n_parallel, given.n_ctx = sys.argv[1], int(sys.argv[2]), 2, 8192
given.model_alias, given.cpuparams.n_threads = {"m"}, int(sys.argv[3])
given.use_jinja = len(sys.argv) > 4
server = xllamacpp.Server(given)
sys.stdin.read()
"""
TINY = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
letters = sorted(pre_tokenizers.ByteLevel.alphabet())
tokenizer = Tokenizer(models.BPE({c: n for n, c in enumerate(["<s>", "</s>", *letters])}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
fast.chat_template = "{% for m in messages %}{{ m['content'] }}\\n{% endfor %}"
fast.save_pretrained(sys.argv[1])
size = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)
LlamaForCausalLM(LlamaConfig(vocab_size=len(fast), **size)).save_pretrained(sys.argv[1])
"""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server until the end of the block; what it says goes to this program's stderr."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers, with whatever."""
    async with aiohttp.ClientSession() as session:
        for _ in range(PATIENCE):
            try:
                async with session.get(f"http://127.0.0.1:{port}/v1/models") as reply:
                    if reply.status != 503:
                        return
            except aiohttp.ClientError:
                if process.poll() is not None:
                    break
            await asyncio.sleep(1)
    raise SystemExit("the server did not start; what it says is above")


@asynccontextmanager
async def served(
    handle: Callable[[web.Request], Awaitable[web.Response]],
) -> AsyncIterator[int]:
    """A port on which a function answers every request."""
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def scripted(request: web.Request) -> web.Response:
    """A server with chat, schemas and echoed log-probabilities."""
    return web.json_response(reply_to(request.path, await request.json()))


def reply_to(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Answer like the upstream of the proxy."""
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    base = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    if path.endswith("/chat/completions"):
        form, text = body.get("response_format") or {}, "The answer is A, billing."
        if schema := (form.get("json_schema") or {}).get("schema"):
            text = json.dumps({"answer": schema["properties"]["answer"]["enum"][0]})
        message = {"role": "assistant", "content": text}
        return base | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    if path.endswith("/responses"):
        form = (body.get("text") or {}).get("format") or {}
        text = "The answer is A, billing."
        if schema := form.get("schema"):
            text = json.dumps({"answer": schema["properties"]["answer"]["enum"][0]})
        part = {"type": "output_text", "text": text, "annotations": []}
        message = {"type": "message", "id": "2", "role": "assistant", "status": "completed"}
        counts = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
        output = [message | {"content": [part]}]
        made = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
        return made | {"status": "completed", "output": output, "usage": counts}
    prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
    choices = []
    for index, prompt in enumerate(prompts):
        tokens = re.findall(r"\s*\S+|\s+\Z", prompt)
        logprobs = {
            "tokens": tokens,
            "token_logprobs": [None, *(-0.1 * len(token) for token in tokens[1:])],
            "top_logprobs": None,
            "text_offset": None,
        }
        text = prompt if body.get("echo") else " A"
        choices.append(
            {"index": index, "text": text, "finish_reason": "stop"}
            | ({"logprobs": logprobs} if body.get("echo") else {})
        )
    return base | {"object": "text_completion", "choices": choices}


class Relay:
    """Passes requests on to a server, and counts those that are posted."""

    def __init__(self, port: int, session: aiohttp.ClientSession) -> None:
        self.port, self.session, self.posted = port, session, 0
        self.bodies: list[dict[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        """One request, to the server and back."""
        self.posted += request.method == "POST"
        kept = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "connection")}
        url = f"http://127.0.0.1:{self.port}{request.path_qs}"
        data = await request.read()
        if request.method == "POST":
            self.bodies.append(json.loads(data))
        async with self.session.request(request.method, url, data=data, headers=kept) as reply:
            kind = reply.headers.get("Content-Type", "application/json")
            raw = await reply.read()
            return web.Response(status=reply.status, body=raw, headers={"Content-Type": kind})


def come_to(settings: dict[str, Any], folder: Path) -> str:
    """Return the outcome of a run in a few words."""
    try:
        result = falter.run(settings, store=folder / "falter.db")
    except FalterError as error:
        return f"refused: {error.message}"
    counts = result.analysis.panels[0].counts
    failed = f", {counts.failed} failed" if counts.failed else ""
    return f"runs: {counts.scored} of {counts.cells} answers scored{failed}"


async def table(server: str, port: int, model: str, dialects: dict[str, str], plain: str) -> None:
    """A line for each way of asking in each dialect."""
    async with aiohttp.ClientSession() as session:
        relay = Relay(port, session)
        async with served(relay.handle) as mine:
            print(f"| {server} | way | requests | comes to |\n|---|---|--:|---|")
            for (dialect, path), way in product(dialects.items(), WAYS):
                scores = dialect == "openai" and way == "likelihood"
                asked = {
                    "name": f"{dialect}:{plain if scores else model}",
                    "base_url": f"http://127.0.0.1:{mine}{path}",
                    "api": "completions" if scores else None,
                    "concurrency": 2,
                    "timeout": 300,
                }
                settings = {**WAYS[way], **SMALL, "models": [asked]}
                relay.posted = 0
                with tempfile.TemporaryDirectory() as folder:
                    said = await asyncio.to_thread(come_to, settings, Path(folder))
                said = said.replace(str(mine), "PORT").replace("|", "\\|")
                print(f"| {dialect} | {way} | {relay.posted} | {said} |", flush=True)


@asynccontextmanager
async def started(
    server: str, python: str, folder: Path, with_tools: Path | None, threads: int
) -> AsyncIterator[tuple[int, str]]:
    """A server in its own environment: its port, and its model's name."""
    port, tools = free_port(), Path(python).parent
    async with AsyncExitStack() as stack:
        model, address = "m", ["--host", "127.0.0.1", "--port", str(port)]
        if server == "llama":
            weights = with_tools or weights_here()["smollm2"]
            command = [python, "-c", LLAMA, str(weights), str(port), str(threads)]
            command += ["jinja"] if with_tools else []
        elif server == "transformers":
            model = str(folder / "tiny")
            await (await asyncio.create_subprocess_exec(python, "-c", TINY, model)).wait()
            command = [str(tools / "transformers"), "serve", *address]
        else:
            behind = await stack.enter_async_context(served(scripted))
            sent = {"api_base": f"http://127.0.0.1:{behind}/v1", "api_key": "none"}
            routes = {"m": "hosted_vllm/m", "plain": "text-completion-openai/m"}
            listed = [
                {"model_name": name, "litellm_params": {"model": route, **sent}}
                for name, route in routes.items()
            ]
            # Without a key: the proxy listens on this machine alone.
            given = {"dangerously_permit_weak_or_unset_master_key": True}
            config = {"model_list": listed, "general_settings": given}
            (folder / "proxy.yaml").write_text(json.dumps(config))
            command = [str(tools / "litellm"), "--config", str(folder / "proxy.yaml"), *address]
        await listening(port, stack.enter_context(running(command)))
        yield port, model


async def in_the_prompt(relay: Relay) -> str:
    """Count the tools and turns, of those posted, that the model's own template writes out."""
    tools, turns, seen = 0, 0, 0
    for body in relay.bodies:
        url = f"http://127.0.0.1:{relay.port}/apply-template"
        async with relay.session.post(url, json=body) as reply:
            prompt = (await reply.json())["prompt"]
        said = [turn["content"] for turn in body["messages"] if turn.get("content")]
        names = [json.dumps(entry["function"]["name"]) for entry in body["tools"]]
        tools, turns = tools + len(names), turns + len(said)
        seen += sum(name in prompt for name in names) + sum(text in prompt for text in said)
    return f"{seen} of {tools + turns}: {tools} tools, {turns} turns"


def calls_told(settings: dict[str, Any], folder: Path) -> str:
    """Prompt tokens, native calls, calls read from text, and right answers by recipe: cells."""
    falter.run(settings, store=folder / "falter.db")
    tokens, how, right, asked = 0, Counter[str](), Counter[str](), Counter[str]()
    with Store(folder / "falter.db") as store:
        run = store.find_run().run
        for cell, score in scored_cells(store, run, run_scorers(run)):
            if cell.response is None or score is None or cell.variant.status == "not_applicable":
                continue
            tokens += cell.response.usage.prompt_tokens
            how[(score.reason or "").rpartition("; ")[2]] += 1
            recipe = cell.variant.recipe.label
            asked[recipe] += 1
            right[recipe] += score.value == 1
    told = ", ".join(f"{name} {right[name]} of {count}" for name, count in asked.items())
    replies = sum(asked.values())
    return f"{tokens:,} | {how[NATIVE]} of {replies} | {how[FROM_TEXT]} of {replies} | {told}"


async def ask_with_tools(port: int, items: int) -> None:
    """A line for each dialect: what arrived, how the calls came back, and how many are right."""
    async with aiohttp.ClientSession() as session:
        relay = Relay(port, session)
        async with served(relay.handle) as mine:
            print("| dialect | in the prompt | prompt tokens | native | from text | right |")
            print("|---|---|--:|--:|--:|---|")
            for dialect, path in {"openai": "/v1", "responses": "/v1", "anthropic": ""}.items():
                asked = {
                    "name": f"{dialect}:m",
                    "base_url": f"http://127.0.0.1:{mine}{path}",
                    "concurrency": 1,
                    "timeout": 1200,
                }
                settings = {
                    "task": "tools:core", "limit": items, "models": asked, "recipes": ["typos"],
                    "sampling": {"max_tokens": 96},
                }  # fmt: skip
                relay.bodies.clear()
                with tempfile.TemporaryDirectory() as folder:
                    said = await asyncio.to_thread(calls_told, settings, Path(folder))
                arrived = await in_the_prompt(relay) if dialect == "openai" else "the tokens tell"
                print(f"| {dialect} | {arrived} | {said} |", flush=True)


async def main() -> None:
    """One server, by its name."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("server", choices=("llama", "transformers", "litellm"))
    parser.add_argument("--python", required=True, help="of the environment with the server")
    parser.add_argument("--tools", type=Path, help="a GGUF file, asked with tools")
    parser.add_argument("--items", type=int, default=20, help="items of tools:core, with --tools")
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp's server")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        async with started(
            given.server, given.python, Path(folder), given.tools, given.threads
        ) as (port, model):
            if given.tools:
                await ask_with_tools(port, given.items)
                return
            proxy = given.server == "litellm"
            names = {"openai": "/v1", "responses": "/v1", "anthropic": ""}
            names |= {"gemini": "/v1beta"} if proxy else {}
            await table(given.server, port, model, names, "plain" if proxy else model)


if __name__ == "__main__":
    asyncio.run(main())
