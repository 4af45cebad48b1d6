"""Pages about the app itself: /, /health, /tools, /openapi.json."""

from __future__ import annotations

from importlib.resources import files
from secrets import token_urlsafe

from tooli.core.options import OPTIONS
from tooli.describe.openapi_document import build_openapi
from tooli.describe.schema_formats import describe_tool
from tooli.text.json_encoder import encode

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool
    from tooli.http.asgi import Headers, HttpSettings
    from tooli.serving.dispatcher import ToolDispatcher

PUBLIC_PATHS = ("/", "/health")
"""Paths that need no token, because their content is public."""


class InfoPages:
    """Pages about an app. The JSON pages are cached until the app changes."""

    def __init__(
        self, dispatcher: ToolDispatcher, requires_token: bool, settings: HttpSettings
    ) -> None:
        self._dispatcher = dispatcher
        self._requires_token = requires_token
        tool_paths = ("/tools", "/openapi.json") if settings.tools else ()
        self._json_paths = ("/health", *tool_paths)
        self._html_template = _read_page() if settings.page and settings.tools else None

    def paths(self) -> tuple[str, ...]:
        """Return the paths of all pages."""
        return ("/", *self._json_paths) if self._html_template is not None else self._json_paths

    def get(self, path: str) -> tuple[bytes, Headers]:
        """Return the page at a path, and its headers."""
        if path == "/":
            return self._render_page()
        build = self._build_document
        return self._dispatcher.cached(("page", path), lambda: encode(build(path), [])), ()

    def _build_document(self, path: str) -> JsonObject:
        state = self._dispatcher.app._state
        if path == "/health":
            return {"ok": True, "app": state.name, "version": self._dispatcher.version}
        if path == "/tools":
            return {
                "app": state.name,
                "version": self._dispatcher.version,
                "description": state.description or "",
                "prog": state.name,
                "options": describe_options(),
                "commands": [
                    _describe_command(name, tool) for name, tool in self._dispatcher.tools.items()
                ],
            }
        tools = list(self._dispatcher.tools.values())
        return build_openapi(
            state.name, state.version, state.description, tools, secured=self._requires_token
        )

    def _render_page(self) -> tuple[bytes, Headers]:
        """Return the HTML page and its headers.

        Each response has a new nonce. The browser runs only scripts that carry it.
        """
        assert self._html_template is not None
        nonce = token_urlsafe(18).encode()
        policy = (
            b"default-src 'none'; script-src 'nonce-%b'; style-src 'nonce-%b'; "
            b"connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
            b"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
            % (nonce, nonce)
        )
        return self._html_template.replace(b"__NONCE__", nonce), (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", policy),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
        )


def _read_page() -> bytes | None:
    """Return the HTML page, or None if it is not installed."""
    try:
        return files("tooli.http").joinpath("page.html").read_bytes()
    except FileNotFoundError:
        return None


def describe_options() -> list[JsonObject]:
    """Return the framework options in the format that the page uses for command lines."""
    return [
        {
            "name": option.name,
            "help": option.help,
            "flags": list(option.flags),
            "shortcuts": [flag for flag, _ in option.shortcuts],
            "takes_value": bool(option.value_name),
            "choices": list(option.choices),
            "interfaces": list(option.interfaces),
            # True: the option only changes how the command line shows an answer
            "is_display": not option.describes
            and option.group != "input"
            and "http" not in option.interfaces,
        }
        for option in OPTIONS
    ]


def _describe_command(name: str, tool: Tool) -> JsonObject:
    """Return the description of a tool from which the page builds a form and a command line."""
    described = describe_tool(tool, "json")
    described["path"] = list(tool.path)
    described["cli_path"] = list(tool.cli_path)
    described["mcp_name"] = name
    described["positional"] = [p.name for p in tool.public_params if p.kind == "argument"]
    flags = {p.name: max(p.flags, key=len) for p in tool.public_params if p.flags}
    described["flags"] = flags
    described["negations"] = {
        p.name: max(p.negations, key=len) for p in tool.public_params if p.negations
    }
    if tool.is_streaming:
        described["streams"] = True
    return described
