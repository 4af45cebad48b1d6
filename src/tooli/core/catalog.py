"""Catalog: an app's tools by name, and the handoffs between them.

A handoff is a command that may follow another one. An author declares it with `handoffs=`. Its
target is looked up when the app is complete.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.errors import DefinitionError, function_location
from tooli.similar_names import did_you_mean
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tooli.core.protocols import HandoffOptions
    from tooli.core.tool import Tool


class Catalog:
    """An app's tools, in order of registration. Immutable; a transform is `Catalog -> Catalog`.

    A command with an invalid definition never affects the others. `problems` maps the key of such
    a command to its error. A command that cannot be read is not in the catalog. A handoff to an
    unknown command is removed from its tool.
    """

    __slots__ = ("_tools", "problems")

    def __init__(
        self, tools: Iterable[Tool], problems: Mapping[str, DefinitionError] | None = None
    ) -> None:
        self._tools = {tool.key: tool for tool in tools}
        self.problems: dict[str, DefinitionError] = {**(problems or {})}
        if any([tool.guidance.handoffs for tool in self._tools.values()]):
            self._resolve_handoffs()

    def _resolve_handoffs(self) -> None:
        keys = (*self._tools, *self.problems)
        for key, tool in self._tools.items():
            if tool.guidance.handoffs and not tool.guidance.handoffs_resolved:
                resolved = self._tools[key] = resolve_handoffs(tool, keys)
                problem = resolved.guidance.problem
                if problem is not None:
                    self.problems[key] = DefinitionError(problem, function_location(tool.fn))

    def find_problem(self, name: str) -> DefinitionError | None:
        """Return the definition error of a command that is not in the catalog, or None."""
        folded = _fold_name(name)
        for key, problem in self.problems.items():
            if key not in self._tools and _fold_name(key) == folded:
                return problem
        return None

    def __getitem__(self, key: str) -> Tool:
        return self._tools[key]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, key: object) -> bool:
        return key in self._tools

    def __repr__(self) -> str:
        return f"Catalog({', '.join(self._tools)})"


def _fold_name(name: str) -> str:
    """Return a name for comparison: lower case, with every separator replaced by `_`."""
    return name.lower().replace("-", "_").replace(".", "_").replace("/", "_").replace(" ", "_")


# ------------------------------------------------------------------ handoffs


class Handoff(Record):
    """A command that may follow another command, and when to use it."""

    command: str  # the name that the author wrote; in a Catalog, the command's key
    when: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the handoff as a JSON object."""
        return (
            {"command": self.command, "when": self.when} if self.when else {"command": self.command}
        )


def handoffs_problem(value: object) -> str | None:
    """Return what is wrong with a value of `handoffs=`, or None."""
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
            return f"a handoff has no {key!r}" + did_you_mean(key, ("command", "when"))
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
            hint = did_you_mean(handoff.command, known)
            problem = (
                f"{tool.key or tool.name}: handoffs= names {handoff.command!r}, "
                f"which is not a command of the app{hint}"
            )
    guidance = tool.guidance.replace(
        handoffs=tuple(resolved), handoffs_resolved=True, problem=problem
    )
    return tool.replace(guidance=guidance)
