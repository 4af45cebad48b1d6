"""What a call may touch: what its command declares, under its app's ceiling and the owner's lists.

capabilities=, permissions=  ─▶ declared ─┐
                                          ├─▶ allowance_for: all of it, met
allow_paths, deny_paths      ─▶ bounds   ─┘
"""

from __future__ import annotations

import os

from tooli.contract.capabilities import Allowance, allowance_of, is_below

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from tooli.contract.tool import Tool

ANYTHING = Allowance(
    reads=None,
    writes=None,
    deletes=None,
    net=True,
    spawns=True,
    env_reads=True,
    env_writes=True,
)


def allowance_for(tool: Tool, house: Any) -> Allowance | None:
    """All that a call to the tool may touch; None where nobody says anything about it."""
    declared, bounds = declared_for(tool, house), bounds_of(house)
    if declared is None or bounds is None:
        return declared or bounds
    return meet(declared, bounds)


def declared_for(tool: Tool, house: Any) -> Allowance | None:
    """What the command declares, under the ceilings that it is held to; these alone, where it
    declares nothing. All are met anew: links may lead a declared path out of a ceiling."""
    guard = tool.guard
    folder = os.path.expanduser(house.rules.get("work_dir") or "") or None
    found: Allowance | None = None
    for words in (guard.capabilities, *guard.ceilings):
        if words:
            one = allowance_of(words, folder)
            found = one if found is None else meet(found, one)
    return found


def bounds_of(house: Any) -> Allowance | None:
    """What the owner's lists leave: all lists of allowed paths must allow, and none deny."""
    allowed, denied = house.rules.get("allow_paths"), house.rules.get("deny_paths")
    if not allowed and not denied:
        return None
    places: tuple[str, ...] | None = None
    folder = house.rules.get("work_dir") or ""
    for one in allowed or ():
        places = _meet(places, tuple([settled(path, folder) for path in one]))
    refused = tuple([settled(path, folder) for path in denied or ()])
    return ANYTHING.replace(reads=places, writes=places, deletes=places, denied=refused)


def settled(path: str, folder: str = "") -> str:
    """A path of a setting: absolute, with links followed; relative ones are of that folder."""
    return os.path.realpath(os.path.join(os.path.expanduser(folder), os.path.expanduser(path)))


def meet(one: Allowance, other: Allowance) -> Allowance:
    """What both allow."""
    return Allowance(
        reads=_meet(one.reads, other.reads),
        writes=_meet(one.writes, other.writes),
        deletes=_meet(one.deletes, other.deletes),
        net=one.net and other.net,
        spawns=one.spawns and other.spawns,
        env_reads=one.env_reads and other.env_reads,
        env_writes=one.env_writes and other.env_writes,
        denied=tuple(dict.fromkeys((*one.denied, *other.denied))),
    )


def _meet(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if one is None or other is None:
        return other if one is None else one
    inner = [a for a in one if is_below(a, other)]
    return tuple(dict.fromkeys([*inner, *(b for b in other if is_below(b, one))]))
