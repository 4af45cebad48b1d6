"""What an author says about who may run a command, what it may touch, and who is asked first."""

from __future__ import annotations

from tooli.contract.tool import Guard
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DANGERS = ("none", "low", "medium", "high", "critical", "forbidden")
"""How bad it can get, from the least to the worst."""


def read_guard(said: Mapping[str, Any], name: str) -> Guard:
    """The guard of a command; raises DefinitionError for what nobody could hold it to."""
    auth, danger, isolation = said.get("auth"), said.get("danger_level"), said.get("isolation")
    if auth is not None and (isinstance(auth, str) or not all([isinstance(s, str) for s in auth])):
        raise DefinitionError(f"{name}: auth= is a list of scopes, such as ['files:write']")
    if danger is not None and danger not in DANGERS:
        raise DefinitionError(f"{name}: danger_level= is one of {', '.join(DANGERS)}")
    if isolation not in (None, "required"):
        raise DefinitionError(f"{name}: isolation= is 'required', or not said")
    return Guard(
        scopes=None if auth is None else tuple(auth),
        capabilities=_capabilities(said.get("capabilities"), name),
        approval=bool(said.get("requires_approval")),
        human_in_the_loop=bool(said.get("human_in_the_loop")),
        danger=danger,
        auto_confirm=bool(said.get("agent_auto_confirm")),
        isolation=isolation,
    )


def _capabilities(said: object, name: str) -> tuple[str, ...]:
    if said is None:
        return ()
    from tooli.contract.capabilities import read_capabilities

    return read_capabilities(said, f"{name}: capabilities=")
