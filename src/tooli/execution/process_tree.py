"""Find and kill the descendants of a process. Other systems than Linux support only a part."""

from __future__ import annotations

import os
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def _import_signal_module() -> Any:
    try:
        import _signal as found  # pyright: ignore[reportMissingImports]
    except ImportError:
        import signal as found
    return found  # pyright: ignore[reportUnknownVariableType]


signals = _import_signal_module()
"""The C part of `signal`. The Python part imports enum, which is slow."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # options of prctl
SIGKILL, SIGTERM, SIGINT = 9, 15, 2
KILL_TIMEOUT = 2.0
"""Seconds to wait for killed processes to end."""


def adopt_orphans() -> bool:
    """Become the parent of orphaned descendants; False if the system does not support it."""
    return prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> bool:
    """Have the kernel kill this process when its parent ends."""
    return prctl(_PR_SET_PDEATHSIG, SIGKILL)


def prctl(option: int, value: int) -> bool:
    """Call prctl; True on success."""
    native, address = load_prctl()
    return native is not None and native.call_cdeclfunction(address, (option, value, 0, 0, 0)) == 0


_prctl_cache: list[tuple[Any, Any]] = []


def load_prctl() -> tuple[Any, Any]:
    """Return the module `_ctypes` and the address of prctl, or (None, None).

    `_ctypes` takes a tenth of the time of `ctypes` to import.
    """
    if not _prctl_cache:
        try:
            import _ctypes as native  # pyright: ignore[reportMissingImports]

            found: Any = native
            _prctl_cache.append((found, found.dlsym(found.dlopen(None, 0), "prctl")))
        except (ImportError, AttributeError, OSError):
            _prctl_cache.append((None, None))
    return _prctl_cache[0]


def send_signal(pid: int, number: int) -> bool:
    """Send a signal; False if the process does not exist."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


class Process:
    """A running process, as /proc describes it."""

    __slots__ = ("group", "name", "parent")

    def __init__(self, parent: int, group: int, name: str) -> None:
        self.parent = parent
        self.group = group
        self.name = name


def list_processes() -> dict[int, Process]:
    """Return all running processes by pid; none without /proc."""
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    processes = [(int(name), _read_process(name)) for name in names]
    return {pid: process for pid, process in processes if process is not None}


def _read_process(pid: str) -> Process | None:
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            head, _, tail = os.read(descriptor, 4096).rpartition(b")")
        finally:
            os.close(descriptor)
    except OSError:
        return None
    fields = tail.split(None, 3)
    if len(fields) < 3 or fields[0] in (b"Z", b"X"):
        return None
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return Process(int(fields[1]), int(fields[2]), name)


def find_descendants(root: int, processes: Mapping[int, Process]) -> dict[int, str]:
    """Return the descendants of a process, with their names."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found: dict[int, str] = {}
    pending = [root]
    while pending:
        for pid in children.get(pending.pop(), ()):
            if pid not in found and pid != root:
                found[pid] = processes[pid].name
                pending.append(pid)
    return found


def kill_descendants(root: int, *, reaps: bool = False) -> list[str]:
    """Kill all descendants of a process and return their names.

    The search is repeated until nothing is found, because a process may fork meanwhile. Orphans
    become children of `root` if it has called adopt_orphans(). With `reaps`, exit statuses are
    collected. Without it, other code can wait for them.
    """
    killed: dict[int, str] = {}
    deadline = monotonic() + KILL_TIMEOUT
    while monotonic() < deadline:
        processes = list_processes()
        found = find_descendants(root, processes)
        if not found:
            break
        for group in _exclusive_groups(found, processes):
            send_signal(-group, SIGKILL)
        for pid in found:
            send_signal(pid, SIGKILL)
        killed.update(found)
        if reaps:
            reap_children()
    return list(killed.values())


def _exclusive_groups(found: Mapping[int, str], processes: Mapping[int, Process]) -> set[int]:
    """Return the process groups that contain only these processes. Killing a group is atomic."""
    ours = {processes[pid].group for pid in found}
    others = {process.group for pid, process in processes.items() if pid not in found}
    return {group for group in ours - others if group > 1}


def kill_process_group(leader: int) -> None:
    """Kill a process and its process group. Without /proc no other descendants can be found."""
    try:
        os.killpg(leader, SIGKILL)
    except OSError:
        send_signal(leader, SIGKILL)


def reap_children() -> dict[int, int]:
    """Reap the children that have ended and return their exit statuses by pid."""
    killed: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return killed
        if pid == 0:
            return killed
        killed[pid] = status


def close_descriptors_except(keep: Sequence[int]) -> None:
    """Close all descriptors of this process except these."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        numbers = list(range(1024))
    for number in numbers:
        if number not in keep:
            try:
                os.close(number)
            except OSError:
                pass
