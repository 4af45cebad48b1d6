"""export: the app's tools as code for agent frameworks, and as permission rules for agents."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Optional, Union

from tooli.builtins.command_markers import returns_text
from tooli.errors import InputError
from tooli.schema.param_info import Option

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_EXPORT_FUNCTION = ("tooli.export", "export")
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
"""What can be exported: the module and the function that write it."""

# Optional and Union, not `|`: these are evaluated where they stand, on Python 3.10 as well.
Target = Annotated[
    Literal[
        "openai", "langchain", "adk", "claude", "copilot", "pydantic-ai", "python", "permissions"
    ],
    Option(help="The framework; permissions are rules for a coding agent."),
]
Mode = Annotated[
    Literal["subprocess", "import"],
    Option(help="Whether a tool runs as a program of its own, or in the agent's process."),
]
OutputDir = Annotated[
    Optional[str],  # noqa: UP045
    Option("--out", metavar="DIR", help="Write the files there, instead of printing them."),
]
WithTests = Annotated[bool, Option("--with-tests", help="Add a file with tests of the export.")]
Command = Annotated[
    Optional[str],  # noqa: UP045
    Option(help="What starts the program, such as 'python -m file_tools'."),
]
AppLocation = Annotated[
    Optional[str],  # noqa: UP045
    Option("--app", help="Where the app is imported from: 'package.module:name'."),
]
Model = Annotated[
    Optional[str],  # noqa: UP045
    Option(help="The model of ADK's agent."),
]
Host = Annotated[
    Optional[Literal["claude-code", "codex", "cursor", "gemini"]],  # noqa: UP045
    Option(help="The coding agent that permissions are for."),
]
Force = Annotated[
    bool, Option("--force", help="Write over files that say something else; kept as .bak.")
]
WriteResult = Union[str, list[dict[str, str]]]  # noqa: UP007


def add_export(builtin_app: Any, app: Any) -> None:
    """`export`."""

    def make(
        target: str, out: str | None, home: str | None, force: bool, dry: bool, **options: Any
    ) -> WriteResult:
        from tooli.describe.app_info import collect_app_info
        from tooli.install.project_documents import write_files

        options["app"] = home
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
        home: AppLocation = None,
        model: Model = None,
        host: Host = None,
        force: Force = False,
    ) -> WriteResult:
        """Write the app's tools as code for an agent framework, or as Python functions."""
        return make(
            target,
            out,
            home,
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
    """Refuse what would be ignored: it was meant for another target, or another mode."""
    is_permissions, is_import = target == "permissions", options["mode"] == "import"
    belongs = {
        "host": ("--host belongs to --target permissions.", is_permissions),
        "model": ("--model belongs to --target adk.", target == "adk"),
        "command": (
            "--command belongs to --mode subprocess.",
            not is_permissions and not is_import,
        ),
        "app": ("--app belongs to --mode import.", not is_permissions and is_import),
        "with_tests": ("--with-tests belongs to the other targets.", not is_permissions),
    }
    for field, (message, applies) in belongs.items():
        if options[field] and not applies:
            raise InputError(message, field=field)
    if is_permissions and not options["host"]:
        message = "--target permissions needs --host: the agent that the rules are for."
        raise InputError(message, field="host")


def join_files(files: dict[str, str]) -> str:
    """One file as it is; several one after another, each under its name."""
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join([f"# file: {path}\n{text}" for path, text in files.items()])
