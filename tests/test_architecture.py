"""The room table of docs/architecture.md, held by the imports themselves."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import falter

SOURCE = Path(falter.__file__).parent

ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "figures": {"core"},
    "text": {"core"},
    "weights": {"core"},
    "embedding": {"core", "weights"},
    "tasks": {"core", "text"},
    "perturbations": {"core", "text"},
    "scorers": {"core", "text", "embedding"},
    "clients": {"core", "weights"},
    "store": {"core"},
    "stats": {"core"},
    "readers": {"core"},
    "measures": {"core", "stats"},
    "plan": {"core"},
    "runner": {"core", "plan"},
    "rewrites": {"core", "text", "perturbations", "stats"},
    "analysis": {"core", "text", "store", "scorers", "measures", "stats"},
    "report": {"core", "analysis", "figures"},
    "protocols": {
        "core", "text", "tasks", "store", "scorers", "stats", "measures", "plan", "rewrites",
        "analysis", "figures",
    },
    "experiment": {
        "core", "text", "tasks", "perturbations", "scorers", "clients", "store", "stats",
        "measures", "plan", "runner", "rewrites", "analysis", "report", "embedding", "weights",
        "readers", "figures", "protocols",
    },
    "testing": {"core", "text", "clients", "perturbations"},
}  # fmt: skip
ALLOWED["cli"] = {*ALLOWED["experiment"], "experiment"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports(path: Path) -> set[str]:
    """The dotted names that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            if node.module == "falter":
                found |= {f"falter.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_from_its_row_of_the_table(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    rooms = {n.split(".")[1] for n in imports(path) if n.startswith("falter.")}
    rooms -= {room, "__version__"}
    assert rooms <= ALLOWED[room], f"{room} may not import {sorted(rooms - ALLOWED[room])}"


def test_core_needs_the_standard_library_and_orjson() -> None:
    """Identities are hashed for every request, and orjson writes them ten times faster."""
    for path in modules():
        if room_of(path) == "core":
            outside = {n.split(".")[0] for n in imports(path)} - {"falter"}
            assert outside <= {*sys.stdlib_module_names, "orjson"}, path


def test_the_documented_table_is_the_tested_one() -> None:
    """docs/architecture.md names every room with what it may import."""
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    for room in ALLOWED:
        assert f"| `{room}` |" in text, f"docs/architecture.md does not show the room {room}"


def test_every_module_imports_with_sockets_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing downloads nothing and asks nobody."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened at import")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for module in pkgutil.walk_packages(falter.__path__, "falter."):
        if module.name == "falter.__main__":
            continue
        importlib.import_module(module.name)


def test_exported_names_are_sorted_and_there() -> None:
    """Each room's `__all__` is sorted and every name in it exists."""
    for module in pkgutil.iter_modules(falter.__path__, "falter."):
        if module.name == "falter.__main__":
            continue
        room = importlib.import_module(module.name)
        names = getattr(room, "__all__", [])
        assert list(names) == sorted(names, key=_like_ruff), module.name
        for name in names:
            assert getattr(room, name) is not None, f"{module.name}.{name}"


def _like_ruff(name: str) -> tuple[int, str]:
    kind = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    return kind, name


def test_running_and_storing_imports_neither_scipy_nor_pandas() -> None:
    """What only runs and stores stays light."""
    script = (
        "import sys, falter.runner, falter.store, falter.plan, falter.clients.openai, "
        "falter.tasks, falter.perturbations, falter.scorers; "
        "print([m for m in ('scipy', 'pandas') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_file_holds_two_ideas(path: Path) -> None:
    """A module beyond 500 lines usually does."""
    assert len(path.read_text("utf-8").splitlines()) <= 500
