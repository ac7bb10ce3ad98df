"""Real logs of other tools, for the tests of their readers. One command for each tool:

    python bench/peer_logs.py inspect tests/data/logs/doubling/inspect
    python bench/peer_logs.py lm-eval tests/data/logs/doubling/lm_eval
    python bench/peer_logs.py promptfoo tests/data/logs/doubling/promptfoo \
        --program node_modules/.bin/promptfoo

Each tool asks the same twelve questions of a model that is a function of the prompt: right about
even numbers, and about odd ones where it is asked politely. `before` asks plainly, `after`
politely. No network is used. Inspect also leaves a log that failed. Needs inspect-ai, lm-eval
or promptfoo (`npm install promptfoo`, outside the repository).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

PROMPTS = {"before": "Double the number {n}.", "after": "Please double the number {n}."}
NUMBERS = range(1, 13)
FAILING = 7
FAKE = """
export default class Fake {
  id() { return "fake"; }
  async callApi(prompt) {
    const n = Number(/number (\\d+)/.exec(prompt)[1]);
    if (n === %d) return { error: "the server answered 503" };
    return { output: n %% 2 === 0 || /please/i.test(prompt) ? String(2 * n) : "unsure" };
  }
}
"""


def reply(prompt: str) -> str:
    """The model."""
    number = int(re.findall(r"number (\d+)", prompt)[-1])
    return str(2 * number) if number % 2 == 0 or "please" in prompt.lower() else "unsure"


def inspect(folder: Path, _: str) -> None:
    """Write `before.eval`, `after.eval` and `failed.eval`, whose model raises at once."""
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, modelapi
    from inspect_ai.scorer import match

    class Fake(ModelAPI):  # type: ignore[misc]
        async def generate(
            self, input: Any, tools: Any, tool_choice: Any, config: GenerateConfig
        ) -> ModelOutput:
            if self.model_name == "broken":
                raise RuntimeError("the server answered 503")
            return ModelOutput.from_content(self.model_name, reply(input[-1].text))

    modelapi(name="fake")(lambda: Fake)
    for name, prompt in {**PROMPTS, "failed": PROMPTS["before"]}.items():
        samples = [Sample(id=f"q{n}", input=prompt.format(n=n), target=str(2 * n)) for n in NUMBERS]
        task = inspect_ai.Task(name="doubling", dataset=samples, scorer=match(location="exact"))
        with tempfile.TemporaryDirectory() as logs:
            model = "fake/broken" if name == "failed" else "fake/small"
            (log,) = inspect_ai.eval(
                task, model=model, log_dir=logs, display="none", log_samples=name != "failed"
            )
            if log.error is not None:  # its traceback holds the paths of this machine
                log.error.traceback = log.error.traceback_ansi = ""
            inspect_ai.log.write_eval_log(log, folder / f"{name}.eval")


def lm_eval(folder: Path, _: str) -> None:
    """Write a folder for each prompt, as `lm_eval --log_samples --output_path FOLDER` does."""
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Fake(LM):  # type: ignore[misc]
        def generate_until(self, requests: Any, **_: Any) -> list[str]:
            return [reply(request.args[0]) for request in requests]

        def loglikelihood(self, requests: Any, **_: Any) -> Any:
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    with tempfile.TemporaryDirectory() as made:
        data = Path(made) / "questions.jsonl"
        data.write_text("".join(json.dumps({"id": f"q{n}", "n": n}) + "\n" for n in NUMBERS))
        for name, prompt in PROMPTS.items():
            task = {
                "task": "doubling",
                "dataset_path": "json",
                "dataset_kwargs": {"data_files": {"test": str(data)}},
                "test_split": "test",
                "output_type": "generate_until",
                "doc_to_text": prompt.replace("{n}", "{{n}}"),
                "doc_to_target": "{{ n * 2 }}",
                "generation_kwargs": {"until": ["\n"]},
                "metric_list": [
                    {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}
                ],
            }
            found = lm_eval.simple_evaluate(
                Fake(), tasks=[task], task_manager=TaskManager(include_defaults=False),
                log_samples=True, bootstrap_iters=0,
            )  # fmt: skip
            samples = found.pop("samples")
            found["config"]["model"] = "fake"
            tracker = EvaluationTracker(output_path=str(folder / name))
            tracker.general_config_tracker.model_source = "fake"
            tracker.general_config_tracker.model_name = "fake"
            tracker.general_config_tracker.model_name_sanitized = "fake"
            tracker.save_results_aggregated(results=found, samples=samples)
            tracker.save_results_samples(task_name="doubling", samples=samples["doubling"])


def promptfoo(folder: Path, program: str) -> None:
    """Write `before.json`, `after.json` and `both.json`, whose two prompts are conditions."""
    command = str(Path(program).resolve())
    prompts = {
        name: {"id": name, "label": name, "raw": text.replace("{n}", "{{n}}")}
        for name, text in PROMPTS.items()
    }
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "fake.mjs").write_text(FAKE % FAILING)
        for name in (*PROMPTS, "both"):
            config = {
                "description": "doubling",
                "prompts": [*prompts.values()] if name == "both" else [prompts[name]],
                "providers": ["file://fake.mjs"],
                "defaultTest": {"assert": [{"type": "equals", "value": "{{ n * 2 }}"}]},
                "tests": [{"vars": {"id": f"q{n}", "n": n}} for n in NUMBERS],
            }
            (Path(made) / "config.json").write_text(json.dumps(config))
            written = Path(made) / f"{name}.json"
            off = {f"PROMPTFOO_{what}": "1" for what in (
                "DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION",
            )}  # fmt: skip
            arguments = ["-c", "config.json", "-o", written.name, "--no-cache", "--no-table"]
            done = subprocess.run(
                [command, "eval", *arguments], cwd=made, capture_output=True, text=True,
                env={**os.environ, **off, "PROMPTFOO_CONFIG_DIR": made},
            )  # fmt: skip
            if not written.exists():  # its exit code is 100 where a test fails
                raise SystemExit(f"promptfoo wrote nothing: {done.stderr or done.stdout}")
            shutil.move(written, folder)


TOOLS = {"inspect": inspect, "lm-eval": lm_eval, "promptfoo": promptfoo}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tool", choices=TOOLS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", default="promptfoo", help="promptfoo's program")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    TOOLS[chosen.tool](chosen.folder, chosen.program)


if __name__ == "__main__":
    main()
