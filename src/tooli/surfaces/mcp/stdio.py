"""A process that serves one client over stdin and stdout, and ends when it is asked to."""

from __future__ import annotations

import os

from tooli.surfaces.mcp.front import GRACE, Front
from tooli.surfaces.mcp.wire import Wire, flush

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def serve_stdio(app: Any, *, deferred: bool = False) -> None:
    """Serve an app to the client at the other end of stdin and stdout."""
    front = Front(app, Wire.claim(), deferred=deferred)
    leave = _on_sigterm(front)
    front.serve()
    leave()


def _on_sigterm(front: Front) -> Callable[[], None]:
    """End in order when asked to, at once when asked again; whatever still runs by then is left
    behind, and its children are told."""
    import signal

    asked = False

    def ended(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:  # the first time is still waiting below
            end_children()
            os._exit(0)
        asked = True
        front.wait(GRACE / 2)
        leave()
        raise SystemExit(0)

    def leave() -> None:
        if front.busy:
            end_children()
        flush()
        if front.busy or front.sdk is not None:
            os._exit(0)

    for name in ("SIGTERM", "SIGINT"):
        try:
            signal.signal(getattr(signal, name), ended)
        except (ValueError, OSError):
            continue
    return leave


def end_children() -> None:
    """Ask the processes that calls have started to end; Linux alone can name them."""
    import signal

    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children") as children:
                for child in children.read().split():
                    os.kill(int(child), signal.SIGTERM)
    except OSError:
        return
