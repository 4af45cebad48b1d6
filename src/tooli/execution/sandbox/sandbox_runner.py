"""Walls: the process of one command, held by the kernel to what the command declares.

    a clean process ──▶ Landlock: files ──▶ seccomp: everything else ──▶ the function
    (environment, descriptors, privileges)

The walls of a process never come down again, so they rise only in a process of a call's own.
"""

from __future__ import annotations

import os
import sys

from tooli.core.call import Runner
from tooli.core.record import Record
from tooli.errors import AuthError, Suggestion
from tooli.execution.monitor import implicit_access
from tooli.execution.sandbox import landlock, runtime_paths, seccomp
from tooli.execution.sandbox.syscalls import (
    SandboxUnavailable,
    detect_architecture,
    drop_privileges,
    lock_down_process,
    wipe_initial_environment,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tooli.core.call import Call
    from tooli.core.declared_capabilities import AllowedAccess

KEPT_ENV_VARS = frozenset(
    (
        *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "COLUMNS", "LINES"),
        *("NO_COLOR", "FORCE_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("TOOLI_CALLER", "TOOLI_CALLER_VERSION", "TOOLI_SESSION_ID", "TOOLI_CONFIG"),
        *("TOOLI_STATE_DIR", "TOOLI_FRAMEWORK_HELP", "TOOLI_RECORD_CAPABILITIES"),
        *("TOOLI_OUTPUT", "TOOLI_COLOR", "TOOLI_RESPONSE_FORMAT", "TOOLI_QUIET", "TOOLI_VERBOSE"),
        *("TOOLI_NO_INPUT", "TOOLI_TIMEOUT", "TOOLI_MAX_ITEMS", "TOOLI_MAX_BYTES"),
        *("TOOLI_MAX_TOKENS", "TOOLI_SECURITY_POLICY", "TOOLI_HUMAN_IN_THE_LOOP"),
        *("TOOLI_ISOLATION", "TOOLI_ALLOW_PATHS", "TOOLI_DENY_PATHS", "TOOLI_WORK_DIR"),
        *("TOOLI_RATE_LIMIT", "TOOLI_AUDIT_LOG", "TOOLI_MAX_INPUT", "TOOLI_ALLOW_PRIVATE_URLS"),
    )
)
"""Variables that every command has, and all that begin with one of these:"""
KEPT_ENV_PREFIXES = ("LC_", "PYTHON")
FRAMEWORK_SECRET_VARS = ("TOOLI_TOKEN", "TOOLI_TOKEN_FILE", "TOOLI_SEAL_KEY", "TOOLI_STORE")
"""What the framework proves itself with: never a command's, whatever it may read."""
_FILE_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4  # CHOWN, DAC_OVERRIDE, FOWNER, FSETID
_PORT_CAPABILITIES = 1 << 10  # NET_BIND_SERVICE

_is_sandboxed = False  # whether this process is behind walls


class SandboxSupport(Record):
    """What this machine can hold a process with."""

    landlock: int = 0  # its version; 0: none
    seccomp: bool = False
    missing: tuple[str, ...] = ()
    is_nested: bool = False  # this process is held already

    @property
    def level(self) -> str:
        """The means as `meta.enforcement` names them."""
        parts = [f"landlock:{self.landlock}"] * bool(self.landlock) + ["seccomp"] * self.seccomp
        return "+".join(parts) or "none"


def detect_sandbox_support() -> SandboxSupport:
    """What there is here; nothing is changed by looking."""
    missing: list[str] = []
    try:
        detect_architecture()
    except SandboxUnavailable as reason:
        return SandboxSupport(missing=(str(reason),))
    abi, has_seccomp = 0, True
    try:
        abi = landlock.detect_abi()
    except SandboxUnavailable as reason:
        missing.append(str(reason))
    if not seccomp.is_available():
        has_seccomp = False
        missing.append("this kernel has no seccomp filters, or they are hidden here")
    if not hasattr(os, "fork"):
        missing.append("processes cannot be forked here")
    if _is_sandboxed:
        missing.append("it is called by a command that is isolated itself")
    return SandboxSupport(abi, has_seccomp, tuple(missing), _is_sandboxed)


def isolation_error(name: str, missing: Iterable[str]) -> AuthError:
    """The error for a command that must be isolated and cannot be."""
    return AuthError(
        f"{name} must run isolated, and that cannot be had here: {'; '.join(missing)}.",
        code="E2006",
        suggestion=Suggestion(
            "ask_human",
            "Run it on Linux 5.13 or newer with Landlock and seccomp, or let a human decide "
            "to run it without isolation.",
        ),
        details={"missing": list(missing)},
    )


class SandboxRunner(Runner):
    """Runs a function behind walls."""

    needs_own_process = True

    def __init__(
        self,
        inner: Runner | None,
        allowance: AllowedAccess,
        *,
        required: bool,
        temp_dir: str | None = None,
    ) -> None:
        super().__init__(inner)
        self.allowance = allowance
        self.required = required
        self.temp_dir = temp_dir  # a folder of the call's own, for what is temporary
        self._creator_pid = os.getpid()

    def run(self, call: Call) -> Any:
        """What the function gives, made behind walls."""
        from tooli.pipeline.drivers import invoke

        level = self._enter_sandbox(call)
        try:
            value = invoke(call.replace(runner=self.inner))
        except PermissionError:
            _warn_about_isolation(call)
            raise
        return self._set_enforcement(call, level, value)

    async def arun(self, call: Call) -> Any:
        """The same on an event loop: one of the process's own."""
        from tooli.pipeline.async_drivers import invoke

        level = self._enter_sandbox(call)
        try:
            value = await invoke(call.replace(runner=self.inner))
        except PermissionError:
            _warn_about_isolation(call)
            raise
        return self._set_enforcement(call, level, value)

    def _set_enforcement(self, call: Call, level: str, value: Any) -> Any:
        if call.meta is not None:  # again: who runs inside may have told less
            call.meta["enforcement"] = level
        return value

    def _enter_sandbox(self, call: Call) -> str:
        if os.getpid() == self._creator_pid:
            raise RuntimeError("walls rise in a process of the call's own, and this is the app's")
        support = detect_sandbox_support()
        if support.missing and self.required:
            raise isolation_error(call.tool.name, support.missing)
        files = list(_caller_files(call)) if call.tool.has_handles else []
        if self.temp_dir is not None:  # whoever watches lets it be, too
            implicit_access.private_temp_dirs.append(self.temp_dir + "/")
        try:
            enter_sandbox(self.allowance, support, self.kept_fds, self.temp_dir, files)
        except (SandboxUnavailable, OSError) as failure:
            if self.required:
                raise isolation_error(call.tool.name, (str(failure),)) from None
            call.warnings.append(f"not isolated as wanted: {failure}")
            support = SandboxSupport()
        self._set_enforcement(call, support.level, None)
        return support.level


def _warn_about_isolation(call: Call) -> None:
    """Say who may have refused: the kernel's own words sound like a wrong mode of a file."""
    call.warnings.append(
        f"{call.tool.name} ran isolated: only what its capabilities name is open to it"
    )


def _caller_files(call: Call) -> Iterator[tuple[str, int]]:
    """The single files that the caller named as inputs and outputs, and the rights on them.

    Secrets are read at once: one may be a variable, and those will be gone.
    """
    from tooli.inputs.output import Output
    from tooli.inputs.secret import SecretInput
    from tooli.inputs.source import Input

    for value in call.arguments.values():
        for item in value if type(value) in (list, tuple, set, frozenset) else (value,):
            if isinstance(item, SecretInput):
                item.load()  # pyright: ignore[reportUnknownMemberType]
            elif isinstance(item, Input) and item.tooli_location and not item.is_url:
                yield os.path.realpath(item.tooli_location), landlock.READ_FILE
            elif isinstance(item, Output) and not item.is_stdout:
                yield item.prepare(), landlock.WRITE_FILE | landlock.READ_FILE | landlock.TRUNCATE


# ------------------------------------------------------------------ raising them


def enter_sandbox(
    allowance: AllowedAccess,
    support: SandboxSupport,
    keep_descriptors: Iterable[int] = (),
    temp_dir: str | None = None,
    files: Iterable[tuple[str, int]] = (),
) -> None:
    """Hold this process, which has one thread, to an allowance for the rest of its life."""
    global _is_sandboxed
    _require_single_thread()
    runtime_paths.warm_import_caches()
    rules = _landlock_rules(allowance, temp_dir, files) if support.landlock else []
    _replace_environment(allowance, temp_dir)
    _detach_descriptors(keep_descriptors)
    if support.landlock:
        ruleset = landlock.Ruleset(support.landlock, allowance.net)
        for path, rights in rules:
            ruleset.add(path, rights)
        readable_paths, listed_dirs = runtime_paths.find_readable_paths(allowance.net)
        for path in _exclude_denied(readable_paths, allowance):
            ruleset.add(path, landlock.READ, follow_symlinks=True)
        for path in _exclude_denied(listed_dirs, allowance):
            ruleset.add(path, landlock.READ_DIR, follow_symlinks=True)
        for path in _exclude_denied(
            runtime_paths.find_programs() if allowance.spawns else (), allowance
        ):
            ruleset.add(path, landlock.READ | landlock.EXECUTE, follow_symlinks=True)
        lock_down_process()
        ruleset.enforce()
    else:
        lock_down_process()
    drop_privileges(_FILE_CAPABILITIES | _PORT_CAPABILITIES * allowance.net)
    if support.seccomp:
        can_write_anywhere = allowance.writes is None
        seccomp.enforce(
            seccomp.build_rules(
                net=allowance.net,
                spawns=allowance.spawns,
                metadata=can_write_anywhere,
                sockets=allowance.net and can_write_anywhere,
                truncates=can_write_anywhere or support.landlock >= landlock.TRUNCATE_ABI,
                pid=os.getpid(),
            )
        )
    _is_sandboxed = True


def _require_single_thread() -> None:
    """Landlock holds the thread that asks for it: another one would stand outside."""
    try:
        threads = len(os.listdir("/proc/self/task"))
    except OSError as error:
        raise SandboxUnavailable(f"/proc/self/task cannot be read: {error.strerror}") from None
    if threads != 1:
        raise SandboxUnavailable(f"the process has {threads} threads already")


def _landlock_rules(
    allowance: AllowedAccess, temp_dir: str | None, files: Iterable[tuple[str, int]]
) -> list[tuple[str, int]]:
    """The rights that are given: on what is declared, and on what is the call's own."""
    rights: dict[str, int] = {}

    def grant(paths: Iterable[str], extra_rights: int) -> None:
        for path in paths:
            rights[path] = rights.get(path, 0) | extra_rights

    def declared(paths: tuple[str, ...] | None) -> Iterator[str]:
        for path in ("/",) if paths is None else paths:
            yield from landlock.paths_outside_denied(path, allowance.denied)

    grant(declared(allowance.reads), landlock.READ)
    grant(declared(allowance.writes), landlock.WRITE)
    grant(declared(allowance.deletes), landlock.DELETE)
    grant(runtime_paths.WRITABLE_DEVICES, landlock.READ | landlock.WRITE)
    if temp_dir is not None:
        grant((temp_dir,), landlock.READ | landlock.WRITE | landlock.DELETE)
    for path, extra_rights in files:
        grant((path,), extra_rights)
    return list(rights.items())


def _exclude_denied(paths: Iterable[str], allowance: AllowedAccess) -> Iterator[str]:
    """What Python needs, but for what is denied whatever anybody needs."""
    for path in paths:
        if allowance.denied:
            yield from landlock.paths_outside_denied(os.path.realpath(path), allowance.denied)
        else:
            yield path


def build_environment(allowance: AllowedAccess, temp_dir: str | None) -> dict[str, str]:
    """The variables that every command has; all of them where it may read them."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in FRAMEWORK_SECRET_VARS
        and (allowance.env_reads or name in KEPT_ENV_VARS or name.startswith(KEPT_ENV_PREFIXES))
    }
    if temp_dir is not None:
        environment["TMPDIR"] = temp_dir
    return environment


def _replace_environment(allowance: AllowedAccess, temp_dir: str | None) -> None:
    """Leave only those."""
    environment = build_environment(allowance, temp_dir)
    os.environ.clear()
    os.environ.update(environment)  # as copies: the old ones can be wiped
    wipe_initial_environment()
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None  # it is chosen anew


def _detach_descriptors(keep: Iterable[int]) -> None:
    """Put nothing in the place of what the parent had open.

    The numbers stay taken: objects of the parent's that close them in the end close nothing else.
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
                os.fstat(number)  # the one that listed them is gone
                os.dup2(devnull, number, inheritable=False)
            except OSError:
                pass
    os.close(devnull)
