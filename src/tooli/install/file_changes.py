"""Plan: what would change on disk, known in full before the first byte is written.

    what is there ─┐
                   ├─▶ Step: state, action, changes ─▶ settle ─▶ rows, or a refusal with a diff
    what we want ──┘

A file is *current* (what we would write), *stale* (what we wrote once, so that it may be
replaced), *edited* (a person's, and theirs to decide about) or *absent*. A digest tells.
"""

from __future__ import annotations

import os

from tooli.core.record import Record
from tooli.errors import ConflictError, Suggestion
from tooli.install.agent_paths import display_path

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class FileChange(Record):
    """One file before and after; None where there is no file."""

    path: str
    before: bytes | None
    after: bytes | None


class InstallStep(Record):
    """What is done about one place."""

    path: str
    agent: str
    state: str  # as it was found: current, stale, edited, absent
    action: str  # created, updated, removed; current and absent where nothing is to do
    changes: tuple[FileChange, ...] = ()
    edited_changes: tuple[
        FileChange, ...
    ] = ()  # those of them that would write over a person's text
    prune_folders: tuple[
        str, ...
    ] = ()  # folders to remove where they are left empty, innermost first
    backups: tuple[str, ...] = ()  # where a person's text went that was written over


def digest(data: bytes) -> str:
    """The SHA-256 of a text; line ends do not count, since Git changes them."""
    from hashlib import sha256

    return sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def is_same_text(first: bytes, second: bytes) -> bool:
    """Whether two texts are the same but for their line ends."""
    return first == second or first.replace(b"\r\n", b"\n") == second.replace(b"\r\n", b"\n")


def read_file(path: str) -> bytes | None:
    """What a file holds; None where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise ConflictError(
            f"{display_path(path)}: there is a file where a folder should be."
        ) from None
    except IsADirectoryError:
        raise ConflictError(f"{display_path(path)} is a folder, where a file should be.") from None


def resolve_link(path: str) -> str:
    """The file that is meant by a path: what a link points to, so that the link stays one."""
    if not os.path.islink(path):
        return path
    real = os.path.realpath(path)
    if not os.path.exists(real):
        raise ConflictError(
            f"{display_path(path)} is a link to {real}, and there is nothing.",
            suggestion=Suggestion("ask_human", "Remove the link, or make what it points to."),
        )
    return real


def resolve_conflicts(steps: Sequence[InstallStep], *, force: bool) -> list[InstallStep]:
    """The steps to carry out: refused together where one of them meets a person's edits.

    With `force` the edited text is kept beside the file, and what we want is written.
    """
    edited = [step for step in steps if step.edited_changes]
    if edited and not force:
        raise _edited_error(edited)
    return [_with_backups(step) if step.edited_changes else step for step in steps]


def to_rows(steps: Iterable[InstallStep], *, with_diffs: bool) -> list[dict[str, str]]:
    """The steps as a result; in a dry run each shows what it would change."""
    result: list[dict[str, str]] = []
    for step in steps:
        row = {
            "path": display_path(step.path),
            "agent": step.agent,
            "action": step.action,
            "state": step.state,
        }
        if step.backups:
            row["kept"] = ", ".join(map(display_path, step.backups))
        if with_diffs and step.changes:
            row["diff"] = "".join(map(format_diff, step.changes))
        result.append(row)
    return result


def format_diff(change: FileChange) -> str:
    """A change as a unified diff."""
    from difflib import unified_diff

    name = display_path(change.path).replace(os.sep, "/").removeprefix("/")
    lines = unified_diff(
        _decode_lines(change.before),
        _decode_lines(change.after),
        "/dev/null" if change.before is None else f"a/{name}",
        "/dev/null" if change.after is None else f"b/{name}",
    )
    return "".join([line if line.endswith("\n") else f"{line}\n" for line in lines])


def _decode_lines(data: bytes | None) -> list[str]:
    text = (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    return text.splitlines(keepends=True)


def _edited_error(steps: list[InstallStep]) -> ConflictError:
    found = [
        {"path": display_path(change.path), "agent": step.agent, "diff": format_diff(change)}
        for step in steps
        for change in step.edited_changes
    ]
    names = ", ".join(dict.fromkeys(one["path"] for one in found))
    return ConflictError(
        f"Edited by hand: {names}. Nothing was changed.",
        suggestion=Suggestion(
            "ask_human",
            "Look at the diff (in error.details; -v shows it). --force writes over the edits, and "
            "keeps the edited text beside the file, as .bak.",
        ),
        details={"conflicts": found},
    )


def _with_backups(step: InstallStep) -> InstallStep:
    """The step, after the edited text has been put aside."""
    copies: list[FileChange] = []
    for change in step.edited_changes:
        number, copy = 1, f"{change.path}.bak"
        while os.path.lexists(copy):
            number += 1
            copy = f"{change.path}.bak{number}"
        copies.append(FileChange(copy, None, change.before))
    backup_paths = tuple([copy.path for copy in copies])
    return step.replace(changes=(*copies, *step.changes), backups=backup_paths)
