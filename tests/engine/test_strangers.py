"""Files from strangers: an exact message, exit code 2, nothing sent, no secret given away."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from falter.cli.app import invoke
from falter.clients.permits import server_of
from falter.clients.settings import clients
from falter.engine.config import read_experiment
from falter.engine.experiment_file import check_permits, read_settings
from falter.protocols.judging import read_rubrics
from falter.readers.tables import column_names
from falter.records.errors import FalterError, TaskError, UsageError, printable
from falter.tasks import rows as files
from falter.tasks.enterprise_data import read_domain
from falter.tasks.rows import read_rows
from falter.tasks.task import tasks

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
YAML = {
    "alias bomb": (BOMB, "expands to more than 200,000 values"),
    "itself": ("a: &a [*a]\n", "expands to more than 200,000 values"),
    "deep": ("[" * 100_000, "nested"),
    "deep and closed": ("task: " + "[" * 300 + "]" * 300, "nested"),
    "a key twice": ("task: basics\ntask: functions\n", "'task' appears twice"),
    "a key twice below": ("sampling: {seed: 1, seed: 2}\n", "'seed' appears twice"),
    "half a character": ('task: "\\ud800"\n', "half of a surrogate pair"),
    "half a character in a key": ('"\\ud800": 1\n', "half of a surrogate pair"),
    "an escape sequence": ('task: "\\x1b[2J"\n', "control character"),
    "a Python object": ("task: !!python/object/apply:os.system [id]\n", "is not YAML"),
    "a bad date": ("task: 2020-99-99\n", "is not YAML"),
    "two documents": ("task: basics\n---\ntask: basics\n", "is not YAML"),
    "a list": ("- task\n", "expected a mapping"),
    "no UTF-8": ("task: \udcff\n", "cannot be read"),
    "megabytes": ("# " + "x" * 9_000_000, "more than 8,388,608 bytes"),
}


@pytest.mark.parametrize("name", YAML)
def test_yaml_that_means_harm_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bombs, depth, keys that are there twice, surrogates, tags, sheer size."""
    text, message = YAML[name]
    path = tmp_path / "e.yaml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert invoke(["plan", str(path)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert printable(said) == said


def test_rubrics_and_domains_without_bottom_are_refused(tmp_path: Path) -> None:
    """They are read by the parser in C, which such a text once brought down."""
    path = tmp_path / "r.yaml"
    path.write_text("a: " + "[" * 100_000)
    with pytest.raises(UsageError, match="nested more than 50 levels deep"):
        read_rubrics(path)
    with pytest.raises(TaskError, match="nested more than 50 levels deep"):
        read_domain(str(path))


ROWS = {
    "NaN": ("a.jsonl", '{"a": NaN}', "NaN is not a JSON number"),
    "infinity": ("a.json", '[{"a": -Infinity}]', "-Infinity is not a JSON number"),
    "a number without end": ("a.jsonl", '{"a": 1e999}', "holds the number inf"),
    "a name twice": ("a.jsonl", '{"a": 1, "a": 2}', "the name 'a' appears twice"),
    "a surrogate for a name": ("a.jsonl", '{"\\ud800": 1}', "half of a surrogate pair in its name"),
    "an escape for a name": ("a.csv", "a\x1b[2J,b\n1,2\n", "control character"),
    "deep": ("a.json", "[" * 100_000, "is not JSON"),
    "deep and closed": ("a.jsonl", '{"a": ' + "[" * 200 + "]" * 200 + "}", "more than 50 deep"),
    "cut off": ("a.jsonl.gz", gzip.compress(b'{"a": 1}' * 999)[:30], "cannot be read"),
    "no gzip": ("a.jsonl.gz", b"\x1f\x8b\x08\x00nothing of it", "cannot be read"),
    "no UTF-8": ("a.csv", b"a\n\xff\n", "is not UTF-8"),
    "no Parquet": ("a.parquet", b"PAR1 and so on", "is not Parquet"),
}


@pytest.mark.parametrize("name", ROWS)
def test_data_that_cannot_be_read_say_why(name: str, tmp_path: Path) -> None:
    """The file and the place, and no other exception."""
    file, content, message = ROWS[name]
    path = tmp_path / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TaskError) as caught:
        read_rows(path)
    assert message in str(caught.value)
    assert file in str(caught.value)


def test_what_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packed file is read up to a limit, and not into memory first."""
    monkeypatch.setattr(files, "_MAX_BYTES", 10_000)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 10_000_000))
    with pytest.raises(TaskError, match="more than 10,000 bytes"):
        read_rows(path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.tsv.gz"])
def test_a_line_without_end_is_refused_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the whole of it is in memory; a line below the limit is read."""
    monkeypatch.setattr(files, "_MAX_LINE_BYTES", 3_000_000)
    path = tmp_path / name
    pack = gzip.compress if name.endswith(".gz") else bytes
    good = '{"a": "%s"}\n' if "jsonl" in name else "a\n%s\n"
    path.write_bytes(pack((good % ("x" * 2_000_000)).encode()))
    assert len(read_rows(path)) == 1
    path.write_bytes(pack((good % "x" + good % ("x" * 9_000_000)).encode()))
    line = 2 if "jsonl" in name else 4
    with pytest.raises(TaskError, match=rf"{name}, line {line} has more than 3,000,000 bytes"):
        read_rows(path)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv", "a.parquet", "a.json"])
def test_rows_without_end_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes may unpack into more rows than memory holds."""
    monkeypatch.setattr(files, "_MAX_ROWS", 1000)
    path = tmp_path / name
    if name == "a.parquet":
        import pyarrow as pa
        import pyarrow.parquet as parquet

        parquet.write_table(pa.table({"q": ["x"] * 9000}), path)
    else:
        row = {"a.csv": "x\n", "a.json": '{"a": 1},'}.get(name, '{"a": 1}\n')
        text = f"[{row * 9000}{row[:-1]}]" if name == "a.json" else row * 9000
        path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    with pytest.raises(TaskError, match=f"{name} has more than 1,000 rows"):
        read_rows(path)


def test_names_without_end_and_blank_lines_take_no_time(tmp_path: Path) -> None:
    """A hundred thousand names of which two are the same, and ten million lines with nothing."""
    names = [f"n{n}" for n in range(150_000)]
    for file, text in {
        "a.csv": ",".join([*names, "n7"]) + "\n",
        "a.jsonl": "{" + ",".join(f'"{name}":1' for name in [*names, "n7"]) + "}",
    }.items():
        (tmp_path / file).write_text(text)
        with pytest.raises(TaskError, match="'n7'"):
            read_rows(tmp_path / file)
        if file == "a.csv":  # results from elsewhere, too
            with pytest.raises(TaskError, match="'n7' twice"):
                column_names(tmp_path / file)
    (tmp_path / "b.jsonl").write_text("\n" * 10_000_000 + '{"a": 1}\n\n{"a": }')
    with pytest.raises(TaskError, match="line 10000003 is not JSON"):
        read_rows(tmp_path / "b.jsonl")


def test_numbers_beyond_64_bits_and_quotes_in_names_are_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 123456789012345678901, "\\"": "\\u0022 \\"", "c": [1.5, "x"]}\n')
    assert read_rows(path) == [{"a": 123456789012345678901, '"': '" "', "c": [1.5, "x"]}]
    path.write_text('{"a\\"": "\\u0022", "a\\"": "\\u0022"}\n')
    with pytest.raises(TaskError, match="appears twice"):
        read_rows(path)


def test_odd_types_of_parquet_are_named(tmp_path: Path) -> None:
    """Dates, decimals and bytes have no text of their own; NaN is a missing value."""
    import datetime
    import decimal

    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = tmp_path / "a.parquet"
    odd = [datetime.date(2020, 1, 1), decimal.Decimal("1.5"), b"x", datetime.timedelta(1)]
    for value in odd:
        parquet.write_table(pa.table({"q": ["a"], "odd": [value]}), path)
        with pytest.raises(TaskError, match=f"column 'odd' holds a {type(value).__name__}"):
            read_rows(path)
    parquet.write_table(pa.table({"q": ["a"], "x": [float("nan")]}), path)
    assert read_rows(path) == [{"q": "a", "x": None}]


# Secrets and code


ELSEWHERE = "https://models.example.org/v1"
KEYS = {
    "a secret that is no key": {"name": "openai:x", "api_key_env": "AWS_SECRET_ACCESS_KEY"},
    "a key for another host": {
        "name": "openai:x",
        "base_url": "https://models.example.org/v1",
        "api_key_env": "OPENAI_API_KEY",
    },
    "a key for a port of this machine": {
        "name": "openai:x",
        "base_url": "http://127.0.0.1:8000/v1",
        "api_key_env": "OPENAI_API_KEY",
    },
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("place", ["models", "model", "rewriter", "reader", "judge"])
def test_a_file_does_not_send_secrets_where_it_likes(name: str, place: str) -> None:
    """Only the name on the command line allows it, and the error says what would be sent."""
    settings = {place: [KEYS[name]] if place == "models" else KEYS[name]}
    variable = KEYS[name]["api_key_env"]
    with pytest.raises(UsageError, match=variable) as caught:
        check_permits(settings, Path("e.yaml"))
    assert f"--allow-env {variable}" in str(caught.value.hint)
    with pytest.raises(UsageError):
        check_permits(settings, Path("e.yaml"), env=["OTHER"])
    check_permits(settings, Path("e.yaml"), env=[variable])


OUTSIDE = {
    "data": {"data": "../notes.csv"},
    "data as a mapping": {"data": {"path": "/home/me/notes.csv", "target": "a"}},
    "a link": {"data": "link.csv"},
    "one of several templates": {"template_file": ["p.txt", "../p.txt"]},
    "rewrites": {"rewrites": "../bank.jsonl"},
    "rubrics": {"rubrics": "../rubrics.yaml"},
    "a recipe": {"recipes": ["typos", [{"vocabulary": {"file": "../words.txt"}}]]},
    "a level of a grid": {"grid": {"template": ["own", "../p.txt"]}},
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_file_does_not_send_other_files_where_it_likes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies beside it or below the working directory may go to a server that it names."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "link.csv").symlink_to(tmp_path / "notes.csv")
    settings = {**OUTSIDE[name], "models": {"name": "openai:x", "base_url": ELSEWHERE}}
    with pytest.raises(UsageError, match=r"would send the content of .* to models.example.org"):
        check_permits(settings, folder / "e.yaml")
    check_permits({**settings, "models": "openai:x"}, folder / "e.yaml")
    if "home" not in str(settings):
        monkeypatch.chdir(tmp_path)
        check_permits(settings, folder / "e.yaml")


def test_usual_keys_need_no_permit() -> None:
    """A provider's own key for its own server; no key at all for another."""
    for model in (
        "openai:x",
        {"name": "openai:x", "api_key_env": "OPENAI_API_KEY"},
        {"name": "openai:x", "base_url": "http://localhost:8000/v1"},
        {"name": "openai:x", "base_url": "https://models.example.org/v1"},
    ):
        check_permits({"models": [model]}, Path("e.yaml"))


THROUGH_A_LIBRARY = {
    "inspect:openai/gpt-4o": {"base_url": ELSEWHERE},
    "inspect:google/gemini": {"base_url": ELSEWHERE},
    f"lm-eval:openai-chat-completions,model=x,base_url={ELSEWHERE}": {},
    f"lm-eval:local-completions,base_url={ELSEWHERE},model=x": {},
}


@pytest.mark.parametrize("name", THROUGH_A_LIBRARY)
def test_a_key_does_not_travel_through_a_library(name: str) -> None:
    """The variable that Inspect or lm-eval reads by itself needs the same permit; at home, none."""
    model = {"name": name, **THROUGH_A_LIBRARY[name]}
    with pytest.raises(UsageError, match="would send the key in") as caught:
        check_permits({"models": model}, Path("e.yaml"))
    assert "to models.example.org" in str(caught.value)
    variable = str(caught.value.hint).split()[-1]
    check_permits({"models": model}, Path("e.yaml"), env=[variable])
    near = {"name": name.replace(ELSEWHERE, "http://localhost:8000/v1")}
    if near["name"] == name:
        check_permits({"models": near}, Path("e.yaml"))
    else:  # another user of this machine may listen there
        with pytest.raises(UsageError, match="to localhost"):
            check_permits({"models": near}, Path("e.yaml"))


def test_every_client_and_task_stands_under_the_permits() -> None:
    """Whatever is registered: no key elsewhere, no unknown option that a library would import."""
    harmless = {"anthropic", "gemini", "gguf", "openai", "responses", "simulated", "smollm2"}
    for client in clients.names():
        for rest in ("", ":x", ":../evil.py", ":evil,trust_remote_code=True", ":evil/x"):
            model = {"name": client + rest, "base_url": ELSEWHERE, "options": {"worker_cls": "e.E"}}
            key = {**model, "options": {}, "api_key_env": "OPENAI_API_KEY"}
            with pytest.raises(UsageError, match="would send the key in OPENAI_API_KEY"):
                check_permits({"models": [key]}, Path("e.yaml"), code=True)
            if client not in harmless:
                with pytest.raises(UsageError, match="runs code"):
                    check_permits({"judge": [model]}, Path("e.yaml"))
    for task in tasks.names():
        if task in ("inspect", "lm-eval"):
            for rest in (":e.py@t", ":inspect_evals/../e.py@t", ":e.yaml", ":/tmp/e", ":a.b@t"):
                with pytest.raises(UsageError, match="runs code"):
                    check_permits({"task": [task + rest]}, Path("e.yaml"))
        else:
            assert tasks.get(task).__module__.startswith("falter.tasks.")
            check_permits({"task": f"{task}:e.py"}, Path("e.yaml"))


def test_a_plan_names_what_a_library_would_reach() -> None:
    """The address and the variable, also where the requests go through Inspect or lm-eval."""
    assert server_of("inspect", "openai/gpt-4o") == (None, "OPENAI_API_KEY")
    name = f"local-completions,model=x,base_url={ELSEWHERE}"
    assert server_of("lm-eval", name) == (ELSEWHERE, "OPENAI_API_KEY")


CODE = {
    "an Inspect file": {"task": "inspect:task.py@mine"},
    "a file called like the package": {"task": "inspect:inspect_evals.py@t"},
    "a file beside the package": {"task": "inspect:inspect_evals/../evil.py@t"},
    "a task file with functions": {"task": "lm-eval:folder/task.yaml"},
    "remote code of lm-eval": {"models": "lm-eval:hf,pretrained=x,trust_remote_code=True"},
    "a class for vLLM": {"models": {"name": "vllm:x", "options": {"worker_cls": "evil.Worker"}}},
    "a provider that is not listed": {"models": "inspect:hf/evil"},
    "one of several tasks": {"task": ["basics", "inspect:task.py@mine"]},
    "a function": {"models": "function:module.ask"},
    "a function of several": {"models": [{"name": "function:module.ask"}]},
    "remote code": {"models": [{"name": "hf:x", "options": {"trust_remote_code": True}}]},
}


@pytest.mark.parametrize("name", CODE)
def test_a_file_does_not_run_code(name: str, tmp_path: Path) -> None:
    """`--allow-code` is what allows it; typed by hand on the command line it needs nothing."""
    with pytest.raises(UsageError, match="runs code") as caught:
        check_permits(CODE[name], Path("e.yaml"))
    assert "--allow-code" in str(caught.value.hint)
    check_permits(CODE[name], Path("e.yaml"), code=True)


def test_the_command_line_asks_for_permits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 before anything is read or sent, and the options that allow it."""
    path = tmp_path / "e.yaml"
    path.write_text(
        "task: basics\nmodels: [{name: 'openai:x', base_url: 'https://models.example.org/v1', "
        "api_key_env: GITHUB_TOKEN}]\nrecipes: [typos]\nlimit: 2\n"
    )
    assert invoke(["plan", str(path)]) == 2
    assert "GITHUB_TOKEN" in capsys.readouterr().err
    assert invoke(["plan", str(path), "--allow-env", "GITHUB_TOKEN"]) == 0
    shown = capsys.readouterr().out
    assert "to https://models.example.org/v1, with the key in GITHUB_TOKEN" in shown
    assert invoke(["plan", "--task", "basics", "--model", "simulated", "--allow-code"]) == 0
    path.write_text("task: 'inspect:evil.py@t'\nmodels: simulated\nrecipes: [typos]\n")
    for line in (["plan", str(path)], ["perturb", "--check", "--experiment", str(path)]):
        assert invoke(line) == 2
        assert "runs code: task is inspect:evil.py@t" in capsys.readouterr().err


# A friend's file


def test_data_as_a_plain_text_works(tmp_path: Path) -> None:
    """`data: my.jsonl` takes the column that is called answer, target or label, if one is."""
    data = tmp_path / "my.jsonl"
    data.write_text(json.dumps({"question": "1 + 1?", "answer": "2"}) + "\n")
    path = tmp_path / "e.yaml"
    path.write_text("data: my.jsonl\ntemplate: '{question}'\nmodels: simulated\nrecipes: typos\n")
    experiment = read_experiment(read_settings(path), folder=tmp_path)
    assert experiment.data is not None
    assert (experiment.data.path, experiment.data.target) == (str(data), "answer")
    data.write_text(json.dumps({"question": "1 + 1?", "label": "2", "answer": "2"}) + "\n")
    with pytest.raises(FalterError, match="columns: question, label, answer"):
        read_experiment(read_settings(path), folder=tmp_path)


def test_messages_hold_no_control_sequences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path, a name or a column that would move a terminal's cursor is shown as what it is."""
    for line in (
        ["plan", "\x1b[2J.yaml"],
        ["store", "runs", "--store", str(tmp_path / "\x1b]0;x\x07.db")],
        ["plan", "--task", "\x1b[31mbasics", "--model", "simulated"],
        ["run", "--task", "basics", "--model", "\x1b[31m", "--recipe", "typos"],
    ):
        assert invoke(line) == 2
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err
        assert "\x07" not in out + err
    assert printable("a\x1b[2J\nä\ud800") == "a\\x1b[2J\nä\\ud800"


DATA = "--data d.jsonl --template t.txt --target a --key k -m simulated".split()  # noqa: SIM905


@pytest.mark.parametrize(
    "line",
    [
        ["plan", *DATA, "--show", "2"],
        ["report"],
        ["report", "--md"],
        ["report", "--json"],
        ["answers"],
        ["answers", "--json"],
    ],
    ids=" ".join,
)
def test_data_move_no_cursor(
    line: list[str], hostile_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys and texts of data with escape sequences, and marks that reorder what is read."""
    assert invoke(line) == 0
    out, err = capsys.readouterr()
    assert out
    assert not set("\x1b\x07\x9b\u202e") & set(out + err)


@pytest.fixture
def hostile_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run on such data, in the folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    rows = (
        {"k": f"a\x1b[2J{n}\u202e\x9b31m", "q": f"\x1b]0;hi\x07 What is {n} and one?", "a": str(n)}
        for n in range(8)
    )
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (tmp_path / "t.txt").write_text("{q}", "utf-8")
    assert invoke(["run", *DATA, "-r", "typos"]) == 0
    return tmp_path
