"""Run an app's HTTP door: `mytool api serve`. uvicorn does the network; it comes with tooli[http].

serve_http ─▶ a socket of ours ─┬▶ one server in this process
                                └▶ several, each in a process of its own (workers.py)
"""

from __future__ import annotations

import os
import socket
import sys

from tooli.errors import DefinitionError, DependencyError, Suggestion
from tooli.serving.dispatcher import GRACE_PERIOD, is_installed
from tooli.serving.listener import (
    LOOPBACK_HOSTS,
    cannot_serve_error,
    check_address,
    find_token,
    is_loopback,
    is_wildcard_address,
    listen,
    server_url,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from typing_extensions import Unpack

    from tooli.http.asgi import Api
    from tooli.http.http_settings import HttpSettingsDict


def serve_http(
    app: Any,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    workers: int = 1,
    token_file: str | None = None,
    grace: float = GRACE_PERIOD,
    access_log: bool = False,
    mcp: bool = True,
    display_path: str = "",
    **settings: Unpack[HttpSettingsDict],
) -> None:
    """Serve until asked to end. A token may also come from TOOLI_TOKEN or from a file.

    `at` is the path that people are told, where it is not all of it that they look for.
    Raises an InputError where it cannot be started like that, and a DependencyError where
    uvicorn is missing; nothing is served then.
    """
    require_uvicorn()
    if workers < 1:
        raise cannot_serve_error(f"{workers} workers cannot serve.", "Say 1 or more.")
    token = find_token(settings.get("token"), token_file)
    if token is not None:
        settings["token"] = token
    requires_token = token is not None or bool(settings.get("tokens")) or _has_token_verifier(app)
    check_address(host, requires_token=requires_token)
    names = [*(settings.get("allowed_hosts") or ())]
    if not is_loopback(host):
        names += [host, socket.gethostname()]
        settings["any_address"] = is_wildcard_address(host)
    settings["allowed_hosts"] = [*LOOPBACK_HOSTS, *names]
    try:
        api = app.asgi(mcp=mcp, **settings)
    except DefinitionError as mistake:
        raise cannot_serve_error(f"{mistake}.", "Change the setting.") from mistake
    listener = listen(host, port)
    print(
        f"{app._state.name} is served at {server_url(listener)}{display_path}",
        file=sys.stderr,
        flush=True,
    )
    _freeze_gc()
    with listener:
        run = _make_runner(api, listener, grace, access_log)
        if workers == 1 or not _can_fork():
            run(None)
        else:
            from tooli.http.worker_processes import run_workers
            from tooli.storage.signing import share_key

            share_key()
            run_workers(run, workers, grace)


def _has_token_verifier(app: Any) -> bool:
    """Whether the settings keep out whoever brings no token that holds."""
    from tooli.config.security_settings import apply_security_policy

    apply_security_policy(app._state)
    rules = app._state.security_settings
    return bool(rules) and ("token_key" in rules or "tokens" in rules)


def _freeze_gc() -> None:
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


def _make_runner(
    api: Api, listener: socket.socket, grace: float, access_log: bool
) -> Callable[[int | None], None]:
    """Runs the server until it is asked to end, or until the other end of a pipe is closed."""

    def run(parent_pipe: int | None) -> None:
        from tooli.serving.uvicorn_server import run_server

        run_server(
            api,
            listener,
            grace,
            parent_pipe=parent_pipe,
            access_log=access_log,
            on_shutdown=_make_shutdown_hook(api),
        )

    return run


def _make_shutdown_hook(api: Api) -> Callable[[float], Awaitable[None]] | None:
    """How what is mounted ends in order, where it knows how to."""
    close_hooks = [close for mount in api.mounts if (close := getattr(mount.app, "close", None))]
    if not close_hooks:
        return None

    async def end(grace: float) -> None:
        import asyncio

        await asyncio.gather(*[close(grace) for close in close_hooks])

    return end
