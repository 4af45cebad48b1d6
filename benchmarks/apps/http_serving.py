"""Serve an ASGI application on an inherited socket: one process, h11, no access log."""

import socket
import sys
from typing import Any

import uvicorn


def serve(app: Any) -> None:
    """Serve until killed; the first argument is the file descriptor of the socket."""
    config = uvicorn.Config(app, http="h11", loop="asyncio", access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=int(sys.argv[1]))])
