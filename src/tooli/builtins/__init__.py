"""Built-in commands that every app has, defined as tools of a separate app.

They are hidden from the help, and an app's own command of the same name takes precedence. The
separate app is created when a command line names one of them. `_names_to_load` selects the commands
that it contains.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.app import Tooli
    from tooli.core.protocols import App, F

_GROUP_DESCRIPTIONS = {
    "mcp": "Serve the app to MCP clients, or add it to their settings.",
    "api": "Serve the app over HTTP.",
    "docs": "Generate the documents of the app and check that they are current.",
    "config": "Show the settings and where each comes from.",
    "resources": "List and read the resources of the app.",
    "prompts": "List the prompts of the app and fill them in.",
    "skills": "Install the skill of the app where agents look for it.",
    "approvals": "Approve or deny calls that wait for a human.",
    "audit": "Show and verify the audit log.",
    "idempotency": "Show and delete stored idempotency keys.",
    "orchestrate": "Run scripts that call the commands of the app.",
}
_COMMAND_LOADERS = {
    "mcp": ("agent_commands", "add_mcp"),
    "api": ("agent_commands", "add_api"),
    "search-tools": ("inspect_commands", "add_search"),
    "generate-skill": ("document_commands", "add_generators"),
    "docs": ("document_commands", "add_docs"),
    "export": ("document_commands", "add_export"),
    "detect-context": ("inspect_commands", "add_detection"),
    "doctor": ("inspect_commands", "add_doctor"),
    "config": ("inspect_commands", "add_config"),
    "resources": ("served_commands", "add_resources"),
    "prompts": ("served_commands", "add_prompts"),
    "skills": ("agent_commands", "add_skills"),
    "approvals": ("approval_commands", "add_approvals"),
    "audit": ("storage_commands", "add_audit"),
    "idempotency": ("storage_commands", "add_keys"),
    "orchestrate": ("orchestrate_commands", "add_orchestrate"),
    "python-eval": ("python_eval_command", "add_python_eval"),
}
"""For each first word of a command line: the module and function that add its commands."""


def build_builtin_app(app: App, app_class: type[Tooli], name: str | None = None) -> Tooli:
    """Return an app with the built-in commands of `app`, or only those of one name.

    Args:
        app: The app that the commands act on.
        app_class: The class `Tooli`. It is passed, because `tooli.app` imports this package.
        name: The first argument of the command line, or None for all commands.
    """
    state = app._state
    builtin_app = app_class(
        state.name,
        description=state.declared_description,
        version=state.version,
        default_output=state.default_output,
        security_policy="standard",
        framework_help=state.framework_help,
    )
    builtin_app._state.builtins_of = state
    builtin_app._state.app_settings = state.app_settings  # its flags configure a server
    builtin_app._state.allow_python_eval = state.allow_python_eval
    for loaded in _names_to_load(name):
        target = builtin_app
        if loaded in _GROUP_DESCRIPTIONS:
            description = _GROUP_DESCRIPTIONS[loaded]
            target = app_class(loaded, description=description, security_policy="standard")
            builtin_app.add_typer(target, name=loaded)
        module, function = _COMMAND_LOADERS[loaded]
        loaded_module = __import__(f"tooli.builtins.{module}", fromlist=(function,))
        getattr(loaded_module, function)(target, app)
    return builtin_app


def _names_to_load(name: str | None) -> list[str]:
    """Return the keys of `_COMMAND_LOADERS` to load for a name.

    For a group, this is the group alone. For a command outside of groups, this is all such
    commands, because an app with a single command does not expect its name on the command line.
    For None or an unknown name, this is everything.
    """
    if name in _GROUP_DESCRIPTIONS:
        return [name]
    return [
        other
        for other in _COMMAND_LOADERS
        if name not in _COMMAND_LOADERS or other not in _GROUP_DESCRIPTIONS
    ]


# ------------------------------------------------------------------ decorators of the commands


def owns_stdout(fn: F) -> F:
    """Mark a command that writes to stdout itself."""
    return _mark(fn, "tooli_mode", "text")


def returns_text(fn: F) -> F:
    """Mark a command that returns text, which is printed unchanged."""
    return _mark(fn, "tooli_mode", "plain")


def returns_document(fn: F) -> F:
    """Mark a command that returns a document; it is printed without an envelope unless `--json`."""
    return _mark(fn, "tooli_mode", "jsonl")


def lists_everything(fn: F) -> F:
    """Mark a command whose result only options on the command line can shorten.

    A person relies on the list. The settings of a project, such as `max_items` with `quiet`, could
    hide a part of it.
    """
    return _mark(fn, "tooli_lists_everything", True)


def runs_with_invalid_settings(fn: F) -> F:
    """Mark a command that shows settings: it runs even if they are invalid."""
    return _mark(fn, "tooli_runs_with_invalid_settings", True)


def long_running(fn: F) -> F:
    """Mark a command that runs until it is stopped: the setting `timeout` does not apply to it."""
    return _mark(fn, "tooli_long_running", True)


def stops_itself(fn: F) -> F:
    """Mark a command that ends by itself at its deadline: it is not run in another process."""
    return _mark(fn, "tooli_stops_itself", True)


def with_plan(fn: F, plan: Callable[..., object]) -> F:
    """Mark a command that has its own dry run: `plan` is called with the same arguments."""
    return _mark(fn, "tooli_plan", plan)


def _mark(fn: F, attribute: str, value: object) -> F:
    setattr(fn, attribute, value)
    return fn
