"""AppInfo, the description of an app that documents and exports are rendered from."""

from __future__ import annotations

from tooli.core.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.protocols import JsonObject, ToolSource
    from tooli.core.tool import Tool


class AppInfo(Record):
    """An app's description and its visible tools."""

    name: str  # also the name of the program
    tools: tuple[Tool, ...]
    version: str | None = None
    description: str = ""
    sections: Mapping[str, str] = {}  # the author's own sections, by title
    import_path: str | None = None  # "package.module:app"
    example_outputs: Mapping[tuple[str, int], str] = {}  # by tool and index of the example


def collect_app_info(app: ToolSource) -> AppInfo:
    """Return the description of an app."""
    state = app._state
    return AppInfo(
        state.name,
        tuple([tool for tool in app.catalog if not tool.hidden]),
        state.version,
        (state.description or "").strip(),
        state.sections,
        _import_path(app),
    )


def _import_path(app: ToolSource) -> str | None:
    """Return "package.module:name" of the app, or None if it cannot be imported."""
    module_globals: JsonObject = app._state.module_globals
    spec = module_globals.get("__spec__")
    module = getattr(spec, "name", None) or module_globals.get("__name__", "")
    if module == "__main__":
        path = str(module_globals.get("__file__") or "").replace("\\", "/")
        module = path.rpartition("/")[2].partition(".")[0]
    names = [name for name, value in module_globals.items() if value is app and name[:1] != "_"]
    return f"{module}:{names[0]}" if module.replace(".", "").isidentifier() and names else None
