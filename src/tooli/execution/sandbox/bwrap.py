"""Bubble: bubblewrap, where there is no Landlock: a fresh interpreter that sees what is declared.

    the process of a call ──exec──▶ bwrap ──▶ execution/sandbox/bwrap_main.py: loads the app, runs the tool
                                                │
    caller ◀──────────── the same frames ◀──────┘

What is not bound into its file system is not there, names and sizes included. The app must be
found again from its file or module, and the arguments must be picklable.
"""

from __future__ import annotations

import os
import sys

from tooli.core.call import Runner
from tooli.core.record import Record
from tooli.execution.sandbox import runtime_paths
from tooli.execution.sandbox.landlock import is_below
from tooli.execution.sandbox.syscalls import SandboxUnavailable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

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
"""Where the program is looked for: what the caller puts in its PATH holds nobody."""


class AppEntryPoint(Record):
    """Where an app is to be found again: a file or a module, and its name in there."""

    file: str | None
    module: str | None
    attribute: str


def find_bubblewrap() -> str | None:
    """The program, where there is one; whether it works is seen where it is needed."""
    for folder in BWRAP_DIRS:
        program = os.path.join(folder, "bwrap")
        if os.access(program, os.X_OK):
            return program
    return None


def _check_bwrap(program: str) -> None:
    """Raise NoWalls where the program does not work: containers often forbid what it needs.

    This is the process of a call: nobody else waits meanwhile.
    """
    argv = [program, "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    file_actions = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    _, status = os.waitpid(os.posix_spawn(program, argv, {}, file_actions=file_actions), 0)
    if status:
        raise SandboxUnavailable("bubblewrap (bwrap) is there, but does not work")


def locate_app(state: Any, tool: Tool) -> AppEntryPoint:
    """How the app of a tool is loaded again; raises NoWalls where that cannot be."""
    if tool.has_handles:
        raise SandboxUnavailable("inputs and outputs that the caller names take Landlock")
    if hasattr(tool.fn, "tooli_is_wrapper"):  # the app that is loaded anew has the function itself
        raise SandboxUnavailable("a plan, made or applied, takes Landlock")
    module_globals: dict[str, Any] = state.root.module_globals
    names = [n for n, v in module_globals.items() if getattr(v, "_state", None) is state.root]
    if not names:
        raise SandboxUnavailable("bubblewrap loads the app anew, and it is no name of its module")
    spec = module_globals.get("__spec__")
    if spec is not None and module_globals.get("__name__") != "__main__":
        return AppEntryPoint(None, spec.name, names[0])
    file = module_globals.get("__file__")
    if not file or not os.path.isfile(file):
        raise SandboxUnavailable("bubblewrap loads the app anew, and it is in no file")
    return AppEntryPoint(os.path.abspath(file), None, names[0])


class BubblewrapRunner(Runner):
    """Runs a function in a bubble: the process of the call becomes that."""

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
        self.fallback_runner = (
            fallback_runner  # what there is without bubblewrap, where that is better than nothing
        )
        self.allowance = fallback_runner.allowance
        self.temp_dir = fallback_runner.temp_dir
        self.uses_seccomp = uses_seccomp  # whether system calls are filtered inside, too
        self._creator_pid = os.getpid()

    def run(self, call: Call) -> Any:
        """Comes back only where there is no bubble, and that is no matter: else who takes this
        process's place sends what the function gives."""
        self._exec_bwrap(call)
        return self.fallback_runner.run(call)

    async def arun(self, call: Call) -> Any:
        """The same: a process of its own has no loop yet."""
        self._exec_bwrap(call)
        return await self.fallback_runner.arun(call)

    def _exec_bwrap(self, call: Call) -> None:
        if os.getpid() == self._creator_pid:
            raise RuntimeError("a bubble takes the place of a call's own process, not of the app's")
        from tooli.execution.sandbox.sandbox_runner import build_environment, isolation_error

        try:
            payload_fd = self._write_payload(call)
            _check_bwrap(self.program)
            for number in [int(name) for name in os.listdir("/proc/self/fd")]:
                _set_inheritable(number, number in (0, 1, 2, payload_fd, *self.kept_fds))
            environment = build_environment(
                self.allowance, self.temp_dir
            )  # bwrap itself is seen inside
            os.execve(self.program, self._build_argv(payload_fd), environment)
        except (SandboxUnavailable, OSError, ValueError) as failure:
            if self.fallback_runner.required:
                raise isolation_error(call.tool.name, (str(failure),)) from None
            call.warnings.append(f"not isolated as wanted: {failure}")
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
        """What the interpreter inside has to know, in a file that only it has.

        The arguments are a letter in the letter: their classes may be the app's own, and can be
        read only when that is loaded.
        """
        from tooli.execution.ipc import dumps
        from tooli.pipeline.context import Context

        context_names = [
            name for name, value in call.arguments.items() if isinstance(value, Context)
        ]
        arguments = {n: v for n, v in call.arguments.items() if n not in context_names}
        try:
            call_data = dumps((arguments, call.caller, call.options, call.policy, call.approved))
        except Exception as failure:
            raise SandboxUnavailable(
                f"the arguments cannot be sent into a bubble: {failure}"
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
        """The file system inside, and the rest of what is told to bwrap."""
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
        for path in sorted(
            bind_options, key=len
        ):  # what is further up first: it would cover the rest
            covering = writable_paths if bind_options[path] == "--bind-try" else bind_options
            if any([is_below(path, other) for other in covering if other != path]):
                continue  # it is there already, and may be a link, which nothing can be put on
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
    """Let a descriptor be inherited, or not: what bwrap has open can be reached from inside."""
    try:
        os.set_inheritable(descriptor, inheritable)
    except OSError:  # the one that listed them
        pass


def _interpreter_paths(location: AppEntryPoint) -> Iterable[str]:
    """The program that runs Python, by every link on the way to it; and the file of the app."""
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
