"""The structure that docs/architecture.md draws, checked against the imports."""

from __future__ import annotations

import ast
import fnmatch
import importlib
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import falter
from falter.cli.app import LazyCommand, cli

SOURCE = Path(falter.__file__).parent
ROOT = SOURCE.parents[1]
PICTURE = ROOT / "docs" / "architecture.md"
LONGEST = 600


@cache
def house() -> ModuleType:
    """`bench/house.py`, which measures the code base and draws its packages."""
    spec = importlib.util.spec_from_file_location("house", ROOT / "bench" / "house.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house"] = module
    spec.loader.exec_module(module)
    return module


@cache
def source() -> dict[str, Any]:
    """Every module as `bench/house.py` reads it."""
    return dict(house().read(ROOT))


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """The parsed code base is not kept for the tests of other files."""
    yield
    source.cache_clear()


@cache
def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def shown(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room_of(path: Path) -> str:
    """The first name below `falter`: a folder, or a module that is a room by itself."""
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports(path: Path) -> frozenset[str]:
    """The dotted names that a module imports, wherever in it; of `from a import b`, `a.b` too."""
    return parsed(path)[0]


@cache
def parsed(path: Path) -> tuple[frozenset[str], tuple[tuple[str, int], ...]]:
    """A module is read once: its `imports`, and its strings with their lines."""
    names: set[str] = set()
    strings: list[tuple[str, int]] = []
    parts = list(path.relative_to(SOURCE.parent).with_suffix("").parts)
    for node in source()[".".join(parts[:-1] if parts[-1] == "__init__" else parts)].nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.append((node.value, node.lineno))
    return frozenset(names), tuple(strings)


def private_part(name: str) -> str | None:
    """A dotted name up to its first part with an underscore; None where it has none."""
    parts = name.split(".")
    private = [n for n, part in enumerate(parts, 1) if re.match(r"_(?!_)", part)]
    return ".".join(parts[: private[0]]) if private else None


@cache
def imported_modules() -> tuple[ModuleType, ...]:
    """Every module of falter, imported; `falter.__main__` would run."""
    names = {module.name for module in pkgutil.walk_packages(falter.__path__, "falter.")}
    return (falter, *map(importlib.import_module, sorted(names - {"falter.__main__"})))


def fresh(script: str) -> str:
    """Return the output of a script in an interpreter that has imported nothing yet."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_drawing_is_that_of_the_imports() -> None:
    """Mend with: python bench/house.py --draw"""
    (drawn,) = re.findall(r"```text\n(.*?)\n```", PICTURE.read_text("utf-8"), re.DOTALL)
    assert drawn == house().drawing(source())


def test_every_package_has_a_row() -> None:
    """docs/architecture.md says what each package holds, and names no other."""
    listed = re.findall(r"^\| `(\w+)` \|", PICTURE.read_text("utf-8"), re.M)
    assert sorted(listed) == sorted(house().package_imports(source()))


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Neither packages nor modules, wherever in a module an import stands."""
    assert house().circles(source()) == []


def test_nothing_imports_an_integration() -> None:
    """What needs an extra comes in by an entry point."""
    importers = {
        name
        for name, others in house().package_imports(source()).items()
        if "integrations" in others
    }
    assert not importers


def test_imports_are_absolute() -> None:
    """A module is looked for under one name."""
    relative = {shown(p) for p in modules() for name in imports(p) if name.startswith(".")}
    assert not relative


def test_core_needs_the_standard_library_and_orjson() -> None:
    """Identities are hashed for every request, and orjson writes them ten times faster."""
    for path in modules():
        if room_of(path) == "records":
            outside = {n.split(".")[0] for n in imports(path)} - {"falter"}
            assert outside <= {*sys.stdlib_module_names, "orjson"}, path


def test_no_room_imports_from_a_private_module_of_another() -> None:
    """What starts with an underscore is its room's own; what is left of the past is listed."""
    trespasses = {
        (shown(path), private)
        for path in modules()
        for name in imports(path)
        if name.startswith("falter.") and name.split(".")[1] != room_of(path)
        if (private := private_part(name)) is not None
    }
    assert not trespasses, f"private modules of other rooms: {sorted(trespasses)}"


@cache
def light_then_all() -> tuple[str, list[str]]:
    """What an interpreter imports: first to run and store, then all of falter; asking nobody."""
    rooms = ("store", "clients", "tasks", "perturbations", "scorers")
    heavy, *imported = fresh(
        "import sys, importlib, pkgutil, falter\n"
        "def refuse(event, arguments):\n"
        "    if event.startswith(('socket.', 'subprocess.', 'os.exec', 'os.posix_spawn',\n"
        "                         'os.system', 'os.fork', 'urllib.')):\n"
        "        raise AssertionError(f'{event} at import: {arguments}')\n"
        "sys.addaudithook(refuse)\n"
        "import falter.records.planning, falter.engine.sending, falter.engine.batch_sending\n"
        f"for room in {rooms}:\n"
        "    package = importlib.import_module(f'falter.{room}')\n"
        "    for module in pkgutil.iter_modules(getattr(package, '__path__', ())):\n"
        "        importlib.import_module(f'{package.__name__}.{module.name}')\n"
        "print([name for name in ('scipy', 'pandas') if name in sys.modules])\n"
        "names = {m.name for m in pkgutil.walk_packages(falter.__path__, 'falter.')}\n"
        "for name in sorted(names - {'falter.__main__'}):\n"
        "    importlib.import_module(name)\n"
        "    print(name)\n"
    ).splitlines()
    return heavy, imported


def test_every_module_imports_with_sockets_blocked() -> None:
    """Importing downloads nothing and asks nobody, and starts nothing that could."""
    assert light_then_all()[1] == sorted(module.__name__ for module in imported_modules()[1:])


def test_running_and_storing_imports_neither_scipy_nor_pandas() -> None:
    """What only runs and stores stays light, whatever it loads by its name."""
    assert light_then_all()[0] == "[]"


POSIX = {
    "modules": "fcntl resource termios tty pty pwd grp syslog readline uvloop",
    "os": "fork forkpty setsid killpg getpgid getuid geteuid getgid wait4 pread pwrite nice uname"
    " sysconf statvfs mkfifo chown fchown fchmod sched_getaffinity posix_fadvise posix_fallocate"
    " O_NOFOLLOW O_CLOEXEC O_DIRECTORY O_PATH WIFSIGNALED",
    "signal": "SIGKILL SIGHUP SIGALRM SIGUSR1 setitimer alarm pthread_sigmask",
}
"""What Windows lacks."""


def test_runs_reports_and_checks_need_nothing_that_windows_lacks() -> None:
    """Taken away once Python's own modules and the dependencies are loaded, which look for it."""
    loaded = "aiohttp.web asyncio click multiprocessing numpy platformdirs pytest rich.progress ssl"
    away = (
        f"import {', '.join(loaded.split())}, importlib, pkgutil, os, signal, sys\n"
        f"import concurrent.futures.thread, logging, random, scipy.stats, sqlite3, tempfile, uuid\n"
        f"POSIX = {POSIX}\n"
        "for name in POSIX.pop('modules').split():\n"
        "    sys.modules[name] = None\n"
        "for module, names in POSIX.items():\n"
        "    for name in names.split():\n"
        "        vars(sys.modules[module]).pop(name, None)\n"
        "def refuse(*_):\n"
        "    raise NotImplementedError\n"
        "asyncio.SelectorEventLoop.add_signal_handler = refuse\n"
        "import falter\n"
        "for module in pkgutil.walk_packages(falter.__path__, 'falter.'):\n"
        "    if module.name != 'falter.__main__':\n"
        "        importlib.import_module(module.name)\n"
        "from falter.cli.app import invoke\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        store = f"--store {folder}/x.db"
        commands = (
            f"run --task basics -m simulated -r typos --limit 8 {store} --html {folder}/x.html",
            f"report --csv {store}",
            f"answers --lost --limit 1 {store}",
            f"store verify {store}",
        )
        asked = [command.split() for command in commands]
        codes = fresh(f"{away}print('codes', [invoke(command) for command in {asked}])\n")
    assert codes.endswith("codes [0, 0, 0, 0]")


def test_a_start_imports_what_it_needs() -> None:
    """Help and mistyped commands need Click; a run needs of SciPy its functions, and no HTTP."""
    started = "import contextlib, io, json, sys, falter\nseen = [sorted(sys.modules)]\n"
    called = (
        "from falter.cli.app import invoke\n"
        "for arguments in (['--help'], ['--version'], ['repord'], RUN):\n"
        "    talk = io.StringIO()\n"
        "    with contextlib.redirect_stdout(talk), contextlib.redirect_stderr(talk):\n"
        "        invoke(arguments)\n"
        "    seen.append(sorted(sys.modules))\n"
        "print(json.dumps(seen))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        run = f"run --task basics -m simulated -r typos --limit 3 --store {folder}/x.db"
        modules = json.loads(fresh(f"RUN = {run.split()}\n{started}{called}"))
    first, *talks, whole = map(set, modules)
    assert {name for name in first if name.startswith("falter")} == {"falter"}
    for talk in talks:
        rooms = {".".join(n.split(".")[:2]) for n in talk if n.startswith("falter.")}
        assert rooms == {"falter.cli", "falter.records"}
        assert not talk & {"numpy", "rich", "yaml"}
    assert "scipy.special" in whole
    assert not whole & {"aiohttp", "pandas", "pyarrow", "scipy.optimize", "scipy.stats"}


def test_a_list_imports_what_it_lists() -> None:
    """Names, summaries and weights need no numbers, no HTTP and no report."""
    loaded = fresh(
        "import contextlib, io, json, sys\n"
        "from falter.cli.app import invoke\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    for words in ('list tasks', 'list perturbations', 'models list'):\n"
        "        invoke(words.split())\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    assert not set(json.loads(loaded)) & {"numpy", "aiohttp", "falter.analysis", "falter.report"}


def test_every_command_is_where_the_list_says() -> None:
    """Under its name; and what the list says of it fits on a line."""
    for name, stand_in in cli.commands.items():
        assert isinstance(stand_in, LazyCommand)
        assert stand_in.load().name == name
        assert len(stand_in.get_short_help_str()) < 62, name


def test_no_file_holds_two_ideas() -> None:
    """A module beyond 600 lines usually does."""
    lines = {shown(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    assert not {name: count for name, count in lines.items() if count > LONGEST}


# Names

SETTINGS = {
    "answer", "demonstrations", "fields", "formats", "label", "responses", "temperature",
    "template", "tools",
}  # fmt: skip
"""Names that are common words elsewhere: settings that perturbations change, a table, a field."""

NAMED: dict[str, set[str]] = {
    # Lists that are meant to name what they run.
    "cli/run.py": {"basics", "smollm2", "perturbations"},
    # What the example file says.
    "engine/config.py": {"basics", "brittlebench", "choice_letter"},
    "protocols/*/parts.py": {"perturbations", "scorers", "tasks"},
    "protocols/consistency/__init__.py": {"perturbations", "scorers"},
    "protocols/mend/remedies.py": {"perturbations", "tasks"},
    "protocols/brittlebench/accuracies.py": {"perturbations", "scorers"},
    # A task says by name how it is scored; `engine` turns that into an object.
    "tasks/*": {"scorers"},
    # An adapter registers clients and tasks itself, and says how these tasks are scored.
    "integrations/*": {"clients", "scorers", "tasks"},
    # The same word for something else: weights, an encoding, methods, a coefficient, a column.
    "analysis/figures/across.py": {"consistency"},
    "cli/doctor.py": {"hf", "inspect", "lm-eval", "vllm"},
    "cli/listing.py": {"smollm2"},
    "cli/[am]*.py": {"mend"},
    "cli/rewrites.py": {"exact"},
    "clients/connection.py": {"identity"},
    "engine/ratings.py": {"similarity"},
    "engine/recipes.py": {"rag"},
    "measures/__init__.py": {"consistency", "enterprise", "relevance"},
    "measures/enterprise.py": {"similarity"},
    "engine/study.py": {"numeric"},
    "protocols/brittlebench/[aj]*.py": {"reasoning_quality"},
    "perturbations/recipes.py": {"brittlebench"},
    "perturbations/tool*.py": {"function", "functions"},
    "records/chats.py": {"function"},
    "report/forms/data.py": {"simulated"},
    "scorers/reading/calls.py": {"function"},
    "tasks/chats.py": {"contrast", "function"},
    "protocols/enterprise/scores.py": {"rougeL"},
    "protocols/judging.py": {"similarity"},
    "protocols/protocol.py": {"numeric"},
    "rewrites/agreement.py": {"exact"},
    "scorers/judging.py": {"relevance"},
    "stats/resampling.py": {"identity"},
    "tasks/enterprise_data.py": {"enterprise"},
    "text/relevance.py": {"rouge1"},
    "weights/downloads.py": {"smollm2"},
}
"""What a module may name of other rooms: names, or all names that a room registers."""


@cache
def registered() -> dict[str, set[str]]:
    """Every registered name with the rooms that register it."""
    rooms: dict[str, set[str]] = {}
    for room in ("clients", "perturbations", "protocols", "scorers", "tasks"):
        for name in getattr(importlib.import_module(f"falter.{room}"), room).names():
            rooms.setdefault(name, set()).add(room)
    return rooms


def named_elsewhere(path: Path) -> Iterator[tuple[str, set[str], int]]:
    """The strings of a module that are a name registered by other rooms, with their lines."""
    rooms = registered()
    for text, line in parsed(path)[1]:
        owners = rooms.get(text, set())
        if owners and room_of(path) not in owners and text not in SETTINGS:
            yield text, owners, line


def test_no_room_knows_what_another_registers_by_its_name() -> None:
    """A name of the user's own has to do as well: what a room has to know, the thing says."""
    unused = {(where, name) for where, names in NAMED.items() for name in names}
    for path in modules():
        relative = path.relative_to(SOURCE).as_posix()
        allowed = [w for w in NAMED if fnmatch.fnmatch(relative, w)]
        for name, owners, line in named_elsewhere(path):
            fitting = [(w, n) for w in allowed for n in (name, *owners) if n in NAMED[w]]
            assert fitting, (
                f"src/falter/{relative}:{line} knows '{name}' of {', '.join(owners)} by its name: "
                "let the perturbation, scorer or client say what is to be known about it"
            )
            unused -= set(fitting)
    assert not unused, f"no longer needed in NAMED: {sorted(unused)}"
