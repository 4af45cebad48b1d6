"""What an author says about who may run a command, what it may touch, and who is asked first."""

from __future__ import annotations

from tooli.core.tool import Guard
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DANGER_LEVELS = ("none", "low", "medium", "high", "critical", "forbidden")
"""How bad it can get, from the least to the worst."""


def read_guard(kwargs: Mapping[str, Any], name: str) -> Guard:
    """The guard of a command; raises DefinitionError for what nobody could hold it to."""
    auth, danger, isolation = (
        kwargs.get("auth"),
        kwargs.get("danger_level"),
        kwargs.get("isolation"),
    )
    if auth is not None and (isinstance(auth, str) or not all([isinstance(s, str) for s in auth])):
        raise DefinitionError(f"{name}: auth= is a list of scopes, such as ['files:write']")
    if danger is not None and danger not in DANGER_LEVELS:
        raise DefinitionError(f"{name}: danger_level= is one of {', '.join(DANGER_LEVELS)}")
    if isolation not in (None, "required"):
        raise DefinitionError(f"{name}: isolation= is 'required', or not said")
    return Guard(
        scopes=None if auth is None else tuple(auth),
        capabilities=_read_declared_capabilities(kwargs.get("capabilities"), name),
        approval=bool(kwargs.get("requires_approval")),
        human_in_the_loop=bool(kwargs.get("human_in_the_loop")),
        danger=danger,
        auto_confirm=bool(kwargs.get("agent_auto_confirm")),
        isolation=isolation,
    )


def _read_declared_capabilities(capabilities: object, name: str) -> tuple[str, ...]:
    if capabilities is None:
        return ()
    from tooli.core.declared_capabilities import read_capabilities

    return read_capabilities(capabilities, f"{name}: capabilities=")
