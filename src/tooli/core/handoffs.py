"""Handoffs: what makes sense after a tool, as its author says, or as a result itself says."""

from __future__ import annotations

from types import GenericAlias

from tooli.core.record import Record
from tooli.errors import DefinitionError, closest_match
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Generic, TypeVar

    from tooli.core.tool import Tool

    T = TypeVar("T")

    class _NextBase(Generic[T]):
        result: T
else:

    class _NextBase:
        """Says `Next[…]` without the price of `typing`."""

        __slots__ = ("result",)
        __class_getitem__ = classmethod(GenericAlias)

    T = None


class Handoff(Record):
    """A command that may follow another, and when it should."""

    command: str  # its name in the catalogue, once that is known
    when: str = ""

    def to_dict(self) -> dict[str, str]:
        """As JSON has it."""
        return (
            {"command": self.command, "when": self.when} if self.when else {"command": self.command}
        )


class NextStep(Record):
    """One call that a result suggests."""

    command: str
    arguments: Mapping[str, Any]
    why: str


class Next(_NextBase[T]):
    """A result, and what to run next: `return Next(found, "rename", {"rule": rule}, why="…")`.

    A tool that returns it says so: `-> Next[list[File]]`. Callers get the result itself, and
    the steps in `meta.next`, as command lines.
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
        """The same, with one more step."""
        self.steps = (*self.steps, NextStep(command, arguments or {}, why))
        return self

    def __repr__(self) -> str:
        return f"Next({self.result!r}, {', '.join([step.command for step in self.steps])})"


def is_next(annotation: Any) -> bool:
    """Whether an annotation says `Next[…]`, or plain `Next`."""
    return getattr(annotation, "__origin__", annotation) is Next


def read_handoffs(handoffs: Any, tool_name: str) -> tuple[Handoff, ...]:
    """What an author gave as `handoffs=`: names, or names with the moment for them."""
    if isinstance(handoffs, (str, bytes, dict)):
        raise DefinitionError(
            f"{tool_name}: handoffs= is a list, such as [{{'command': 'rename'}}]"
        )
    return tuple([_read_handoff(handoff, tool_name) for handoff in handoffs])


def _read_handoff(handoff: Any, tool_name: str) -> Handoff:
    if isinstance(handoff, str):
        return Handoff(handoff)
    if isinstance(handoff, Handoff):
        return handoff
    if not is_object(handoff) or not isinstance(handoff.get("command"), str):
        raise DefinitionError(
            f"{tool_name}: a handoff is the name of a command, or {{'command': …, 'when': …}}"
        )
    for key in handoff:
        if key not in ("command", "when"):
            suggestion = closest_match(key, ("command", "when"))
            hint = f"; did you mean {suggestion!r}?" if suggestion else ""
            raise DefinitionError(f"{tool_name}: a handoff has no {key!r}{hint}")
    return Handoff(handoff["command"], str(handoff.get("when") or ""))


# ------------------------------------------------------------------ names


def candidate_keys(tool: Tool, name: str) -> Iterable[str]:
    """The keys that a name may stand for, seen from a tool: a sibling's first."""
    key = name.replace("/", " ").replace(".", " ").replace("_", "-").split()
    for depth in range(len(tool.path) - 1, -1, -1):
        yield ".".join((*tool.path[:depth], *key))


def resolve_handoffs(tools: dict[str, Tool]) -> dict[str, Tool]:
    """The same tools, each handoff under its command's own key; one to nowhere is refused."""
    keys = {key.replace("_", "-"): key for key in tools}
    return {
        key: _resolve_tool_handoffs(tool, lambda name: keys.get(name))
        if tool.guidance.handoffs
        else tool
        for key, tool in tools.items()
    }


def _resolve_tool_handoffs(tool: Tool, find_key: Callable[[str], str | None]) -> Tool:
    resolved: list[Handoff] = []
    for handoff in tool.guidance.handoffs:
        found = next(filter(None, map(find_key, candidate_keys(tool, handoff.command))), None)
        if found is None:
            raise DefinitionError(
                f"{tool.key or tool.name}: handoffs= names {handoff.command!r}, "
                "and the app has no such command"
            )
        resolved.append(Handoff(found, handoff.when))
    return tool.replace(guidance=tool.guidance.replace(handoffs=tuple(resolved)))
