"""Plan file changes, check them for conflicts, and apply all of them or none.

    existing files ─┐
                    ├─▶ InstallStep: state, action, changes ─▶ resolve_conflicts ─▶ apply_steps
    wanted files ───┘

A file is *current* (it has the content that would be written), *stale* (an older version of ours,
which may be replaced), *edited* (changed by a person, which needs `--force`) or *absent*. A digest
of the text that we wrote distinguishes a stale file from an edited one.

Files are replaced atomically and keep their mode. Before a file is replaced, it is compared with
the content that the plan was made from. If a later file cannot be written, earlier ones are
restored.

A cloned repository can contain links to any file of the user. `resolve_path` therefore refuses a
path that leaves its project through a link. The paths of changes are real paths, and the files are
read and written below an open folder without following any link (see core.safe_files).
"""

from __future__ import annotations

import os
from difflib import unified_diff
from errno import ELOOP
from hashlib import sha256
from stat import S_ISDIR, S_ISREG

from tooli.core import Record
from tooli.core.declared_capabilities import is_under_any
from tooli.core.safe_files import OpenFolder, find_foreign_link, make_folders, resolve_links
from tooli.errors import AuthError, ConflictError, Suggestion, ToolRuntimeError
from tooli.storage.state_files import FileLock, get_state_dir

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tooli.errors import ToolError


MAX_FILE_BYTES = 16 << 20
"""Maximum size of a file that is read to be changed or compared."""


class FileChange(Record):
    """The content of a file before and after a change. None means that there is no file."""

    path: str  # a real path: no part of it is a link
    before: bytes | None
    after: bytes | None


class InstallStep(Record):
    """The changes for one file or folder."""

    path: str
    agent: str
    state: str  # before the changes: current, stale, edited or absent
    action: str  # created, updated or removed; current or absent if there is nothing to do
    changes: tuple[FileChange, ...] = ()
    edited_changes: tuple[FileChange, ...] = ()  # the changes that overwrite a person's edits
    prune_folders: tuple[str, ...] = ()  # removed if they are empty, innermost first
    backups: tuple[str, ...] = ()  # copies of overwritten edits


def single_change(
    path: str, agent: str, state: str, action: str, change: FileChange, prune: Sequence[str] = ()
) -> InstallStep:
    """Return a step with one change, which overwrites edits if the state is "edited"."""
    edited = (change,) if state == "edited" else ()
    return InstallStep(path, agent, state, action, (change,), edited, tuple(prune))


def parent_folders(path: str, count: int) -> list[str]:
    """Return the `count` nearest parent folders of a path, the nearest first."""
    folders = [path]
    for _ in range(count):
        folders.append(os.path.dirname(folders[-1]))
    return folders[1:]


def display_path(path: str) -> str:
    """Return a path for display: relative if it is below the current folder."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative


def digest(data: bytes) -> str:
    """Return the SHA-256 of a text. Line ends are normalized, because Git may change them."""
    return sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def is_same_text(first: bytes, second: bytes) -> bool:
    """True if two texts are equal except for line ends."""
    return first == second or first.replace(b"\r\n", b"\n") == second.replace(b"\r\n", b"\n")


def read_file(path: str) -> bytes | None:
    """Return the content of a file, or None if it does not exist.

    `path` is a real path. Raises a ConflictError for a link, a folder, a pipe, a device and a huge
    file, and if a parent folder is a file or a link.
    """
    try:
        folder = OpenFolder(os.path.dirname(path))
    except FileNotFoundError:
        return None
    except OSError as failure:
        if not isinstance(failure, NotADirectoryError) and failure.errno != ELOOP:
            raise
        raise ConflictError(f"{display_path(path)}: a parent folder is a file or a link.") from None
    name = os.path.basename(path)
    if folder.fd is None and os.path.islink(folder.path):  # Windows
        raise ConflictError(f"{display_path(path)}: the parent folder is a link.")
    found = folder.lstat(name)
    if found is None:
        return None
    if S_ISDIR(found.st_mode):
        raise ConflictError(f"{display_path(path)} is a folder, not a file.")
    if not S_ISREG(found.st_mode):
        raise ConflictError(
            f"{display_path(path)} is a link or a special file. It was not followed or changed.",
            suggestion=Suggestion("ask_human", "Check where it leads to, and remove it."),
        )
    with os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file:
        info = os.fstat(file.fileno())
        if info.st_size > MAX_FILE_BYTES:  # a repository can have a sparse file of any size
            size = f"{MAX_FILE_BYTES >> 20} MiB"
            raise ConflictError(
                f"{display_path(path)} has more than {size}. It was not changed.",
                suggestion=Suggestion("ask_human", "Check the file, and remove it."),
            )
        return file.read() if S_ISREG(info.st_mode) else None


def resolve_path(path: str, root: str) -> str:
    """Return the real path of a file or folder to write, which must be below `root`.

    Writing to the target of a link keeps the link. `root` is the folder of the project or the user.

    Raises:
        ConflictError: a link leads out of `root`, into the data of Git, or to a file that does not
            exist.
    """
    path = os.path.abspath(path)
    (real, links), real_root = resolve_links(path), os.path.realpath(root)
    foreign_link = find_foreign_link(links)
    if foreign_link is not None:
        raise ConflictError(
            f"{display_path(foreign_link)} is a link that another user made. Nothing was changed.",
            suggestion=Suggestion("ask_human", "Choose another folder."),
        )
    problem = None
    if not is_under_any(real, (real_root,)):
        problem = f"which is not in {real_root}"
    elif _is_repository_data(real) and not _is_repository_data(path):
        problem = "which belongs to the version control system"
    if problem is not None:
        raise ConflictError(
            f"{display_path(path)} leads to {real} through a link, {problem}. Nothing was changed.",
            suggestion=Suggestion("ask_human", "Check the link, and replace it by a file."),
        )
    if os.path.islink(path) and not os.path.exists(real):
        raise ConflictError(
            f"{display_path(path)} is a link to {real}, which does not exist.",
            suggestion=Suggestion("ask_human", "Remove the link or create its target."),
        )
    return real


def _is_repository_data(path: str) -> bool:
    """True for a path that a clone creates itself: the content of a repository has none of them."""
    return not _REPOSITORY_NAMES.isdisjoint(path.lower().split(os.sep))


_REPOSITORY_NAMES = frozenset((".git", ".hg", ".jj", ".svn"))


def resolve_conflicts(steps: Sequence[InstallStep], *, force: bool) -> list[InstallStep]:
    """Return the steps to apply; raise a ConflictError if one would overwrite a person's edits.

    With `force` the edited text is copied to a backup beside the file and overwritten.
    """
    edited = [step for step in steps if step.edited_changes]
    if edited and not force:
        raise _edited_error(edited)
    return [_with_backups(step) if step.edited_changes else step for step in steps]


def to_rows(steps: Iterable[InstallStep], *, with_diffs: bool) -> list[dict[str, str]]:
    """Return the steps as result rows, optionally with diffs."""
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
    """Return a change as a unified diff."""
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
    conflicts = [
        {"path": display_path(change.path), "agent": step.agent, "diff": format_diff(change)}
        for step in steps
        for change in step.edited_changes
    ]
    names = ", ".join(dict.fromkeys([conflict["path"] for conflict in conflicts]))
    return ConflictError(
        f"Edited by hand: {names}. Nothing was changed.",
        suggestion=Suggestion(
            "ask_human",
            "Review the diff (in error.details; -v shows it). --force overwrites the edits and "
            "keeps a copy beside the file, as .bak.",
        ),
        details={"conflicts": conflicts},
    )


def _with_backups(step: InstallStep) -> InstallStep:
    """Return the step with backups of the edited files."""
    copies: list[FileChange] = []
    for change in step.edited_changes:
        number, copy = 1, f"{change.path}.bak"
        while os.path.lexists(copy):
            number += 1
            copy = f"{change.path}.bak{number}"
        copies.append(FileChange(copy, None, change.before))
    backup_paths = tuple([copy.path for copy in copies])
    return step.replace(changes=(*copies, *step.changes), backups=backup_paths)


# ------------------------------------------------------------------ applying changes


def apply_steps(steps: Iterable[InstallStep]) -> None:
    """Apply every change of the steps, then remove the folders that are left empty."""
    steps = list(steps)
    done: list[FileChange] = []
    created_folders: list[str] = []
    current_path = ""
    try:
        for change in [change for step in steps for change in step.changes]:
            current_path = change.path
            _apply_change(change, created_folders)
            done.append(change)
    except BaseException as failure:
        not_restored = _roll_back(done, created_folders)
        if isinstance(failure, (OSError, ConflictError)):
            raise _write_error(current_path, failure, not_restored) from failure
        raise
    for step in steps:
        for folder in step.prune_folders:
            _remove_if_empty(folder)


def plan_and_apply(
    plan: Callable[[], list[InstallStep]],
    *,
    force: bool,
    dry_run: bool,
    on_applied: Callable[[], object] | None = None,
) -> list[dict[str, str]]:
    """Make a plan, apply it while holding the lock, and return its rows.

    A dry run only returns the rows. `on_applied` is called before the lock is released.
    """
    if dry_run:
        steps = resolve_conflicts(_drop_duplicate_files(plan()), force=force)
        return to_rows(steps, with_diffs=True)
    with FileLock(os.path.join(get_state_dir(), "install.lock")):
        steps = resolve_conflicts(_drop_duplicate_files(plan()), force=force)
        apply_steps(steps)
        if on_applied is not None:
            on_applied()
    return to_rows(steps, with_diffs=False)


def _drop_duplicate_files(steps: list[InstallStep]) -> list[InstallStep]:
    """Drop the changes of a step if an earlier one changes the same file.

    Two paths are the same file if one of them is a link to the other.
    """
    seen: set[str] = set()
    unique_steps: list[InstallStep] = []
    for step in steps:
        files = {os.path.realpath(change.path) for change in step.changes}
        unique_steps.append(step.replace(changes=(), edited_changes=()) if files & seen else step)
        seen |= files
    return unique_steps


def write_atomically(path: str, data: bytes, mode: int | None = None) -> None:
    """Replace a file atomically. Without `mode`, an existing file keeps its mode.

    `path` is a real path. If the file is a link, the link is replaced, not its target.
    """
    folder, name = OpenFolder(os.path.dirname(path)), os.path.basename(path)
    temp_name = f".tooli-{os.urandom(8).hex()}"
    descriptor = folder.open(temp_name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), _file_mode(folder.lstat(name)) if mode is None else mode)
        folder.replace(temp_name, name)
    except BaseException:
        folder.unlink(temp_name)
        raise


def _file_mode(found: os.stat_result | None) -> int:
    if found is not None and S_ISREG(found.st_mode):
        return found.st_mode & 0o777
    mask = os.umask(0o077)  # other threads may create files in this moment
    os.umask(mask)
    return 0o644 & ~mask  # agents act on these files: nobody else may change them


def _unlink(path: str) -> None:
    OpenFolder(os.path.dirname(path)).unlink(os.path.basename(path))


def _apply_change(change: FileChange, created_folders: list[str]) -> None:
    if read_file(change.path) != change.before:
        raise ConflictError(
            f"{display_path(change.path)} was changed by another program meanwhile."
        )
    if change.after is None:
        if change.before is not None:
            _unlink(change.path)
        return
    _make_folders(os.path.dirname(change.path), created_folders)
    write_atomically(change.path, change.after)


def _make_folders(folder: str, created_folders: list[str]) -> None:
    missing: list[str] = []
    path = folder
    while not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    created_folders += reversed(missing)
    make_folders(folder)


def _roll_back(applied: list[FileChange], created_folders: list[str]) -> list[str]:
    """Undo the changes; return the paths that could not be restored."""
    not_restored: list[str] = []
    for change in reversed(applied):
        try:
            if change.before is None:
                _unlink(change.path)
            else:
                write_atomically(change.path, change.before)
        except OSError:
            not_restored.append(display_path(change.path))
    for folder in reversed(created_folders):
        _remove_if_empty(folder)
    return not_restored


def _remove_if_empty(folder: str) -> None:
    try:
        parent = OpenFolder(os.path.dirname(folder))
        os.rmdir(parent.entry(os.path.basename(folder)), dir_fd=parent.fd)
    except OSError:
        return  # it is not empty, or it does not exist


def _write_error(path: str, failure: OSError | ConflictError, not_restored: list[str]) -> ToolError:
    state_sentence = (
        f"Already changed and not restored: {', '.join(not_restored)}."
        if not_restored
        else "Nothing was changed."
    )
    if isinstance(failure, ConflictError):
        return ConflictError(f"{failure.message} {state_sentence}", is_retryable=True)
    message = f"Cannot write {display_path(path)} ({failure.strerror or failure}). {state_sentence}"
    if isinstance(failure, PermissionError):
        return AuthError(message, code="E2030")
    return ToolRuntimeError(message)
