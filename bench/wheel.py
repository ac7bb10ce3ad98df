"""The wheel in a fresh environment, on every Python that is named. One command:

    python bench/wheel.py python3.11 python3.12 python3.13

Builds the wheel, lists what it holds, and installs it outside the checkout: the demo without its
extra, a run of the simulated model, its report as JSON, and the viewer's files. Needs a package
index for the dependencies.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUN = ("run", "--task", "basics", "--model", "simulated", "--recipe", "typos", "--limit", "8")


def build(folder: Path) -> Path:
    """Build the wheel of the checkout."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def contents(wheel: Path) -> Counter[str]:
    """The bytes of a wheel by the ending of its files."""
    sizes: Counter[str] = Counter()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            sizes[Path(member.filename).suffix or Path(member.filename).name] += member.file_size
    return sizes


def tried(python: str, wheel: Path, folder: Path) -> dict[str, str]:
    """Return the outcome of each command: `ok`, or its last line."""
    home = folder / "venv"
    subprocess.run([python, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", str(wheel)], check=True)

    def called(*arguments: str, code: int = 0) -> tuple[str, str]:
        done = subprocess.run(
            [str(home / "bin" / "falter"), *arguments], cwd=folder, capture_output=True, text=True
        )
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return ("ok" if done.returncode == code else (said or ["nothing"])[-1]), done.stdout

    found = {"demo names the extra": called("demo", code=2)[0], "run": called(*RUN)[0]}
    found["report"], text = called("report", "--json")
    if found["report"] == "ok" and json.loads(text)["format"] != "falter-report":
        found["report"] = "no report"
    found["view"] = called("view", "--bundle", "answers")[0]
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        wheel = build(Path(made))
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes")
        print(", ".join(f"{e} {size:,}" for e, size in contents(wheel).most_common()))
        for place, python in enumerate(sys.argv[1:] or [sys.executable]):
            folder = Path(made) / str(place)
            folder.mkdir()
            found = tried(python, wheel, folder)
            print(python, "; ".join(f"{name}: {said}" for name, said in found.items()), flush=True)


if __name__ == "__main__":
    main()
