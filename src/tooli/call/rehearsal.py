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

MOST_ACTIONS, MOST_ITEMS = 10_000, 1_000_000
"""What a plan may hold, and how much of a stream is run through to make it."""
_WHOLE = 16 << 20  # bytes of a file that is known by its content; a larger one by its looks
_DRIVERS = frozenset(("tooli.call.pipeline", "tooli.call.aio"))

_ledger: ContextVar[Ledger | None] = ContextVar("tooli_ledger", default=None)
_read_only: ContextVar[bool] = ContextVar("tooli_read_only", default=False)
_open: list[Rehearsal] = []  # all that are going on in this process


def dry_run_support(fn: F) -> F:
    """Say of a function that it is safe to run under `--dry-run`: it asks before it acts.

    Each thing that it does to the world stands behind `record_dry_action`. The function stays
    what it was. Without this mark `--dry-run` does not run it at all.
    """
    try:
        fn.tooli_rehearses = True  # pyright: ignore[reportFunctionMemberAccess]
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
    ledger = _ledger.get()
    if ledger is not None:
        return ledger.enter(action, target, details, state)
    if _open and not _in_a_call():
        raise _lost()
    return False


def rehearses(fn: Any) -> bool:
    """Whether a function may be run under a dry run."""
    return bool(getattr(fn, "tooli_rehearses", False)) and not _read_only.get()


def is_rehearsing() -> bool:
    """Whether the code that asks is being rehearsed."""
    ledger = _ledger.get()
    return ledger is not None and ledger.dry


def note_call(plan: dict[str, Any]) -> None:
    """Tell a rehearsal that is going on of a call inside it that cannot say more than its plan."""
    ledger = _ledger.get()
    if isinstance(ledger, Rehearsal):
        ledger.enter("call", plan["tool"], plan["arguments"], None)


class Unrehearsed:
    """A block in which a dry run runs no function: lines are only read."""

    def __enter__(self) -> None:
        self._before = _read_only.set(True)

    def __exit__(self, *_: object) -> None:
        _read_only.reset(self._before)


# ------------------------------------------------------------------ ledgers


class Ledger:
    """What a running function says of its actions; entered around each stretch of its code."""

    dry = False

    def __init__(self) -> None:
        self.fault: ToolError | None = None  # sticky: functions swallow what is raised in them
        self._before: list[Token[Ledger | None]] = []

    def enter(self, action: str, target: object, details: Any, state: Any) -> bool:
        """Take an action; whether it must not be done."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self._before.append(_ledger.set(self))

    def __exit__(self, *_: object) -> None:
        _ledger.reset(self._before.pop())

    def check(self) -> None:
        """Fail where something went wrong on the way, even if the function hid it."""
        if self.fault is not None:
            raise self.fault


class Rehearsal(Ledger):
    """The actions that a function would have done, in their order."""

    dry = True

    def __init__(self) -> None:
        super().__init__()
        self.actions: list[dict[str, Any]] = []
        self.cut = False  # a stream was too long to be run through
        self.unwritten: list[Any] = []  # outputs that lead nowhere
        self._outer = _ledger.get()

    def __enter__(self) -> None:
        _open.append(self)
        super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        _open.remove(self)

    def enter(self, action: str, target: object, details: Any, state: Any) -> bool:
        """Write an action down."""
        self.add(described(action, target, details, state))
        return True

    def add(self, entry: dict[str, Any]) -> None:
        """Write down what is described already; a rehearsal inside another tells that one, too."""
        if len(self.actions) >= MOST_ACTIONS:
            from tooli.errors import Suggestion, ToolRuntimeError

            self.fault = ToolRuntimeError(
                f"The plan has more than {MOST_ACTIONS} actions.",
                suggestion=Suggestion(
                    "retry_with_modified_input", "Ask for less at once: narrow the arguments."
                ),
            )
            raise self.fault
        self.actions.append(entry)
        if isinstance(self._outer, Rehearsal):
            self._outer.add(entry)

    def told(self) -> dict[str, Any]:
        """What was found, in JSON's own types: it may come from another process."""
        for output in self.unwritten:
            output.discard()
        self.check()
        return {"actions": self.actions, "cut": self.cut}


class Held(Ledger):
    """A function that acts, held to what was planned: nothing else is let through.

    An action is known by its name and target. What is told of its state is not asked for again:
    the actions before it may have changed that, as they were meant to.
    """

    def __init__(self, actions: list[dict[str, Any]]) -> None:
        super().__init__()
        self._planned = {(entry["action"], entry["target"]) for entry in actions}
        self._done: list[dict[str, Any]] = []

    def enter(self, action: str, target: object, details: Any, state: Any) -> bool:
        """Let a planned action through; refuse any other before it is done."""
        entry = described(action, target, None, None)
        if (entry["action"], entry["target"]) not in self._planned:
            from tooli.call.planning import off_the_plan

            self.fault = off_the_plan(entry, self._done)
            raise self.fault
        self._done.append(entry)
        return False


def described(action: str, target: object, details: Any, state: Any) -> dict[str, Any]:
    """An action as a plan shows it."""
    from tooli.contract.jsonable import jsonable

    aim: Any = target
    named = os.fsdecode(aim) if isinstance(aim, (str, bytes, os.PathLike)) else str(aim)  # pyright: ignore[reportUnknownArgumentType]
    entry: dict[str, Any] = {"action": str(action), "target": named}
    if details:
        entry["details"] = jsonable(dict(details), [])
    if state is not None:
        entry["state"] = digest_of_state(state)
    return entry


def digest_of_state(state: Any) -> str:
    """What tells a state from another: of a path what is there, of a value the value."""
    from tooli.call.canonical import digest
    from tooli.call.envelope import encode

    if isinstance(state, os.PathLike):
        seen = _seen_at(os.fspath(state))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(state, (bytes, bytearray, memoryview)):
        seen = bytes(state)  # pyright: ignore[reportUnknownArgumentType]
    else:
        seen = encode(state, [])
    return digest(seen, 12).hex()


def _seen_at(path: Any) -> bytes:
    """What is at a path: a file's content, a folder's entries; of what is huge, its looks."""
    from tooli.call.canonical import digest

    try:
        looks = os.lstat(path)
        kind = looks.st_mode & 0o170000
        if kind == 0o120000:
            return b"link " + os.fsencode(os.readlink(path))
        if kind == 0o040000:
            with os.scandir(path) as entries:
                found = sorted(
                    [(os.fsencode(entry.name), *_looks(entry.stat(follow_symlinks=False)))]
                    for entry in entries
                )
            return b"folder " + repr(found).encode()
        if kind == 0o100000 and looks.st_size <= _WHOLE:
            with open(path, "rb") as file:
                return b"file " + digest(file.read(_WHOLE + 1), 32)
        return f"other {kind} {_looks(looks)}".encode()
    except FileNotFoundError:
        return b"nothing"
    except OSError as failure:
        return f"unreadable {failure.errno}".encode()


def _looks(looks: os.stat_result) -> tuple[int, int, int]:
    return looks.st_size, looks.st_mtime_ns, looks.st_ino


# ------------------------------------------------------------------ lost threads


def _in_a_call() -> bool:
    """Whether a driver of ours stands below this code: then it is a call that is not rehearsed."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") in _DRIVERS:
            return True
        frame = frame.f_back
    return False


def _lost() -> ToolError:
    """The refusal of an action in a thread that nobody knows, while something is rehearsed."""
    from tooli.errors import InternalError, Suggestion

    fault = InternalError(
        "record_dry_action was called in a thread that belongs to no call, during a dry run.",
        suggestion=Suggestion(
            "fix",
            "The author calls ctx.plan(…) there, or starts the thread in a copy of the context: "
            "contextvars.copy_context().run.",
        ),
    )
    for rehearsal in _open:
        rehearsal.fault = fault
    return fault
