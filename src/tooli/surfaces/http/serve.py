"""Run an app's HTTP door: `mytool api serve`. uvicorn does the network; it comes with tooli[http].

serve_http ─▶ a socket of ours ─┬▶ one server in this process
                                └▶ several, each in a process of its own (workers.py)
"""

from __future__ import annotations

import os
import socket
import sys

from tooli.errors import DefinitionError, DependencyError, Suggestion
from tooli.surfaces.listening import (
    LOOPBACK,
    cannot,
    check_address,
    find_token,
    is_everywhere,
    is_loopback,
    listen,
    url_of,
)
from tooli.surfaces.serving import GRACE, is_installed

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from typing_extensions import Unpack

    from tooli.surfaces.http.asgi import Api
    from tooli.surfaces.http.settings import SettingWords


def serve_http(
    app: Any,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    workers: int = 1,
    token_file: str | None = None,
    grace: float = GRACE,
    access_log: bool = False,
    mcp: bool = True,
    at: str = "",
    **said: Unpack[SettingWords],
) -> None:
    """Serve until asked to end. A token may also come from TOOLI_TOKEN or from a file.

    `at` is the path that people are told, where it is not all of it that they look for.
    Raises an InputError where it cannot be started like that, and a DependencyError where
    uvicorn is missing; nothing is served then.
    """
    require_uvicorn()
    if workers < 1:
        raise cannot(f"{workers} workers cannot serve.", "Say 1 or more.")
    token = find_token(said.get("token"), token_file)
    if token is not None:
        said["token"] = token
    secured = token is not None or bool(said.get("tokens")) or _verifies(app)
    check_address(host, secured=secured)
    names = [*(said.get("allowed_hosts") or ())]
    if not is_loopback(host):
        names += [host, socket.gethostname()]
        said["any_address"] = is_everywhere(host)
    said["allowed_hosts"] = [*LOOPBACK, *names]
    try:
        api = app.asgi(mcp=mcp, **said)
    except DefinitionError as mistake:
        raise cannot(f"{mistake}.", "Change the setting.") from mistake
    listener = listen(host, port)
    print(f"{app._house.name} is served at {url_of(listener)}{at}", file=sys.stderr, flush=True)
    _settle_down()
    with listener:
        run = _runner(api, listener, grace, access_log)
        if workers == 1 or not _can_fork():
            run(None)
        else:
            from tooli.state.seals import share
            from tooli.surfaces.http.workers import supervise

            share()
            supervise(run, workers, grace)


def _verifies(app: Any) -> bool:
    """Whether the settings keep out whoever brings no token that holds."""
    from tooli.config.policy import tighten

    tighten(app._house)
    rules = app._house.rules
    return bool(rules) and ("token_key" in rules or "tokens" in rules)


def _settle_down() -> None:
    """What is there when serving begins stays: the garbage collector need not look at it again."""
    import gc

    gc.collect()
    gc.freeze()


def require_uvicorn() -> None:
    """Refuse to serve where uvicorn is not installed, and say how to get it."""
    if not is_installed("uvicorn"):
        raise DependencyError(
            "Serving over HTTP needs uvicorn, which is not installed.",
            suggestion=Suggestion("fix", "Run: pip install 'tooli[http]'"),
        )


def _can_fork() -> bool:
    if hasattr(os, "fork"):
        return True
    print("Several workers need a system that can fork: there is one.", file=sys.stderr)
    return False


# ------------------------------------------------------------------ one server


def _runner(
    api: Api, listener: socket.socket, grace: float, access_log: bool
) -> Callable[[int | None], None]:
    """Runs the server until it is asked to end, or until the other end of a pipe is closed."""

    def run(leash: int | None) -> None:
        from tooli.surfaces.network import run_server

        run_server(
            api,
            listener,
            grace,
            leash=leash,
            access_log=access_log,
            before_end=_ending(api),
        )

    return run


def _ending(api: Api) -> Callable[[float], Awaitable[None]] | None:
    """How what is mounted ends in order, where it knows how to."""
    closing = [close for mount in api.mounts if (close := getattr(mount.app, "close", None))]
    if not closing:
        return None

    async def end(grace: float) -> None:
        import asyncio

        await asyncio.gather(*[close(grace) for close in closing])

    return end
