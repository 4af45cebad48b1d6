"""Walls: the process of one command, held by the kernel to what the command declares.

    a clean process ──▶ Landlock: files ──▶ seccomp: everything else ──▶ the function
    (environment, descriptors, privileges)

The walls of a process never come down again, so they rise only in a process of a call's own.
"""

from __future__ import annotations

import os
import sys

from tooli.call.model import Runner
from tooli.contract.record import Record
from tooli.enforce import landlock, needs, provisions, seccomp
from tooli.enforce.kernel import (
    NoWalls,
    drop_privileges,
    machine,
    renounce,
    wipe_environment,
)
from tooli.errors import AuthError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tooli.call.model import Call
    from tooli.contract.capabilities import Allowance

KEPT = frozenset(
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
KEPT_KINDS = ("LC_", "PYTHON")
OURS = ("TOOLI_TOKEN", "TOOLI_TOKEN_FILE", "TOOLI_SEAL_KEY", "TOOLI_STORE")
"""What the framework proves itself with: never a command's, whatever it may read."""
_FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4  # CHOWN, DAC_OVERRIDE, FOWNER, FSETID
_PORT_RIGHTS = 1 << 10  # NET_BIND_SERVICE

_standing = False  # whether this process is behind walls


class Means(Record):
    """What this machine can hold a process with."""

    landlock: int = 0  # its version; 0: none
    seccomp: bool = False
    missing: tuple[str, ...] = ()
    nested: bool = False  # this process is held already

    @property
    def level(self) -> str:
        """The means as `meta.enforcement` names them."""
        parts = [f"landlock:{self.landlock}"] * bool(self.landlock) + ["seccomp"] * self.seccomp
        return "+".join(parts) or "none"


def look_for_means() -> Means:
    """What there is here; nothing is changed by looking."""
    missing: list[str] = []
    try:
        machine()
    except NoWalls as reason:
        return Means(missing=(str(reason),))
    abi, filters = 0, True
    try:
        abi = landlock.version()
    except NoWalls as reason:
        missing.append(str(reason))
    if not seccomp.is_there():
        filters = False
        missing.append("this kernel has no seccomp filters, or they are hidden here")
    if not hasattr(os, "fork"):
        missing.append("processes cannot be forked here")
    if _standing:
        missing.append("it is called by a command that is isolated itself")
    return Means(abi, filters, tuple(missing), _standing)


def refusal(name: str, missing: Iterable[str]) -> AuthError:
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


class Walls(Runner):
    """Runs a function behind walls."""

    alone = True

    def __init__(
        self,
        inner: Runner | None,
        allowance: Allowance,
        *,
        required: bool,
        room: str | None = None,
    ) -> None:
        super().__init__(inner)
        self.allowance = allowance
        self.required = required
        self.room = room  # a folder of the call's own, for what is temporary
        self._made_in = os.getpid()

    def run(self, call: Call) -> Any:
        """What the function gives, made behind walls."""
        from tooli.call.pipeline import invoke

        level = self._rise(call)
        try:
            value = invoke(call.replace(runner=self.inner))
        except PermissionError:
            _explain(call)
            raise
        return self._told(call, level, value)

    async def arun(self, call: Call) -> Any:
        """The same on an event loop: one of the process's own."""
        from tooli.call.aio import invoke

        level = self._rise(call)
        try:
            value = await invoke(call.replace(runner=self.inner))
        except PermissionError:
            _explain(call)
            raise
        return self._told(call, level, value)

    def _told(self, call: Call, level: str, value: Any) -> Any:
        if call.meta is not None:  # again: who runs inside may have told less
            call.meta["enforcement"] = level
        return value

    def _rise(self, call: Call) -> str:
        if os.getpid() == self._made_in:
            raise RuntimeError("walls rise in a process of the call's own, and this is the app's")
        means = look_for_means()
        if means.missing and self.required:
            raise refusal(call.tool.name, means.missing)
        files = list(_handed_in(call)) if call.tool.handles else []
        if self.room is not None:  # whoever watches lets it be, too
            needs.rooms.append(self.room + "/")
        try:
            raise_walls(self.allowance, means, self.keeps, self.room, files)
        except (NoWalls, OSError) as broken:
            if self.required:
                raise refusal(call.tool.name, (str(broken),)) from None
            call.warnings.append(f"not isolated as wanted: {broken}")
            means = Means()
        self._told(call, means.level, None)
        return means.level


def _explain(call: Call) -> None:
    """Say who may have refused: the kernel's own words sound like a wrong mode of a file."""
    call.warnings.append(
        f"{call.tool.name} ran isolated: only what its capabilities name is open to it"
    )


def _handed_in(call: Call) -> Iterator[tuple[str, int]]:
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
            elif isinstance(item, Input) and item.tooli_place and not item.is_url:
                yield os.path.realpath(item.tooli_place), landlock.READ_FILE
            elif isinstance(item, Output) and not item.is_stdout:
                yield item.prepare(), landlock.WRITE_FILE | landlock.READ_FILE | landlock.TRUNCATE


# ------------------------------------------------------------------ raising them


def raise_walls(
    allowance: Allowance,
    means: Means,
    kept: Iterable[int] = (),
    room: str | None = None,
    files: Iterable[tuple[str, int]] = (),
) -> None:
    """Hold this process, which has one thread, to an allowance for the rest of its life."""
    global _standing
    _be_alone()
    provisions.remember_modules()
    rules = _rules(allowance, room, files) if means.landlock else []
    _clean_environment(allowance, room)
    _take_away_descriptors(kept)
    if means.landlock:
        ruleset = landlock.Ruleset(means.landlock, allowance.net)
        for path, rights in rules:
            ruleset.add(path, rights)
        read, listed = provisions.readable(allowance.net)
        for path in _open_to_all(read, allowance):
            ruleset.add(path, landlock.READ, follows=True)
        for path in _open_to_all(listed, allowance):
            ruleset.add(path, landlock.READ_DIR, follows=True)
        for path in _open_to_all(provisions.programs() if allowance.spawns else (), allowance):
            ruleset.add(path, landlock.READ | landlock.EXECUTE, follows=True)
        renounce()
        ruleset.enforce()
    else:
        renounce()
    drop_privileges(_FILE_RIGHTS | _PORT_RIGHTS * allowance.net)
    if means.seccomp:
        anywhere = allowance.writes is None
        seccomp.enforce(
            seccomp.rules_for(
                net=allowance.net,
                spawns=allowance.spawns,
                metadata=anywhere,
                sockets=allowance.net and anywhere,
                truncates=anywhere or means.landlock >= landlock.TRUNCATES,
                pid=os.getpid(),
            )
        )
    _standing = True


def _be_alone() -> None:
    """Landlock holds the thread that asks for it: another one would stand outside."""
    try:
        threads = len(os.listdir("/proc/self/task"))
    except OSError as hidden:
        raise NoWalls(f"/proc/self/task cannot be read: {hidden.strerror}") from None
    if threads != 1:
        raise NoWalls(f"the process has {threads} threads already")


def _rules(
    allowance: Allowance, room: str | None, files: Iterable[tuple[str, int]]
) -> list[tuple[str, int]]:
    """The rights that are given: on what is declared, and on what is the call's own."""
    rights: dict[str, int] = {}

    def give(places: Iterable[str], more: int) -> None:
        for place in places:
            rights[place] = rights.get(place, 0) | more

    def declared(places: tuple[str, ...] | None) -> Iterator[str]:
        for place in ("/",) if places is None else places:
            yield from landlock.around(place, allowance.denied)

    give(declared(allowance.reads), landlock.READ)
    give(declared(allowance.writes), landlock.WRITE)
    give(declared(allowance.deletes), landlock.DELETE)
    give(provisions.DEVICES, landlock.READ | landlock.WRITE)
    if room is not None:
        give((room,), landlock.READ | landlock.WRITE | landlock.DELETE)
    for path, more in files:
        give((path,), more)
    return list(rights.items())


def _open_to_all(places: Iterable[str], allowance: Allowance) -> Iterator[str]:
    """What Python needs, but for what is denied whatever anybody needs."""
    for place in places:
        if allowance.denied:
            yield from landlock.around(os.path.realpath(place), allowance.denied)
        else:
            yield place


def kept_variables(allowance: Allowance, room: str | None) -> dict[str, str]:
    """The variables that every command has; all of them where it may read them."""
    left = {
        name: value
        for name, value in os.environ.items()
        if name not in OURS and (allowance.env_reads or name in KEPT or name.startswith(KEPT_KINDS))
    }
    if room is not None:
        left["TMPDIR"] = room
    return left


def _clean_environment(allowance: Allowance, room: str | None) -> None:
    """Leave only those."""
    left = kept_variables(allowance, room)
    os.environ.clear()
    os.environ.update(left)  # as copies: the old ones can be wiped
    wipe_environment()
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None  # it is chosen anew


def _take_away_descriptors(kept: Iterable[int]) -> None:
    """Put nothing in the place of what the parent had open.

    The numbers stay taken: objects of the parent's that close them in the end close nothing else.
    """
    stay = {0, 1, 2, *kept}
    try:
        found = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError as hidden:
        raise NoWalls(f"/proc/self/fd cannot be read: {hidden.strerror}") from None
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for number in found:
        if number not in stay and number != nothing:
            try:
                os.fstat(number)  # the one that listed them is gone
                os.dup2(nothing, number, inheritable=False)
            except OSError:
                pass
    os.close(nothing)
