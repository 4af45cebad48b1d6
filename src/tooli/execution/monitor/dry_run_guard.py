"""Stop a function that does something in a dry run, although it should only record it.

`record_dry_action` returns True in a dry run. A function that ignores this would do its work. So a
dry run is monitored: it may read files and the environment. The author allows other accesses with
`@dry_run_support(allow=["net:read"])`. Temporary files that the dry run makes are allowed.
"""

from __future__ import annotations

import os
import sys

from tooli.core.declared_capabilities import resolve_access
from tooli.errors import InternalError, Suggestion
from tooli.execution.monitor.audit_hook import Monitor, MonitorScope, Violation, is_within
from tooli.execution.monitor.monitored_runner import suggest_declaration

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call
    from tooli.core.declared_capabilities import AllowedAccess

_TEMPORARY_ACTIONS = frozenset(("read", "write", "make", "place", "delete"))


class DryRunGuard:
    """Monitors the sections of a dry run in which the function of a call runs."""

    def __init__(self, call: Call) -> None:
        self._tool = call.tool
        allowed = getattr(call.tool.fn, "tooli_dry_run_allow", ())
        access = resolve_access(allowed).replace(reads=None, env_reads=True, env_writes=True)
        self._monitor = _DryRunMonitor(access, owns_process=call.caller.owns_process)
        self._scopes: list[MonitorScope] = []
        if not self._monitor.begin():
            reason = "another audit hook of the process rejects tooli's hook"
            call.warnings.append(f"The dry run is not monitored: {reason}.")

    def begin(self, *, is_on_loop: bool) -> None:
        """Start a section. On an event loop, other tasks of the thread are not monitored."""
        scope = MonitorScope(self._monitor)
        self._scopes.append(scope)
        scope.begin(is_for_thread=not is_on_loop)

    def end(self) -> InternalError | None:
        """End a section; return the error if an action was refused in it."""
        self._scopes.pop().end()
        denial = self._monitor.denial
        return None if denial is None else _dry_run_error(self._tool.name, denial)

    def finish(self) -> None:
        """End the monitoring."""
        self._monitor.finish()


class _DryRunMonitor(Monitor):
    """Refuses every change except of temporary files that were made in the dry run."""

    def __init__(self, access: AllowedAccess, *, owns_process: bool) -> None:
        super().__init__(access, is_blocking=True, owns_process=owns_process)
        self._temporary_dirs = _temporary_dirs()

    def check(self, action: str, target: str) -> None:
        """Check one action; raise PermissionError if it is refused."""
        if action in _TEMPORARY_ACTIONS:
            is_unnamed = action == "write" and target in self._temporary_dirs  # O_TMPFILE
            if is_unnamed or is_within(target, self._created):
                return
            is_new = action == "make" and not os.path.lexists(target)
            if is_new and os.path.dirname(target) in self._temporary_dirs:
                self._created.add(target)
                return
        super().check(action, target)


def _temporary_dirs() -> frozenset[str]:
    """Return the folders that `tempfile` may use.

    `tempfile.gettempdir` is not called: it writes a file, which an outer monitor would report.
    """
    tempfile = sys.modules.get("tempfile")
    found = [getattr(tempfile, "tempdir", None), *map(os.environ.get, ("TMPDIR", "TEMP", "TMP"))]
    found += ["/tmp", "/var/tmp", "/usr/tmp"] if os.name == "posix" else []
    return frozenset([os.path.realpath(path) for path in found if isinstance(path, str) and path])


def _dry_run_error(name: str, denial: Violation) -> InternalError:
    """Return the error of a function that does something in a dry run."""
    declaration = suggest_declaration(denial)
    return InternalError(
        f"{name} was stopped in a dry run, before {denial.capability} of {denial.target}.",
        suggestion=Suggestion(
            "fix",
            "Skip the action if record_dry_action(…) returns True. If the dry run itself needs the "
            f"access, declare it: @dry_run_support(allow=[{declaration!r}]).",
        ),
        details={"capability": denial.capability, "target": denial.target},
    )
