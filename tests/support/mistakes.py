"""Making a mistake for real: a folder with files, a command line, its exit code and its message."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shlex
from pathlib import Path
from typing import Any

import yaml

from falter.cli.app import invoke
from falter.clients import clients
from falter.perturbations import perturbations
from falter.protocols import protocols
from falter.records.errors import UnknownName
from falter.scorers import scorers
from falter.tasks import tasks

__all__ = ["TABLE", "commit", "load"]

TABLE = Path(__file__).parents[1] / "data" / "mistakes.yaml"

ROWS = [
    {"id": "1", "q": "What is two and two?", "options": ["three", "four"], "a": 1, "t": "four"},
    {"id": "2", "q": "What colour is grass?", "options": ["green", "red"], "a": 0, "t": "green"},
]


def load() -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text("utf-8"))
    return entries


def lines(*rows: object) -> str:
    return "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows)


def write_files(folder: Path) -> None:
    """Write the files that the commands of the table refer to."""
    files = {
        "good.jsonl": lines(*ROWS),
        "good.txt": "{q}\nAnswer:",
        "listed.txt": "{q}\n{choices}\nAnswer:",
        "empty.jsonl": "",
        "empty.txt": "",
        "blank.csv": "q,a\n",
        "words.txt": "Say hello.",
        "typo.txt": "{qq}\nAnswer:",
        "far.txt": "{something_else}",
        "broken.jsonl": lines(ROWS[0], '{"q": '),
        "list.jsonl": lines([1, 2]),
        "object.json": '{"q": 1}',
        "notes.docx": "x",
        "sheet.xlsx": "x",
        "emptytarget.jsonl": lines({**ROWS[0], "t": " "}),
        "emptyinput.jsonl": lines({**ROWS[0], "q": ""}),
        "tsk.yaml": "tsk: basics\nmodels: [simulated]\n",
        "a_file": "x",
        "ragged.csv": "q,t\na,b\nc\n",
        "percent.csv": "item,condition,score\na,x,87.5\na,y,60\n",
        "spaces.csv": "item,condition,score\na,typos,1\nb,typos ,0\n",
        "twice.csv": "q,q\na,b\n",
        "fake.parquet": "PAR?",
        "same.jsonl": lines(ROWS[0], ROWS[0]),
        "samekey.jsonl": lines(ROWS[0], {**ROWS[1], "id": "1"}),
        "range.jsonl": lines({**ROWS[0], "a": 7}),
        "label.jsonl": lines({**ROWS[0], "a": "D"}),
        "nogold.jsonl": lines({**ROWS[0], "a": None}),
        "nobody.jsonl": lines({**ROWS[0], "a": "five"}),
        "ambiguous.jsonl": lines({"q": "How many?", "options": ["1", "0"], "a": "1"}),
        "one.jsonl": lines({**ROWS[0], "options": ["four"]}),
        "equal.jsonl": lines({**ROWS[0], "options": ["four", "four"]}),
        "nofield.jsonl": lines({**ROWS[0], "q": None}),
        "empty.yaml": "",
        "list.yaml": "- a\n- b\n",
        "tabs.yaml": "task:\tbasics\n\tx: 1\n",
        "unknown.yaml": "task: basics\nmodels: [simulated]\nrecipies: [typos]\n",
        "nomodel.yaml": "task: basics\n",
        "notask.yaml": "models: [simulated]\n",
        "both.yaml": "task: basics\ndata: {path: good.jsonl, target: t}\nmodels: [simulated]\n",
        "notarget.yaml": "data: {path: good.jsonl}\ntemplate: '{q}'\nmodels: [simulated]\n",
        "limit.yaml": "task: basics\nmodels: [simulated]\nlimit: 0\n",
        "level.yaml": "task: basics\nmodels: [simulated]\nlevel: 95\n",
        "model.yaml": "task: basics\nmodels: [{name: simulated, base_ulr: x}]\n",
        "effect.yaml": "task: basics\nmodels: [{name: simulated, options: {item_sdd: 1}}]\n",
        "negative.yaml": "task: basics\nmodels: [{name: simulated, options: {item_sd: -1}}]\n",
        "part.yaml": "data: {path: good.jsonl, target: t}\nmodels: [simulated]\n"
        "template: {instrution: 'Answer.', input: '{q}'}\n",
        "recipe.yaml": "task: basics\nmodels: [simulated]\nrecipes: [{typos: {rat: 0.1}}]\n",
        "protocol.yaml": "protocol: brittlebench\nmodels: [simulated]\n",
        "shown.yaml": "task: basics\nmodels: [simulated]\ndemonstrations: 2\n"
        "perturb_demonstrations: sometimes\n",
        "secret.yaml": "task: basics\nmodels: [{name: 'openai:m', base_url: 'http://127.0.0.1:9/v1',"
        " options: {api_key: hunter2}}]\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "latin.csv").write_bytes(b"q,t\ncaf\xe9,x\n")
    (folder / "latin.jsonl").write_bytes(b'{"q": "caf\xe9", "t": "x"}\n')


def commit(command: str, folder: Path) -> tuple[int, str]:
    """Run a command line of the table in a folder of its own; its exit code and standard error."""
    write_files(folder)
    before = Path.cwd()
    out, err = io.StringIO(), io.StringIO()
    hidden = {k: os.environ.pop(k) for k in list(os.environ) if k.endswith("_API_KEY")}
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = invoke(shlex.split(command)[1:])
    finally:
        os.chdir(before)
        os.environ.update(hidden)
    text = err.getvalue().replace(str(folder.resolve()) + os.sep, "")
    return code, without_lists(text.replace(str(folder.resolve()), "."))


def without_lists(text: str) -> str:
    """Lists of all that is registered, as their kinds: a new name changes no message here."""
    for registry in (clients, perturbations, protocols, scorers, tasks):
        everything = UnknownName(registry.kind, "", registry.names()).hint
        text = text.replace(f"hint: {everything}\n", f"hint: <the known {registry.kind}s>\n")
    return text
