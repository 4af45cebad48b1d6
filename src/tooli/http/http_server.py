"""Serve an app over HTTP: `mytool api serve`. uvicorn, from tooli[http], handles the network.

A server that requires no token listens only on addresses that other machines cannot reach.

serve_http ─▶ listening socket ─┬▶ one server in this process
                                └▶ several servers, each in a worker process
"""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import sys
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address

from tooli.errors import DefinitionError, InputError, Suggestion
from tooli.http.access_control import LOOPBACK_HOSTS
from tooli.serving.connection_acceptor import LISTEN_BACKLOG
from tooli.serving.dispatcher import GRACE_PERIOD, check_server_settings, require_package
from tooli.serving.worker_processes import run_workers
from tooli.storage.signing import share_key
from tooli.storage.state_files import UnusableFile, read_regular_file

MAX_TOKEN_BYTES = 65536
"""Maximum size of a token file."""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Protocol

    from typing_extensions import Unpack

    from tooli.core import AppState
    from tooli.core.protocols import App
    from tooli.http.asgi import Api, HttpSettingsDict

    class ServableApp(App, Protocol):
        """An app with an `asgi` method, such as Tooli."""

        def asgi(self, *, mcp: bool = True, **settings: Unpack[HttpSettingsDict]) -> Api:
            """Return the ASGI application."""
            ...


def serve_http(
    app: ServableApp,
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
    """Serve an app over HTTP until a signal ends the process.

    The token may also come from TOOLI_TOKEN or from a file. `display_path` is added to the URL
    that is printed. Raises an InputError if the server cannot be started with these settings, and
    a DependencyError if uvicorn is not installed.
    """
    message = "Serving over HTTP needs uvicorn, which is not installed."
    require_package("uvicorn", message, "Run: pip install 'tooli[http]>=7.0a1'")
    if workers < 1:
        raise cannot_serve_error(f"workers must be 1 or more, not {workers}.", "Use 1 or more.")
    token = take_token(settings.get("token"), token_file)
    if token is not None:
        settings["token"] = token
    requires_token = (
        token is not None or bool(settings.get("tokens")) or _requires_verified_token(app._state)
    )
    check_address(host, requires_token=requires_token)
    names = [*(settings.get("allowed_hosts") or ())]
    if not is_loopback(host):
        names += [host, socket.gethostname()]
        settings["any_address"] = is_wildcard_address(host)
    settings["allowed_hosts"] = [*LOOPBACK_HOSTS, *names]
    try:
        api = app.asgi(mcp=mcp, **settings)
    except DefinitionError as error:
        raise cannot_serve_error(f"{error}.", "Change the setting.") from error
    listener = listen(host, port)
    print(
        f"{app._state.name} is served at {server_url(listener)}{display_path}",
        file=sys.stderr,
        flush=True,
    )
    with listener, _frozen_gc():
        run = partial(_run_server, api, listener, grace, access_log)
        if workers == 1 or not _can_fork():
            run(None, None)
        else:
            share_key()
            run_workers(run, workers, grace)


def _requires_verified_token(state: AppState) -> bool:
    """True if the app's settings require a token."""
    check_server_settings(state)
    rules = state.security_settings
    return bool(rules) and ("token_key" in rules or "tokens" in rules)


@contextmanager
def _frozen_gc() -> Generator[None]:
    """Exclude all current objects from garbage collection while the server runs.

    At exit they are collected: some C extensions report every object that is not as a leak.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _can_fork() -> bool:
    if hasattr(os, "fork"):
        return True
    print("This system cannot fork processes. The server runs with one worker.", file=sys.stderr)
    return False


# ------------------------------------------------------------------ one server


def _run_server(
    api: Api,
    listener: socket.socket,
    grace: float,
    access_log: bool,
    parent_pipe: int | None,
    on_started: Callable[[], None] | None,
) -> None:
    """Run the server until a signal arrives or the parent process ends."""
    from tooli.serving.uvicorn_server import run_server  # imports uvicorn

    run_server(
        api,
        listener,
        grace,
        parent_pipe=parent_pipe,
        access_log=access_log,
        on_started=on_started,
        on_shutdown=partial(_close_mounts, api),
    )


async def _close_mounts(api: Api, grace: float) -> None:
    """Close the mounted applications that can be closed."""
    close_hooks = [close for mount in api.mounts if (close := getattr(mount.app, "close", None))]
    await asyncio.gather(*[close(grace) for close in close_hooks])


# ------------------------------------------------------------------ tokens


def take_token(token: str | None, token_file: str | None = None) -> str | None:
    """Return the token from the argument, the file or the environment variable TOOLI_TOKEN.

    TOOLI_TOKEN is removed from the environment.
    """
    env_token = os.environ.pop("TOOLI_TOKEN", None)  # child processes must not inherit it
    if token_file is not None and token in (None, env_token):
        token = _read_private_token(token_file)
    token = env_token if token is None else token
    if token == "":
        raise cannot_serve_error("The token is empty.", "Set it to a long random secret.")
    return token


def _read_private_token(path: str) -> str:
    """Return the token in a regular file to which only its owner has access."""
    try:
        data, mode = read_regular_file(path, MAX_TOKEN_BYTES)
        token = data.decode("ascii").strip()
    except (OSError, UnusableFile, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or (
            "it is not ASCII" if isinstance(failure, UnicodeDecodeError) else str(failure)
        )
        raise cannot_serve_error(
            f"The token file cannot be read: {reason}.", "Use another file."
        ) from failure
    if os.name == "posix" and mode & 0o077:
        raise cannot_serve_error(
            "Other users have access to the token file.", f"Run: chmod 600 {path}"
        )
    return token


def check_address(host: str, *, requires_token: bool) -> None:
    """Raise an InputError if other machines can reach the address and no token is required."""
    if not requires_token and not is_loopback(host):
        raise cannot_serve_error(
            f"Other machines can reach {host}, and no token is set.",
            "Set TOOLI_TOKEN to a secret, or serve on 127.0.0.1.",
        )


# ------------------------------------------------------------------ addresses


def is_loopback(host: str) -> bool:
    """True if only this machine can reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_wildcard_address(host: str) -> bool:
    """True if the address means every interface of this machine."""
    return host in ("", "0.0.0.0", "::", "[::]")


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free port."""
    if not 0 <= port <= 65535:
        raise cannot_serve_error(
            f"{port} is not a port.", "Use a number from 0 to 65535; 0 picks a free port."
        )
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as failure:
        raise cannot_serve_error(
            f"{host!r} is not an address of this machine.", "Use 127.0.0.1."
        ) from failure
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # on Windows this would let two servers share a port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(LISTEN_BACKLOG)
    except OSError as failure:
        sock.close()
        raise _bind_error(host, port, failure) from failure
    return sock


def _bind_error(host: str, port: int, failure: OSError) -> InputError:
    if failure.errno == errno.EADDRINUSE:
        return cannot_serve_error(
            f"Port {port} on {host} is in use by another program.",
            f"Use --port 0 for any free port, or another number, such as {port % 65535 + 1}.",
        )
    if failure.errno == errno.EACCES:
        return cannot_serve_error(
            f"Port {port} needs administrator rights.", "Use a port above 1023."
        )
    reason = failure.strerror or "it cannot be used"
    return cannot_serve_error(f"Cannot listen on {host}:{port}: {reason}.", "Use another --host.")


def server_url(sock: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = sock.getsockname()[:2]
    if is_wildcard_address(host):
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def cannot_serve_error(message: str, fix: str) -> InputError:
    """Return the error for a server that cannot be started, with a fix."""
    suggestion = Suggestion("retry_with_modified_input", fix)
    return InputError(message, code="E1020", suggestion=suggestion)
