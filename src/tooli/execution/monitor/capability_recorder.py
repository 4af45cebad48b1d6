"""A record of what commands really touch, for the declaration that they lack."""

from __future__ import annotations

import os

from tooli.core.declared_capabilities import AllowedAccess
from tooli.execution.monitor.audit_hook import Monitor, Violation, unmonitored
from tooli.execution.monitor.monitored_runner import (
    RECORDED_PREFIX,
    MonitoredRunner,
    store_violations,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tooli.core.call import Call, Runner

MAX_RECORDED = 10_000
"""Acts of one call that are recorded."""
MAX_IMMEDIATE_REPORTS = 100
"""Those of them that are told at once, all anew each time; the rest when the call is over."""
_RECORDING_STARTED = Violation(f"{RECORDED_PREFIX}none", "", "E2003")  # says that somebody watches


class RecordingRunner(MonitoredRunner):
    """Runs a function under a watch that allows nothing, minds nothing, and keeps all it sees."""

    def __init__(self, inner: Runner | None, owns_process: bool) -> None:
        super().__init__(
            Monitor(AllowedAccess(), owns_process=owns_process, max_violations=MAX_RECORDED), inner
        )

    def begin(self, call: Call) -> bool:
        """Set the watch, and say so: behind some walls nothing of this ever runs."""
        is_monitored = super().begin(call)
        if is_monitored:
            store_violations(call, [_RECORDING_STARTED])
        return is_monitored

    def report(self, call: Call) -> None:
        """Have it written down, and warn nobody."""
        self._reported_count = len(self.monitor.violations)
        if self._reported_count <= MAX_IMMEDIATE_REPORTS:
            self._store_recorded(call)

    def raise_denial(self, call: Call, failure: BaseException | None = None) -> None:
        """Nothing was refused."""

    def finish(self, call: Call) -> None:
        """Tell what has not been told yet."""
        super().finish(call)
        if self._reported_count > MAX_IMMEDIATE_REPORTS:
            self._store_recorded(call)

    def _store_recorded(self, call: Call) -> None:
        violations = self.monitor.violations
        store_violations(
            call,
            [
                _RECORDING_STARTED,
                *[
                    violation.replace(capability=RECORDED_PREFIX + violation.capability)
                    for violation in violations
                ],
            ],
        )


def append_record(call: Call, violations: Iterable[Violation], path: str) -> None:
    """Add what a call touched to the record: one line, whole, whoever else writes meanwhile."""
    from tooli.text.json_encoder import encode

    recorded = [
        violation for violation in violations if violation.capability.startswith(RECORDED_PREFIX)
    ]
    if not recorded:
        call.warnings.append("what it touches could not be recorded: it did not run under watch")
        return
    uses = [violation for violation in recorded if violation != _RECORDING_STARTED]
    line = {
        "app": call.tool.app,
        "command": call.tool.key,
        "uses": [
            [violation.capability[len(RECORDED_PREFIX) :], violation.target] for violation in uses
        ],
    }
    try:
        with unmonitored():
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, encode(line, []) + b"\n")
            finally:
                os.close(fd)
    except OSError as failure:
        call.warnings.append(f"what it touches could not be recorded: {failure.strerror}")
