"""A process that serves one client over stdin and stdout, and ends when it is asked to."""

from __future__ import annotations

import os

from tooli.mcp.stdio_server import STDIO_GRACE_PERIOD, StdioServer
from tooli.mcp.stdio_transport import StdioTransport, flush_standard_streams

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def serve_stdio(app: Any, *, deferred: bool = False) -> None:
    """Serve an app to the client at the other end of stdin and stdout."""
    server = StdioServer(app, StdioTransport.claim_stdio(), deferred=deferred)
    exit_process = _install_signal_handlers(server)
    server.serve()
    exit_process()


def _install_signal_handlers(server: StdioServer) -> Callable[[], None]:
    """End in order when asked to, at once when asked again; whatever still runs by then is left
    behind, and its children are told."""
    import signal

    is_ending = False

    def handle_signal(number: int, frame: Any) -> None:
        nonlocal is_ending
        if is_ending:  # the first time is still waiting below
            terminate_children()
            os._exit(0)
        is_ending = True
        server.wait(STDIO_GRACE_PERIOD / 2)
        exit_process()
        raise SystemExit(0)

    def exit_process() -> None:
        if server.is_busy:
            terminate_children()
        flush_standard_streams()
        if server.is_busy or server.sdk is not None:
            os._exit(0)

    for name in ("SIGTERM", "SIGINT"):
        try:
            signal.signal(getattr(signal, name), handle_signal)
        except (ValueError, OSError):
            continue
    return exit_process


def terminate_children() -> None:
    """Ask the processes that calls have started to end; Linux alone can name them."""
    import signal

    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as children:
                for child in children.read().split():
                    os.kill(int(child), signal.SIGTERM)
    except OSError:
        return
