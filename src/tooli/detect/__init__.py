"""Who is calling: read from the environment, and only there unless more is asked for.

    TOOLI_CALLER ▸ strong markers ▸ AI_AGENT ▸ AGENT ▸ CI ▸ container ▸ terminal
    ╰ 1.0        ╰ 0.95, 0.9      ╰ 0.9      ╰ 0.85, 0.75 ╰ 0.95  ╰ 0.7     ╰ 0.8, 0.6

The first that speaks is the answer; all that spoke are candidates. Weak signals, which
people's shells have as well, are shown and never decide. What is found shapes output and
wording, never permission.
"""

from __future__ import annotations

import os
import sys

from tooli.contract.record import Record
from tooli.detect.markers import (
    ALIASES,
    CI,
    CONTAINERS,
    FALSE,
    NOT_AGENTS,
    SESSIONS,
    SHOWN,
    STRONG,
    VERSIONS,
    VETOES,
    WEAK,
    is_set,
    matches,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar


class CallerCategory(str):
    """What kind of caller it is."""

    __slots__ = ()

    HUMAN: ClassVar[CallerCategory]
    AI_AGENT: ClassVar[CallerCategory]
    CI_CD: ClassVar[CallerCategory]
    CONTAINER: ClassVar[CallerCategory]
    UNKNOWN_AUTOMATION: ClassVar[CallerCategory]
    PYTHON_API: ClassVar[CallerCategory]

    @property
    def value(self) -> str:
        """The word itself."""
        return str(self)


CATEGORIES = ("human", "ai_agent", "ci_cd", "container", "unknown_automation", "python_api")
for _word in CATEGORIES:
    setattr(CallerCategory, _word.upper(), CallerCategory(_word))

UNNAMED = "agent"
"""The candidate that says it is an agent, and not which."""
SURE = 0.8
"""From here on a detected caller is named; below, verbose mode says how to be sure."""
POSSIBLE = 0.5
"""Below this, an agent is not even possible enough for a word about it."""
LONGEST = 200
"""Characters of a name, version or session that are taken from the environment."""


class Candidate(Record):
    """Somebody who may be calling, how sure that is, and what it was seen by."""

    name: str
    category: CallerCategory
    confidence: float
    signals: tuple[str, ...]
    decides: bool = True  # False: a weak signal, which is only shown


class ExecutionContext(Record):
    """Who seems to be calling, how sure that is, and what it was seen by."""

    category: CallerCategory
    agent_name: str | None = None
    confidence: float = 0.0
    is_agent: bool = False
    is_ci: bool = False
    is_interactive: bool = False
    identified_via_convention: bool = False
    caller_id: str | None = None
    caller_version: str | None = None
    session_id: str | None = None
    platform: str = sys.platform
    signals: tuple[str, ...] = ()
    ci_name: str | None = None
    container: str | None = None
    candidates: tuple[Candidate, ...] = ()  # everybody who may be calling, the answer first


def detect_execution_context(
    env: Mapping[str, str] | None = None, *, surface: str | None = None, deep: bool = False
) -> ExecutionContext:
    """The caller of this process, from its environment and its terminal.

    `surface` is the door of a running call ("python" is a category of its own); `deep` also
    looks at the processes above this one and at the files of containers.
    """
    space = dict(os.environ) if env is None else env  # a dict: 150 questions are coming
    terminals = tuple([_is_terminal(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)])
    agents = _agents(space)
    systems = _systems(space, CI, CallerCategory.CI_CD)
    boxes = _systems(space, CONTAINERS, CallerCategory.CONTAINER)
    if deep:
        from tooli.detect import ancestry

        agents = _joined((*agents, *map(_agent_below, ancestry.agents())))
        boxes = _joined((*boxes, *map(_box, ancestry.containers())))
    last = _by_terminal(terminals, surface)
    candidates = (*agents, *systems, *boxes, last)
    candidates = (*_weaker(candidates), *_weak(space, {one.name for one in agents}))
    return _conclude(candidates, space, terminals)


def introduce(marked: bool) -> tuple[str | None, str | None, str | None, str | None]:
    """Name, version, session and category of a caller: by its own word, or where that is sure.

    Where nobody left a mark there is a session at most. Only `TOOLI_SESSION_ID` is a session of
    ours: what an agent calls a session of its own says nothing about what it was told before.
    """
    session = clean(os.environ.get("TOOLI_SESSION_ID"))
    if not marked:
        return None, None, session, None
    context = detect_execution_context()
    sure = context.is_agent and context.confidence >= SURE
    kind = str(context.category) if context.is_agent or context.is_ci else None
    if sure or context.identified_via_convention:
        return context.caller_id, context.caller_version, session, str(context.category)
    return None, None, session, kind


def category_of(name: str) -> CallerCategory:
    """What a caller who says its name is: an agent, unless the name is known for another kind."""
    return CallerCategory(NOT_AGENTS.get(name.lower(), "ai_agent"))


def shown_name(name: str) -> str:
    """An agent's name for people."""
    return SHOWN.get(name) or (name.replace("-", " ").title() if name.islower() else name)


def clean(text: str | None) -> str | None:
    """A value of the environment, fit to be shown: printable, of bounded length; None if empty."""
    if not text:
        return None
    if not text.isprintable():
        text = "".join([letter for letter in text if letter.isprintable()])
    return text.strip()[:LONGEST] or None


# ------------------------------------------------------------------ the answer


def _conclude(
    candidates: tuple[Candidate, ...], env: Mapping[str, str], terminals: tuple[bool, ...]
) -> ExecutionContext:
    first = candidates[0]
    agent = first.category == "ai_agent"
    named = clean(env.get("TOOLI_CALLER"))
    by_kind = {one.category: one for one in reversed(candidates) if one.decides}
    system, box = by_kind.get(CallerCategory.CI_CD), by_kind.get(CallerCategory.CONTAINER)
    return ExecutionContext(
        category=first.category,
        agent_name=shown_name(first.name) if agent and first.name != UNNAMED else None,
        confidence=first.confidence,
        is_agent=agent,
        is_ci=system is not None,
        is_interactive=terminals[0] and (terminals[1] or terminals[2]),
        identified_via_convention=named is not None,
        caller_id=named or (first.name if agent and first.name != UNNAMED else None),
        caller_version=_said(env, ("TOOLI_CALLER_VERSION",)) or _version(env, first),
        session_id=_said(env, ("TOOLI_SESSION_ID",)) or _said(env, SESSIONS.get(first.name, ())),
        signals=tuple([signal for one in candidates for signal in one.signals]),
        ci_name=system.name if system is not None else None,
        container=box.name if box is not None else None,
        candidates=candidates,
    )


def _version(env: Mapping[str, str], found: Candidate) -> str | None:
    told = _said(env, VERSIONS.get(found.name, ()))
    if told is None and found.category == "ai_agent":
        name, version = _read_ai_agent(env.get("AI_AGENT", ""))
        told = version if name == found.name else None
    return told


def _said(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if (text := clean(env.get(name)))), None)


# ------------------------------------------------------------------ candidates


def _agents(env: Mapping[str, str]) -> tuple[Candidate, ...]:
    """Agents by their own word and by strong markers, surest first."""
    found: list[Candidate] = []
    caller = clean(env.get("TOOLI_CALLER"))
    if caller is not None:
        signal = f"TOOLI_CALLER={caller}"
        found.append(Candidate(caller, category_of(caller), 1.0, (signal,)))
    vetoed = {name for name, variable in VETOES.items() if variable in env}
    for name, confidence, row in STRONG:
        signals = tuple([marker for marker in row if matches(env, marker)])
        if signals and name not in vetoed:
            found.append(Candidate(name, CallerCategory.AI_AGENT, confidence, signals))
    name, _ = _read_ai_agent(env.get("AI_AGENT", ""))
    if name is not None:
        signal = f"AI_AGENT={clean(env['AI_AGENT'])}"
        found.append(Candidate(name, CallerCategory.AI_AGENT, 0.9, (signal,)))
    if not vetoed:
        found += _by_agent_variable(env.get("AGENT", ""), found)
    return _joined(tuple(found))


def _read_ai_agent(text: str) -> tuple[str | None, str | None]:
    """Name and version in `AI_AGENT`: `claude-code_2-1-325_agent` is claude-code, 2.1.325."""
    said = clean(text)
    if said is None or said.lower() in FALSE:
        return None, None
    words = said.split("_")
    if len(words) > 1 and words[-1] == "agent":
        words.pop()
    version = None
    if len(words) > 1 and words[-1][:1].isdigit():
        version = words.pop().replace("-", ".")
    name = "_".join(words)
    return ALIASES.get(name, UNNAMED if name in ("1", "true") else name), version


def _by_agent_variable(said: str, found: list[Candidate]) -> list[Candidate]:
    """`AGENT`: a name is trusted a little, `1` says that there is some agent, other texts nothing.

    A name is a word as agents have them: a path or a host is somebody else's variable.
    """
    name = clean(said)
    if name is None or name.lower() in FALSE:
        return []
    signal = (f"AGENT={name}",)
    if name.lower() in ("1", "true", "yes"):
        known = found[0].name if found and found[0].category == "ai_agent" else UNNAMED
        return [Candidate(known, CallerCategory.AI_AGENT, 0.75, signal)]
    if len(name) > 40 or not name.replace("-", "").replace("_", "").isalnum():
        return []
    known = name in SHOWN or any(row[0] == name for row in STRONG)
    return [Candidate(name, CallerCategory.AI_AGENT, 0.85 if known else 0.75, signal)]


def _joined(found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """One candidate for each name: with all its signals, as sure as the surest of them."""
    kept: dict[str, Candidate] = {}
    for one in found:
        before = kept.get(one.name)
        if before is not None:
            sure = max(before.confidence, one.confidence)
            signals = (*before.signals, *(s for s in one.signals if s not in before.signals))
            one = before.replace(confidence=sure, signals=signals)
        kept[one.name] = one
    return tuple(kept.values())


def _systems(
    env: Mapping[str, str], table: tuple[tuple[str, str], ...], category: CallerCategory
) -> tuple[Candidate, ...]:
    """CI systems or containers; the row that names none only speaks where no other does."""
    sure = 0.95 if category == "ci_cd" else 0.7
    found: list[Candidate] = []
    for name, marker in table:
        if not (matches(env, marker) if "=" in marker else is_set(env, marker)):
            continue
        if name != "ci":
            found.append(Candidate(name, category, sure, (marker,)))
        elif found:
            found[0] = found[0].replace(signals=(*found[0].signals, marker))
        else:
            found.append(Candidate(name, category, 0.85, (marker,)))
    return tuple(found)


def _agent_below(found: tuple[str, str]) -> Candidate:
    """An agent that a process above this one, or its files, gave away."""
    return Candidate(found[0], CallerCategory.AI_AGENT, 0.8, (found[1],))


def _box(found: tuple[str, str]) -> Candidate:
    return Candidate(found[0], CallerCategory.CONTAINER, 0.9, (found[1],))


def _by_terminal(terminals: tuple[bool, ...], surface: str | None) -> Candidate:
    """Who it is where nobody left a mark: whoever has a terminal is a person."""
    stdin, stdout, stderr = terminals
    if surface == "python":
        return Candidate("python", CallerCategory.PYTHON_API, 0.9, ("app.call",))
    if stdout:
        return Candidate("human", CallerCategory.HUMAN, 0.8, ("stdout is a terminal",))
    if stdin and stderr:
        signals = ("stdin and stderr are terminals",)
        return Candidate("human", CallerCategory.HUMAN, 0.6, signals)
    return Candidate("unknown", CallerCategory.UNKNOWN_AUTOMATION, 0.5, ("no terminal",))


def _weaker(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """In a container with a terminal there is a person: the container is where, not who."""
    last = candidates[-1]
    if last.category == "human" and candidates[0].category == "container":
        return (last, *candidates[:-1])
    return candidates


def _weak(env: Mapping[str, str], known: set[str]) -> tuple[Candidate, ...]:
    """What people's shells have as well: shown, and a little surer where two of a kind agree."""
    found: list[Candidate] = []
    for name, row in WEAK:
        signals = [marker for marker in row if matches(env, marker)]
        if signals and name not in known:
            sure = 0.5 if len(signals) > 1 or "&" in signals[0] else 0.3
            seen = tuple(signals)
            found.append(Candidate(name, CallerCategory.AI_AGENT, sure, seen, decides=False))
    return tuple(found)


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False
