"""Processes: fork safely, send signals, kill the descendants of a process, supervise a worker.

    caller ── control ──▶ supervisor ── fork ──▶ worker and its descendants
    caller ◀── report ─── supervisor ◀── adopts their orphans

Systems other than Linux support only some of this.
"""

from __future__ import annotations

import _frozen_importlib
import _io
import gc
import os
import select
import sys
from _thread import allocate_lock, get_ident
from marshal import dumps
from time import monotonic

TYPE_CHECKING = False

if TYPE_CHECKING:
    import signal as signals
    from _thread import LockType
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import FrameType
    from typing import Any, NoReturn, TypeAlias, TypedDict

    from typing_extensions import NotRequired

    from tooli.execution.worker import Worker

    SignalHandler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None

    class SupervisorReport(TypedDict):
        """What the supervisor reports at the end of a call."""

        status: int | None  # of the worker, as os.waitpid() returns it
        timed_out: bool
        killed: list[str]  # names of the processes that were killed
        error: NotRequired[str]  # why the supervisor itself failed
else:
    # The C part of `signal`. The Python part imports enum, which is slow.
    try:
        import _signal as signals
    except ImportError:
        import signal as signals

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
    return load_prctl()(option, value) == 0


def load_prctl() -> Callable[[int, int], int]:
    """Return a function that calls prctl; without prctl it returns -1."""
    found = load_c_function("prctl")

    def call(option: int, value: int) -> int:
        return found(option, value, 0, 0, 0)

    return call


_c_functions: dict[str, Callable[..., int]] = {}


def load_c_function(name: str) -> Callable[..., int]:
    """Return a function of the C library that takes numbers; one that returns -1 if it is missing.

    `_ctypes` takes a tenth of the time of `ctypes` to import.
    """
    if name not in _c_functions:
        try:
            native: Any = __import__("_ctypes")
            address = native.dlsym(native.dlopen(None, 0), name)
            _c_functions[name] = lambda *values: native.call_cdeclfunction(address, values)
        except (ImportError, AttributeError, OSError):
            _c_functions[name] = lambda *values: -1
    return _c_functions[name]


def send_signal(pid: int, number: int) -> bool:
    """Send a signal; False if that fails, for example because the process does not exist."""
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
    become children of `root` if it has called adopt_orphans(). With `reaps`, ended children are
    reaped. Otherwise their exit statuses are left to other code.
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
    statuses: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except OSError:
            return statuses
        if pid == 0:
            return statuses
        statuses[pid] = status


def is_readable(fd: int, timeout: float = 0.0) -> bool:
    """True if a descriptor can be read, or its other end is closed, within `timeout` seconds."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(timeout * 1000))


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


# ------------------------------------------------------------------ fork

open_pipe_ends: set[int] = set()
"""Pipe ends of running calls. A new child process closes them (reset_after_fork)."""
_fork_locks = [allocate_lock()]


def fork_lock() -> LockType:
    """Return the lock that is held while pipes are opened and the process forks."""
    return _fork_locks[0]


def fork() -> int:
    """Fork without Python's warning about threads (docs/timeouts.md explains why it is safe)."""
    if sys.version_info < (3, 12):
        return os.fork()
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def open_pipes(output_count: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Open five pipes and return the ends of the caller, and those of the child processes.

    Both are in the order data, answer, cancel, report, control, and then one pipe for each output
    that is relayed. All descriptors are 3 or higher, so none is taken for a standard stream.
    """
    ends: list[int] = []
    try:
        for _ in range(5 + output_count):
            ends.extend(os.pipe())
        for i, end in enumerate(ends):
            if end < 3:  # a standard stream was closed
                from fcntl import F_DUPFD_CLOEXEC, fcntl

                ends[i] = fcntl(end, F_DUPFD_CLOEXEC, 3)
                os.close(end)
    except OSError:
        for opened in ends:
            os.close(opened)
        raise
    data, answer, cancel, report, control, *outputs = zip(ends[::2], ends[1::2], strict=True)
    caller_ends = (data[0], answer[1], cancel[1], report[0], control[1])
    child_ends = (data[1], answer[0], cancel[0], report[1], control[0])
    return (
        (*caller_ends, *[read_end for read_end, _ in outputs]),
        (*child_ends, *[write_end for _, write_end in outputs]),
    )


def reset_after_fork(pipe_ends: Sequence[int]) -> None:
    """Close inherited pipe ends and reset the lock in a forked process."""
    for fd in (*open_pipe_ends, *pipe_ends):
        os.close(fd)
    open_pipe_ends.clear()
    _fork_locks[0] = allocate_lock()
    discard_unfinished_imports()


def discard_unfinished_imports() -> None:
    """Discard the modules that other threads of the parent process were importing.

    These threads do not exist in a forked process. An import of such a module would wait for them
    forever; after this it starts again.
    """
    module_locks: dict[str, Any] = getattr(_frozen_importlib, "_module_locks", {})
    for name, reference in tuple(module_locks.items()):
        lock = reference()
        if lock is None or lock.owner in (None, get_ident()):
            continue
        module_locks.pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            sys.modules.pop(name, None)


def flush_output(*, includes_files: bool) -> None:
    """Flush stdout and stderr, and with `includes_files` all open files."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    if includes_files:
        flush_open_files()


def flush_open_files() -> None:
    """Flush open files, so that buffered data is neither lost nor written twice after a fork."""
    file_types = (_io.TextIOWrapper, _io.BufferedWriter, _io.BufferedRandom)
    for file in gc.get_objects():
        if type(file) in file_types:
            try:
                if not file.closed and file.writable():
                    file.flush()
            except (OSError, ValueError):
                pass


# ------------------------------------------------------------------ supervisor

TERM_GRACE_SECONDS = 0.3
"""Seconds between SIGTERM and SIGKILL."""
LIVENESS_INTERVAL, REAP_INTERVAL = 0.5, 0.02
"""Maximum seconds between two checks of the caller and the worker: with pidfd, and without it.

With pidfd the supervisor also wakes up when the worker ends.
"""
EMPTY_REPORT: SupervisorReport = {"status": None, "timed_out": False, "killed": []}
"""The report that is assumed if the supervisor sent none."""
INTERRUPT_FORWARD_DELAY = 0.05
"""Seconds before an interrupt of the caller is forwarded to the worker.

The terminal usually sends SIGINT to the worker itself within this time.
"""


class Supervisor:
    """Supervises one worker process until it and its descendants have ended.

    It runs in a small process between the caller and the worker. This process adopts orphans, so it
    finds every descendant of the worker. If the caller is killed, it ends the worker and then
    itself. It runs no code of the app and imports nothing after the fork, because another thread of
    the caller may have held an import lock. Without /proc it can only kill the process group of the
    worker.
    """

    def __init__(self, worker_pid: int, parent: int, control: int, deadline: float | None) -> None:
        self.worker_pid = worker_pid
        self.parent = parent
        self.control = control
        self.deadline = deadline  # when the worker must have ended
        self.kills_orphans = False  # also kill what the worker leaves when it ends by itself
        self.has_timed_out = False
        self.kill_at: float | None = None  # when to send SIGKILL, after SIGTERM
        self.forward_interrupt_at: float | None = None  # when to forward an interrupt of the caller
        self.is_interrupted = False  # the terminal has sent SIGINT to the whole group
        self.status: int | None = None

    def note_interrupt(self, *_: object) -> None:
        """Note that the terminal has sent SIGINT, which the worker has received as well."""
        self.is_interrupted = True

    def supervise(self) -> SupervisorReport:
        """Wait until the worker has ended or was killed, and return the report."""
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        pidfd = _open_pidfd(self.worker_pid)
        if pidfd is not None:
            poller.register(pidfd, select.POLLIN)
        while True:
            events = poller.poll(self._poll_timeout(pidfd is not None) * 1000)
            reaped = reap_children()
            if self.worker_pid in reaped:
                self.status = reaped[self.worker_pid]
                break
            if any(fd == self.control for fd, _ in events):
                self._handle_control()
            if self._check_due():
                break
        must_kill = self.kill_at is not None or (self.kills_orphans and _has_children())
        killed = self._kill_all() if must_kill else []
        return {"status": self.status, "timed_out": self.has_timed_out, "killed": killed}

    def _poll_timeout(self, has_pidfd: bool) -> float:
        times = [
            t for t in (self.deadline, self.kill_at, self.forward_interrupt_at) if t is not None
        ]
        now = monotonic()
        return max(
            0.0, min([LIVENESS_INTERVAL if has_pidfd else REAP_INTERVAL, *[t - now for t in times]])
        )

    def _handle_control(self) -> None:
        """Handle commands of the caller; end of file means that the caller has ended."""
        command = os.read(self.control, 64)
        if b"i" in command and self.forward_interrupt_at is None:
            self.forward_interrupt_at = monotonic() + INTERRUPT_FORWARD_DELAY
        if b"s" in command or not command:
            self._request_stop()

    def _check_due(self) -> bool:
        """Forward interrupts and enforce the deadline; return True if it is time for SIGKILL."""
        now = monotonic()
        if self.forward_interrupt_at is not None and now >= self.forward_interrupt_at:
            if not self.is_interrupted:
                send_signal(self.worker_pid, SIGINT)
            self.is_interrupted, self.forward_interrupt_at = False, None
        if self.deadline is not None and now >= self.deadline:
            self.deadline, self.has_timed_out = None, True
            self._request_stop()
        if os.getppid() != self.parent:
            self._request_stop()
        return self.kill_at is not None and monotonic() >= self.kill_at

    def _request_stop(self) -> None:
        if self.kill_at is None:
            send_signal(self.worker_pid, SIGTERM)
            self.kill_at = monotonic() + TERM_GRACE_SECONDS

    def _kill_all(self) -> list[str]:
        """Kill the worker and its descendants; return the names of killed processes."""
        if self.status is None and not os.path.exists("/proc/self/stat"):
            kill_process_group(self.worker_pid)
        elif self.status is None:
            send_signal(self.worker_pid, SIGKILL)
        return kill_descendants(os.getpid(), reaps=True)


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _open_pidfd(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends, if the system has one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _send_report(fd: int, report: Any) -> None:
    os.write(fd, dumps(report))


def run_supervisor(
    worker: Worker,
    caller_pid: int,
    caller_ends: Sequence[int],
    control_fd: int,
    report_fd: int,
    deadline: float | None,
    signal_mask: Iterable[int],
) -> NoReturn:
    """Fork the worker and supervise it; does not return.

    Args:
        worker: Runs the call in the forked process.
        caller_pid: The process that waits for the result.
        caller_ends: Descriptors of the pipes that belong to the caller.
        control_fd: Commands of the caller are read from it.
        report_fd: The report is written to it.
        deadline: When the worker must have ended (monotonic clock).
        signal_mask: The signal mask to restore.
    """
    try:
        reset_after_fork(caller_ends)
        signals.set_wakeup_fd(-1)
        adopt_orphans()
        own_pid = os.getpid()
        # If the app ignores SIGCHLD, the kernel discards exit statuses.
        previous_handler = signals.signal(signals.SIGCHLD, signals.SIG_DFL)
        worker_pid = os.fork()
        if worker_pid == 0:
            signals.signal(
                signals.SIGCHLD, signals.SIG_DFL if previous_handler is None else previous_handler
            )
            os.close(control_fd)
            os.close(report_fd)
            worker.run_and_exit(own_pid, signal_mask)  # does not return
        supervisor = Supervisor(worker_pid, caller_pid, control_fd, deadline)
        supervisor.kills_orphans = worker.is_sandboxed
        signals.signal(
            SIGINT, signals.SIG_IGN if worker.has_own_session else supervisor.note_interrupt
        )
        for number in (1, 3, SIGTERM, 13, 14):
            signals.signal(number, signals.SIG_IGN)
        close_descriptors_except((control_fd, report_fd))
        signals.pthread_sigmask(signals.SIG_SETMASK, signal_mask)
        _send_report(report_fd, supervisor.supervise())
    except BaseException as failure:
        reason = str(failure) or type(failure).__name__
        _send_report(report_fd, {**EMPTY_REPORT, "error": reason})
    finally:
        os._exit(0)
