"""The experiment file: an example with comments, and a JSON Schema for editors."""

from __future__ import annotations

from typing import Any

from falter.clients import clients
from falter.core.interfaces import Parameter
from falter.perturbations import perturbations
from falter.protocols import protocols
from falter.scorers import scorers
from falter.tasks import tasks

__all__ = ["EXAMPLE", "SCHEMA_FILE", "schema"]

SCHEMA_FILE = "falter.schema.json"

EXAMPLE = """\
# yaml-language-server: $schema=falter.schema.json
#
# An experiment: items × recipes × models. Look at it with 'falter plan', run it with 'falter run'.
# Lines that start with '#' are off; remove the '#' to use them.

# What is asked: a task by name …
task: basics
# … or your own items and your own prompt:
# data:
#   path: my.jsonl            # .jsonl, .json, .csv, .tsv or .parquet; relative to this file
#   target: answer            # the column with the right answer
#   choices: options          # the column with the options, for multiple choice
#   fields: {question: text}  # placeholder: column, where their names differ
#   key: id                   # a unique key; without it the content is the key
# template: |                 # your words are instruction, {placeholders} are input
#   Answer the question.
#
#   {question}
#   Answer:

# Who answers.
models:
  - smollm2                   # the embedded model: no key, no network after the first use
#  - name: openai:gpt-4o-mini # any OpenAI-compatible server
#    base_url: http://localhost:8000/v1
#    api_key_env: OPENAI_API_KEY
#    concurrency: 64
#    requests_per_minute: 600
#    price: {input: 0.15, output: 0.60}   # per million tokens, for the estimate and the meter

# How the prompt changes. The clean prompt is always asked.
recipes:
  - typos                     # a share of the words, by default half of them
  - typos: {count: 2}         # or exactly two
  - drop_stop_words
  - persona
  - pad_newlines
  - [word_merge, pad_quotes]  # a chain; the order matters
  - identity                  # the same prompt again: the noise floor

# … or, in the place of task and recipes, a whole protocol:
# protocol: brittlebench
# preset: quick               # or paper
# judge: openai:gpt-4o        # who rates the reasoning

limit: 60                     # so many items, drawn by the seed
seed: 0                       # of everything random
draws: 1                      # random realisations of each recipe
repeats: 1                    # times every request is asked
# demonstrations: 5           # solved examples before each item, taken out of the evaluated ones
# perturb_demonstrations: true  # what a recipe does to an item's text, it does to theirs too
# scorer: choice_letter       # 'falter list scorers'; without it, what fits task and model
# sampling: {temperature: 0, max_tokens: 256}
# protect: ['ACME-\\d+']       # what no perturbation may touch
# rewriter: openai:gpt-4o-mini  # whose paraphrases, for recipes that a model makes beforehand
# rewrites: bank.jsonl        # a file with rewrites, to use before the store's
# language: de                # of the texts, for word noise; without it English
unparsed: wrong               # unreadable answers: wrong, or excluded
level: 0.95                   # of the intervals
"""

_KINDS: dict[type, str] = {int: "integer", float: "number", str: "string", bool: "boolean"}


def schema() -> dict[str, Any]:
    """The JSON Schema of an experiment file, with every name that is registered now."""
    text = {"type": "string", "minLength": 1}
    texts = {"anyOf": [text, {"type": "array", "items": text}]}
    recipe = _recipe()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "falter experiment",
        "type": "object",
        "additionalProperties": False,
        "required": ["models"],
        "properties": {
            "task": _named(tasks.names(), "a task by name, or name:path"),
            "tasks": {"type": "array", "items": _named(tasks.names(), "a task by name")},
            "data": _object(
                {
                    "path": text,
                    "fields": {"type": "object", "additionalProperties": text},
                    "choices": texts,
                    "target": text,
                    "target_as": {"enum": ["auto", "index", "label", "text"]},
                    "key": text,
                    "tags": texts,
                    "split": text,
                },
                required=["path", "target"],
            ),
            "template": {"anyOf": [text, {"type": "object", "additionalProperties": text}]},
            "template_file": text,
            "protocol": {"enum": protocols.names(), "description": "a whole protocol"},
            "preset": {"type": "string", "description": "of the protocol: quick or paper"},
            "judge": {"anyOf": [text, _model(text)], "description": "who rates reasoning"},
            "models": {
                "anyOf": [
                    text,
                    {"type": "array", "minItems": 1, "items": {"anyOf": [text, _model(text)]}},
                ],
                "description": f"clients: {', '.join(clients.names())}",
            },
            "recipes": {"type": "array", "items": recipe},
            "scorer": {"enum": scorers.names()},
            "limit": {"type": "integer", "minimum": 1},
            "demonstrations": {"type": "integer", "minimum": 0, "maximum": 64},
            "perturb_demonstrations": {"type": "boolean"},
            "draws": {"type": "integer", "minimum": 1},
            "repeats": {"type": "integer", "minimum": 1},
            "seed": {"type": "integer", "minimum": 0},
            "level": {"type": "number", "minimum": 0.5, "maximum": 0.9999},
            "unparsed": {"enum": ["wrong", "excluded"]},
            "sampling": _object(
                {
                    "temperature": {"type": "number", "minimum": 0, "maximum": 10},
                    "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
                    "max_tokens": {"type": "integer", "minimum": 1},
                    "stop": texts,
                    "seed": {"type": "integer", "minimum": 0},
                }
            ),
            "protect": texts,
            "rewriter": {"anyOf": [text, _model(text)], "description": "who made the rewrites"},
            "rewrites": {**text, "description": "a file with rewrites, to use before the store's"},
            "language": {**text, "description": "of the texts, for word noise"},
        },
    }


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    out: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
    return out | ({"required": required} if required else {})


def _named(names: list[str], help: str) -> dict[str, Any]:
    return {"type": "string", "description": help, "examples": names}


def _model(text: dict[str, Any]) -> dict[str, Any]:
    number = {"type": "number", "exclusiveMinimum": 0}
    return _object(
        {
            "name": text,
            "base_url": text,
            "api": {"enum": ["chat", "completions"]},
            "api_key_env": text,
            "concurrency": {"type": "integer", "minimum": 1, "maximum": 4096},
            "requests_per_minute": number,
            "tokens_per_minute": number,
            "timeout": number,
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": 100},
            "price": _object(
                {
                    "input": {"type": "number", "minimum": 0},
                    "output": {"type": "number", "minimum": 0},
                    "currency": text,
                }
            ),
            "scorer": {"enum": scorers.names()},
            "options": {"type": "object"},
        },
        required=["name"],
    )


def _recipe() -> dict[str, Any]:
    one = {
        "type": "string",
        "examples": perturbations.names(),
        "description": "name, name:key=value, or a+b",
    }
    steps = [
        _object({p.name: {"anyOf": [{"type": "null"}, _object(_parameters(p.parameters))]}})
        for p in perturbations
    ]
    single = {"anyOf": [one, *steps]}
    return {"anyOf": [*single["anyOf"], {"type": "array", "minItems": 1, "items": single}]}


def _parameters(parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for p in parameters:
        entry: dict[str, Any] = {"description": p.help}
        if p.options:
            entry["enum"] = list(p.options)
        elif p.type in _KINDS:
            entry["type"] = _KINDS[p.type]
        if p.low is not None:
            entry["minimum"] = p.low
        if p.high is not None:
            entry["maximum"] = p.high
        out[p.name] = entry
    return out
