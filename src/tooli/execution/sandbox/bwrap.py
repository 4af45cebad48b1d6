"""Run a command in bubblewrap, on systems without Landlock.

    worker process ──exec──▶ bwrap ──▶ bwrap_main.py: loads the app, runs the tool
                                         │
    caller ◀──────────── frames ◀────────┘

A new interpreter sees only the files that are bound into its file system. Even the names and sizes
of other files are hidden. The app must be importable again, and the arguments must be picklable.
"""

from __future__ import annotations

import os
import sys

from tooli.core.call import Runner
from tooli.core.record import Record
from tooli.execution.ipc import dumps
from tooli.execution.sandbox import runtime_paths
from tooli.execution.sandbox.landlock import is_below
from tooli.execution.sandbox.sandbox_runner import build_environment, isolation_error
from tooli.execution.sandbox.syscalls import SandboxUnavailable
from tooli.pipeline.context import Context

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tooli.core.app_state import AppState
    from tooli.core.call import Call
    from tooli.core.tool import Tool
    from tooli.execution.sandbox.sandbox_runner import SandboxRunner

BWRAP_DIRS = (
    "/usr/bin",
    "/bin",
    "/usr/local/bin",
    "/run/wrappers/bin",
    "/run/current-system/sw/bin",
)
"""Folders that are searched for bwrap. PATH is not used, because the caller can set it."""


class AppEntryPoint(Record):
    """The file or module to import an app from, and the name of its global variable there."""

    file: str | None
    module: str | None
    attribute: str


def find_bubblewrap() -> str | None:
    """Return the path of bwrap, or None if it is not installed. It may still not work."""
    for folder in BWRAP_DIRS:
        program = os.path.join(folder, "bwrap")
        if os.access(program, os.X_OK):
            return program
    return None


def _check_bwrap(program: str) -> None:
    """Raise SandboxUnavailable if bwrap does not work, as in many containers.

    It runs in the worker process, so no other call waits for it.
    """
    argv = [program, "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    file_actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    _, status = os.waitpid(os.posix_spawn(program, argv, {}, file_actions=file_actions), 0)
    if status:
        raise SandboxUnavailable("bubblewrap (bwrap) is installed but does not work")


def locate_app(state: AppState, tool: Tool) -> AppEntryPoint:
    """Return where to import the app of a tool from, or raise SandboxUnavailable."""
    if tool.has_handles:
        raise SandboxUnavailable("files that are passed as inputs or outputs need Landlock")
    if hasattr(tool.fn, "tooli_is_wrapper"):  # a new import would find the original function
        raise SandboxUnavailable("plans need Landlock")
    module_globals: dict[str, Any] = state.root.module_globals
    names = [n for n, v in module_globals.items() if getattr(v, "_state", None) is state.root]
    if not names:
        raise SandboxUnavailable(
            "bubblewrap imports the app again, but the app is not a global of its module"
        )
    spec = module_globals.get("__spec__")
    if spec is not None and module_globals.get("__name__") != "__main__":
        return AppEntryPoint(None, spec.name, names[0])
    file = module_globals.get("__file__")
    if not file or not os.path.isfile(file):
        raise SandboxUnavailable("bubblewrap imports the app again, but the app is not in a file")
    return AppEntryPoint(os.path.abspath(file), None, names[0])


class BubblewrapRunner(Runner):
    """Runs a function in bubblewrap, which replaces the worker process."""

    needs_own_process = True

    def __init__(
        self,
        program: str,
        location: AppEntryPoint,
        fallback_runner: SandboxRunner,
        uses_seccomp: bool,
    ) -> None:
        super().__init__(fallback_runner)
        assert fallback_runner.temp_dir is not None
        self.program = program
        self.location = location
        # Runs the call if bubblewrap does not work and isolation is optional.
        self.fallback_runner = fallback_runner
        self.allowance = fallback_runner.allowance
        self.temp_dir = fallback_runner.temp_dir
        self.uses_seccomp = uses_seccomp  # filter system calls inside as well
        self._creator_pid = os.getpid()

    def run(self, call: Call) -> Any:
        """Replace the process with bubblewrap.

        If bubblewrap does not work and isolation is optional, run the call without it.
        """
        self._exec_bwrap(call)
        return self.fallback_runner.run(call)

    async def arun(self, call: Call) -> Any:
        """Replace the process, as run() does."""
        self._exec_bwrap(call)
        return await self.fallback_runner.arun(call)

    def _exec_bwrap(self, call: Call) -> None:
        if os.getpid() == self._creator_pid:
            raise RuntimeError(
                "bubblewrap must replace a worker process, not the process of the app"
            )
        try:
            payload_fd = self._write_payload(call)
            _check_bwrap(self.program)
            for number in [int(name) for name in os.listdir("/proc/self/fd")]:
                _set_inheritable(number, number in (0, 1, 2, payload_fd, *self.kept_fds))
            # The environment of bwrap itself is visible inside.
            environment = build_environment(self.allowance, self.temp_dir)
            os.execve(self.program, self._build_argv(payload_fd), environment)
        except (SandboxUnavailable, OSError, ValueError) as failure:
            if self.fallback_runner.required:
                raise isolation_error(call.tool.name, (str(failure),)) from None
            call.warnings.append(f"not isolated: {failure}")
            self.fallback_runner.kept_fds = self.kept_fds

    def _build_argv(self, payload_fd: int) -> list[str]:
        start = "from tooli.execution.sandbox.bwrap_main import main; main()"
        return [
            self.program,
            *self._build_bind_args(),
            "--",
            sys.executable,
            "-c",
            start,
            str(payload_fd),
        ]

    def _write_payload(self, call: Call) -> int:
        """Write the call to a memory file that the new process inherits; return its descriptor.

        The arguments are encoded separately, because their classes can be found only after the app
        is imported.
        """
        context_names = [
            name for name, value in call.arguments.items() if isinstance(value, Context)
        ]
        arguments = {n: v for n, v in call.arguments.items() if n not in context_names}
        try:
            call_data = dumps((arguments, call.caller, call.options, call.policy, call.approved))
        except Exception as failure:
            raise SandboxUnavailable(
                f"the arguments cannot be passed to bubblewrap: {failure}"
            ) from None
        data = dumps(
            {
                "path": [os.path.abspath(entry) for entry in sys.path],
                "entry": self.location,
                "tool": call.tool.key,
                "call": call_data,
                "meta": None if call.meta is None else dict(call.meta),
                "context": context_names,
                "peer": call.peer is not None,
                "sent": [
                    n
                    for n in ("stdout", "stderr")
                    if type(getattr(sys, n)).__name__ == "ForwardedStream"
                ],
                "keeps": self.kept_fds,
                "room": self.temp_dir,
                "allowance": self.allowance,
                "filters": self.uses_seccomp,
            }
        )
        payload_fd = os.memfd_create("tooli")
        os.write(payload_fd, data)
        os.lseek(payload_fd, 0, 0)
        return payload_fd

    def _build_bind_args(self) -> list[str]:
        """Return the arguments of bwrap that define the file system inside."""
        allowance = self.allowance
        bind_options: dict[str, str] = {}
        for path in (
            *runtime_paths.find_readable_paths(allowance.net)[0],
            *_interpreter_paths(self.location),
        ):
            bind_options[os.path.abspath(path)] = "--ro-bind-try"
        for path in runtime_paths.find_programs() if allowance.spawns else ():
            bind_options[os.path.abspath(path)] = "--ro-bind-try"
        for path in ("/",) if allowance.reads is None else allowance.reads:
            bind_options[path] = "--ro-bind-try"
        for paths in (allowance.writes, allowance.deletes):
            for path in ("/",) if paths is None else paths:
                bind_options[path] = "--bind-try"
        argv = ["--unshare-all", "--die-with-parent", "--new-session"]
        argv += ["--share-net"] * allowance.net
        writable_paths = [path for path, option in bind_options.items() if option == "--bind-try"]
        # Parents come first. A parent that is bound later would hide its children.
        for path in sorted(bind_options, key=len):
            covering = writable_paths if bind_options[path] == "--bind-try" else bind_options
            if any([is_below(path, other) for other in covering if other != path]):
                continue  # inside another bound path; bwrap cannot bind over a link
            if not path.startswith(("/proc/", "/dev/", "/sys/")):
                argv += [bind_options[path], path, path]
        argv += ["--proc", "/proc", "--dev", "/dev", "--bind", self.temp_dir, self.temp_dir]
        for path in allowance.denied:
            if os.path.isdir(path):
                argv += ["--tmpfs", path]
            elif os.path.exists(path):
                argv += ["--ro-bind", os.devnull, path]
        return [*argv, "--chdir", self._working_dir(bind_options)]

    def _working_dir(self, visible_paths: Iterable[str]) -> str:
        cwd = os.getcwd()
        return cwd if any([is_below(cwd, path) for path in visible_paths]) else self.temp_dir


def _set_inheritable(descriptor: int, inheritable: bool) -> None:
    """Set whether bwrap inherits a descriptor. Processes inside can use what bwrap has open."""
    try:
        os.set_inheritable(descriptor, inheritable)
    except OSError:  # the descriptor that os.listdir() used, which is closed by now
        pass


def _interpreter_paths(location: AppEntryPoint) -> Iterable[str]:
    """Yield the Python executable, every link on the way to it, libpython and the app's file."""
    path = sys.executable
    for _ in range(20):
        yield path
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    lib_dir = os.path.join(sys.base_prefix, "lib")
    try:
        for name in os.listdir(lib_dir):
            if name.startswith("libpython"):
                yield os.path.join(lib_dir, name)
    except OSError:
        pass
    if location.file is not None:
        yield location.file
