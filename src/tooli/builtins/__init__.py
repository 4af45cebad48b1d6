"""Built-in commands: what every app can do beside its own work. Ordinary tools of an ordinary app.

They are hidden from a person's help, and an app's own command of the same name wins. They
stand in an app of their own, which is made when a command line names one of them, and holds
then what that word stands for.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_GROUPS = {
    "mcp": "Serve the app to MCP clients.",
    "api": "Serve the app over HTTP.",
    "docs": "Write the app's documents, and see whether they are current.",
    "config": "Show the settings, and where each comes from.",
    "skills": "Install the app's skill where agents look for it.",
    "approvals": "Answer calls that wait for a human.",
    "audit": "Show what was dared and refused, and whether the record is whole.",
    "idempotency": "The keys that calls were made with.",
}
_PARTS = {
    "mcp": (("serving", "add_mcp"), ("installing", "add_servers")),
    "api": (("serving", "add_api"),),
    "search-tools": (("serving", "add_search"),),
    "generate-skill": (("documents", "add_generators"),),
    "docs": (("documents", "add_docs"),),
    "export": (("exporting", "add_export"),),
    "detect-context": (("inspecting", "add_detection"),),
    "config": (("inspecting", "add_config"),),
    "skills": (("installing", "add_skills"),),
    "approvals": (("approving", "add_approvals"),),
    "audit": (("auditing", "add_audit"),),
    "idempotency": (("keys", "add_keys"),),
}
"""The functions that add what a word stands for, to the app or to the group of that name."""


def built_in(app: Any, make: Callable[..., Any], word: str | None = None) -> Any:
    """The built-in commands of an app, as an app; only those of one word, where one is said.

    `make` is Tooli.
    """
    house = app._house
    whole = make(
        house.name,
        description=house.description,
        version=house.version,
        default_output=house.default_output,
        security_policy="off",
        framework_help=house.framework_help,
    )
    for name in _wanted(word):
        place = whole
        if name in _GROUPS:
            place = make(name, description=_GROUPS[name])
            whole.add_typer(place, name=name)
        for module, function in _PARTS[name]:
            room = __import__(f"tooli.builtins.{module}", fromlist=(function,))
            getattr(room, function)(place, app)
    return whole


def _wanted(word: str | None) -> list[str]:
    """The words to add; one that is no group brings its like: one command alone needs no word."""
    if word in _GROUPS:
        return [word]
    return [name for name in _PARTS if word not in _PARTS or name not in _GROUPS]
