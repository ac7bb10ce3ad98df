"""Export as a data set folder for the Hugging Face hub: Parquet files and a card."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from falter.records.errors import MissingExtra
from falter.records.figures import Statement
from falter.report.escape import line
from falter.report.exported import (
    ExportedResult,
    answer_text,
    expected,
    export_forms,
    prompt_messages,
    whole_text,
)
from falter.report.forms.data import write_parquet
from falter.report.forms.markdown import text as safe
from falter.report.words import facts

BATCH = 4096


@export_forms.registers("hf")
def write_hub(result: ExportedResult, folder: Path) -> list[Path]:
    """Write `answers`, `numbers` and the card; return the files.

    `answers` has a row for each planned cell with its texts, `numbers` a row for each number of the
    report.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingExtra("The Hugging Face export", "parquet", "pyarrow") from error
    answers, numbers = folder / "data" / "answers.parquet", folder / "data" / "numbers.parquet"
    answers.parent.mkdir(exist_ok=True)
    count = _write_answers(result, answers)
    write_parquet(result.study, numbers)
    card = folder / "README.md"
    card.write_text(_card(result, count), "utf-8")
    return [card, answers, numbers]


def _write_answers(result: ExportedResult, path: Path) -> int:
    """Write the rows of all cells to a Parquet file; return their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words, whole, number = pa.string(), pa.int64(), pa.float64()
    turn = pa.struct([("role", words), ("content", words)])
    types = {
        "tags": pa.list_(words), "draw": whole, "repeat": whole, "value": number,
        "prompt": pa.list_(turn), "choices": pa.list_(words), "prompt_tokens": whole,
        "completion_tokens": whole, "latency": number,
    }  # fmt: skip
    schema = pa.schema([(name, types.get(name, words)) for name in _COLUMNS])
    count, rows = 0, _rows(result)
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(itertools.islice(rows, BATCH)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            count += len(batch)
    return count


_COLUMNS = (
    "part", "task", "model", "scorer", "item", "tags", "recipe", "draw", "repeat", "status",
    "prompt", "choices", "expected", "answer", "reasoning", "outcome", "value", "extracted",
    "reason", "finish_reason", "prompt_tokens", "completion_tokens", "latency", "served_by",
)  # fmt: skip


def _rows(result: ExportedResult) -> Iterator[dict[str, Any]]:
    """Yield a row for each planned cell; without a score its outcome is `missing`."""
    for part in result.parts:
        for cell in part.cells():
            panel = part.run.panels[cell.panel]
            variant, response, score = cell.variant, cell.response, cell.score
            came = response is not None and response.failure is None
            texts = {
                "part": part.name,
                "task": panel.task,
                "model": panel.model.label,
                "scorer": panel.scorer,
                "item": variant.item.key,
                "recipe": variant.recipe.label,
                "status": variant.status,
                "expected": expected(variant.prompt),
                "answer": answer_text(cell) if came else None,
                "reasoning": response.reasoning if response else None,
                "outcome": score.outcome if score else "missing",
                "extracted": score.extracted if score else None,
                "reason": (score.reason if score else None) or cell.failure,
                "finish_reason": response.finish_reason if response else None,
                "served_by": response.served_by if response else None,
            }
            yield {
                **{name: None if text is None else whole_text(text)
                   for name, text in texts.items()},
                "tags": [whole_text(tag) for tag in variant.item.tags],
                "draw": variant.draw,
                "repeat": cell.repeat - variant.recipe.repeat * part.run.repeats,
                "prompt": prompt_messages(variant.prompt),
                "choices": [whole_text(choice) for choice in variant.prompt.choices],
                "value": score.value if score else None,
                "prompt_tokens": response.usage.prompt_tokens if came and response else None,
                "completion_tokens": (
                    response.usage.completion_tokens if came and response else None
                ),
                "latency": response.latency if came and response else None,
            }  # fmt: skip


def _card(result: ExportedResult, count: int) -> str:
    """Return the card: YAML metadata for the hub, then text in the report's words."""
    study = result.study
    head = {
        "pretty_name": line(study.title, 100),
        "tags": ["falter", "robustness", "evaluation"],
        "configs": [
            {"config_name": "answers", "data_files": "data/answers.parquet", "default": True},
            {"config_name": "numbers", "data_files": "data/numbers.parquet"},
        ],
    }
    first = study.figures[0] if study.figures else None
    words = first.text if isinstance(first, Statement) else ()
    simulated = [
        f"{safe(model)} is simulated: its numbers describe a formula, not a language model."
        for model in study.simulated
    ]
    said = (*simulated, *(safe(sentence, 1_000) for sentence in words))
    template = files("falter.integrations").joinpath("hub_card.md").read_text("utf-8")
    card = template.format(
        title=safe(study.title),
        said="".join(f"{sentence}\n\n" for sentence in said),
        count=count,
        facts=safe(facts(study), 1_000),
    )
    front = yaml.safe_dump(head, sort_keys=False, allow_unicode=False)
    return f"---\n{front}---\n\n{card}"
