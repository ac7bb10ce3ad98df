"""What options are called elsewhere, so that an error can name ours."""

from __future__ import annotations

import click

_OURS = {
    "--perturb": "--recipe",
    "--perturbation": "--recipe",
    "--perturbations": "--recipe",
    "--recipes": "--recipe",
    "--models": "--model",
    "--tasks": "--task",
    "--dataset": "--data",
    "--prompt": "--template",
    "--prompts": "--template",
    "--num_fewshot": "--demonstrations",
    "--num-fewshot": "--demonstrations",
    "--fewshot": "--demonstrations",
    "--shots": "--demonstrations",
    "--samples": "--limit",
    "--num-samples": "--limit",
    "--max-samples": "--limit",
    "--epochs": "--repeats",
    "--repeat": "--repeats",
    "--max-connections": "--concurrency",
    "--num_concurrent": "--concurrency",
    "--max_tokens": "--max-tokens",
    "--max_gen_toks": "--max-tokens",
    "--model-base-url": "--base-url",
    "--base_url": "--base-url",
    "--api-base": "--base-url",
    "--metric": "--scorer",
    "--output": "--html",
    "--output_path": "--html",
    "--system-prompt": "--template",
    "--grader": "--judge",
}
"""By their names in lm-evaluation-harness, Inspect and promptfoo, or as one might guess them."""


def usage_message(error: click.UsageError) -> str:
    """What was wrong; of an unknown option our name for it, where this command has it."""
    name = error.option_name if isinstance(error, click.NoSuchOption) else ""
    if name in ("--decide", "--looks", "--precision"):
        from falter.engine.settings import removed  # costs what a help page need not

        return removed(name.removeprefix("--")).message
    ours = _OURS.get(name)
    if error.ctx is None or ours is None:
        return error.format_message()
    if not any(ours in parameter.opts for parameter in error.ctx.command.params):
        return error.format_message()
    return f"No such option '{name}'. Did you mean '{ours}'?"
