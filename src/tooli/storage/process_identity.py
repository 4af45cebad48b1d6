"""Owners: which process does something, told so that another one can see whether it still lives.

On Linux an owner is known for certain: a number is given to another process only after the
first one's end, and that one has started later. Elsewhere its number is all there is, so a
second opinion is needed there: how long ago it was.
"""

from __future__ import annotations

import os

_identity_by_pid: dict[int, str] = {}


def current_process() -> str:
    """The running process: `boot:namespace:number:start`, with nothing where nobody can tell."""
    pid = os.getpid()
    if pid not in _identity_by_pid:
        _identity_by_pid.clear()  # a fork: the parent's name is not ours
        prefix = f"{read_boot_id().replace('-', '')}:{_pid_namespace()}"
        _identity_by_pid[pid] = f"{prefix}:{pid}:{_state_and_start_time(pid)[1]}"
    return _identity_by_pid[pid]


def is_alive(owner: str) -> bool | None:
    """Whether a process still runs; None where that cannot be seen from here."""
    ours = current_process()
    if owner == ours:
        return True
    boot, namespace, pid, start = _split_identity(owner)
    own_parts = _split_identity(ours)
    if not pid.isdigit() or (boot, namespace) != own_parts[:2]:
        return None
    if start:
        state, found = _state_and_start_time(int(pid))
        return found == start and state not in ("Z", "X")
    return _pid_exists(int(pid))


def is_from_this_boot(owner: str) -> bool:
    """Whether it was started since this machine was; only then can it run here."""
    return _split_identity(owner)[0] == _split_identity(current_process())[0]


def has_boot_id(owner: str) -> bool:
    """Whether it is told on which machine it runs: elsewhere its number may be anybody's."""
    return bool(_split_identity(owner)[0])


def is_verifiable(owner: str) -> bool:
    """Whether `is_alive` knows of it by more than a number, which others are given later."""
    return owner == current_process() or bool(_split_identity(owner)[3])


def _split_identity(owner: str) -> tuple[str, str, str, str]:
    boot, namespace, pid, start = [*owner.split(":"), "", "", "", ""][:4]
    return boot, namespace, pid, start


def read_boot_id() -> str:
    """What tells one start of this machine from another, and from other machines; else empty."""
    return _read_text("/proc/sys/kernel/random/boot_id").strip()


def _pid_namespace() -> str:
    """Containers of one machine count their processes apart."""
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return ""


def _state_and_start_time(pid: int) -> tuple[str, str]:
    """The state of a process, and when it was started; two empty texts where there is none."""
    stat = _read_text(f"/proc/{pid}/stat")
    fields = stat[stat.rfind(")") + 2 :].split()  # a name may hold anything, brackets as well
    return (fields[0], fields[19]) if len(fields) > 19 else ("", "")


def _read_text(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 4096).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _pid_exists(pid: int) -> bool | None:
    if os.name == "nt":  # there a signal of 0 is Ctrl-C
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True
