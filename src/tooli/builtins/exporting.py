"""export: the app's tools as code for agent frameworks, and as permission rules for agents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, Optional, TypedDict, Union

from tooli.builtins.marks import is_text
from tooli.contract.info import Option
from tooli.errors import ConflictError, InputError, Suggestion

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
    Optional[Path],  # noqa: UP045
    Option(help="Folder to write the files into; without it they are printed.", file_okay=False),
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
Force = Annotated[bool, Option("--force", help="Overwrite files that say something else.")]


class File(TypedDict):
    """A file, and whether it had to be written."""

    path: str
    status: Literal["written", "unchanged"]


def add_export(whole: Any, app: Any) -> None:
    """`export`."""

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
    ) -> Union[str, list[File]]:  # noqa: UP007
        """Write the app's tools as code for an agent framework, or as Python functions."""
        from tooli.views.portrait import portray

        said: dict[str, Any] = {
            "mode": mode,
            "command": command,
            "app": home,
            "model": model,
            "with_tests": with_tests,
            "host": host,
        }
        _refuse_misplaced(target, said)
        place, name = TARGETS[target]
        write = getattr(__import__(place, fromlist=(name,)), name)
        portrait = portray(app)
        if target == "permissions":
            files = write(portrait, host)
        else:
            del said["host"]
            files = write(portrait, target, **said)
        return printed(files) if out is None else written(files, out, force)

    whole.command("export")(export)


def _refuse_misplaced(target: str, said: dict[str, Any]) -> None:
    """Refuse what would be ignored: it was meant for another target, or another mode."""
    rules = target == "permissions"
    wrong = {
        "host": "--host belongs to --target permissions." if not rules and said["host"] else None,
        "model": "--model belongs to --target adk." if target != "adk" and said["model"] else None,
        "command": "--command belongs to --mode subprocess."
        if said["command"] and (rules or said["mode"] == "import")
        else None,
        "app": "--app belongs to --mode import."
        if said["app"] and (rules or said["mode"] == "subprocess")
        else None,
    }
    if rules and not said["host"]:
        wrong["host"] = "--target permissions needs --host: the agent that the rules are for."
    for field, message in wrong.items():
        if message is not None:
            raise InputError(message, field=field)


# ------------------------------------------------------------------ files


def printed(files: dict[str, str]) -> str:
    """One file as it is; several one after another, each under its name."""
    if len(files) == 1:
        return next(iter(files.values()))
    return "\n".join([f"# file: {path}\n{text}" for path, text in files.items()])


def written(files: dict[str, str], folder: Path, force: bool) -> list[File]:
    """Write what is not there yet. Nothing is written where a file says something else."""
    todo: dict[Path, str] = {}
    found: list[File] = []
    for name, text in files.items():
        path = folder / name
        same = path.is_file() and path.read_bytes() == text.encode()
        found.append({"path": path.as_posix(), "status": "unchanged" if same else "written"})
        if not same:
            todo[path] = text
    taken = [path.as_posix() for path in todo if os.path.lexists(path)]
    if taken and not force:
        raise ConflictError(
            f"{taken[0]} exists and says something else"
            + (f" (and {len(taken) - 1} more)." if len(taken) > 1 else "."),
            field="out",
            suggestion=Suggestion(
                "fix", "Export into another folder and compare (diff -u), or add --force."
            ),
            details={"files": taken},
        )
    for path, text in todo.items():
        replace(path, text)
    return found


def replace(path: Path, text: str) -> None:
    """Write a file so that nobody ever sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(text.encode())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
