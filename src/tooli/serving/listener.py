"""Listening sockets and tokens of network servers (HTTP, and MCP over HTTP).

A server never listens on an address that other machines can reach unless it requires a token.
"""

from __future__ import annotations

import errno
import os
import socket
from ipaddress import ip_address

from tooli.errors import InputError, Suggestion

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names and addresses of the loopback interface."""


# ------------------------------------------------------------------ tokens


def take_token(token: str | None, token_file: str | None = None) -> str | None:
    """Return the token from the argument, the file or the environment variable TOOLI_TOKEN.

    TOOLI_TOKEN is removed from the environment.
    """
    env_token = os.environ.pop("TOOLI_TOKEN", None)  # child processes must not inherit it
    if token is None and token_file is not None:
        try:
            with open(token_file, encoding="utf-8") as file:
                token = file.read().strip()
        except (OSError, ValueError) as failure:
            reason = getattr(failure, "strerror", None) or "it is not UTF-8"
            raise cannot_serve_error(
                f"The token file cannot be read: {reason}.", "Use another file."
            ) from failure
    token = env_token if token is None else token
    if token == "":
        raise cannot_serve_error("The token is empty.", "Set it to a long random secret.")
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
        sock.listen(1024)
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
