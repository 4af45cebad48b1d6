"""Portrait: an app as its documents and exports see it."""

from __future__ import annotations

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.core.tool import Tool


class AppInfo(Record):
    """What is said about an app, and the tools that it shows."""

    name: str  # also the program, as it is typed
    tools: tuple[Tool, ...]
    version: str | None = None
    description: str = ""
    sections: Mapping[str, str] = {}  # the author's own, by title
    import_path: str | None = None  # where Python code finds the app: "package.module:app"
    example_outputs: Mapping[
        tuple[str, int], str
    ] = {}  # what a tool's examples gave when they were run


def collect_app_info(app: Any) -> AppInfo:
    """The portrait of an app."""
    state = app._state
    return AppInfo(
        state.name,
        tuple([tool for tool in app.catalog if not tool.hidden]),
        state.version,
        (state.description or "").strip(),
        state.sections,
        _import_path(app),
    )


def _import_path(app: Any) -> str | None:
    """The module that made the app, and its name there; None where nobody could import it."""
    made_in: dict[str, Any] = app._state.module_globals
    spec = made_in.get("__spec__")
    module = getattr(spec, "name", None) or made_in.get("__name__", "")
    if module == "__main__":
        path = str(made_in.get("__file__") or "").replace("\\", "/")
        module = path.rpartition("/")[2].partition(".")[0]
    names = [name for name, value in made_in.items() if value is app and name[:1] != "_"]
    return f"{module}:{names[0]}" if module.replace(".", "").isidentifier() and names else None
