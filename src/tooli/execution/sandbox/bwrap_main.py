"""The program that runs in bubblewrap: load the app again and run one tool.

The payload names the tool. Results are sent in frames, as from any worker (execution/worker.py).
"""

from __future__ import annotations

import os
import sys

from tooli.core.call import Call, Runner
from tooli.core.peer import Peer
from tooli.execution.ipc import FrameSender, enable_safe_codec, loads, pack_error
from tooli.execution.sandbox.sandbox_runner import SandboxSupport, enter_sandbox, isolation_error
from tooli.execution.worker import ForwardedStream, Worker
from tooli.pipeline.context import Context
from tooli.pipeline.drivers import invoke

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.core.declared_capabilities import AllowedAccess
    from tooli.execution.sandbox.bwrap import AppEntryPoint

ENFORCEMENT_LEVEL = "bwrap"


class InnerSandboxRunner(Runner):
    """Enters the sandbox inside bubblewrap, without Landlock, and runs the function."""

    needs_own_process = True

    def __init__(self, allowance: AllowedAccess, temp_dir: str, uses_seccomp: bool) -> None:
        super().__init__()
        self.allowance = allowance
        self.temp_dir = temp_dir
        self.uses_seccomp = uses_seccomp

    def run(self, call: Call) -> Any:
        """Run the call and return its value."""
        enter_sandbox(
            self.allowance, SandboxSupport(0, self.uses_seccomp), self.kept_fds, self.temp_dir
        )
        if call.meta is not None:
            call.meta["enforcement"] = ENFORCEMENT_LEVEL
        return invoke(call.replace(runner=None))


def main() -> None:
    """Read the payload, run the tool and end the process."""
    payload_fd = int(sys.argv[1])
    with os.fdopen(payload_fd, "rb") as file:
        data = file.read()
    payload: dict[str, Any] = loads(data)
    sys.path[:] = payload["path"]
    data_fd, answer_fd = payload["keeps"]
    runner = InnerSandboxRunner(payload["allowance"], payload["room"], payload["filters"])
    worker: Any = None
    try:
        call = _build_call(payload)
        worker = Worker(call, runner, data_fd, answer_fd, None)
        for name in payload["sent"]:
            setattr(sys, name, ForwardedStream(name, worker.send))
        worker._run_call()
    except BaseException as failure:
        _send_error(data_fd, worker, failure)
    finally:
        os._exit(0)


def _build_call(payload: dict[str, Any]) -> Call:
    """Return the call that the payload describes."""
    app = getattr(load_app_module(payload["entry"]), payload["entry"].attribute)
    tool = app.find(payload["tool"])
    arguments, caller, options, policy, approved = _load_arguments(payload["call"], tool.name)
    call = Call(
        tool,
        arguments,
        caller,
        [],
        options,
        policy,
        approved,
        meta=payload["meta"],
        peer=Peer() if payload["peer"] else None,
    )
    for name in payload["context"]:
        arguments[name] = Context(call)
    return call


def _load_arguments(data: bytes, name: str) -> Any:
    """Unpack the arguments, after the app has defined their classes."""
    try:
        return loads(data)
    except Exception as failure:
        reason = f"the arguments cannot be unpacked in bubblewrap: {failure}"
        raise isolation_error(name, (reason,)) from None


def load_app_module(location: AppEntryPoint) -> Any:
    """Import the module of the app. A script becomes `__main__`, where pickle finds its classes."""
    import importlib
    from importlib.util import module_from_spec, spec_from_file_location

    if location.module is not None:
        return importlib.import_module(location.module)
    assert location.file is not None
    spec = spec_from_file_location("__tooli_main__", location.file)
    assert spec is not None and spec.loader is not None
    module = sys.modules["__tooli_main__"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["__main__"] = module
    return module


def _send_error(data_fd: int, worker: Any, failure: BaseException) -> None:
    if worker is None:
        enable_safe_codec()
    FrameSender(data_fd).send("error", pack_error(failure))
