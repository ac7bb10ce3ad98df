"""Where a server is, and which key it gets: addresses, environment variables, proxies."""

from __future__ import annotations

import ipaddress
import os
import re
import urllib.request
from collections.abc import Sequence
from urllib.parse import urlsplit

from falter.core.errors import InvalidValue

ENDPOINTS = ("chat/completions", "completions", "models")
"""What people paste along with a base URL, most of all."""


def normal_url(base_url: str, endpoints: Sequence[str] = ENDPOINTS) -> str:
    """A validated base URL, its host in small letters, without a slash at the end.

    `endpoints` are paths that do not belong to it and are refused at its end, longest first.
    """
    shown = _without_secrets(base_url)
    if not re.match(r"https?://", base_url, re.I):
        bare = re.sub(r"^[a-z+]*:?//", "", shown, flags=re.I)
        hint = f"write http://{bare} or https://{bare}"
        raise InvalidValue("base_url", shown, "an http or https URL", hint=hint)
    try:
        url = urlsplit(base_url)
        host, _ = url.hostname, url.port
    except ValueError:
        host = None
    if not host or re.search(r"\s", base_url):
        raise InvalidValue("base_url", shown, "an http or https URL")
    if "@" in url.netloc or url.query or url.fragment:
        hint = "name the variable that holds the key with api_key_env"
        expected = "a URL without user, password, query or fragment"
        raise InvalidValue("base_url", shown + " and more", expected, hint=hint)
    path = url.path.rstrip("/")
    for endpoint in endpoints:
        if path.endswith(f"/{endpoint}"):
            hint = f"leave out /{endpoint}"
            raise InvalidValue("base_url", shown, "the part before the endpoint", hint=hint)
    return f"{url.scheme}://{url.netloc.lower()}{path}"


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def read_key(variable: str, *, spaces: bool = False) -> str | None:
    """The key in an environment variable, or None; never shown, not even when it is malformed."""
    key = os.environ.get(variable) or None
    if key is not None and not re.fullmatch(r"[!-~]+( +[!-~]+)*" if spaces else r"[!-~]+", key):
        raise InvalidValue(
            variable,
            "…",
            f"printable ASCII without {'' if spaces else 'spaces or '}line breaks",
            hint=f"set the environment variable {variable} again; a line break may have crept in",
        )
    return key


def _without_secrets(url: str) -> str:
    """A URL to show in a message: without user, password and query."""
    return re.sub(r"[^/@]*@", "…@", re.split(r"[?#]", url)[0])


def proxy_for(url: str) -> str | None:
    """The environment's proxy for this server; none for this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy is None or is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    return proxy
