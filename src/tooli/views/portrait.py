"""Portrait: an app as its documents and exports see it."""

from __future__ import annotations

from tooli.contract.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tooli.contract.tool import Tool


class Portrait(Record):
    """What is said about an app, and the tools that it shows."""

    name: str  # also the program, as it is typed
    tools: tuple[Tool, ...]
    version: str | None = None
    description: str = ""
    sections: Mapping[str, str] = {}  # the author's own, by title
    home: str | None = None  # where Python code finds the app: "package.module:app"
    outputs: Mapping[tuple[str, int], str] = {}  # what a tool's examples gave when they were run


def portray(app: Any) -> Portrait:
    """The portrait of an app."""
    house = app._house
    return Portrait(
        house.name,
        tuple([tool for tool in app.catalog if not tool.hidden]),
        house.version,
        (house.description or "").strip(),
        house.sections,
        _home(app),
    )


def _home(app: Any) -> str | None:
    """The module that made the app, and its name there; None where nobody could import it."""
    made_in: dict[str, Any] = app._house.made_in
    spec = made_in.get("__spec__")
    module = getattr(spec, "name", None) or made_in.get("__name__", "")
    if module == "__main__":
        path = str(made_in.get("__file__") or "").replace("\\", "/")
        module = path.rpartition("/")[2].partition(".")[0]
    names = [name for name, value in made_in.items() if value is app and name[:1] != "_"]
    return f"{module}:{names[0]}" if module.replace(".", "").isidentifier() and names else None
