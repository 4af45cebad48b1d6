"""Detect the caller of the process from environment variables and terminals.

    TOOLI_CALLER ▸ strong markers ▸ AI_AGENT ▸ AGENT ▸ CI ▸ container ▸ terminal
    ╰ 1.0        ╰ 0.95 to 0.8    ╰ 0.9      ╰ 0.85, 0.75 ╰ 0.95  ╰ 0.7     ╰ 0.8, 0.6

The first signal that is present determines the caller. The numbers are the confidence. All signals
are listed as candidates. Weak signals also occur in the shells of people, so they are only listed.
Detection changes output and wording, never permissions.
"""

from __future__ import annotations

import os
import sys

from tooli.core import Record, find_loaded
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
    matches,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.call import Caller
    from tooli.detect.categories import CallerCategory as CallerCategory

_TRUE_VALUES = ("1", "true", "yes")
"""Values of `AI_AGENT` and `AGENT` for an agent without a name."""


def _as_category(name: str) -> CallerCategory:
    """Return the name of a category for internal use; `detect_execution_context` returns members.

    The names are equal to the members.
    """
    return name  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


_HUMAN, _AI_AGENT, _CI_CD, _CONTAINER, _UNKNOWN, _PYTHON_API = map(
    _as_category,
    ("human", "ai_agent", "ci_cd", "container", "unknown_automation", "python_api"),
)

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


def __getattr__(name: str) -> object:
    if name == "CallerCategory":
        return _load_categories()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _load_categories() -> type[CallerCategory]:
    from tooli.detect.categories import CallerCategory

    return CallerCategory


def detect_execution_context(
    env: Mapping[str, str] | None = None, *, in_process: bool = False, deep: bool = False
) -> ExecutionContext:
    """Detect the caller: of the running call, or of this process.

    In a call from Python, from an MCP client or over HTTP, this is the caller of that call. On the
    command line, and outside of calls, it is detected from the environment and the terminals.

    Args:
        env: environment variables to use; by default those of the process.
        in_process: True for a call from Python code, which is a category of its own.
        deep: also check the parent processes and the files of containers.
    """
    variable = find_loaded("tooli.core.current_call", "current_call")
    if env is None and not in_process and variable is not None and variable.get() is not None:
        return describe_caller(variable.get().caller, deep=deep)
    return _with_members(detect_from_environment(env, in_process=in_process, deep=deep))


def describe_caller(caller: Caller, *, deep: bool = False) -> ExecutionContext:
    """Return the execution context of a call, by its caller."""
    context = detect_from_environment(in_process=caller.is_in_process, deep=deep)
    if caller.owns_process:
        return _with_members(context)
    name = caller.name
    if caller.is_in_process:
        first = Candidate("python", _PYTHON_API, 1.0, ("app.call",))
    elif caller.is_tool_client:
        first = Candidate(name or "mcp", _AI_AGENT, 0.95, (f"MCP client {name or ''}".rstrip(),))
    else:
        first = Candidate(name or "http", _UNKNOWN, 0.5, ("HTTP request",))
    is_agent = first.category == "ai_agent" or (name is not None and category_of(name) == _AI_AGENT)
    others = [each for each in context.candidates if each.name != first.name]
    return _with_members(
        context.replace(
            category=first.category,
            agent_name=display_name(name) if is_agent and name is not None else None,
            confidence=first.confidence,
            is_agent=is_agent,
            is_ci=context.is_ci and caller.is_in_process,
            is_interactive=context.is_interactive and caller.is_in_process,
            identified_via_convention=name is not None and caller.is_in_process,
            caller_id=name,
            caller_version=caller.version,
            session_id=caller.session,
            signals=(*first.signals, *[signal for each in others for signal in each.signals]),
            candidates=(first, *others),
        )
    )


def _with_members(context: ExecutionContext) -> ExecutionContext:
    """Return a context whose categories are members of CallerCategory."""
    category = _load_categories()
    candidates = [each.replace(category=category(each.category)) for each in context.candidates]
    return context.replace(category=category(context.category), candidates=tuple(candidates))


def detect_from_environment(
    env: Mapping[str, str] | None = None, *, in_process: bool = False, deep: bool = False
) -> ExecutionContext:
    """Detect the caller of this process. The categories of the result are plain text."""
    environ = dict(os.environ) if env is None else env  # a dict is faster for 150 lookups
    terminals = tuple([_is_terminal(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)])
    agents = _detect_agents(environ)
    systems = _detect_systems(environ, CI_MARKERS, _CI_CD)
    containers = _detect_systems(environ, CONTAINER_MARKERS, _CONTAINER)
    if deep:
        from tooli.detect import parent_processes

        agents = _merge_candidates(
            *agents,
            *[
                Candidate(name, _AI_AGENT, 0.8, (signal,))
                for name, signal in parent_processes.find_agents()
            ],
        )
        containers = _merge_candidates(
            *containers,
            *[
                Candidate(name, _CONTAINER, 0.9, (signal,))
                for name, signal in parent_processes.find_containers()
            ],
        )
    fallback = _terminal_candidate(terminals, in_process)
    candidates = (*agents, *systems, *containers, fallback)
    if fallback.category == "human" and candidates[0].category == "container":
        candidates = (fallback, *candidates[:-1])  # a person at the terminal of a container
    candidates += _detect_weak_signals(environ, {agent.name for agent in agents})
    return _build_context(candidates, environ, terminals)


def identify_caller(context: ExecutionContext) -> tuple[str | None, str | None, str | None]:
    """Return the name, version and category of a caller.

    Name and version are None unless TOOLI_CALLER is set or an agent was detected with certainty.
    The category is also returned for other agents and for CI systems.
    """
    is_certain = context.is_agent and context.confidence >= MIN_NAMED_CONFIDENCE
    if is_certain or context.identified_via_convention:
        return context.caller_id, context.caller_version, str(context.category)
    return None, None, str(context.category) if context.is_agent or context.is_ci else None


def category_of(name: str) -> CallerCategory:
    """Return the category of a name in `TOOLI_CALLER`; an unknown name is an agent."""
    return _as_category(NON_AGENT_CALLERS.get(name.lower(), "ai_agent"))


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
    is_agent = first.category == "ai_agent"
    agent_id = first.name if is_agent and first.name != UNNAMED_AGENT else None
    declared_name = sanitize_value(env.get("TOOLI_CALLER"))
    by_category = {each.category: each for each in reversed(candidates) if each.decides}
    system = by_category.get(_CI_CD)
    container = by_category.get(_CONTAINER)
    return ExecutionContext(
        category=first.category,
        agent_name=display_name(agent_id) if agent_id is not None else None,
        confidence=first.confidence,
        is_agent=is_agent,
        is_ci=system is not None,
        is_interactive=terminals[0] and (terminals[1] or terminals[2]),
        identified_via_convention=declared_name is not None,
        caller_id=declared_name or agent_id,
        caller_version=_first_value(env, ("TOOLI_CALLER_VERSION",)) or _caller_version(env, first),
        session_id=_first_value(env, ("TOOLI_SESSION_ID",))
        or _first_value(env, SESSION_VARIABLES.get(first.name, ())),
        signals=tuple([signal for candidate in candidates for signal in candidate.signals]),
        ci_name=system.name if system is not None else None,
        container=container.name if container is not None else None,
        candidates=candidates,
    )


def _caller_version(env: Mapping[str, str], caller: Candidate) -> str | None:
    reported = _first_value(env, VERSION_VARIABLES.get(caller.name, ()))
    if reported is None and caller.category == "ai_agent":
        name, version = _parse_ai_agent(env.get("AI_AGENT", ""))
        reported = version if name == caller.name else None
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
    cancelled = {name for name, variable in HUMAN_TERMINAL_VARIABLES.items() if variable in env}
    for name, confidence, markers in STRONG_MARKERS:
        signals = tuple([marker for marker in markers if matches(env, marker)])
        if signals and name not in cancelled:
            found.append(Candidate(name, _AI_AGENT, confidence, signals))
    name, _ = _parse_ai_agent(env.get("AI_AGENT", ""))
    if name is not None:
        signal = f"AI_AGENT={sanitize_value(env['AI_AGENT'])}"
        found.append(Candidate(name, _AI_AGENT, 0.9, (signal,)))
    if not cancelled:
        found += _parse_agent_variable(env.get("AGENT", ""), found)
    return _merge_candidates(*found)


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
    return UNNAMED_AGENT if name.lower() in _TRUE_VALUES else AGENT_ALIASES.get(name, name), version


def _parse_agent_variable(value: str, found: list[Candidate]) -> list[Candidate]:
    """Parse `AGENT`: a name, or `1`, which means the first agent in `found` or an unnamed one.

    A value with other characters, such as a path or a host, does not come from an agent.
    """
    name = sanitize_value(value)
    if name is None or name.lower() in FALSE_VALUES:
        return []
    signal = (f"AGENT={name}",)
    if name.lower() in _TRUE_VALUES:
        name = found[0].name if found and found[0].category == "ai_agent" else UNNAMED_AGENT
        return [Candidate(name, _AI_AGENT, 0.75, signal)]
    if len(name) > 40 or not name.replace("-", "").replace("_", "").isalnum():
        return []
    is_known = name in DISPLAY_NAMES or any(row[0] == name for row in STRONG_MARKERS)
    return [Candidate(name, _AI_AGENT, 0.85 if is_known else 0.75, signal)]


def _merge_candidates(*found: Candidate) -> tuple[Candidate, ...]:
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
        if not matches(env, marker):
            continue
        if name != "ci":
            found.append(Candidate(name, category, confidence, (marker,)))
        elif found:
            found[0] = found[0].replace(signals=(*found[0].signals, marker))
        else:
            found.append(Candidate(name, category, 0.85, (marker,)))
    return tuple(found)


def _terminal_candidate(terminals: tuple[bool, ...], in_process: bool) -> Candidate:
    """Return the caller if no marker decides: Python code, a person or an unknown program."""
    stdin, stdout, stderr = terminals
    if in_process:
        return Candidate("python", _PYTHON_API, 0.9, ("app.call",))
    if stdout:
        return Candidate("human", _HUMAN, 0.8, ("stdout is a terminal",))
    if stdin and stderr:
        signals = ("stdin and stderr are terminals",)
        return Candidate("human", _HUMAN, 0.6, signals)
    return Candidate("unknown", _UNKNOWN, 0.5, ("no terminal",))


def _detect_weak_signals(env: Mapping[str, str], known_names: set[str]) -> tuple[Candidate, ...]:
    """Return the candidates with weak markers. Two markers give a higher confidence than one."""
    found: list[Candidate] = []
    for name, markers in WEAK_MARKERS:
        signals = [marker for marker in markers if matches(env, marker)]
        if signals and name not in known_names:
            confidence = 0.5 if len(signals) > 1 or "&" in signals[0] else 0.3
            found.append(Candidate(name, _AI_AGENT, confidence, tuple(signals), decides=False))
    return tuple(found)


def _is_terminal(stream: object) -> bool:
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False
