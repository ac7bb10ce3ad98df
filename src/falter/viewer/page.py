"""Assets and Content-Security-Policy of the page: for the server, a folder, or a single file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
CONTENT_TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "txt": "text/plain",
}
MODULES = (
    "preact.js",
    "text.js",
    "table.js",
    "data.js",
    "place.js",
    "heat.js",
    "item.js",
    "app.js",
)
"""In import order: a module imports only earlier ones."""
_OTHER_FILES = ("viewer.css", "LICENSE-preact.txt")
# `import { CODES } from "./table.js";`
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([a-z]+)\.js";$', re.MULTILINE)
# `export ` of `export function openMark`
_EXPORT = re.compile(r"^export (?=(?:function|class|const) (\w+))", re.MULTILINE)
# `export{G as useState,z as useReducer};` at the end of the vendored module
_EXPORTED = re.compile(r"export\{([^}]*)\};?\s*$")


@cache
def _asset(name: str) -> str:
    return files("falter.viewer").joinpath("data", name).read_text("utf-8")


def page_files() -> dict[str, str]:
    """Return the scripts, the style and the licence by file name."""
    return {name: _asset(name) for name in (*MODULES, *_OTHER_FILES)}


def index_page(kind: str) -> str:
    """Return the HTML page. `kind` is the source of its data: `live` or `files`."""
    meta = POLICY.replace("frame-ancestors 'none'; ", "")  # a header's alone
    head = '<link rel="stylesheet" href="viewer.css">\n<script type="module" src="app.js"></script>'
    return _html_page(kind, meta, head, "")


def single_page(data: Mapping[str, str]) -> str:
    """Return the page with all assets and data inline.

    `data` maps names to base64 texts.
    """
    script, style = _joined_modules(), _asset("viewer.css")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_csp_hash(script)}'; "
        f"style-src 'sha256-{_csp_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    blocks = "".join(
        f'<script type="text/plain" id="{name}">{text}</script>\n' for name, text in data.items()
    )
    end = f'{blocks}<script type="module">{script}</script>'
    return _html_page("one", policy, f"<style>{style}</style>", end)


def _html_page(kind: str, policy: str, head: str, end: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n<meta name="referrer" content="no-referrer">\n'
        f'<meta name="falter-data" content="{kind}">\n<title>falter view</title>\n{head}\n</head>\n'
        '<body><div id="page"><p class="wait">Reading the answers …</p></div>'
        f"<noscript><p>This page needs JavaScript. 'falter report' does not.</p></noscript>\n"
        f"{end}</body></html>\n"
    )


@cache
def _joined_modules() -> str:
    """Bundle the modules into one script.

    Each becomes an immediately invoked function whose returned exports later modules use.
    """
    parts = [_vendored_module(_asset(MODULES[0]))]
    for name in MODULES[1:]:
        text = _IMPORT.sub(r"const \1 = $\2;", _asset(name))
        exported = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub("", text)
        parts.append(f"const ${name[:-3]} = (() => {{\n{body}return {{ {exported} }};\n}})();\n")
    script = "\n" + "".join(parts)
    assert "</script" not in script.lower()
    return script


def _vendored_module(text: str) -> str:
    """Return the vendored module as a function; its exports are a list at its end."""
    match = _EXPORTED.search(text)
    assert match is not None, "preact.js exports its names at its end"
    pairs = (part.split(" as ") for part in match[1].split(","))
    exported = ",".join(f"{public}:{private}" for private, public in pairs)
    return f"const $preact = (() => {{{text[: match.start()]};return {{{exported}}}}})();\n"


def _csp_hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
