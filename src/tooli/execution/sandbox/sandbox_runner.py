"""Run a command in a process that the kernel restricts to what the command declares.

    clean the process ──▶ Landlock: files ──▶ seccomp: everything else ──▶ the function
    (environment, descriptors, privileges)

A process cannot leave a sandbox, so a command enters one only in a worker process.
"""

from __future__ import annotations

import os
import sys

from tooli.config.setting_definitions import VARIABLES
from tooli.core import Record
from tooli.core.call import Runner
from tooli.core.declared_capabilities import is_under_any
from tooli.core.held_keys import hold_key
from tooli.errors import AuthError, Suggestion
from tooli.execution.monitor.actions import private_temp_dirs
from tooli.execution.sandbox import landlock, runtime_paths
from tooli.execution.sandbox.key_wiping import wipe_keys
from tooli.execution.sandbox.shared_memory import make_memory_private
from tooli.execution.sandbox.syscalls import (
    SandboxUnavailable,
    build_seccomp_rules,
    clear_environment,
    detect_architecture,
    drop_privileges,
    enforce_seccomp,
    is_seccomp_available,
    lock_down_process,
)
from tooli.inputs.output import Output
from tooli.inputs.secret import SecretInput
from tooli.inputs.source import Input
from tooli.pipeline.drivers import invoke
from tooli.text.jsonable import iter_items

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.declared_capabilities import AllowedAccess

KEPT_ENV_VARS = frozenset(
    (
        *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "COLUMNS", "LINES"),
        *("NO_COLOR", "FORCE_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *[variable.name for variable in VARIABLES.values() if variable.sandbox == "kept"],
    )
)
"""Environment variables that every command gets, together with those of KEPT_ENV_PREFIXES."""
KEPT_ENV_PREFIXES = ("LC_", "PYTHON")
FRAMEWORK_SECRET_VARS = frozenset(
    [variable.name for variable in VARIABLES.values() if variable.sandbox == "removed"]
)
"""Credentials of the framework, which no command gets."""
KEY_VARS = ("TOOLI_SEAL_KEY", "TOOLI_TOKEN")
"""Those whose values are keys. All copies in the memory of a sandboxed process are overwritten."""
# CHOWN, DAC_OVERRIDE, FOWNER. Without FSETID, a change of a set-user-ID file clears that bit.
_FILE_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3
_PORT_CAPABILITIES = 1 << 10  # NET_BIND_SERVICE

_is_sandboxed = False  # True in a process that has entered a sandbox


class SandboxSupport(Record):
    """The sandbox features of this machine."""

    landlock: int = 0  # ABI version; 0: none
    seccomp: bool = False
    missing: tuple[str, ...] = ()
    is_nested: bool = False  # this process is in a sandbox already

    @property
    def level(self) -> str:
        """The value of `meta.enforcement`, such as "landlock:4+seccomp"."""
        parts = [f"landlock:{self.landlock}"] * bool(self.landlock) + ["seccomp"] * self.seccomp
        return "+".join(parts) or "none"


def detect_sandbox_support() -> SandboxSupport:
    """Return the sandbox features of this machine."""
    try:
        detect_architecture()
    except SandboxUnavailable as reason:
        return SandboxSupport(missing=(str(reason),))
    abi, has_seccomp = 0, False
    missing: list[str] = []
    try:
        abi = landlock.detect_abi()
    except SandboxUnavailable as reason:
        missing.append(str(reason))
    try:
        has_seccomp = is_seccomp_available()
        if not has_seccomp:
            missing.append("seccomp filters are missing or blocked")
    except SandboxUnavailable as reason:  # Python has no ctypes
        missing.append(str(reason))
    if not hasattr(os, "fork"):
        missing.append("this system cannot fork processes")
    if _is_sandboxed:
        missing.append("this process is already in a sandbox")
    return SandboxSupport(abi, has_seccomp, tuple(dict.fromkeys(missing)), _is_sandboxed)


def isolation_error(name: str, missing: Iterable[str]) -> AuthError:
    """Return the error for a command that requires isolation on a machine that has none."""
    return AuthError(
        f"{name} requires isolation, which is not available here: {'; '.join(missing)}.",
        code="E2006",
        suggestion=Suggestion(
            "ask_human",
            "Run it on Linux 5.13 or newer with Landlock and seccomp, or ask a human whether "
            "to run it without isolation.",
        ),
        details={"missing": list(missing)},
    )


def sandbox_setup_error(name: str, failure: Exception) -> AuthError:
    """Return the error for a command whose sandbox is available but cannot be set up.

    The command does not run, even if isolation is optional: an earlier call may be the cause.
    """
    return AuthError(
        f"{name} was not run, because its sandbox could not be set up: {failure}.",
        code="E2006",
        suggestion=Suggestion(
            "ask_human",
            "Ask a human to remove the cause, or to decide whether to run it without isolation.",
        ),
        details={"missing": [str(failure)]},
    )


class SandboxRunner(Runner):
    """Runs a function in a sandbox."""

    needs_own_process = True

    def __init__(
        self,
        inner: Runner | None,
        access: AllowedAccess,
        *,
        required: bool,
        temp_dir: str | None = None,
        clean_up: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(inner)
        self.has_begun = False  # if it has, `process_ended` cleans up
        self._clean_up = clean_up
        self.access = access
        self.required = required
        self.temp_dir = temp_dir  # temporary directory of the call
        self.support = detect_sandbox_support()  # before the call, which can have an effect on it
        self._creator_pid = os.getpid()

    def process_started(self) -> None:
        """Note that `process_ended` will clean up."""
        self.has_begun = True

    def process_ended(self) -> None:
        """Clean up after the call, in the thread that waits for it."""
        if self._clean_up is not None:
            self._clean_up()

    def run(self, call: Call) -> Any:
        """Enter the sandbox, run the call and return its value."""
        level = self._enter_sandbox(call)
        try:
            value = invoke(call.replace(runner=self.inner))
        except PermissionError:
            call.warnings.append(
                f"{call.tool.name} ran isolated: it can access only what its capabilities declare"
            )
            raise
        self._set_enforcement(call, level)  # again, because an inner runner may have changed it
        return value

    def _set_enforcement(self, call: Call, level: str) -> None:
        if call.meta is not None:
            call.meta["enforcement"] = level

    def _enter_sandbox(self, call: Call) -> str:
        if os.getpid() == self._creator_pid:
            raise RuntimeError(
                "a sandbox must be entered in a worker process, not in the process of the app"
            )
        support = self.support
        if support.missing and self.required:
            raise isolation_error(call.tool.name, support.missing)
        if support.level == "none":  # the call already has a warning
            self._set_enforcement(call, support.level)
            return support.level
        files, descriptors = _find_caller_files(call) if call.tool.has_handles else ([], [])
        if self.temp_dir is not None:  # the monitor must allow it too
            private_temp_dirs.append(self.temp_dir + "/")
        try:
            kept = (*self.kept_fds, *descriptors)
            enter_sandbox(self.access, support, kept, self.temp_dir, files)
        except Exception as failure:
            raise sandbox_setup_error(call.tool.name, failure) from None
        self._set_enforcement(call, support.level)
        return support.level


def _find_caller_files(call: Call) -> tuple[list[tuple[str, int]], list[int]]:
    """Return the rights on the files of the caller, and the descriptors of those that are open.

    These files need no declaration. The stage `handles` has checked and opened the inputs. Secrets
    are loaded now, because the sandbox removes the environment variables that hold them.
    """
    rights: list[tuple[str, int]] = []
    descriptors: list[int] = []
    for value in call.tool.arguments_by_param(call.arguments).values():
        for item in iter_items(value):
            if isinstance(item, SecretInput):
                item.load()  # pyright: ignore[reportUnknownMemberType]
            elif isinstance(item, Output):
                if not item.is_stdout:
                    write = landlock.WRITE_FILE | landlock.READ_FILE | landlock.TRUNCATE
                    rights.append((item.worker_path, write))
            elif isinstance(item, Input):
                held = item.held_file
                if held is not None:
                    descriptors.append(held.fd)
                if item.real_path is not None:
                    rights.append((item.real_path, landlock.READ_FILE))
    return rights, descriptors


# ------------------------------------------------------------------ enter the sandbox


def enter_sandbox(
    access: AllowedAccess,
    support: SandboxSupport,
    keep_descriptors: Iterable[int] = (),
    temp_dir: str | None = None,
    files: Iterable[tuple[str, int]] = (),
) -> None:
    """Restrict this process permanently to the allowed access. It must have a single thread."""
    global _is_sandboxed
    _require_single_thread()
    runtime_paths.warm_import_caches()
    rules = _landlock_rules(access, temp_dir, files) if support.landlock else []
    for name in KEY_VARS:
        hold_key(os.environ.get(name, ""))
    _replace_environment(access, temp_dir)
    _detach_descriptors(keep_descriptors)
    make_memory_private()
    wipe_keys()
    if support.landlock:
        ruleset = landlock.Ruleset(support.landlock, access.net)
        for path, rights in rules:
            ruleset.add(path, rights)
        found = runtime_paths.find_readable_paths(access)
        for path in _exclude_denied(found.system, access):
            ruleset.add(path, landlock.READ, follow_symlinks=True)
        for paths, right in (
            (found.code, landlock.READ),
            (found.listed_dirs, landlock.READ_DIR),
        ):
            for path in paths:
                for allowed_path in landlock.paths_outside_denied(path, access.denied):
                    ruleset.add(allowed_path, right)
        writable = runtime_paths.writable_paths(access)
        programs = runtime_paths.find_programs(writable) if access.spawns else ()
        for path in _exclude_denied(programs, access):
            ruleset.add(path, landlock.READ | landlock.EXECUTE, follow_symlinks=True)
        lock_down_process()
        ruleset.enforce()
    else:
        lock_down_process()
    drop_privileges(_FILE_CAPABILITIES | _PORT_CAPABILITIES * access.net)
    if support.seccomp:
        is_truncate_restricted = support.landlock >= landlock.TRUNCATE_ABI
        enforce_seccomp(build_seccomp_rules(access, os.getpid(), is_truncate_restricted))
    _is_sandboxed = True


def _require_single_thread() -> None:
    """Raise SandboxUnavailable if there are other threads, which Landlock would not restrict."""
    try:
        threads = len(os.listdir("/proc/self/task"))
    except OSError as error:
        raise SandboxUnavailable(f"/proc/self/task cannot be read: {error.strerror}") from None
    if threads != 1:
        raise SandboxUnavailable(f"the process has {threads} threads already")


def _landlock_rules(
    access: AllowedAccess, temp_dir: str | None, files: Iterable[tuple[str, int]]
) -> list[tuple[str, int]]:
    """Return the rights on declared paths and on files of the call."""
    rights: dict[str, int] = {}

    def grant(paths: Iterable[str], extra_rights: int) -> None:
        for path in paths:
            rights[path] = rights.get(path, 0) | extra_rights

    def declared(paths: tuple[str, ...] | None, excluded: tuple[str, ...] = ()) -> Iterator[str]:
        for path in ("/", runtime_paths.MEMORY_DIR) if paths is None else paths:
            denied = access.denied if is_under_any(path, excluded) else (*access.denied, *excluded)
            yield from landlock.paths_outside_denied(path, denied)

    is_changing = access.writes != () or access.deletes != ()
    kernel_dirs = runtime_paths.find_kernel_dirs() if is_changing else ()
    grant(declared(access.reads), landlock.READ)
    grant(declared(access.writes, kernel_dirs), landlock.WRITE)
    grant(declared(access.deletes, kernel_dirs), landlock.DELETE)
    grant(runtime_paths.WRITABLE_DEVICES, landlock.READ | landlock.WRITE)
    if temp_dir is not None:
        grant((temp_dir,), landlock.READ | landlock.WRITE | landlock.DELETE)
    for path, extra_rights in files:
        grant((path,), extra_rights)
    return list(rights.items())


def _exclude_denied(paths: Iterable[str], access: AllowedAccess) -> Iterator[str]:
    """Yield paths without the parts that the configuration denies."""
    for path in paths:
        if access.denied:
            yield from landlock.paths_outside_denied(os.path.realpath(path), access.denied)
        else:
            yield path


def sandbox_environment(access: AllowedAccess, temp_dir: str | None) -> dict[str, str]:
    """Return the environment of a command.

    Commands that may read the environment get all variables except the framework's secrets.
    Others get only KEPT_ENV_VARS and variables with one of KEPT_ENV_PREFIXES.
    """
    environment = {
        name: os.environ[name]  # other values are not decoded: that would make a copy in memory
        for name in os.environ
        if name not in FRAMEWORK_SECRET_VARS
        and (access.env_reads or name in KEPT_ENV_VARS or name.startswith(KEPT_ENV_PREFIXES))
    }
    if temp_dir is not None:
        environment["TMPDIR"] = temp_dir
    return environment


def _replace_environment(access: AllowedAccess, temp_dir: str | None) -> None:
    """Remove all variables from this process that the command must not read."""
    environment = sandbox_environment(access, temp_dir)
    clear_environment()
    os.environ.update(environment)  # new copies, because the original ones are overwritten
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None  # computed again from TMPDIR


def _detach_descriptors(keep: Iterable[int]) -> None:
    """Replace inherited descriptors by /dev/null, except `keep` and the standard streams.

    The numbers stay in use. Otherwise an object that closes an old descriptor could close a new
    file with the same number.
    """
    kept_numbers = {0, 1, 2, *keep}
    try:
        open_numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError as error:
        raise SandboxUnavailable(f"/proc/self/fd cannot be read: {error.strerror}") from None
    devnull = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for number in open_numbers:
        if number not in kept_numbers and number != devnull:
            try:
                os.fstat(number)  # fails for the descriptor that os.listdir() used
                os.dup2(devnull, number, inheritable=False)
            except OSError:
                pass
    os.close(devnull)
