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

_GROUP_DESCRIPTIONS = {
    "mcp": "Serve the app to MCP clients.",
    "api": "Serve the app over HTTP.",
    "docs": "Write the app's documents, and see whether they are current.",
    "config": "Show the settings, and where each comes from.",
    "skills": "Install the app's skill where agents look for it.",
    "approvals": "Answer calls that wait for a human.",
    "audit": "Show what was dared and refused, and whether the record is whole.",
    "idempotency": "The keys that calls were made with.",
}
_COMMAND_LOADERS = {
    "mcp": (("serve_commands", "add_mcp"), ("install_commands", "add_servers")),
    "api": (("serve_commands", "add_api"),),
    "search-tools": (("serve_commands", "add_search"),),
    "generate-skill": (("docs_commands", "add_generators"),),
    "docs": (("docs_commands", "add_docs"),),
    "export": (("export_command", "add_export"),),
    "detect-context": (("inspect_commands", "add_detection"),),
    "config": (("inspect_commands", "add_config"),),
    "skills": (("install_commands", "add_skills"),),
    "approvals": (("approval_commands", "add_approvals"),),
    "audit": (("audit_commands", "add_audit"),),
    "idempotency": (("idempotency_commands", "add_keys"),),
}
"""The functions that add what a word stands for, to the app or to the group of that name."""


def build_builtin_app(app: Any, app_factory: Callable[..., Any], word: str | None = None) -> Any:
    """The built-in commands of an app, as an app; only those of one word, where one is said.

    `make` is Tooli.
    """
    state = app._state
    builtin_app = app_factory(
        state.name,
        description=state.description,
        version=state.version,
        default_output=state.default_output,
        security_policy="off",
        framework_help=state.framework_help,
    )
    for name in _names_to_load(word):
        target = builtin_app
        if name in _GROUP_DESCRIPTIONS:
            target = app_factory(name, description=_GROUP_DESCRIPTIONS[name])
            builtin_app.add_typer(target, name=name)
        for module, function in _COMMAND_LOADERS[name]:
            loaded_module = __import__(f"tooli.builtins.{module}", fromlist=(function,))
            getattr(loaded_module, function)(target, app)
    return builtin_app


def _names_to_load(word: str | None) -> list[str]:
    """The words to add; one that is no group brings its like: one command alone needs no word."""
    if word in _GROUP_DESCRIPTIONS:
        return [word]
    return [
        name
        for name in _COMMAND_LOADERS
        if word not in _COMMAND_LOADERS or name not in _GROUP_DESCRIPTIONS
    ]
