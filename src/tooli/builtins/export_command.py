"""export: generate code for agent frameworks and permission rules for agents."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Optional, Union

from tooli.builtins.command_markers import returns_text
from tooli.describe.app_info import collect_app_info
from tooli.errors import InputError
from tooli.install.project_documents import write_files
from tooli.schema.param_info import Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.protocols import App

_EXPORT_FUNCTION = ("tooli.export.exporter", "export")
TARGETS = {
    "openai": _EXPORT_FUNCTION,
    "langchain": _EXPORT_FUNCTION,
    "adk": _EXPORT_FUNCTION,
    "claude": _EXPORT_FUNCTION,
    "copilot": _EXPORT_FUNCTION,
    "pydantic-ai": _EXPORT_FUNCTION,
    "python": _EXPORT_FUNCTION,
    "permissions": ("tooli.export.permissions", "render_rules"),
}
"""The module and the function that generate each target."""

# Optional and Union, because these are evaluated at run time, on Python 3.10 as well.
Target = Annotated[
    Literal[
        "openai", "langchain", "adk", "claude", "copilot", "pydantic-ai", "python", "permissions"
    ],
    Option(help="Framework to export for, or permissions for a coding agent."),
]
Mode = Annotated[
    Literal["subprocess", "import"],
    Option(help="Run tools as a program (subprocess) or in the process of the agent (import)."),
]
OutputDir = Annotated[
    Optional[str],  # noqa: UP045
    Option("--out", metavar="DIR", help="Directory to write to, instead of stdout."),
]
WithTests = Annotated[bool, Option("--with-tests", help="Also generate tests of the export.")]
Command = Annotated[
    Optional[str],  # noqa: UP045
    Option(help="Command that starts the program, such as 'python -m file_tools'."),
]
AppLocation = Annotated[
    Optional[str],  # noqa: UP045
    Option("--app", help="Where to import the app from: 'package.module:name'."),
]
Model = Annotated[
    Optional[str],  # noqa: UP045
    Option(help="Model of the ADK agent."),
]
Host = Annotated[
    Optional[Literal["claude-code", "codex", "cursor", "gemini"]],  # noqa: UP045
    Option(help="Coding agent to generate permissions for."),
]
Force = Annotated[bool, Option("--force", help="Overwrite changed files; a copy is kept as .bak.")]
WriteResult = Union[str, list[dict[str, str]]]  # noqa: UP007


def add_export(builtin_app: App, app: App) -> None:
    """Add `export`."""

    def make(
        target: str,
        out: str | None,
        app_location: str | None,
        force: bool,
        dry: bool,
        **options: Any,
    ) -> WriteResult:
        options["app"] = app_location
        _check_option_scope(target, options)
        module_name, name = TARGETS[target]
        write = getattr(__import__(module_name, fromlist=(name,)), name)
        if target == "permissions":
            files = write(collect_app_info(app), options["host"])
        else:
            del options["host"]
            files = write(collect_app_info(app), target, **options)
        if out is None:
            return join_files(files)
        return write_files(out, files, force=force, dry_run=dry, is_hand_edited=True)

    @returns_text
    def export(
        target: Target,
        mode: Mode = "subprocess",
        out: OutputDir = None,
        with_tests: WithTests = False,
        command: Command = None,
        app_location: AppLocation = None,
        model: Model = None,
        host: Host = None,
        force: Force = False,
    ) -> WriteResult:
        """Export the tools as code for an agent framework or as permissions."""
        return make(
            target,
            out,
            app_location,
            force,
            dry=False,
            mode=mode,
            with_tests=with_tests,
            command=command,
            model=model,
            host=host,
        )

    export.tooli_plan = partial(make, dry=True)
    builtin_app.command("export")(export)


def _check_option_scope(target: str, options: dict[str, Any]) -> None:
    """Raise an error for an option that the target or the mode does not use."""
    is_permissions, is_import = target == "permissions", options["mode"] == "import"
    rules = {
        "host": ("--host requires --target permissions.", is_permissions),
        "model": ("--model requires --target adk.", target == "adk"),
        "command": (
            "--command requires --mode subprocess.",
            not is_permissions and not is_import,
        ),
        "app": ("--app requires --mode import.", not is_permissions and is_import),
        "with_tests": ("--with-tests does not apply to --target permissions.", not is_permissions),
    }
    for field, (message, applies) in rules.items():
        if options[field] and not applies:
            raise InputError(message, field=field)
    if is_permissions and not options["host"]:
        message = "--target permissions requires --host, the coding agent."
        raise InputError(message, field="host")


def join_files(files: dict[str, str]) -> str:
    """Return the text of one file, or of several files with their names as headings."""
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join([f"# file: {path}\n{text}" for path, text in files.items()])
