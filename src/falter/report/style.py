"""Style sheets of the page: light and dark, wide and narrow, on screen and on paper.

All pages share `data/page.css`. The figures of a study also need `data/figures.css`. It defines as
many shades as `Shades.key`, and a filter for each of the `RECIPES` that can be selected.
"""

from __future__ import annotations

import re
from importlib.resources import files


def data(name: str) -> str:
    """Return the text of a file in `data`."""
    return (files("falter.report") / "data" / name).read_text("utf-8")


STYLE = f"\n{data('page.css')}"
FIGURE_STYLE = data("figures.css")
_VALUES = dict(re.findall(r"--([ht][a-z0-9]+):(#[0-9a-f]{6})", FIGURE_STYLE.partition("\n")[0]))
LIGHT_SHADES = {
    name[1:]: (ground, _VALUES[f"t{name[1:]}"])
    for name, ground in _VALUES.items()
    if name.startswith("h")
}
"""Background and text colour of each shade of a heat map, in light mode."""
