"""The size and the structure of the code base, as numbers: a mirror, not a test.

python bench/house.py                    the checkout
python bench/house.py --before REV       beside an earlier revision
python bench/house.py --draw             the packages by layer, for docs/architecture.md
python bench/house.py --sample 200 --before REV [--seed 0]
                                         names, docstrings and sentences to judge, drawn from both
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import subprocess
import tarfile
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
EMPTY = (
    "again alike apart asked beside found given had held here kept known laid left made may more "
    "most one other others own read same seen shown so such taken that them there told what "
    "where whole"
)
EMPTY_WORDS = frozenset(EMPTY.split())
"""Words that do not tell what a function, class, constant or module is."""
NOT_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER, tokenize.ENCODING,
}  # fmt: skip
Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One source file."""

    name: str  # dotted
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @property
    def package(self) -> str:
        """The first name below `falter`."""
        return [*self.name.split("."), ""][1]

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def code(self) -> int:
        """Lines without blanks, comments and docstrings, those of attributes included."""
        held = {
            line
            for token in self.tokens
            if token.type not in NOT_CODE
            for line in range(token.start[0], token.end[0] + 1)
        }
        for node in self.nodes:
            match node:
                case ast.Expr(value=ast.Constant(value=str())):
                    held -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return len(held)

    @cached_property
    def comments(self) -> int:
        return sum(token.type == tokenize.COMMENT for token in self.tokens)

    def span(self, *kinds: type[ast.AST]) -> int:
        """Lines of all nodes of these kinds."""
        nodes = [node for node in self.nodes if isinstance(node, kinds)]
        return sum((n.end_lineno or n.lineno) - n.lineno + 1 for n in nodes)  # type: ignore[attr-defined]

    @cached_property
    def exports(self) -> int:
        """Lines of `__all__`."""
        return sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in self.tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        )

    @cached_property
    def function_lengths(self) -> list[int]:
        nodes = [node for node in self.nodes if isinstance(node, Functions)]
        return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]

    @cached_property
    def defined(self) -> list[str]:
        """Names of functions, classes and constants of the module."""
        names = [n.name for n in self.nodes if isinstance(n, (ast.ClassDef, *Functions))]
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                names.append(node.targets[0].id)
        return names

    def imports(self, known: Mapping[str, Module]) -> set[str]:
        """The modules of the project that this one imports, wherever in it."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                below = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= below & known.keys() or {node.module}
        # `import falter` loads nothing: its names come when they are asked for.
        return {name for name in found if name in known} - {self.name, "falter"}


def read(root: Path) -> dict[str, Module]:
    """Every module below `root/src/falter`, by its dotted name."""
    modules = {}
    for path in sorted((root / "src" / "falter").rglob("*.py")):
        parts = list(path.relative_to(root / "src").with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, path.read_text("utf-8"))
    return modules


def package_imports(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Return the packages below `falter` that each of them imports."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        if module.package and module.package != "__main__":
            others = {modules[name].package for name in module.imports(modules)}
            arrows[module.package] |= others - {"", module.package}
    return dict(arrows)


def circles(modules: Mapping[str, Module]) -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []
    arrows = {name: module.imports(modules) for name, module in modules.items()}

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in arrows[name]:
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                groups.append(sorted(stack[at:]))
            del stack[at:]

    for name in arrows:
        if name not in index:
            visit(name)
    return groups


def layers(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Packages from the bottom up: a package lies above everything that it imports."""
    left, below, rows = dict(arrows), set[str](), []
    while left:
        row = sorted(name for name, others in left.items() if others <= below)
        if not row:
            raise ValueError(f"packages import each other in a circle: {sorted(left)}")
        rows.append(row)
        below |= set(row)
        left = {name: others for name, others in left.items() if name not in below}
    return rows


def drawing(modules: Mapping[str, Module]) -> str:
    """The packages by layer, top first, each with what it imports."""
    arrows = package_imports(modules)
    rows = layers(arrows)
    width = max(map(len, arrows))
    text = []
    for height in range(len(rows) - 1, -1, -1):
        for n, name in enumerate(rows[height]):
            head = f"{height}" if n == 0 else " "
            text.append(f"{head}  {name:<{width}}  {' '.join(sorted(arrows[name]))}".rstrip())
    return "\n".join(text)


def one_importer(modules: Mapping[str, Module]) -> int:
    """Private modules with a single importer."""
    importers: Counter[str] = Counter()
    for module in modules.values():
        importers.update(module.imports(modules))
    return sum(n == 1 and name.rpartition(".")[2].startswith("_") for name, n in importers.items())


def empty_names(modules: Mapping[str, Module]) -> float:
    """Per cent of names of which every word is one of `EMPTY_WORDS`."""
    names = [name for module in modules.values() for name in module.defined]
    words = [re.findall(r"[a-z]+", name.lower()) for name in names if not name.startswith("__")]
    return 100 * sum(bool(w) and set(w) <= EMPTY_WORDS for w in words) / len(words)


def sample(root: Path, count: int, seed: int) -> list[str]:
    """Return names, first lines of docstrings and sentences of documents, a third of each."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for m in read(root).values():
        kinds["name"] += [f"{m.name}  {n}" for n in m.defined if not n.startswith("__")]
        for node in m.nodes:
            if isinstance(node, (ast.Module, ast.ClassDef, *Functions)):
                lines = (ast.get_docstring(node) or "").splitlines()
                name = getattr(node, "name", "module")
                kinds["docstring"] += [f"{m.name}  {name}: {line}" for line in lines[:1]]
    for path in sorted((root / "docs").rglob("*.md")):
        text = re.sub(r"(?ms)^ *```.*?^ *```|^(?:#|\||    ).*?$", "", path.read_text("utf-8"))
        for block in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text):
            for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[])", " ".join(block.split())):
                if len(sentence.split()) > 3:
                    kinds["sentence"].append(f"{path.relative_to(root)}  {sentence}")
    rng, rows = random.Random(seed), list[str]()
    for n, (kind, known) in enumerate(sorted(kinds.items())):
        rows += [f"{kind:<10} {row}" for row in rng.sample(known, (count + n) // len(kinds))]
    return rows


def figures(root: Path) -> Iterator[tuple[str, str]]:
    """The rows of the table: a name and a number as text."""
    modules = read(root)
    every = list(modules.values())
    code = sum(m.code for m in every)
    lengths = [n for m in every for n in m.function_lengths]
    leaves = [m.name.rpartition(".")[2] for m in every]
    private = sum(bool(re.match(r"_(?!_)", leaf)) for leaf in leaves)
    tests = sum(len(p.read_text("utf-8").splitlines()) for p in (root / "tests").rglob("*.py"))
    lines = sum(m.lines for m in every)
    yield "lines", f"{lines:,}"
    yield "code (no blanks, comments, docstrings)", f"{code:,}"
    yield "modules", str(len(every))
    yield "mean lines a module", f"{lines / len(every):.0f}"
    yield "longest module", str(max(m.lines for m in every))
    yield (
        "functions above 60 / 100 lines",
        f"{sum(n > 60 for n in lengths)} / {sum(n > 100 for n in lengths)}",
    )
    yield "packages", str(len(package_imports(modules)))
    yield "groups of modules that import each other", str(len(circles(modules)))
    yield "comments per 1,000 lines of code", f"{1000 * sum(m.comments for m in every) / code:.1f}"
    yield "names that say nothing, %", f"{empty_names(modules):.1f}"
    yield "modules named _x.py, %", f"{100 * private / len(every):.0f}"
    yield "private modules with one importer", str(one_importer(modules))
    yield "plumbing: lines of __all__", f"{sum(m.exports for m in every):,}"
    yield (
        "plumbing: lines of imports",
        f"{sum(m.span(ast.Import, ast.ImportFrom) for m in every):,}",
    )
    fronts = sorted((root / "src" / "falter").rglob("__init__.py"))
    yield (
        "plumbing: lines of __init__.py",
        f"{sum(len(p.read_text('utf-8').splitlines()) for p in fronts):,}",
    )
    yield "test lines per source line", f"{tests / lines:.2f}"
    yield "", ""
    totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for m in every:
        if m.package:
            totals[m.package][0] += m.code
            totals[m.package][1] += 1
    for name, (count, files) in sorted(totals.items()):
        yield f"{name}: code, modules", f"{count:,}  {files}"


def unpacked(revision: str, folder: Path) -> Path:
    """The sources, tests and documents of a revision, as files."""
    done = subprocess.run(
        ["git", "archive", revision, "src", "tests", "docs"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--before", metavar="REV", help="a revision to print beside the checkout")
    options.add_argument("--draw", action="store_true", help="only the packages by layer")
    options.add_argument("--sample", metavar="N", type=int, help="draw N texts and names to judge")
    options.add_argument("--seed", type=int, default=0, help="of the sample  [default: 0]")
    chosen = options.parse_args()
    if chosen.sample:
        if chosen.before:
            with tempfile.TemporaryDirectory() as folder:
                earlier = unpacked(chosen.before, Path(folder))
                print(f"{chosen.before}:", *sample(earlier, chosen.sample, chosen.seed), sep="\n")
            print()
        print("now:", *sample(ROOT, chosen.sample, chosen.seed), sep="\n")
        return
    if chosen.draw:
        print(drawing(read(ROOT)))
        return
    now = dict(figures(ROOT))
    before: dict[str, str] = {}
    if chosen.before:
        with tempfile.TemporaryDirectory() as folder:
            before = dict(figures(unpacked(chosen.before, Path(folder))))
    for name in {**now, **before}:
        cells = [before.get(name, "-")] if chosen.before else []
        print(f"{name:<42}", *(f"{cell:>14}" for cell in [*cells, now.get(name, "-")]))
    for group in circles(read(ROOT)):
        print("import each other:", ", ".join(group))


if __name__ == "__main__":
    main()
