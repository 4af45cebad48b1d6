"""Messages of a server to its operator: where it is served, and what happens to its workers."""

from __future__ import annotations

import sys

from tooli.core import find_loaded


def report(message: str) -> None:
    """Write a message to stderr, or to the logger `tooli.server` if the log is JSON."""
    log_as_json = find_loaded("tooli.serving.log_setup", "log_as_json")
    if log_as_json is not None and log_as_json(message):
        return
    write_line = find_loaded("tooli.serving.stderr_writer", "write_line")
    if write_line is not None:
        write_line(message)
    else:
        print(message, file=sys.stderr, flush=True)
