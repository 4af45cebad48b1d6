"""export: the app's tools as code for agent frameworks, and as permission rules for agents."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, Optional, Union

from tooli.builtins.marks import is_text
from tooli.contract.info import Option
from tooli.errors import InputError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

_CODE = ("tooli.views.export", "export")
TARGETS = {
    "openai": _CODE,
    "langchain": _CODE,
    "adk": _CODE,
    "claude": _CODE,
    "copilot": _CODE,
    "pydantic-ai": _CODE,
    "python": _CODE,
    "permissions": ("tooli.views.export.permissions", "rules"),
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
Out = Annotated[
    Optional[str],  # noqa: UP045
    Option("--out", metavar="DIR", help="Write the files there, instead of printing them."),
]
Tests = Annotated[bool, Option("--with-tests", help="Add a file with tests of the export.")]
Command = Annotated[
    Optional[str],  # noqa: UP045
    Option(help="What starts the program, such as 'python -m file_tools'."),
]
Home = Annotated[
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
Written = Union[str, list[dict[str, str]]]  # noqa: UP007


def add_export(whole: Any, app: Any) -> None:
    """`export`."""

    def make(
        target: str, out: str | None, home: str | None, force: bool, dry: bool, **said: Any
    ) -> Written:
        from tooli.install.documents import write_files
        from tooli.views.portrait import portray

        said["app"] = home
        _refuse_misplaced(target, said)
        place, name = TARGETS[target]
        write = getattr(__import__(place, fromlist=(name,)), name)
        if target == "permissions":
            files = write(portray(app), said["host"])
        else:
            del said["host"]
            files = write(portray(app), target, **said)
        if out is None:
            return printed(files)
        return write_files(out, files, force=force, dry=dry, by_hand=True)

    @is_text
    def export(
        target: Target,
        mode: Mode = "subprocess",
        out: Out = None,
        with_tests: Tests = False,
        command: Command = None,
        home: Home = None,
        model: Model = None,
        host: Host = None,
        force: Force = False,
    ) -> Written:
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
    whole.command("export")(export)


def _refuse_misplaced(target: str, said: dict[str, Any]) -> None:
    """Refuse what would be ignored: it was meant for another target, or another mode."""
    rules, within = target == "permissions", said["mode"] == "import"
    belongs = {
        "host": ("--host belongs to --target permissions.", rules),
        "model": ("--model belongs to --target adk.", target == "adk"),
        "command": ("--command belongs to --mode subprocess.", not rules and not within),
        "app": ("--app belongs to --mode import.", not rules and within),
        "with_tests": ("--with-tests belongs to the other targets.", not rules),
    }
    for field, (message, here) in belongs.items():
        if said[field] and not here:
            raise InputError(message, field=field)
    if rules and not said["host"]:
        message = "--target permissions needs --host: the agent that the rules are for."
        raise InputError(message, field="host")


def printed(files: dict[str, str]) -> str:
    """One file as it is; several one after another, each under its name."""
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join([f"# file: {path}\n{text}" for path, text in files.items()])
