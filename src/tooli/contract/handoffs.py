"""Handoffs: what makes sense after a tool, as its author says, or as a result itself says."""

from __future__ import annotations

from types import GenericAlias

from tooli.contract.jsonable import is_object
from tooli.contract.record import Record
from tooli.errors import DefinitionError, nearest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Generic, TypeVar

    from tooli.contract.tool import Tool

    T = TypeVar("T")

    class _Carrier(Generic[T]):
        result: T
else:

    class _Carrier:
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


class Step(Record):
    """One call that a result suggests."""

    command: str
    arguments: Mapping[str, Any]
    why: str


class Next(_Carrier[T]):
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
        self.steps: tuple[Step, ...] = ()
        if command is not None:
            self.then(command, arguments, why=why)

    def then(
        self, command: str, arguments: Mapping[str, Any] | None = None, *, why: str = ""
    ) -> Next[T]:
        """The same, with one more step."""
        self.steps = (*self.steps, Step(command, arguments or {}, why))
        return self

    def __repr__(self) -> str:
        return f"Next({self.result!r}, {', '.join([step.command for step in self.steps])})"


def is_next(annotation: Any) -> bool:
    """Whether an annotation says `Next[…]`, or plain `Next`."""
    return getattr(annotation, "__origin__", annotation) is Next


def read_handoffs(said: Any, where: str) -> tuple[Handoff, ...]:
    """What an author gave as `handoffs=`: names, or names with the moment for them."""
    if isinstance(said, (str, bytes, dict)):
        raise DefinitionError(f"{where}: handoffs= is a list, such as [{{'command': 'rename'}}]")
    return tuple([_read(one, where) for one in said])


def _read(said: Any, where: str) -> Handoff:
    if isinstance(said, str):
        return Handoff(said)
    if isinstance(said, Handoff):
        return said
    if not is_object(said) or not isinstance(said.get("command"), str):
        raise DefinitionError(
            f"{where}: a handoff is the name of a command, or {{'command': …, 'when': …}}"
        )
    for key in said:
        if key not in ("command", "when"):
            meant = nearest(key, ("command", "when"))
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise DefinitionError(f"{where}: a handoff has no {key!r}{hint}")
    return Handoff(said["command"], str(said.get("when") or ""))


# ------------------------------------------------------------------ names


def candidates(tool: Tool, name: str) -> Iterable[str]:
    """The keys that a name may stand for, seen from a tool: a sibling's first."""
    key = name.replace("/", " ").replace(".", " ").replace("_", "-").split()
    for above in range(len(tool.path) - 1, -1, -1):
        yield ".".join((*tool.path[:above], *key))


def settle(tools: dict[str, Tool]) -> dict[str, Tool]:
    """The same tools, each handoff under its command's own key; one to nowhere is refused."""
    keys = {key.replace("_", "-"): key for key in tools}
    return {
        key: _settled(tool, lambda name: keys.get(name)) if tool.guidance.handoffs else tool
        for key, tool in tools.items()
    }


def _settled(tool: Tool, known: Callable[[str], str | None]) -> Tool:
    settled: list[Handoff] = []
    for handoff in tool.guidance.handoffs:
        found = next(filter(None, map(known, candidates(tool, handoff.command))), None)
        if found is None:
            raise DefinitionError(
                f"{tool.key or tool.name}: handoffs= names {handoff.command!r}, "
                "and the app has no such command"
            )
        settled.append(Handoff(found, handoff.when))
    return tool.replace(guidance=tool.guidance.replace(handoffs=tuple(settled)))
