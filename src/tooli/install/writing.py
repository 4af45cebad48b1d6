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
from tooli.install.places import shown
from tooli.install.plan import Change, read, rows, settle
from tooli.state.home import state_home

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from tooli.errors import ToolError
    from tooli.install.plan import Step


@contextmanager
def alone() -> Generator[None]:
    """The time in which no other app of ours plans or writes; where it can be had."""
    lock = _lock()
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def carry_out(steps: Iterable[Step]) -> None:
    """Make every change of the steps, then remove the folders that they leave empty."""
    steps = list(steps)
    done: list[Change] = []
    made: list[str] = []
    at = ""
    try:
        for change in [change for step in steps for change in step.changes]:
            at = change.path
            _change(change, made)
            done.append(change)
    except BaseException as failure:
        left = _undo(done, made)
        if isinstance(failure, (OSError, ConflictError)):
            raise _failed(at, failure, left) from failure
        raise
    for step in steps:
        for folder in step.prune:
            _remove_if_empty(folder)


def perform(plan: Callable[[], list[Step]], *, force: bool, dry: bool) -> list[dict[str, str]]:
    """Make a plan and carry it out, with nobody else between; in a dry run only tell it."""
    if dry:
        return rows(settle(plan(), force=force), diffs=True)
    with alone():
        steps = settle(plan(), force=force)
        carry_out(steps)
    return rows(steps, diffs=False)


def write(path: str, data: bytes) -> None:
    """Put a file in its place at once; one that is there keeps its mode."""
    from tempfile import mkstemp

    descriptor, draft = mkstemp(prefix=".tooli-", dir=os.path.dirname(path))
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(draft, _mode(path))
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o7777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _change(change: Change, made: list[str]) -> None:
    if read(change.path) != change.before:
        raise ConflictError(f"{shown(change.path)} was changed by somebody else meanwhile.")
    if change.after is None:
        if change.before is not None:
            os.unlink(change.path)
        return
    _make_folders(os.path.dirname(change.path), made)
    write(change.path, change.after)


def _make_folders(folder: str, made: list[str]) -> None:
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path)
        made.append(path)


def _undo(done: list[Change], made: list[str]) -> list[str]:
    """Put everything back; the paths where that could not be done."""
    left: list[str] = []
    for change in reversed(done):
        try:
            if change.before is None:
                os.unlink(change.path)
            else:
                write(change.path, change.before)
        except OSError:
            left.append(shown(change.path))
    for folder in reversed(made):
        _remove_if_empty(folder)
    return left


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return  # it is not ours alone, or it has gone


def _failed(path: str, failure: OSError | ConflictError, left: list[str]) -> ToolError:
    now = f"These are changed already: {', '.join(left)}." if left else "Everything is as it was."
    if isinstance(failure, ConflictError):
        return ConflictError(f"{failure.message} {now}", is_retryable=True)
    message = f"{shown(path)} cannot be written ({failure.strerror or failure}). {now}"
    if isinstance(failure, PermissionError):
        return AuthError(message, code="E2030")
    return ToolRuntimeError(message)


def _lock() -> int | None:
    """A descriptor that holds the lock; None where there is no place for one."""
    try:
        os.makedirs(state_home(), mode=0o700, exist_ok=True)
        path = os.path.join(state_home(), "install.lock")
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
