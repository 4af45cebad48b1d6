"""Record actions in a dry run, and allow only planned actions when a plan is applied.

    --dry-run ─▶ DryRunRecorder: record_dry_action records the action, returns True: skip it
    --apply   ─▶ a dry run, then PlanEnforcer: returns False for a planned action: perform it

The active recorder is in a context variable, which is visible in everything the function calls. A
thread that the function starts does not inherit the variable. In such a thread `record_dry_action`
raises while any dry run is active. `ctx.plan(…)` does not use the variable and works there.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from itertools import islice

from tooli.core.call_fingerprint import digest
from tooli.errors import DefinitionError, InternalError, StateError, Suggestion, ToolRuntimeError
from tooli.text.json_encoder import encode
from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextvars import Token
    from typing import Any, Protocol, TypeVar, overload

    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError

    F = TypeVar("F", bound=Callable[..., Any])

    class DryRunGuard(Protocol):
        """Refuses the actions of a function in the sections of a dry run."""

        def begin(self, *, is_on_loop: bool) -> None:
            """Start a section."""
            ...

        def end(self) -> ToolError | None:
            """End a section; return the error if an action was refused."""
            ...

        def finish(self) -> None:
            """End the monitoring."""
            ...

else:

    def overload(function):
        """Stand in for `typing.overload`, which would load typing at start-up."""
        return function


MAX_ACTIONS, MAX_STREAM_ITEMS = 10_000, 1_000_000
"""Maximum number of actions in a plan, and of stream items that a dry run consumes."""
MAX_REPORTED_ACTIONS = 100
"""Maximum number of actions in the report about an applied plan."""
APPLIED_FIELDS = ("action", "target", "before", "after")
"""The fields of an action in the report about an applied plan."""
_MAX_HASHED_BYTES = 16 << 20  # bytes: a larger file is identified by its metadata
_DRIVER_MODULES = frozenset(("tooli.pipeline.drivers", "tooli.pipeline.async_drivers"))

_current_recorder: ContextVar[ActionRecorder | None] = ContextVar(
    "tooli_action_recorder", default=None
)
_is_execution_disabled: ContextVar[bool] = ContextVar(
    "tooli_dry_run_execution_disabled", default=False
)
_active_dry_runs: list[DryRunRecorder] = []  # in this process


@overload
def dry_run_support(fn: F) -> F:
    """Mark a function: `@dry_run_support`."""


@overload
def dry_run_support(  # noqa: F811  ruff knows only typing's own overload
    *, allow: Sequence[str] = ()
) -> Callable[[F], F]:
    """Mark a function: `@dry_run_support(allow=[…])`."""


def dry_run_support(  # noqa: F811
    fn: F | None = None, *, allow: Sequence[str] = ()
) -> F | Callable[[F], F]:
    """Mark a function as safe to run under `--dry-run`. Returns the same function.

    The function must call `record_dry_action` before each of its actions. `--dry-run` does not run
    functions without this mark. A dry run may read files. tooli stops it before it changes a file,
    starts a program or uses the network, unless `allow` has the capability, such as
    `@dry_run_support(allow=["net:read"])`.
    """
    if fn is None:
        return lambda fn: _mark(fn, allow)
    return _mark(fn, ())


def _mark(fn: F, allow: Sequence[str]) -> F:
    if allow:
        from tooli.core.declared_capabilities import capabilities_problem  # few functions need it

        problem = capabilities_problem(allow)
        if problem is not None:
            raise DefinitionError(f"dry_run_support(allow=…) {problem}")
    marked: Any = fn
    try:
        marked.tooli_supports_dry_run = True
        if allow:
            marked.tooli_dry_run_allow = tuple(allow)
    except AttributeError:
        raise DefinitionError(
            f"dry_run_support({fn!r}): mark the function itself, where it is defined"
        ) from None
    return fn


def record_dry_action(
    action: str, target: object, *, details: Mapping[str, Any] | None = None, state: object = None
) -> bool:
    """Record an action before performing it. Returns True in a dry run: skip the action then.

        if not record_dry_action("delete", path, state=path):
            path.unlink()

    `state` is a path or a value that the plan depends on. If the value, or the content of the
    path, has changed when the plan is applied, the plan is rejected. `state` is ignored outside of
    a dry run.
    """
    recorder = _current_recorder.get()
    if recorder is not None:
        return recorder.record_action(action, target, details, state)
    if _active_dry_runs and not _is_inside_call():
        raise _unknown_thread_error()
    return False


def supports_dry_run(fn: object) -> bool:
    """True if a dry run may run a function.

    The function is marked with `dry_run_support`, and `DryRunExecutionDisabled` is not active.
    """
    return bool(getattr(fn, "tooli_supports_dry_run", False)) and not _is_execution_disabled.get()


def is_dry_run_active() -> bool:
    """True if the calling code runs in a dry run."""
    recorder = _current_recorder.get()
    return recorder is not None and recorder.is_dry_run


def record_nested_call(plan: JsonObject) -> None:
    """Record the plan of a nested call that does not support dry runs, if a dry run is active."""
    recorder = _current_recorder.get()
    if isinstance(recorder, DryRunRecorder):
        recorder.record_action("call", plan["tool"], plan["arguments"], None)


class DryRunExecutionDisabled:
    """A context manager in which dry runs do not run functions."""

    def __enter__(self) -> None:
        self._reset_token = _is_execution_disabled.set(True)

    def __exit__(self, *_: object) -> None:
        _is_execution_disabled.reset(self._reset_token)


class RecorderReplaced:
    """A context manager in which another recorder, or none, receives the actions."""

    def __init__(self, recorder: ActionRecorder | None) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        self._reset_token = _current_recorder.set(self._recorder)

    def __exit__(self, *_: object) -> None:
        _current_recorder.reset(self._reset_token)


# ------------------------------------------------------------------ recorders


class ActionRecorder:
    """A context manager that receives the actions of the function that runs inside it."""

    is_dry_run = False

    def __init__(self) -> None:
        self.error: ToolError | None = None  # kept, because the function may catch it
        self._reset_tokens: list[Token[ActionRecorder | None]] = []

    def record_action(self, action: str, target: object, details: object, state: object) -> bool:
        """Receive an action; return True if the function must skip it."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self._reset_tokens.append(_current_recorder.set(self))

    def __exit__(self, *_: object) -> None:
        _current_recorder.reset(self._reset_tokens.pop())

    def raise_if_failed(self) -> None:
        """Raise the error of a rejected action, if any. The function may have caught it."""
        if self.error is not None:
            raise self.error


class DryRunRecorder(ActionRecorder):
    """Records the actions of a function in a dry run."""

    is_dry_run = True

    def __init__(self, guard: DryRunGuard | None = None) -> None:
        super().__init__()
        self.guard = guard  # refuses what the function does instead of recording it
        self.is_on_loop = False  # the function runs as a task of an event loop
        self.actions: list[JsonObject] = []
        self.is_truncated = False  # a stream was too long
        self.facts: JsonObject = {}  # more about the plan, if the function knows it
        self.discarded_outputs: list[Any] = []  # outputs that write nothing
        self._outer_recorder = _current_recorder.get()

    def __enter__(self) -> None:
        _active_dry_runs.append(self)
        super().__enter__()
        if self.guard is not None:
            self.guard.begin(is_on_loop=self.is_on_loop)

    def __exit__(self, error_type: object = None, *_: object) -> None:
        error = None if self.guard is None else self.guard.end()
        super().__exit__()
        _active_dry_runs.remove(self)
        if self.guard is not None and (error is not None or error_type is not None):
            self.guard.finish()
        if error is not None:
            raise error

    def record_action(self, action: str, target: object, details: object, state: object) -> bool:
        """Record an action; return True."""
        self.add(describe_action(action, target, details, state))
        return True

    def add(self, entry: JsonObject) -> None:
        """Record a result of `describe_action` in this dry run, and in the outer one if any."""
        if len(self.actions) >= MAX_ACTIONS:
            self.error = ToolRuntimeError(
                f"The plan has more than {MAX_ACTIONS} actions.",
                suggestion=Suggestion(
                    "retry_with_modified_input", "Narrow the arguments, so that the call does less."
                ),
            )
            raise self.error
        self.actions.append(entry)
        if isinstance(self._outer_recorder, DryRunRecorder):
            self._outer_recorder.add(entry)

    def finish(self) -> JsonObject:
        """Discard the outputs and return the report.

        The report has JSON types only, so that it can be sent to another process.
        """
        for output in self.discarded_outputs:
            output.discard()
        if self.guard is not None:
            self.guard.finish()
        self.raise_if_failed()
        report: JsonObject = {"actions": self.actions, "is_truncated": self.is_truncated}
        return {**report, "facts": self.facts} if self.facts else report


class PlanEnforcer(ActionRecorder):
    """Allows only the actions of a plan, while the function runs.

    An action is identified by its name and target. Its state is not compared again, because the
    actions before it may have changed it. At the end, `report` is called with what was done.
    """

    def __init__(self, actions: list[JsonObject], report: Callable[[JsonObject], None]) -> None:
        super().__init__()
        self.actions = actions
        self._planned_actions = {(entry["action"], entry["target"]): entry for entry in actions}
        self._completed_actions: list[JsonObject] = []
        self._states: list[object] = []  # of the completed actions
        self._report = report

    def record_action(self, action: str, target: object, details: object, state: object) -> bool:
        """Return False for a planned action; raise for any other."""
        entry = describe_action(action, target, None, None)
        if (entry["action"], entry["target"]) not in self._planned_actions:
            self.error = _unplanned_action_error(entry, self._completed_actions)
            raise self.error
        self._completed_actions.append(entry)
        self._states.append(state)
        return False

    def withdraw_action(self, entry: JsonObject) -> None:
        """Forget an action that was allowed, but was not done."""
        key = (entry["action"], entry["target"])
        names = [(done["action"], done["target"]) for done in self._completed_actions]
        index = names.index(key)
        del self._completed_actions[index], self._states[index]

    def __exit__(self, error_type: object = None, *_: object) -> None:
        super().__exit__()
        if error_type is not None:  # the function has failed, or its stream has ended
            self._report(self._describe_applied())

    def finish(self) -> None:
        """Report what was done; raise the error of a rejected action, if any."""
        self._report(self._describe_applied())
        self.raise_if_failed()

    def _describe_applied(self) -> JsonObject:
        """Return the actions that were done, with the digests of their states before and after.

        Only a path has a state after the run. A value is known only before it.
        """
        rows: list[JsonObject] = []
        done = zip(self._completed_actions, self._states, strict=True)
        for entry, state in islice(done, MAX_REPORTED_ACTIONS):
            planned = self._planned_actions[entry["action"], entry["target"]]
            row = {**entry, "before": planned.get("state"), "after": _digest_path(state)}
            rows.append({name: value for name, value in row.items() if value is not None})
        applied: JsonObject = {"count": len(self._completed_actions), "actions": rows}
        digests = [row["after"] for row in rows if "after" in row]
        return {**applied, "state": digest(encode(digests, []), 16).hex()} if digests else applied


def _digest_path(state: Any) -> str | None:
    """Return the digest of what is at a path now; None for other values and unreadable paths."""
    try:
        return digest_state(state) if hasattr(state, "__fspath__") else None
    except StateError:
        return None


def _unplanned_action_error(entry: JsonObject, completed: list[JsonObject]) -> ToolError:
    """Return the error for an action that is not in the plan that is being applied."""
    action = f"{entry['action']} {entry['target']}"
    progress = f"{len(completed)} of its actions were done" if completed else "nothing was done"
    return StateError(
        f"The command was stopped before {action}, which is not in the plan: {progress}.",
        code="E3053",
        suggestion=Suggestion(
            "ask_human", "Check what was done, then plan the rest with a dry run."
        ),
        is_retryable=False,
        details={"unplanned": entry, "done": completed},
    )


def describe_action(action: str, target: object, details: Any, state: Any) -> JsonObject:
    """Return an action as it appears in a plan."""
    raw_target: Any = target
    target_name = (
        os.fsdecode(raw_target)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(raw_target, (str, bytes, os.PathLike))
        else str(raw_target)
    )
    entry: JsonObject = {"action": str(action), "target": target_name}
    if details:
        entry["details"] = to_jsonable(dict(details), [])
    if state is not None:
        entry["state"] = digest_state(state)
    return entry


def digest_state(state: object) -> str:
    """Return a digest of a state: of the content of a path, or of a value."""
    if isinstance(state, os.PathLike):
        data = _snapshot_path(os.fspath(state))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(state, (bytes, bytearray, memoryview)):
        data = bytes(state)  # pyright: ignore[reportUnknownArgumentType]
    else:
        data = encode(state, [])
    return digest(data, 12).hex()


def _snapshot_path(path: Any) -> bytes:
    """Return bytes that identify a file's content, a folder's entries or a link's target.

    For large and special files, they identify only the metadata. Raises StateError if something
    exists that cannot be read, because a change of it would not be noticed.
    """
    try:
        info = os.lstat(path)
        kind = info.st_mode & 0o170000
        if kind == 0o120000:
            return b"link " + os.fsencode(os.readlink(path))
        if kind == 0o040000:
            with os.scandir(path) as entries:
                rows = sorted(
                    [(os.fsencode(entry.name), *_stat_key(entry.stat(follow_symlinks=False)))]
                    for entry in entries
                )
            return b"folder " + repr(rows).encode()
        if kind == 0o100000 and info.st_size <= _MAX_HASHED_BYTES:
            with open(path, "rb") as file:
                return b"file " + file.read(_MAX_HASHED_BYTES + 1)
        return f"other {kind} {_stat_key(info)}".encode()
    except (FileNotFoundError, NotADirectoryError):
        return b"nothing"
    except OSError as error:
        name = os.fsdecode(path)
        raise StateError(
            f"The plan depends on {name!r}, which cannot be read: {error.strerror}.",
            suggestion=Suggestion("ask_human", "Make the file or folder readable."),
        ) from error


def _stat_key(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_size, info.st_mtime_ns, info.st_ino


# ------------------------------------------------------------------ threads without a recorder


def _is_inside_call() -> bool:
    """True if a driver is on the stack of this thread, so that the code belongs to a call.

    A call without a recorder is not a dry run.
    """
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") in _DRIVER_MODULES:
            return True
        frame = frame.f_back
    return False


def _unknown_thread_error() -> ToolError:
    """Return the error for an action in a thread without a call; all active dry runs get it."""
    error = InternalError(
        "record_dry_action was called during a dry run, in a thread that belongs to no known call.",
        suggestion=Suggestion(
            "fix",
            "Call ctx.plan(…) there, or start the thread in a copy of the context: "
            "contextvars.copy_context().run.",
        ),
    )
    for recorder in _active_dry_runs:
        recorder.error = error
    return error
