"""What the door says about the app itself: /, /health, /tools, /openapi.json."""

from __future__ import annotations

from tooli.call.envelope import encode
from tooli.views.schema import describe_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Tool
    from tooli.surfaces.http.settings import Headers, Settings
    from tooli.surfaces.serving import Desk

OPEN = ("/", "/health")
"""What is served to anybody: neither tells anything that is not public."""


class Pages:
    """Documents about an app; each is made once, and again when the app has changed."""

    def __init__(self, desk: Desk, secured: bool, settings: Settings) -> None:
        self._desk = desk
        self._secured = secured
        described = ("/tools", "/openapi.json") if settings.tools else ()
        self._fixed = ("/health", *described)
        self._made: dict[str, bytes] = {}
        self._edition = -1
        self._page = _read_page() if settings.page and settings.tools else None

    def paths(self) -> tuple[str, ...]:
        """Where there is something to get."""
        return ("/", *self._fixed) if self._page is not None else self._fixed

    def get(self, path: str) -> tuple[bytes, Headers]:
        """The document at a path, and what its head says."""
        if path == "/":
            return self._fill_page()
        if self._edition != self._desk.edition:
            self._made.clear()
            self._edition = self._desk.edition
        if path not in self._made:
            self._made[path] = encode(self._make(path), [])
        return self._made[path], ()

    def _make(self, path: str) -> Any:
        house = self._desk.app._house
        if path == "/health":
            return {"ok": True, "app": house.name, "version": self._desk.version}
        if path == "/tools":
            return {
                "app": house.name,
                "version": self._desk.version,
                "description": house.description or "",
                "prog": house.name,
                "commands": [_command(name, tool) for name, tool in self._desk.tools.items()],
            }
        from tooli.views.openapi import describe

        tools = list(self._desk.tools.values())
        return describe(house.name, house.version, house.description, tools, secured=self._secured)

    def _fill_page(self) -> tuple[bytes, Headers]:
        """The page, with a word that only its own scripts know: nothing else runs in it."""
        from secrets import token_urlsafe

        assert self._page is not None
        nonce = token_urlsafe(18).encode()
        policy = (
            b"default-src 'none'; script-src 'nonce-%b'; style-src 'nonce-%b'; "
            b"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
            % (nonce, nonce)
        )
        return self._page.replace(b"__NONCE__", nonce), (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        )


def _read_page() -> bytes | None:
    """The page for people, as it stands beside this module."""
    from importlib.resources import files

    try:
        return files("tooli.surfaces.http").joinpath("page.html").read_bytes()
    except FileNotFoundError:
        return None


def _command(name: str, tool: Tool) -> dict[str, Any]:
    """A command with all that a person's form and a copied command line need."""
    described = describe_tool(tool, "json")
    described["path"] = list(tool.path)
    described["words"] = list(tool.words)
    described["mcp_name"] = name
    described["positional"] = [p.name for p in tool.public if p.kind == "argument"]
    flags = {p.name: max(p.flags, key=len) for p in tool.public if p.flags}
    described["flags"] = flags
    described["negations"] = {p.name: max(p.negations, key=len) for p in tool.public if p.negations}
    if tool.streams:
        described["streams"] = True
    return described
