"""Run a command in bubblewrap, on systems without Landlock.

    worker process ──exec──▶ bwrap ──▶ main(): loads the app, runs the tool
                                         │
    caller ◀──────────── frames ◀────────┘

A new interpreter sees only the files that are bound into its file system. Even the names and sizes
of other files are hidden. The app must be importable again, and the arguments must be picklable.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location

from tooli.core import Record
from tooli.core.call import Call, Runner
from tooli.core.declared_capabilities import is_under_any
from tooli.core.peer import Elicit, Peer, Roots, Sample
from tooli.execution.interpreter import isolated_argv
from tooli.execution.ipc import FrameSender, dumps, loads
from tooli.execution.output_relay import is_terminal, wrap_terminal_stream
from tooli.execution.sandbox import runtime_paths
from tooli.execution.sandbox.sandbox_runner import (
    SandboxSupport,
    enter_sandbox,
    isolation_error,
    sandbox_environment,
    sandbox_setup_error,
)
from tooli.execution.sandbox.syscalls import SandboxUnavailable
from tooli.execution.worker import ForwardedStream, Worker, select_codec
from tooli.pipeline.context import Context, make_injected
from tooli.pipeline.drivers import invoke
from tooli.pipeline.question_routing import route_questions
from tooli.pipeline.typer_calls import RoutedCall

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any, TypedDict

    from tooli.core import AppState
    from tooli.core.declared_capabilities import AllowedAccess
    from tooli.core.protocols import App, JsonObject
    from tooli.core.tool import Tool
    from tooli.execution.sandbox.sandbox_runner import SandboxRunner

    class Payload(TypedDict):
        """The call, for the program in bubblewrap."""

        sys_path: list[str]
        app: AppEntryPoint
        tool: str
        call: bytes  # arguments, caller, options, policy and approval
        injected: list[str]  # parameters whose values are made again
        given: frozenset[str] | None  # arguments of the caller, if Typer runs the callbacks
        meta: JsonObject | None
        peer: Peer | None
        forwarded_streams: list[str]  # "stdout" and "stderr", if the caller has replaced them
        terminal_streams: list[str]  # those whose text is shown on a terminal
        runner: InnerSandboxRunner


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
    try:
        pid = os.posix_spawn(program, argv, {}, file_actions=file_actions)
    except OSError as error:
        if error.errno not in (errno.ENOEXEC, errno.EACCES, errno.ENOENT):
            raise
        raise SandboxUnavailable(f"bubblewrap (bwrap) cannot start: {error.strerror}") from None
    if os.waitpid(pid, 0)[1]:
        raise SandboxUnavailable("bubblewrap (bwrap) is installed but does not work")


def locate_app(state: AppState, tool: Tool) -> AppEntryPoint:
    """Return where to import the app of a tool from, or raise SandboxUnavailable."""
    if tool.has_handles:
        raise SandboxUnavailable("files that are passed as inputs or outputs need Landlock")
    _check_function(state, tool)
    module_globals = state.root.module_globals
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


def _check_function(state: AppState, tool: Tool) -> None:
    """Raise SandboxUnavailable if the new interpreter would run another function than this one."""
    assert state.root.app is not None
    found = state.root.app.find(tool.key)
    fn = vars(tool.fn)["__wrapped__"] if isinstance(tool.fn, RoutedCall) else tool.fn
    if found is not None and found.fn is fn:
        return
    if found is not None and found.route is not None and tool.route is None:
        raise SandboxUnavailable(
            "the callbacks of the app have run already, and bubblewrap starts the app again"
        )
    raise SandboxUnavailable("plans, and functions that a stage replaces, need Landlock")


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
        self.access = fallback_runner.access
        self.temp_dir = fallback_runner.temp_dir
        self.uses_seccomp = uses_seccomp  # also filter system calls inside bubblewrap
        self._creator_pid = os.getpid()

    def process_started(self) -> None:
        """Note that `process_ended` will clean up."""
        self.fallback_runner.process_started()

    def process_ended(self) -> None:
        """Clean up after the call."""
        self.fallback_runner.process_ended()

    def run(self, call: Call) -> Any:
        """Replace the process with bubblewrap.

        If bubblewrap does not work and isolation is optional, run the call without it.
        """
        self._exec_bwrap(call)
        return self.fallback_runner.run(call)

    def _exec_bwrap(self, call: Call) -> None:
        if os.getpid() == self._creator_pid:
            raise RuntimeError(
                "bubblewrap must replace a worker process, not the process of the app"
            )
        try:
            _check_bwrap(self.program)
        except SandboxUnavailable as failure:
            if self.fallback_runner.required:
                raise isolation_error(call.tool.name, (str(failure),)) from None
            call.warnings.append(f"not isolated: {failure}")
            self.fallback_runner.kept_fds = self.kept_fds
            return
        except OSError as failure:
            raise sandbox_setup_error(call.tool.name, failure) from None
        try:
            payload_fd = self._write_payload(call)
            for number in [int(name) for name in os.listdir("/proc/self/fd")]:
                _set_inheritable(number, number in (0, 1, 2, payload_fd, *self.kept_fds))
            # The sandboxed process can read the environment of bwrap itself.
            environment = sandbox_environment(self.access, self.temp_dir)
            os.execve(self.program, self._build_argv(payload_fd), environment)
        except Exception as failure:
            raise sandbox_setup_error(call.tool.name, failure) from None

    def _build_argv(self, payload_fd: int) -> list[str]:
        return [
            self.program,
            *self._build_bind_args(),
            "--",
            *isolated_argv("from tooli.execution.sandbox.bwrap import main; main()"),
            str(payload_fd),
        ]

    def _write_payload(self, call: Call) -> int:
        """Write the call to a memory file that the new process inherits; return its descriptor.

        The arguments are encoded separately, because their classes can be found only after the app
        is imported.
        """
        if call.tool.has_dependencies or call.tool.lifespans:
            reason = "dependencies and lifespans cannot be passed to bubblewrap"
            raise SandboxUnavailable(reason)
        injected = [
            param.name
            for param in call.tool.params
            if param.kind == "injected"
            # on a command line, a `typer.Context` is Typer's own
            and (isinstance(call.arguments[param.name], Context) or not call.caller.owns_process)
        ]
        arguments = {n: v for n, v in call.arguments.items() if n not in injected}
        fn = call.tool.fn
        options = call.options.replace(typed=None)  # the calling process presents the outcome
        try:
            call_data = dumps((arguments, call.caller, options, call.policy, call.approved))
        except Exception as failure:
            raise SandboxUnavailable(
                f"the arguments cannot be passed to bubblewrap: {failure}"
            ) from None
        runner = InnerSandboxRunner(self.access, self.temp_dir, self.uses_seccomp)
        runner.kept_fds = self.kept_fds
        payload: Payload = {
            "sys_path": [os.path.abspath(entry) for entry in sys.path],
            "app": self.location,
            "tool": call.tool.key,
            "call": call_data,
            "injected": injected,
            "given": fn.given if isinstance(fn, RoutedCall) else None,
            "meta": None if call.meta is None else dict(call.meta),
            "peer": None if call.peer is None else _PassedPeer(call.peer),
            "forwarded_streams": [
                name
                for name in ("stdout", "stderr")
                if isinstance(getattr(sys, name), ForwardedStream)
            ],
            "terminal_streams": [
                name for name in ("stdout", "stderr") if is_terminal(getattr(sys, name))
            ],
            "runner": runner,
        }
        payload_fd = os.memfd_create("tooli")
        os.write(payload_fd, dumps(payload))
        os.lseek(payload_fd, 0, 0)
        return payload_fd

    def _build_bind_args(self) -> list[str]:
        """Return the arguments of bwrap that define the file system inside."""
        access = self.access
        bind_options: dict[str, str] = {}
        found = runtime_paths.find_readable_paths(access)
        for path in (
            *found.system,
            *found.code,
            *_interpreter_paths(self.location),
        ):
            bind_options[os.path.abspath(path)] = "--ro-bind-try"
        writable = runtime_paths.writable_paths(access)
        for path in runtime_paths.find_programs(writable) if access.spawns else ():
            bind_options[os.path.abspath(path)] = "--ro-bind-try"
        for path in ("/",) if access.reads is None else access.reads:
            bind_options[path] = "--ro-bind-try"
        for paths in (access.writes, access.deletes):
            for path in ("/",) if paths is None else paths:
                bind_options[path] = "--bind-try"
        argv = ["--unshare-all", "--die-with-parent", "--new-session"]
        argv += ["--share-net"] * access.net
        writable_paths = [path for path, option in bind_options.items() if option == "--bind-try"]
        # Parents come first. A parent that is bound later would hide its children.
        for path in sorted(bind_options, key=len):
            covering = writable_paths if bind_options[path] == "--bind-try" else bind_options
            if is_under_any(path, tuple([other for other in covering if other != path])):
                continue  # bound with its parent; bwrap cannot bind over a link
            if not path.startswith(("/proc/", "/dev/", "/sys/")):
                argv += [bind_options[path], path, path]
        for path in runtime_paths.find_kernel_dirs() if writable_paths else ():
            is_bound_writable = is_under_any(path, tuple(writable_paths))
            if is_bound_writable and path not in (*bind_options, "/proc", "/dev"):
                argv += ["--ro-bind-try", path, path]
        argv += ["--proc", "/proc", "--dev", "/dev", "--bind", self.temp_dir, self.temp_dir]
        for path in access.denied:
            if os.path.isdir(path):
                argv += ["--tmpfs", path]
            elif os.path.exists(path):
                argv += ["--ro-bind", os.devnull, path]
        if "/" not in bind_options:
            argv += ["--remount-ro", "/"]  # folders above the bound paths, which exist only inside
        return [*argv, "--chdir", self._working_dir(bind_options)]

    def _working_dir(self, visible_paths: Iterable[str]) -> str:
        cwd = os.getcwd()
        return cwd if is_under_any(cwd, tuple(visible_paths)) else self.temp_dir


def _set_inheritable(descriptor: int, inheritable: bool) -> None:
    """Set whether bwrap, and thus the sandboxed process, inherits a descriptor."""
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
    yield from runtime_paths.find_libpython()
    if location.file is not None:
        yield location.file


# ------------------------------------------------------------------ the program in bubblewrap

ENFORCEMENT_LEVEL = "bwrap"


class InnerSandboxRunner(Runner):
    """Enters the sandbox inside bubblewrap, without Landlock, and runs the function."""

    needs_own_process = True

    def __init__(self, access: AllowedAccess, temp_dir: str, uses_seccomp: bool) -> None:
        super().__init__()
        self.access = access
        self.temp_dir = temp_dir
        self.uses_seccomp = uses_seccomp

    def run(self, call: Call) -> Any:
        """Run the call and return its value."""
        enter_sandbox(
            self.access, SandboxSupport(0, self.uses_seccomp), self.kept_fds, self.temp_dir
        )
        if call.meta is not None:
            call.meta["enforcement"] = ENFORCEMENT_LEVEL
        return invoke(call.replace(runner=None))


class _PassedPeer(Peer):
    """The client of the call. Inside bubblewrap only its supported requests are known."""

    def __init__(self, peer: Peer) -> None:
        methods = [question.method for question in (Elicit, Sample, Roots)]
        self._methods = [method for method in methods if peer.supports(method)]

    def supports(self, method: str) -> bool:
        return method in self._methods


def main() -> None:
    """Read the payload, run the tool and end the process."""
    with os.fdopen(int(sys.argv[1]), "rb") as file:
        payload: Payload = loads(file.read())
    sys.path[:] = payload["sys_path"]
    runner = payload["runner"]
    data_fd, answer_fd, cancel_fd = runner.kept_fds
    try:
        call = _build_call(payload)
        if call.caller.is_remote:
            route_questions()
        worker = Worker(call, runner, data_fd, answer_fd, cancel_fd)
        for name in payload["forwarded_streams"]:
            setattr(sys, name, ForwardedStream(name, worker.send))
        for name in payload["terminal_streams"]:
            wrap_terminal_stream(name)
        worker.run_call()
    except BaseException as failure:
        codec = select_codec(runner)
        FrameSender(data_fd, codec).send("error", codec.pack_error(failure))
    finally:
        os._exit(0)


def _build_call(payload: Payload) -> Call:
    """Return the call that the payload describes."""
    app: App = getattr(load_app_module(payload["app"]), payload["app"].attribute)
    tool = app.find(payload["tool"])
    assert tool is not None
    try:  # unpickle after the app has defined the classes of the arguments
        arguments, caller, options, policy, approved = loads(payload["call"])
    except Exception as failure:
        reason = f"the arguments cannot be unpacked in bubblewrap: {failure}"
        raise isolation_error(tool.name, (reason,)) from None
    call = Call(
        tool,
        arguments,
        caller,
        [],
        options,
        policy,
        approved,
        meta=payload["meta"],
        peer=payload["peer"],
    )
    for param in tool.params:
        if param.name in payload["injected"]:
            arguments[param.name] = make_injected(param, call)
    if payload["given"] is not None:
        call = call.replace(tool=tool.replace(fn=RoutedCall(call, payload["given"])))
    return call


def load_app_module(location: AppEntryPoint) -> ModuleType:
    """Import the module of the app. A script becomes `__main__`, where pickle finds its classes."""
    if location.module is not None:
        return import_module(location.module)
    assert location.file is not None
    spec = spec_from_file_location("__tooli_main__", location.file)
    assert spec is not None and spec.loader is not None
    module = sys.modules["__tooli_main__"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["__main__"] = module
    return module
