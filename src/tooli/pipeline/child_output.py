"""Capture what the child processes of a call write to stdout and stderr, on servers.

The file descriptors of a server belong to all its calls. Therefore a child process gets pipes of
its own, unless the command passes other streams. Only `subprocess`, `asyncio` and `os.system` are
covered. A child process that is started in another way writes to the server's stderr.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock
from codecs import getincrementaldecoder
from select import poll
from threading import Thread

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Write: TypeAlias = Callable[[str], object]
    from tooli.pipeline.stdout_capture import StdoutCapture

    FindCapture: TypeAlias = Callable[[], StdoutCapture | None]


class ChildPipe:
    """A pipe from child processes to a function that takes their text."""

    def __init__(self, write: Write) -> None:
        self._read_fd, self.write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._write = write
        self._lock = allocate_lock()
        self._is_closed = False
        Thread(target=self._read_until_closed, daemon=True, name="tooli-child-output").start()

    def _read_until_closed(self) -> None:
        """Read until the last process has closed the pipe, which may be after the call."""
        poller = poll()
        poller.register(self._read_fd)
        while not self._is_closed:
            poller.poll()
            self.read_available()
        os.close(self._read_fd)

    def read_available(self) -> None:
        """Pass on what the child processes have written so far."""
        with self._lock:
            while not self._is_closed:
                try:
                    data = os.read(self._read_fd, 1 << 16)
                except BlockingIOError:
                    return
                self._is_closed = not data
                self._write(self._decode(data, not data))

    def finish(self) -> None:
        """Read what the child processes have written so far; close this process's end."""
        os.close(self.write_fd)
        self.read_available()


class ChildOutput:
    """The pipes of the child processes of one call. They are opened for the first process."""

    def __init__(self, write: Write, write_error: Write) -> None:
        self._writes = (write, write_error)
        self._pipes: list[ChildPipe | None] = [None, None]
        self._pid = os.getpid()
        self._lock = allocate_lock()

    def descriptor(self, number: int) -> int | None:
        """Return the stdout (0) or the stderr (1) of a child process.

        None in a worker process: its output is not collected here.
        """
        if os.getpid() != self._pid:
            return None
        with self._lock:
            pipe = self._pipes[number]
            if pipe is None:
                pipe = self._pipes[number] = ChildPipe(self._writes[number])
            return pipe.write_fd

    def read_available(self) -> None:
        """Read what the child processes have written to stdout so far."""
        if self._pipes[0] is not None and os.getpid() == self._pid:
            self._pipes[0].read_available()

    def finish(self) -> None:
        """Read what the child processes have written so far, and close the pipes."""
        for pipe in self._pipes:
            if pipe is not None and os.getpid() == self._pid:
                pipe.finish()
        self._pipes = [None, None]


def _make_output(capture: StdoutCapture) -> ChildOutput:
    """Return the pipes of a call. In a worker process, the streams send text to the caller."""
    return ChildOutput(
        getattr(sys.stdout, "forward", None) or capture.write_of_child,
        getattr(sys.stderr, "forward", None) or capture.write_error_of_child,
    )


def route_children(find_capture: FindCapture) -> Callable[[], None]:
    """Give child processes the pipes of the running call; return a function that ends this."""
    module: Any = os
    original_system = module.system

    def system(command: Any) -> int:
        if find_capture() is None:
            return original_system(command)
        from subprocess import call

        code = call(command, shell=True)
        return -code if code < 0 else code << 8

    module.system = system
    restore_popen = _when_imported(lambda popen: _route_popen(popen, find_capture))

    def restore() -> None:
        restore_popen()
        if module.system is system:
            module.system = original_system

    return restore


_STDOUT, _STDERR = 4, 5  # positions among the arguments of Popen, after `self`


def _route_popen(popen: Any, find_capture: FindCapture) -> Callable[[], None]:
    original = popen.__init__

    def init(self: Any, /, *args: Any, **kwargs: Any) -> None:
        capture = find_capture()
        if capture is not None:
            output = capture.children = capture.children or _make_output(capture)
            for number, (name, position) in enumerate((("stdout", _STDOUT), ("stderr", _STDERR))):
                if len(args) <= position and kwargs.get(name) is None:
                    kwargs[name] = output.descriptor(number)
        original(self, *args, **kwargs)

    popen.__init__ = init

    def restore() -> None:
        if popen.__init__ is init:
            popen.__init__ = original

    return restore


def _when_imported(route: Callable[[Any], Callable[[], None]]) -> Callable[[], None]:
    """Call `route` with the class Popen, as soon as `subprocess` is imported.

    A server does not import `subprocess` itself, because that takes longer than its start.
    """
    restores: list[Callable[[], None]] = []
    loaded = sys.modules.get("subprocess")
    if loaded is not None:
        return route(loaded.Popen)

    class SubprocessHook:
        """An import hook that changes Popen when `subprocess` is imported."""

        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> object:
            if name != "subprocess":
                return None
            sys.meta_path.remove(hook)
            specs = (finder.find_spec(name, None) for finder in sys.meta_path)
            spec = next(found for found in specs if found is not None)
            loader: Any = spec.loader
            load = loader.exec_module

            def load_and_route(module: Any) -> None:
                load(module)
                restores.append(route(module.Popen))

            loader.exec_module = load_and_route
            return spec

    hook: Any = SubprocessHook
    sys.meta_path.insert(0, hook)

    def restore() -> None:
        if hook in sys.meta_path:
            sys.meta_path.remove(hook)
        for undo in restores:
            undo()

    return restore
