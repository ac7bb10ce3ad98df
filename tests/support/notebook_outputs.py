"""Runs the cells of docs/notebook.ipynb, and saves what they show.

python tests/support/notebook_outputs.py
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"


def executed(folder: Path) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
    """The notebook with its outputs, the value of each code cell's last line, and all names."""
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    values = []
    with contextlib.chdir(folder):
        for count, cell in enumerate(cells, 1):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                values.append(value := _value("".join(cell["source"]), names))
            cell["execution_count"] = count
            cell["outputs"] = _outputs(printed.getvalue(), value, count)
    return notebook, values, names


def _value(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def _outputs(printed: str, value: Any, count: int) -> list[dict[str, Any]]:
    """As Jupyter saves them."""
    outputs: list[dict[str, Any]] = []
    if printed:
        text = printed.splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = value._repr_html_().splitlines(keepends=True)
        result = {"output_type": "execute_result", "execution_count": count}
        outputs.append({**result, "metadata": {}, "data": data})
    return outputs


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = json.dumps(executed(Path(folder))[0], indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(made + "\n", "utf-8")
