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

from tooli.config.token_settings import OAUTH_SETTINGS, verifies_tokens, with_keywords
from tooli.errors import DefinitionError, InputError, Suggestion
from tooli.http.access_control import LOOPBACK_HOSTS
from tooli.serving.connection_acceptor import LISTEN_BACKLOG
from tooli.serving.dispatcher import GRACE_PERIOD, check_server_settings, require_package
from tooli.serving.log_setup import configure_logging
from tooli.serving.reloader import inherited_listener, run_with_reload
from tooli.serving.server_log import report
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

        def asgi(
            self,
            *,
            mcp: bool = True,
            stateless: bool = False,
            json_response: bool = False,
            **kwargs: Unpack[HttpSettingsDict],
        ) -> Api:
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
    log_format: str | None = None,
    mcp: bool = True,
    stateless: bool = False,
    json_response: bool = False,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    reload: bool = False,
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
    configure_logging(access_log=access_log, log_format=log_format)
    if workers < 1:
        raise cannot_serve_error(f"workers must be 1 or more, not {workers}.", "Use 1 or more.")
    check_tls_files(tls_cert, tls_key)
    parent_socket = inherited_listener() if reload else None
    is_parent = reload and parent_socket is None  # its child process serves, and takes the token
    if not is_parent:
        settings["token"] = take_token(settings.get("token"), token_file)
    check_address(host, requires_token=_requires_token(app._state, settings, token_file))
    _allow_hosts(settings, host)
    try:
        api = app.asgi(
            mcp=mcp, stateless=stateless or workers > 1, json_response=json_response, **settings
        )
    except DefinitionError as error:
        raise cannot_serve_error(f"{error}.", "Change the setting.") from error
    listener = (
        parent_socket
        if isinstance(parent_socket, socket.socket)
        else listen(host, port if parent_socket is None else parent_socket)
    )
    if parent_socket is None:
        url = server_url(listener, "https" if tls_cert else "http") + api.root_path + display_path
        report(f"{app._state.name} is served at {url}")
    run = partial(_run_server, api, listener, grace, tls_cert, tls_key)
    with listener, _frozen_gc():
        if is_parent:
            run_with_reload(listener, grace)
        elif workers == 1 or not _can_fork():
            run(None, None)
        else:
            share_key()
            run_workers(run, workers, grace, listener.close)


def _requires_token(state: AppState, settings: HttpSettingsDict, token_file: str | None) -> bool:
    """True if clients need a token. It may be in a file or variable that was not read yet."""
    return (
        settings.get("token") is not None
        or token_file is not None
        or "TOOLI_TOKEN" in os.environ
        or bool(settings.get("tokens"))
        or _requires_verified_token(state, settings)
    )


def _allow_hosts(settings: HttpSettingsDict, host: str) -> None:
    """Allow the names of the loopback interface, and the address that the server listens on."""
    names = [*(settings.get("allowed_hosts") or ())]
    if not is_loopback(host):
        names += [host, socket.gethostname()]
        settings["any_address"] = is_wildcard_address(host)
    settings["allowed_hosts"] = [*LOOPBACK_HOSTS, *names]


def check_tls_files(cert: str | None, key: str | None) -> None:
    """Raise an InputError unless the certificate and the key can be used together."""
    if cert is None:
        if key is not None:
            raise cannot_serve_error("--tls-key needs --tls-cert.", "Name the certificate file.")
        return
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, _refuse_password)
    except (OSError, ValueError) as failure:  # ssl.SSLError is an OSError
        if isinstance(failure, ssl.SSLError):  # its reason may be KEY_VALUES_MISMATCH
            reason = failure.reason or "they are not valid PEM files"
        else:
            reason = getattr(failure, "strerror", None) or str(failure)
        raise cannot_serve_error(
            f"The TLS certificate or key cannot be used: {reason}.",
            "Use PEM files that belong together. The key must not be encrypted.",
        ) from failure


def _refuse_password() -> str:
    """Prevent that OpenSSL asks for a password on the terminal."""
    raise ValueError("the key is encrypted")


def _requires_verified_token(state: AppState, settings: HttpSettingsDict) -> bool:
    """True if the settings of the app or of its server define which tokens are accepted."""
    check_server_settings(state)
    try:
        rules = with_keywords(
            state.security_settings, {name: settings.get(name) for name in OAUTH_SETTINGS}
        )
    except DefinitionError as error:
        raise cannot_serve_error(f"{error}.", "Change the setting.") from error
    return verifies_tokens(rules)


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
    tls_cert: str | None,
    tls_key: str | None,
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
        tls_cert=tls_cert,
        tls_key=tls_key,
        on_started=on_started,
        on_shutdown=partial(_close_mounts, api),
    )


async def _close_mounts(api: Api, grace: float) -> None:
    """Report that the server shuts down, and close the mounted applications that can be closed."""
    api.begin_shutdown()
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


def server_url(sock: socket.socket, scheme: str = "http") -> str:
    """Return the URL of a listening socket."""
    host, port = sock.getsockname()[:2]
    if is_wildcard_address(host):
        host = "localhost"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def cannot_serve_error(message: str, fix: str) -> InputError:
    """Return the error for a server that cannot be started, with a fix."""
    suggestion = Suggestion("retry_with_modified_input", fix)
    return InputError(message, code="E1020", suggestion=suggestion)
