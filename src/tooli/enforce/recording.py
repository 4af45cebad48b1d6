"""A record of what commands really touch, for the declaration that they lack."""

from __future__ import annotations

import os

from tooli.contract.capabilities import Allowance
from tooli.enforce.watched import Watched
from tooli.enforce.watching import Watch, unwatched

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.call.model import Call, Runner

MOST = 10_000
"""Acts of one call that are recorded."""


class Recorded(Watched):
    """Runs a function under a watch that allows nothing, minds nothing, and keeps all it sees."""

    def __init__(self, inner: Runner | None, whole: bool) -> None:
        super().__init__(Watch(Allowance(), whole=whole, most=MOST), inner)

    def conclude(self, call: Call, failure: BaseException | None = None) -> None:
        """Tell nobody: it is all written down in the end."""


def write_down(call: Call, recorded: Recorded, path: str) -> None:
    """Add what a call touched to the record: one line, whole, whoever else writes meanwhile."""
    from tooli.call.envelope import encode

    line = {
        "app": call.tool.app,
        "command": call.tool.key,
        "uses": [[one.capability, one.target] for one in recorded.watch.violations],
    }
    try:
        with unwatched():
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, encode(line, []) + b"\n")
            finally:
                os.close(fd)
    except OSError as failure:
        call.warnings.append(f"what it touches could not be recorded: {failure.strerror}")
