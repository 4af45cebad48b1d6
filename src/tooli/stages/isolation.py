"""Run functions in a sandbox: in a process of their own, confined by the kernel."""

from __future__ import annotations

import os

from tooli.config import load_security_settings
from tooli.core.declared_capabilities import AllowedAccess
from tooli.errors import Suggestion, TemporaryError
from tooli.execution.sandbox.bwrap import BubblewrapRunner, find_bubblewrap, locate_app
from tooli.execution.sandbox.sandbox_runner import (
    SandboxRunner,
    detect_sandbox_support,
    isolation_error,
)
from tooli.execution.sandbox.syscalls import SandboxUnavailable, detect_architecture
from tooli.policy.allowed_access import resolve_allowed_access

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.core import AppState
    from tooli.core.call import Call, Runner, Stage, StageRun
    from tooli.core.tool import Tool
    from tooli.pipeline import StageContext


def isolate(context: StageContext) -> Stage | None:
    """Run the function in a sandbox.

    The kernel allows only what the command declares. If isolation is not available, the call is
    rejected under `required`, and runs with a warning under `wanted`.
    """
    state = context.state
    isolation = context.tool.guard.isolation or state.security_settings.get("isolation")
    if isolation not in ("wanted", "required"):
        return None
    required = isolation == "required"

    def run_isolated(call: Call) -> StageRun:
        mechanisms = detect_sandbox_support()
        missing, make_bubblewrap = list(mechanisms.missing), None
        if missing and not mechanisms.is_nested:
            make_bubblewrap = _make_bubblewrap(call.tool, state, missing)
        if missing and make_bubblewrap is None:
            if required:
                raise isolation_error(call.tool.name, missing)
            call.warnings.append(f"not isolated: {'; '.join(missing)}")
            if mechanisms.level == "none" or mechanisms.is_nested:
                return (yield call)
        if not state.security_settings_loaded:  # the settings cannot be read inside of the sandbox
            load_security_settings(state)
        # `deny_paths` also applies to the files that Python itself needs
        access = resolve_allowed_access(call.tool, state, undeclared=AllowedAccess())
        dirs = SandboxDirs(access)
        try:
            sandbox = SandboxRunner(call.runner, access, required=required, temp_dir=dirs.temp_dir)
            runner = (
                sandbox if make_bubblewrap is None else make_bubblewrap(sandbox, mechanisms.seccomp)
            )
            return (yield call.replace(runner=runner))
        finally:
            dirs.remove()

    return run_isolated


def _make_bubblewrap(
    tool: Tool, state: AppState, missing: list[str]
) -> Callable[[SandboxRunner, bool], Runner] | None:
    """Return a function that makes a bubblewrap runner, which replaces Landlock.

    If bubblewrap cannot be used, add the reason to `missing` and return None.
    """
    try:
        detect_architecture()
        program = find_bubblewrap()
        if program is not None:
            entry = locate_app(state, tool)
            return lambda sandbox, filters: BubblewrapRunner(program, entry, sandbox, filters)
        missing.append("bubblewrap (bwrap) is not installed")
    except SandboxUnavailable as error:
        if str(error) not in missing:
            missing.append(str(error))
    return None


# ------------------------------------------------------------------ folders of the sandbox

_TEMP_DIR_PREFIX = "tooli-sandbox-"
_cleaned_dirs: set[str] = set()  # parent folders in which stale folders were removed


class SandboxDirs:
    """The folders of a sandboxed call: one for temporary files, and those that it may write to.

    The kernel grants access to existing paths only. A declared path that does not exist is created:
    as a file if its name has an extension, otherwise as a folder. It is not removed afterwards,
    because another call may have been granted access to it.
    """

    def __init__(self, access: AllowedAccess) -> None:
        self.temp_dir, self._lock_fd = _create_temp_dir()
        for path in access.writes or ():
            _create_path(path)

    def remove(self) -> None:
        """Remove the folder for temporary files."""
        _remove_dir(self.temp_dir)
        os.close(self._lock_fd)


def _create_path(path: str) -> None:
    if os.path.lexists(path):
        return
    try:
        if os.path.splitext(path)[1]:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        else:
            os.makedirs(path, exist_ok=True)
    except OSError:  # the command will report that it cannot write there
        pass


def _create_temp_dir() -> tuple[str, int]:
    """Create a private folder. Return its path and a file descriptor that locks it.

    The lock ends with this process, so that other processes can remove the folder if this one is
    killed. `tempfile` is not used, because it takes longer to import.
    """
    tmpdir = os.environ.get("TMPDIR")
    reason = ""
    for parent_dir in (*([tmpdir] if tmpdir else []), "/tmp", "/var/tmp"):
        parent_dir = os.path.realpath(parent_dir)
        _remove_stale_dirs(parent_dir)
        temp_dir = os.path.join(parent_dir, f"{_TEMP_DIR_PREFIX}{os.urandom(8).hex()}")
        try:
            os.mkdir(temp_dir, 0o700)
            return temp_dir, _lock_dir(temp_dir)
        except OSError as error:
            reason = error.strerror or str(error)
    raise TemporaryError(
        f"No folder for temporary files can be created: {reason}.",
        suggestion=Suggestion("ask_human", "Set TMPDIR to a writable folder."),
    )


def _lock_dir(temp_dir: str) -> int:
    """Lock a folder, so that `_remove_stale_dirs` of another process leaves it alone.

    Raises OSError if another process has just removed it.
    """
    fd = os.open(temp_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _lock(fd)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:  # without locks, `_remove_stale_dirs` removes nothing
        pass
    if os.fstat(fd).st_nlink == 0 or not os.path.isdir(temp_dir):
        os.close(fd)
        raise FileNotFoundError(0, "another process has removed it", temp_dir)
    return fd


def _lock(fd: int, *, exclusive: bool = False) -> None:
    """Lock a file or raise OSError, without waiting."""
    from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock  # not on Windows

    flock(fd, (LOCK_EX if exclusive else LOCK_SH) | LOCK_NB)


def _remove_stale_dirs(parent_dir: str) -> None:
    """Remove the folders of killed calls. Each parent folder is searched once per process."""
    if parent_dir in _cleaned_dirs:
        return
    _cleaned_dirs.add(parent_dir)
    try:
        names = [name for name in os.listdir(parent_dir) if name.startswith(_TEMP_DIR_PREFIX)]
    except OSError:
        return
    for name in names:
        temp_dir = os.path.join(parent_dir, name)
        try:
            fd = os.open(temp_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(fd).st_uid == os.geteuid():
                _lock(fd, exclusive=True)
                _remove_dir(temp_dir)
        except OSError:  # in use
            pass
        finally:
            os.close(fd)


def _remove_dir(temp_dir: str) -> None:
    try:
        os.rmdir(temp_dir)
    except OSError:
        from shutil import rmtree

        rmtree(temp_dir, ignore_errors=True)
