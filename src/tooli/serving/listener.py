"""Listening: the address and the port that a server takes, and who may reach it there.

What the doors with a network (MCP, HTTP) share. Nothing is served at an address that others
reach, where no token keeps them out.
"""

from __future__ import annotations

import os
import socket

from tooli.errors import InputError, Suggestion

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
"""What this machine calls itself."""


# ------------------------------------------------------------------ tokens


def find_token(token: str | None, token_file: str | None = None) -> str | None:
    """The token that was given, stands in a file, or in the environment; there it is taken away."""
    env_token = os.environ.pop("TOOLI_TOKEN", None)  # no tool's child process needs to know it
    if token is None and token_file is not None:
        try:
            with open(token_file, encoding="utf-8") as file:
                token = file.read().strip()
        except (OSError, ValueError) as failure:
            reason = getattr(failure, "strerror", None) or "it is not text"
            raise cannot_serve_error(
                f"The token cannot be read: {reason}.", "Name another file."
            ) from failure
    token = env_token if token is None else token
    if token == "":
        raise cannot_serve_error("The token is empty.", "Set it to a secret of some length.")
    return token


def check_address(host: str, *, requires_token: bool) -> None:
    """Refuse an address that others reach, where no token keeps them out."""
    if not requires_token and not is_loopback(host):
        raise cannot_serve_error(
            f"{host} can be reached from other machines, and no token is set.",
            "Set TOOLI_TOKEN to a secret, or serve on 127.0.0.1.",
        )


# ------------------------------------------------------------------ addresses


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    from ipaddress import ip_address

    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_wildcard_address(host: str) -> bool:
    """Whether it stands for every address of this machine."""
    return host in ("", "0.0.0.0", "::", "[::]")


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections there; port 0 is any that is free."""
    if not 0 <= port <= 65535:
        raise cannot_serve_error(
            f"{port} is not a port.", "Say one from 0 to 65535; 0 picks a free one."
        )
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as failure:
        raise cannot_serve_error(
            f"{host!r} is no address of this machine.", "Say 127.0.0.1."
        ) from failure
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would share the port with another server
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
    except OSError as failure:
        sock.close()
        raise _bind_error(host, port, failure) from failure
    return sock


def _bind_error(host: str, port: int, failure: OSError) -> InputError:
    import errno

    if failure.errno == errno.EADDRINUSE:
        return cannot_serve_error(
            f"Port {port} on {host} is taken by another program.",
            f"Use --port 0 for any free port, or another number, such as {port % 65535 + 1}.",
        )
    if failure.errno == errno.EACCES:
        return cannot_serve_error(f"Port {port} is not for ordinary users.", "Use one above 1023.")
    reason = failure.strerror or "it cannot be used"
    return cannot_serve_error(
        f"{host}:{port} cannot be served at: {reason}.", "Say another --host."
    )


def server_url(sock: socket.socket) -> str:
    """Where a browser finds it."""
    host, port = sock.getsockname()[:2]
    if is_wildcard_address(host):
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def cannot_serve_error(message: str, fix: str) -> InputError:
    """The refusal to serve like that, and what to do about it."""
    suggestion = Suggestion("retry_with_modified_input", fix)
    return InputError(message, code="E1020", suggestion=suggestion)
