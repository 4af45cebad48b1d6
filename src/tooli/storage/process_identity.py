"""Process identities, by which another process can check whether a process is still running.

On Linux the check is certain, because the start time distinguishes a process from a later one with
the same PID. On other systems only the PID is known, so callers also consider the age of the entry.
"""

from __future__ import annotations

import os

_identity_by_pid: dict[int, str] = {}


def current_process() -> str:
    """Return the identity of this process: `boot:namespace:pid:start`. Unknown parts are empty."""
    pid = os.getpid()
    if pid not in _identity_by_pid:
        _identity_by_pid.clear()  # after a fork
        prefix = f"{read_boot_id().replace('-', '')}:{_pid_namespace()}"
        _identity_by_pid[pid] = f"{prefix}:{pid}:{_state_and_start_time(pid)[1]}"
    return _identity_by_pid[pid]


def is_alive(owner: str) -> bool | None:
    """True if a process is running; None if that cannot be checked from here."""
    current = current_process()
    if owner == current:
        return True
    boot, namespace, pid, start = _split_identity(owner)
    own_parts = _split_identity(current)
    if not pid.isdigit() or (boot, namespace) != own_parts[:2]:
        return None
    if start:
        state, found = _state_and_start_time(int(pid))
        return found == start and state not in ("Z", "X")
    return _pid_exists(int(pid))


def is_from_this_boot(owner: str) -> bool:
    """True if a process was started on this machine since it was booted."""
    return _split_identity(owner)[0] == _split_identity(current_process())[0]


def has_boot_id(owner: str) -> bool:
    """True if an identity has a boot ID. Without one, the PID may belong to any machine."""
    return bool(_split_identity(owner)[0])


def is_verifiable(owner: str) -> bool:
    """True if `is_alive` is certain, because the start time is known."""
    return owner == current_process() or bool(_split_identity(owner)[3])


def _split_identity(owner: str) -> tuple[str, str, str, str]:
    boot, namespace, pid, start = [*owner.split(":"), "", "", "", ""][:4]
    return boot, namespace, pid, start


def read_boot_id() -> str:
    """Return the ID of the current boot of this machine; "" if it is unknown."""
    return _read_text("/proc/sys/kernel/random/boot_id").strip()


def _pid_namespace() -> str:
    """Return the ID of the PID namespace. Each container on a machine has its own PIDs."""
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return ""


def _state_and_start_time(pid: int) -> tuple[str, str]:
    """Return the state and the start time of a process; empty strings if there is none."""
    stat = _read_text(f"/proc/{pid}/stat")
    fields = stat[stat.rfind(")") + 2 :].split()  # the name before it may contain ")"
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
    if os.name == "nt":  # signal 0 is Ctrl-C there
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True
