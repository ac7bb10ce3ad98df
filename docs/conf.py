"""The site of these pages: `make docs` builds it, and no page of it asks another host."""

import re

from sphinx.application import Sphinx

project = "falter"
author = "falter contributors"
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = "falter"
html_show_copyright = html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 4  # as GitHub makes them
# Kinds of perturbation have their parts at the third level; some Python has an ellipsis in it.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]


def add_sections(app: Sphinx, page: str, source: list[str]) -> None:
    """Take the navigation from the sections of the first page and the links in them."""
    if page != root_doc:
        return
    sections = re.split(r"^## (.+)$", source[0], flags=re.M)[1:]
    for caption, text in zip(sections[::2], sections[1::2], strict=True):
        pages = "\n".join(re.findall(r"\]\(([\w/-]+)\.md\)", text))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_sections)
