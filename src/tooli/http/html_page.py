"""HtmlPage: the web page on which people run the commands, assembled from the files in `page/`.

    page/index.html ─┐
    page/style.css  ─┼─▶ HtmlPage.body, one file without other resources
    page/*.js       ─┘   HtmlPage.headers, with a policy that allows exactly this style and script

The browser runs the script because the policy contains its hash. Text that a result inserts into
the page can therefore never run as a script.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPTS = (
    "helpers.js",
    "schemas.js",
    "controls.js",
    "fields.js",
    "calls.js",
    "arguments.js",
    "values.js",
    "tables.js",
    "media.js",
    "markdown.js",
    "history.js",
    "server.js",
    "answer.js",
    "command.js",
    "navigation.js",
)
"""The parts of the script, in the order in which they run."""

_INDENT = re.compile(rb"(?m)^\t+|^\s*//.*\n")


class HtmlPage(Record):
    """The page as one file, and its headers."""

    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]


def read_page() -> HtmlPage | None:
    """Return the page, or None if its files are not installed."""
    folder = files("tooli.http").joinpath("page")
    try:
        return build_page(lambda name: folder.joinpath(name).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None


def build_page(read: Callable[[str], bytes]) -> HtmlPage:
    """Return the page from its files. The indentation of the script is left out."""
    style = read("style.css")
    script = _INDENT.sub(b"", b"".join([read(name) for name in SCRIPTS]))
    html = read("index.html").replace(b"__STYLE__", style).replace(b"__SCRIPT__", script)
    policy = (
        b"default-src 'none'; script-src %b; style-src %b; connect-src 'self'; img-src data:; "
        b"media-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        b"require-trusted-types-for 'script'; trusted-types 'none'"
        % (_hash_source(script), _hash_source(style))
    )
    return HtmlPage(
        html,
        (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        ),
    )


def _hash_source(text: bytes) -> bytes:
    """Return the source expression that allows exactly this style or script."""
    return b"'sha256-%b'" % b64encode(sha256(text).digest())
