"""A record of what commands really touch, for the declaration that they lack."""

from __future__ import annotations

import os

from tooli.contract.capabilities import Allowance
from tooli.enforce.watched import RECORDED, Watched, carry
from tooli.enforce.watching import Violation, Watch, unwatched

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.call.model import Call, Runner

MOST = 10_000
"""Acts of one call that are recorded."""
AT_ONCE = 100
"""Those of them that are told at once, all anew each time; the rest when the call is over."""
_BEGUN = Violation(f"{RECORDED}none", "", "E2003")  # says that somebody watches


class Recorded(Watched):
    """Runs a function under a watch that allows nothing, minds nothing, and keeps all it sees."""

    def __init__(self, inner: Runner | None, whole: bool) -> None:
        super().__init__(Watch(Allowance(), whole=whole, most=MOST), inner)

    def begin(self, call: Call) -> bool:
        """Set the watch, and say so: behind some walls nothing of this ever runs."""
        begun = super().begin(call)
        if begun:
            carry(call, [_BEGUN])
        return begun

    def tell(self, call: Call) -> None:
        """Have it written down, and warn nobody."""
        self._told = len(self.watch.violations)
        if self._told <= AT_ONCE:
            self._carry(call)

    def conclude(self, call: Call, failure: BaseException | None = None) -> None:
        """Nothing was refused."""

    def finish(self, call: Call) -> None:
        """Tell what has not been told yet."""
        super().finish(call)
        if self._told > AT_ONCE:
            self._carry(call)

    def _carry(self, call: Call) -> None:
        found = self.watch.violations
        carry(call, [_BEGUN, *[one.replace(capability=RECORDED + one.capability) for one in found]])


def write_down(call: Call, seen: Iterable[Violation], path: str) -> None:
    """Add what a call touched to the record: one line, whole, whoever else writes meanwhile."""
    from tooli.call.envelope import encode

    recorded = [one for one in seen if one.capability.startswith(RECORDED)]
    if not recorded:
        call.warnings.append("what it touches could not be recorded: it did not run under watch")
        return
    uses = [one for one in recorded if one != _BEGUN]
    line = {
        "app": call.tool.app,
        "command": call.tool.key,
        "uses": [[one.capability[len(RECORDED) :], one.target] for one in uses],
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
