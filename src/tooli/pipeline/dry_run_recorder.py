"""Rehearsals: a function runs without acting, and tells what it would have done.

    --dry-run ─▶ rehearsed: record_dry_action writes down, and says True: do not do it
    --apply   ─▶ rehearsed and compared, then held: it says False: do it, if that was planned

Which of the two is going on stands in a context variable, so that it reaches whatever the
function calls. A thread that the function starts itself does not have it: there nothing is
let through while anything is being rehearsed, and `ctx.plan(…)`, which needs no variable, works.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Token
    from typing import Any, TypeVar

    from tooli.errors import ToolError

    F = TypeVar("F", bound=Callable[..., Any])

MAX_ACTIONS, MAX_STREAM_ITEMS = 10_000, 1_000_000
"""What a plan may hold, and how much of a stream is run through to make it."""
_MAX_HASHED_BYTES = (
    16 << 20
)  # bytes of a file that is known by its content; a larger one by its looks
_DRIVER_MODULES = frozenset(("tooli.pipeline.drivers", "tooli.pipeline.async_drivers"))

_current_recorder: ContextVar[ActionRecorder | None] = ContextVar("tooli_ledger", default=None)
_is_execution_disabled: ContextVar[bool] = ContextVar("tooli_read_only", default=False)
_active_dry_runs: list[DryRunRecorder] = []  # all that are going on in this process


def dry_run_support(fn: F) -> F:
    """Say of a function that it is safe to run under `--dry-run`: it asks before it acts.

    Each thing that it does to the world stands behind `record_dry_action`. The function stays
    what it was. Without this mark `--dry-run` does not run it at all.
    """
    try:
        fn.tooli_supports_dry_run = True  # pyright: ignore[reportFunctionMemberAccess]
    except AttributeError:
        from tooli.errors import DefinitionError

        raise DefinitionError(
            f"dry_run_support({fn!r}): mark the function itself, where it is defined"
        ) from None
    return fn


def record_dry_action(
    action: str, target: object, *, details: Mapping[str, Any] | None = None, state: Any = None
) -> bool:
    """Note what is about to be done; True in a dry run: then it must not be done.

        if not record_dry_action("delete", path, state=path):
            path.unlink()

    `state` is what the plan rests on: a path (what is there), or any value. Where that is
    another one when the plan is applied, it is refused. Outside of a dry run it is not looked at.
    """
    recorder = _current_recorder.get()
    if recorder is not None:
        return recorder.record_action(action, target, details, state)
    if _active_dry_runs and not _is_inside_call():
        raise _unknown_thread_error()
    return False


def supports_dry_run(fn: Any) -> bool:
    """Whether a function may be run under a dry run."""
    return bool(getattr(fn, "tooli_supports_dry_run", False)) and not _is_execution_disabled.get()


def is_dry_run_active() -> bool:
    """Whether the code that asks is being rehearsed."""
    recorder = _current_recorder.get()
    return recorder is not None and recorder.is_dry_run


def record_nested_call(plan: dict[str, Any]) -> None:
    """Tell a rehearsal that is going on of a call inside it that cannot say more than its plan."""
    recorder = _current_recorder.get()
    if isinstance(recorder, DryRunRecorder):
        recorder.record_action("call", plan["tool"], plan["arguments"], None)


class DryRunExecutionDisabled:
    """A block in which a dry run runs no function: lines are only read."""

    def __enter__(self) -> None:
        self._reset_tokens = _is_execution_disabled.set(True)

    def __exit__(self, *_: object) -> None:
        _is_execution_disabled.reset(self._reset_tokens)


# ------------------------------------------------------------------ ledgers


class ActionRecorder:
    """What a running function says of its actions; entered around each stretch of its code."""

    is_dry_run = False

    def __init__(self) -> None:
        self.error: ToolError | None = None  # sticky: functions swallow what is raised in them
        self._reset_tokens: list[Token[ActionRecorder | None]] = []

    def record_action(self, action: str, target: object, details: Any, state: Any) -> bool:
        """Take an action; whether it must not be done."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self._reset_tokens.append(_current_recorder.set(self))

    def __exit__(self, *_: object) -> None:
        _current_recorder.reset(self._reset_tokens.pop())

    def raise_if_failed(self) -> None:
        """Fail where something went wrong on the way, even if the function hid it."""
        if self.error is not None:
            raise self.error


class DryRunRecorder(ActionRecorder):
    """The actions that a function would have done, in their order."""

    is_dry_run = True

    def __init__(self) -> None:
        super().__init__()
        self.actions: list[dict[str, Any]] = []
        self.is_truncated = False  # a stream was too long to be run through
        self.discarded_outputs: list[Any] = []  # outputs that lead nowhere
        self._outer_recorder = _current_recorder.get()

    def __enter__(self) -> None:
        _active_dry_runs.append(self)
        super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        _active_dry_runs.remove(self)

    def record_action(self, action: str, target: object, details: Any, state: Any) -> bool:
        """Write an action down."""
        self.add(describe_action(action, target, details, state))
        return True

    def add(self, entry: dict[str, Any]) -> None:
        """Write down what is described already; a rehearsal inside another tells that one, too."""
        if len(self.actions) >= MAX_ACTIONS:
            from tooli.errors import Suggestion, ToolRuntimeError

            self.error = ToolRuntimeError(
                f"The plan has more than {MAX_ACTIONS} actions.",
                suggestion=Suggestion(
                    "retry_with_modified_input", "Ask for less at once: narrow the arguments."
                ),
            )
            raise self.error
        self.actions.append(entry)
        if isinstance(self._outer_recorder, DryRunRecorder):
            self._outer_recorder.add(entry)

    def finish(self) -> dict[str, Any]:
        """What was found, in JSON's own types: it may come from another process."""
        for output in self.discarded_outputs:
            output.discard()
        self.raise_if_failed()
        return {"actions": self.actions, "cut": self.is_truncated}


class PlanEnforcer(ActionRecorder):
    """A function that acts, held to what was planned: nothing else is let through.

    An action is known by its name and target. What is told of its state is not asked for again:
    the actions before it may have changed that, as they were meant to.
    """

    def __init__(self, actions: list[dict[str, Any]]) -> None:
        super().__init__()
        self._planned_actions = {(entry["action"], entry["target"]) for entry in actions}
        self._completed_actions: list[dict[str, Any]] = []

    def record_action(self, action: str, target: object, details: Any, state: Any) -> bool:
        """Let a planned action through; refuse any other before it is done."""
        entry = describe_action(action, target, None, None)
        if (entry["action"], entry["target"]) not in self._planned_actions:
            from tooli.pipeline.planning import unplanned_action_error

            self.error = unplanned_action_error(entry, self._completed_actions)
            raise self.error
        self._completed_actions.append(entry)
        return False


def describe_action(action: str, target: object, details: Any, state: Any) -> dict[str, Any]:
    """An action as a plan shows it."""
    from tooli.text.jsonable import to_jsonable

    raw_target: Any = target
    target_name = (
        os.fsdecode(raw_target)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(raw_target, (str, bytes, os.PathLike))
        else str(raw_target)
    )
    entry: dict[str, Any] = {"action": str(action), "target": target_name}
    if details:
        entry["details"] = to_jsonable(dict(details), [])
    if state is not None:
        entry["state"] = digest_state(state)
    return entry


def digest_state(state: Any) -> str:
    """What tells a state from another: of a path what is there, of a value the value."""
    from tooli.core.call_fingerprint import digest
    from tooli.text.json_encoder import encode

    if isinstance(state, os.PathLike):
        data = _snapshot_path(os.fspath(state))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(state, (bytes, bytearray, memoryview)):
        data = bytes(state)  # pyright: ignore[reportUnknownArgumentType]
    else:
        data = encode(state, [])
    return digest(data, 12).hex()


def _snapshot_path(path: Any) -> bytes:
    """What is at a path: a file's content, a folder's entries; of what is huge, its looks."""
    from tooli.core.call_fingerprint import digest

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
                return b"file " + digest(file.read(_MAX_HASHED_BYTES + 1), 32)
        return f"other {kind} {_stat_key(info)}".encode()
    except FileNotFoundError:
        return b"nothing"
    except OSError as error:
        return f"unreadable {error.errno}".encode()


def _stat_key(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_size, info.st_mtime_ns, info.st_ino


# ------------------------------------------------------------------ lost threads


def _is_inside_call() -> bool:
    """Whether a driver of ours stands below this code: then it is a call that is not rehearsed."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") in _DRIVER_MODULES:
            return True
        frame = frame.f_back
    return False


def _unknown_thread_error() -> ToolError:
    """The refusal of an action in a thread that nobody knows, while something is rehearsed."""
    from tooli.errors import InternalError, Suggestion

    error = InternalError(
        "record_dry_action was called in a thread that belongs to no call, during a dry run.",
        suggestion=Suggestion(
            "fix",
            "The author calls ctx.plan(…) there, or starts the thread in a copy of the context: "
            "contextvars.copy_context().run.",
        ),
    )
    for recorder in _active_dry_runs:
        recorder.error = error
    return error
