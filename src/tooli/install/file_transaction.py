"""Writing: a plan carried out whole, or not at all.

Files are replaced, never written in place; the mode of a file stays. What a plan was made
from is compared once more before it is replaced, and where a later file cannot be written
the earlier ones are put back.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from tooli.errors import AuthError, ConflictError, ToolRuntimeError
from tooli.install.agent_paths import display_path
from tooli.install.file_changes import FileChange, read_file, resolve_conflicts, to_rows
from tooli.storage.state_files import get_state_dir

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from tooli.errors import ToolError
    from tooli.install.file_changes import InstallStep


@contextmanager
def install_lock() -> Generator[None]:
    """The time in which no other app of ours plans or writes; where it can be had."""
    lock = _acquire_lock()
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def apply_steps(steps: Iterable[InstallStep]) -> None:
    """Make every change of the steps, then remove the folders that they leave empty."""
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
    plan: Callable[[], list[InstallStep]], *, force: bool, dry_run: bool
) -> list[dict[str, str]]:
    """Make a plan and carry it out, with nobody else between; in a dry run only tell it."""
    if dry_run:
        return to_rows(resolve_conflicts(plan(), force=force), with_diffs=True)
    with install_lock():
        steps = resolve_conflicts(plan(), force=force)
        apply_steps(steps)
    return to_rows(steps, with_diffs=False)


def write_atomically(path: str, data: bytes) -> None:
    """Put a file in its place at once; one that is there keeps its mode."""
    from tempfile import mkstemp

    descriptor, temp_path = mkstemp(prefix=".tooli-", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(temp_path, _file_mode(path))
        os.replace(temp_path, path)
    except BaseException:
        os.unlink(temp_path)
        raise


def _file_mode(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _apply_change(change: FileChange, created_folders: list[str]) -> None:
    if read_file(change.path) != change.before:
        raise ConflictError(f"{display_path(change.path)} was changed by somebody else meanwhile.")
    if change.after is None:
        if change.before is not None:
            os.unlink(change.path)
        return
    _make_folders(os.path.dirname(change.path), created_folders)
    write_atomically(change.path, change.after)


def _make_folders(folder: str, created_folders: list[str]) -> None:
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path)
        created_folders.append(path)


def _roll_back(applied: list[FileChange], created_folders: list[str]) -> list[str]:
    """Put everything back; the paths where that could not be done."""
    not_restored: list[str] = []
    for change in reversed(applied):
        try:
            if change.before is None:
                os.unlink(change.path)
            else:
                write_atomically(change.path, change.before)
        except OSError:
            not_restored.append(display_path(change.path))
    for folder in reversed(created_folders):
        _remove_if_empty(folder)
    return not_restored


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return  # it is not ours alone, or it has gone


def _write_error(path: str, failure: OSError | ConflictError, not_restored: list[str]) -> ToolError:
    state_sentence = (
        f"These are changed already: {', '.join(not_restored)}."
        if not_restored
        else "Everything is as it was."
    )
    if isinstance(failure, ConflictError):
        return ConflictError(f"{failure.message} {state_sentence}", is_retryable=True)
    message = (
        f"{display_path(path)} cannot be written ({failure.strerror or failure}). {state_sentence}"
    )
    if isinstance(failure, PermissionError):
        return AuthError(message, code="E2030")
    return ToolRuntimeError(message)


def _acquire_lock() -> int | None:
    """A descriptor that holds the lock; None where there is no place for one."""
    try:
        os.makedirs(get_state_dir(), mode=0o700, exist_ok=True)
        path = os.path.join(get_state_dir(), "install.lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
