"""Handoffs: commands to run next, which an author declares or a result suggests."""

from __future__ import annotations

from types import GenericAlias

from tooli.core.record import Record
from tooli.errors import closest_match
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Generic, TypeVar

    from tooli.core.keywords import HandoffOptions
    from tooli.core.tool import Tool

    T = TypeVar("T")

    class _NextBase(Generic[T]):
        result: T
else:

    class _NextBase:
        """Supports `Next[…]` without importing `typing`."""

        __slots__ = ("result",)
        __class_getitem__ = classmethod(GenericAlias)

    T = None


class Handoff(Record):
    """A command that may follow another command, and when to use it."""

    command: str  # as the author writes it; in a Catalog, its key
    when: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the handoff as a JSON object."""
        return (
            {"command": self.command, "when": self.when} if self.when else {"command": self.command}
        )


class NextStep(Record):
    """One call that a result suggests."""

    command: str
    arguments: Mapping[str, Any]
    why: str


class Next(_NextBase[T]):
    """A result and the calls to make next.

        def find(pattern: str) -> Next[list[File]]:
            return Next(found, "rename", {"rule": rule}, why="the names are not unique")

    Callers get the result itself, and the next calls as command lines in `meta.next`.
    """

    __slots__ = ("steps",)

    def __init__(
        self,
        result: T,
        command: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        why: str = "",
    ) -> None:
        self.result = result
        self.steps: tuple[NextStep, ...] = ()
        if command is not None:
            self.then(command, arguments, why=why)

    def then(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, why: str = ""
    ) -> Next[T]:
        """Add one more call, and return self."""
        self.steps = (*self.steps, NextStep(command, arguments or {}, why))
        return self

    def __repr__(self) -> str:
        return f"Next({self.result!r}, {', '.join([step.command for step in self.steps])})"


def is_next(annotation: Any) -> bool:
    """True if an annotation is `Next[…]` or plain `Next`."""
    return getattr(annotation, "__origin__", annotation) is Next


def handoffs_problem(value: object) -> str | None:
    """Return an error message for an invalid value of `handoffs=`, or None."""
    if not is_list(value):
        return "must be a list, such as ['rename'] or [{'command': 'rename', 'when': '…'}]"
    return next(filter(None, map(_handoff_problem, value)), None)


def _handoff_problem(handoff: object) -> str | None:
    if isinstance(handoff, (str, Handoff)):
        return None
    if not is_object(handoff) or not isinstance(handoff.get("command"), str):
        return "a handoff must be the name of a command or {'command': …, 'when': …}"
    for key in handoff:
        if key not in ("command", "when"):
            suggestion = closest_match(key, ("command", "when"))
            hint = f"; did you mean {suggestion!r}?" if suggestion else ""
            return f"a handoff has no {key!r}{hint}"
    if not isinstance(handoff.get("when") or "", str):
        return "the 'when' of a handoff must be a string"
    return None


def read_handoffs(
    handoffs: Sequence[str | Handoff | HandoffOptions],
) -> tuple[Handoff, ...]:
    """Return the Handoffs that a valid `handoffs=` declares."""
    return tuple([_read_handoff(handoff) for handoff in handoffs])


def _read_handoff(handoff: str | Handoff | HandoffOptions) -> Handoff:
    if isinstance(handoff, str):
        return Handoff(handoff)
    if isinstance(handoff, Handoff):
        return handoff
    return Handoff(handoff["command"], handoff.get("when") or "")


# ------------------------------------------------------------------ targets


def candidate_keys(tool: Tool, name: str) -> Iterable[str]:
    """Yield the catalog keys that a command name may refer to in a handoff of a tool.

    A command in the tool's own group comes first, then commands of the groups above it.
    """
    key = name.replace("/", " ").replace(".", " ").replace("_", "-").split()
    for depth in range(len(tool.path) - 1, -1, -1):
        yield ".".join((*tool.path[:depth], *key))


def resolve_handoffs(tool: Tool, keys: Iterable[str]) -> Tool:
    """Return the tool with the command names in its handoffs replaced by catalog keys.

    A handoff to an unknown command is removed, and `guidance.problem` reports it.
    """
    known = {key.replace("_", "-"): key for key in keys}
    resolved: list[Handoff] = []
    problem: str | None = None
    for handoff in tool.guidance.handoffs:
        found = next(filter(None, map(known.get, candidate_keys(tool, handoff.command))), None)
        if found is not None:
            resolved.append(Handoff(found, handoff.when))
        elif problem is None:
            suggestion = closest_match(handoff.command, known)
            hint = f"; did you mean {suggestion!r}?" if suggestion else ""
            problem = (
                f"{tool.key or tool.name}: handoffs= names {handoff.command!r}, "
                f"which is not a command of the app{hint}"
            )
    guidance = tool.guidance.replace(
        handoffs=tuple(resolved), handoffs_resolved=True, problem=problem
    )
    return tool.replace(guidance=guidance)
