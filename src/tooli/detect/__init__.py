"""Detect the caller of the process from environment variables and terminals.

    TOOLI_CALLER ▸ strong markers ▸ AI_AGENT ▸ AGENT ▸ CI ▸ container ▸ terminal
    ╰ 1.0        ╰ 0.95, 0.9      ╰ 0.9      ╰ 0.85, 0.75 ╰ 0.95  ╰ 0.7     ╰ 0.8, 0.6

The first signal that is present determines the caller. The numbers are the confidence. All signals
are listed as candidates. Weak signals also occur in the shells of people, so they are only listed.
Detection changes output and wording, never permissions.
"""

from __future__ import annotations

import os
import sys

from tooli.core.record import Record
from tooli.detect.markers import (
    AGENT_ALIASES,
    CI_MARKERS,
    CONTAINER_MARKERS,
    DISPLAY_NAMES,
    FALSE_VALUES,
    HUMAN_TERMINAL_VARIABLES,
    NON_AGENT_CALLERS,
    SESSION_VARIABLES,
    STRONG_MARKERS,
    VERSION_VARIABLES,
    WEAK_MARKERS,
    is_set,
    matches,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar


class CallerCategory(str):
    """The kind of a caller."""

    __slots__ = ()

    HUMAN: ClassVar[CallerCategory]
    AI_AGENT: ClassVar[CallerCategory]
    CI_CD: ClassVar[CallerCategory]
    CONTAINER: ClassVar[CallerCategory]
    UNKNOWN_AUTOMATION: ClassVar[CallerCategory]
    PYTHON_API: ClassVar[CallerCategory]

    @property
    def value(self) -> str:
        """The category as a plain str, like the `value` of an enum member."""
        return str(self)


CATEGORIES = ("human", "ai_agent", "ci_cd", "container", "unknown_automation", "python_api")
for _category in CATEGORIES:
    setattr(CallerCategory, _category.upper(), CallerCategory(_category))

UNNAMED_AGENT = "agent"
"""Name of an agent that does not identify itself."""
MIN_NAMED_CONFIDENCE = 0.8
"""Minimum confidence for the name of a caller in `meta`."""
MIN_HINT_CONFIDENCE = 0.5
"""Minimum confidence for the hint in verbose mode that the caller may be an agent."""
MAX_VALUE_CHARS = 200
"""Maximum length of a name, version or session from the environment."""


class Candidate(Record):
    """A possible caller, with the confidence and the signals of its detection."""

    name: str
    category: CallerCategory
    confidence: float
    signals: tuple[str, ...]
    decides: bool = True  # False: a weak signal, which is only listed


class ExecutionContext(Record):
    """The detected caller, with the confidence and the signals of the detection."""

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
    candidates: tuple[Candidate, ...] = ()  # all possible callers, the detected one first


def detect_execution_context(
    env: Mapping[str, str] | None = None, *, in_process: bool = False, deep: bool = False
) -> ExecutionContext:
    """Detect the caller of this process from its environment and its terminals.

    Args:
        env: environment variables; by default those of the process.
        in_process: True for a call from Python code, which is a category of its own.
        deep: also check the parent processes and the files of containers.
    """
    environ = dict(os.environ) if env is None else env  # a dict is faster for 150 lookups
    terminals = tuple([_is_terminal(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)])
    agents = _detect_agents(environ)
    systems = _detect_systems(environ, CI_MARKERS, CallerCategory.CI_CD)
    containers = _detect_systems(environ, CONTAINER_MARKERS, CallerCategory.CONTAINER)
    if deep:
        from tooli.detect import parent_processes

        agents = _merge_candidates(
            (*agents, *map(_agent_candidate, parent_processes.find_agents()))
        )
        containers = _merge_candidates(
            (*containers, *map(_container_candidate, parent_processes.find_containers()))
        )
    fallback = _terminal_candidate(terminals, in_process)
    candidates = (*agents, *systems, *containers, fallback)
    candidates = (
        *_prefer_human_in_container(candidates),
        *_detect_weak_signals(environ, {agent.name for agent in agents}),
    )
    return _build_context(candidates, environ, terminals)


def identify_caller(context: ExecutionContext) -> tuple[str | None, str | None, str | None]:
    """Return name, version and category of a caller; None for each that is not certain."""
    is_certain = context.is_agent and context.confidence >= MIN_NAMED_CONFIDENCE
    if is_certain or context.identified_via_convention:
        return context.caller_id, context.caller_version, str(context.category)
    return None, None, str(context.category) if context.is_agent or context.is_ci else None


def category_of(name: str) -> CallerCategory:
    """Return the category of a name in `TOOLI_CALLER`; an unknown name is an agent."""
    return CallerCategory(NON_AGENT_CALLERS.get(name.lower(), "ai_agent"))


def display_name(name: str) -> str:
    """Return the name of an agent for display, for example "Claude Code"."""
    return DISPLAY_NAMES.get(name) or (name.replace("-", " ").title() if name.islower() else name)


def sanitize_value(text: str | None) -> str | None:
    """Return a value of the environment without control characters, shortened; None if empty."""
    if not text:
        return None
    if not text.isprintable():
        text = "".join([char for char in text if char.isprintable()])
    return text.strip()[:MAX_VALUE_CHARS] or None


# ------------------------------------------------------------------ result


def _build_context(
    candidates: tuple[Candidate, ...], env: Mapping[str, str], terminals: tuple[bool, ...]
) -> ExecutionContext:
    first = candidates[0]
    agent = first.category == "ai_agent"
    declared_name = sanitize_value(env.get("TOOLI_CALLER"))
    by_category = {found.category: found for found in reversed(candidates) if found.decides}
    system = by_category.get(CallerCategory.CI_CD)
    container = by_category.get(CallerCategory.CONTAINER)
    return ExecutionContext(
        category=first.category,
        agent_name=display_name(first.name) if agent and first.name != UNNAMED_AGENT else None,
        confidence=first.confidence,
        is_agent=agent,
        is_ci=system is not None,
        is_interactive=terminals[0] and (terminals[1] or terminals[2]),
        identified_via_convention=declared_name is not None,
        caller_id=declared_name or (first.name if agent and first.name != UNNAMED_AGENT else None),
        caller_version=_first_value(env, ("TOOLI_CALLER_VERSION",)) or _caller_version(env, first),
        session_id=_first_value(env, ("TOOLI_SESSION_ID",))
        or _first_value(env, SESSION_VARIABLES.get(first.name, ())),
        signals=tuple([signal for found in candidates for signal in found.signals]),
        ci_name=system.name if system is not None else None,
        container=container.name if container is not None else None,
        candidates=candidates,
    )


def _caller_version(env: Mapping[str, str], found: Candidate) -> str | None:
    reported = _first_value(env, VERSION_VARIABLES.get(found.name, ()))
    if reported is None and found.category == "ai_agent":
        name, version = _parse_ai_agent(env.get("AI_AGENT", ""))
        reported = version if name == found.name else None
    return reported


def _first_value(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((text for name in names if (text := sanitize_value(env.get(name)))), None)


# ------------------------------------------------------------------ candidates


def _detect_agents(env: Mapping[str, str]) -> tuple[Candidate, ...]:
    """Return agents that identify themselves or have a strong marker, most certain first."""
    found: list[Candidate] = []
    caller = sanitize_value(env.get("TOOLI_CALLER"))
    if caller is not None:
        signal = f"TOOLI_CALLER={caller}"
        found.append(Candidate(caller, category_of(caller), 1.0, (signal,)))
    vetoed = {name for name, variable in HUMAN_TERMINAL_VARIABLES.items() if variable in env}
    for name, confidence, row in STRONG_MARKERS:
        signals = tuple([marker for marker in row if matches(env, marker)])
        if signals and name not in vetoed:
            found.append(Candidate(name, CallerCategory.AI_AGENT, confidence, signals))
    name, _ = _parse_ai_agent(env.get("AI_AGENT", ""))
    if name is not None:
        signal = f"AI_AGENT={sanitize_value(env['AI_AGENT'])}"
        found.append(Candidate(name, CallerCategory.AI_AGENT, 0.9, (signal,)))
    if not vetoed:
        found += _from_agent_variable(env.get("AGENT", ""), found)
    return _merge_candidates(tuple(found))


def _parse_ai_agent(text: str) -> tuple[str | None, str | None]:
    """Parse `AI_AGENT`: `claude-code_2-1-325_agent` is claude-code, version 2.1.325."""
    value = sanitize_value(text)
    if value is None or value.lower() in FALSE_VALUES:
        return None, None
    parts = value.split("_")
    if len(parts) > 1 and parts[-1] == "agent":
        parts.pop()
    version = None
    if len(parts) > 1 and parts[-1][:1].isdigit():
        version = parts.pop().replace("-", ".")
    name = "_".join(parts)
    return AGENT_ALIASES.get(name, UNNAMED_AGENT if name in ("1", "true") else name), version


def _from_agent_variable(value: str, found: list[Candidate]) -> list[Candidate]:
    """Parse `AGENT`: a name, or `1` for an unnamed agent.

    A value with other characters, such as a path or a host, does not come from an agent.
    """
    name = sanitize_value(value)
    if name is None or name.lower() in FALSE_VALUES:
        return []
    signal = (f"AGENT={name}",)
    if name.lower() in ("1", "true", "yes"):
        known = found[0].name if found and found[0].category == "ai_agent" else UNNAMED_AGENT
        return [Candidate(known, CallerCategory.AI_AGENT, 0.75, signal)]
    if len(name) > 40 or not name.replace("-", "").replace("_", "").isalnum():
        return []
    known = name in DISPLAY_NAMES or any(row[0] == name for row in STRONG_MARKERS)
    return [Candidate(name, CallerCategory.AI_AGENT, 0.85 if known else 0.75, signal)]


def _merge_candidates(found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Merge candidates of the same name into one with all signals and the highest confidence."""
    merged: dict[str, Candidate] = {}
    for candidate in found:
        first = merged.get(candidate.name)
        if first is not None:
            confidence = max(first.confidence, candidate.confidence)
            more = [signal for signal in candidate.signals if signal not in first.signals]
            candidate = first.replace(confidence=confidence, signals=(*first.signals, *more))
        merged[candidate.name] = candidate
    return tuple(merged.values())


def _detect_systems(
    env: Mapping[str, str], table: tuple[tuple[str, str], ...], category: CallerCategory
) -> tuple[Candidate, ...]:
    """Return CI systems or containers. `CI` alone is a candidate if no system is recognized."""
    confidence = 0.95 if category == "ci_cd" else 0.7
    found: list[Candidate] = []
    for name, marker in table:
        if not (matches(env, marker) if "=" in marker else is_set(env, marker)):
            continue
        if name != "ci":
            found.append(Candidate(name, category, confidence, (marker,)))
        elif found:
            found[0] = found[0].replace(signals=(*found[0].signals, marker))
        else:
            found.append(Candidate(name, category, 0.85, (marker,)))
    return tuple(found)


def _agent_candidate(found: tuple[str, str]) -> Candidate:
    """Return the candidate for an agent that a parent process or a file indicates."""
    return Candidate(found[0], CallerCategory.AI_AGENT, 0.8, (found[1],))


def _container_candidate(found: tuple[str, str]) -> Candidate:
    return Candidate(found[0], CallerCategory.CONTAINER, 0.9, (found[1],))


def _terminal_candidate(terminals: tuple[bool, ...], in_process: bool) -> Candidate:
    """Return the candidate if there are no markers: Python code, a person, or unknown."""
    stdin, stdout, stderr = terminals
    if in_process:
        return Candidate("python", CallerCategory.PYTHON_API, 0.9, ("app.call",))
    if stdout:
        return Candidate("human", CallerCategory.HUMAN, 0.8, ("stdout is a terminal",))
    if stdin and stderr:
        signals = ("stdin and stderr are terminals",)
        return Candidate("human", CallerCategory.HUMAN, 0.6, signals)
    return Candidate("unknown", CallerCategory.UNKNOWN_AUTOMATION, 0.5, ("no terminal",))


def _prefer_human_in_container(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Put the person before the container if the process has a terminal."""
    fallback = candidates[-1]
    if fallback.category == "human" and candidates[0].category == "container":
        return (fallback, *candidates[:-1])
    return candidates


def _detect_weak_signals(env: Mapping[str, str], known_names: set[str]) -> tuple[Candidate, ...]:
    """Return candidates with weak markers; two markers raise the confidence."""
    found: list[Candidate] = []
    for name, row in WEAK_MARKERS:
        signals = [marker for marker in row if matches(env, marker)]
        if signals and name not in known_names:
            confidence = 0.5 if len(signals) > 1 or "&" in signals[0] else 0.3
            matched = tuple(signals)
            found.append(
                Candidate(name, CallerCategory.AI_AGENT, confidence, matched, decides=False)
            )
    return tuple(found)


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False
