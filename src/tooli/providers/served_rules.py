"""The rules of a function that is served as a resource or a prompt.

The function may be a command as well, or several commands in several apps. The strictest of all
their rules applies to the resource.
"""

from __future__ import annotations

from tooli.core.definitions import CALLERS, DANGER_LEVELS, read_guard
from tooli.core.tool import Behavior, Guard, can_only_read
from tooli.errors import DefinitionError
from tooli.providers.app_levels import iter_levels
from tooli.providers.registration_origins import is_transformed, origin_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tooli.core import AppState
    from tooli.core.tool import Limits, Tool
    from tooli.providers import Levels, Registration


def find_levels(root: AppState, state: AppState) -> Levels:
    """Return the apps whose rules apply to a resource of an app that is called through `root`.

    A resource has no path. If the app was added at several places, the rules of all of them apply.
    """
    levels = [level for found in iter_levels(root) if found[-1] is state for level in found]
    above = root.self_and_ancestors() if levels else state.self_and_ancestors()
    return tuple(dict.fromkeys([*above[::-1], *levels]))


def find_commands(root: AppState, fn: Callable[..., object]) -> list[tuple[Registration, Levels]]:
    """Return the commands of a function in an app and in all apps that are connected to it."""
    outermost = [state for state in root.self_and_ancestors() if not state.parents]
    found: dict[Registration, Levels] = {}
    for state in outermost:
        for levels in iter_levels(state):
            for registration in levels[-1].commands:
                if registration.is_for(fn):
                    found[registration] = (*found.get(registration, ()), *levels)
    return list(found.items())


def find_command_tools(
    root: AppState, fn: Callable[..., object]
) -> Iterator[tuple[Registration, Tool]]:
    """Iterate over the commands of a function in all connected apps, each with its tool."""
    for state in root.self_and_ancestors():
        if state.parents or state.app is None:
            continue
        tree = state.app.tree()
        for path, registration in tree.walk():
            if registration.is_for(fn):
                yield registration, registration.tool(path, tree)


# ------------------------------------------------------------------ transforms


def has_transforms(root: AppState) -> bool:
    """True if an app that is connected to `root` has transforms."""
    return any([state.transforms for state in _connected_states(root)])


def is_left_out(
    root: AppState,
    fn: Callable[..., object],
    registrations: Sequence[Registration],
    needed_names: Sequence[str],
) -> bool:
    """True if transforms of a connected app leave out a command of a function, or its arguments.

    `needed_names` are the parameters that clients of the resource fill in.
    """
    for state in root.self_and_ancestors():
        if not state.parents and state.app is not None:
            state.app.tree()  # applies the transforms
    left_out = [state.left_out for state in _connected_states(root)]
    if any([registration in found for registration in registrations for found in left_out]):
        return True
    try:
        _, changed = find_changed_tools(root, fn)
    except DefinitionError:  # a transform cannot change the command, which is refused
        return True
    lacks_name = [not tool.param_names.issuperset(needed_names) for tool in changed]
    return len(changed) > 1 or any(lacks_name)


def find_changed_tools(root: AppState, fn: Callable[..., object]) -> tuple[list[Tool], list[Tool]]:
    """Return the tools of a function that transforms have changed; those with other arguments.

    The names of a command with versions are one command. Raises DefinitionError if a transform
    cannot change a command.
    """
    if not has_transforms(root):
        return [], []
    found: dict[Registration, tuple[Registration, Tool]] = {}
    for registration, tool in find_command_tools(root, fn):
        if is_transformed(registration):
            found[origin_of(registration)] = (registration, tool)
    changed = [tool for _, tool in found.values()]
    with_arguments = [tool for origin, (r, tool) in found.items() if r.fn is not origin.fn]
    return changed, with_arguments


def with_arguments_of(tool: Tool, command: Tool) -> Tool:
    """Return the tool of a served function with the function and the arguments of its command."""
    return tool.replace(
        fn=command.fn,
        params=command.params,
        param_names=command.param_names,
        is_fast_path=command.is_fast_path,
        route=command.route,
    )


def _connected_states(root: AppState) -> list[AppState]:
    outermost = [state for state in root.self_and_ancestors() if not state.parents]
    return [levels[-1] for state in outermost for levels in iter_levels(state)]


# ------------------------------------------------------------------ combining


def combine_guards(
    registrations: Sequence[Registration],
    own_scopes: Sequence[str] | None,
    changed: Sequence[Tool] = (),
) -> Guard:
    """Return the strictest guard: a caller that may read the resource may run every command.

    `changed` are the commands whose guards transforms may have changed.
    """
    guards = [read_guard(registration.kwargs) for registration in registrations]
    guards += [tool.guard for tool in changed]
    scopes = [guard.scopes for guard in guards if guard.scopes is not None]
    if own_scopes is not None:
        scopes.append(tuple(own_scopes))
    # All declared capabilities apply: what the function accesses must be in each declaration.
    declared = [guard.capabilities for guard in guards if guard.capabilities]
    dangers = [guard.danger for guard in guards if guard.danger is not None]
    return Guard(
        scopes=tuple(dict.fromkeys([s for group in scopes for s in group])) if scopes else None,
        capabilities=declared[0] if declared else (),
        approval=any([guard.approval for guard in guards]),
        human_in_the_loop=any([guard.human_in_the_loop for guard in guards]),
        danger=max(dangers, key=DANGER_LEVELS.index) if dangers else None,
        auto_confirm=bool(guards) and all([guard.auto_confirm for guard in guards]),
        isolation="required" if any([guard.isolation for guard in guards]) else None,
        app_permissions=tuple(declared[1:]),
        callers=_combine_callers(guards),
        audience=combine_audiences(changed),
    )


NOBODY = ""
"""The role that no caller has."""


def combine_audiences(tools: Iterable[Tool]) -> tuple[str, ...]:
    """Return the roles that see all commands of a function; empty if every caller does."""
    restricted = [tool.guard.audience for tool in tools if tool.guard.audience]
    if not restricted:
        return ()
    roles = [role for role in restricted[0] if all([role in other for other in restricted])]
    return tuple(roles or [NOBODY])


def _combine_callers(guards: Sequence[Guard]) -> tuple[str, ...]:
    """Return who may call every command; "nobody" if the commands exclude each other."""
    restricted = [guard.callers for guard in guards if guard.callers]
    allowed = [name for name in CALLERS if all([name in callers for callers in restricted])]
    return tuple(allowed or ["nobody"]) if restricted else ()


def combine_behaviors(registrations: Sequence[Registration], guard: Guard) -> Behavior:
    """Return the behavior of the resource: read-only, unless a command declares something else."""
    declared = [registration.kwargs.get("annotations") for registration in registrations]
    behaviors = [behavior for behavior in declared if behavior is not None]
    return Behavior(
        read_only=all([behavior.read_only for behavior in behaviors])
        and can_only_read(guard.capabilities),
        destructive=any([behavior.destructive for behavior in behaviors]),
        idempotent=bool(behaviors) and all([behavior.idempotent for behavior in behaviors]),
        open_world=any([behavior.open_world for behavior in behaviors]),
    )


def combine_limits(registrations: Sequence[Registration], limits: Limits) -> Limits:
    """Return limits with the shortest timeout of the commands, and all their rate limits."""
    timeouts = [registration.kwargs.get("timeout") for registration in registrations]
    declared_timeouts = [timeout for timeout in timeouts if timeout is not None]
    counters = [counter for registration in registrations for counter in registration.rate_counters]
    return limits.replace(
        timeout=min(declared_timeouts, default=None),
        rate_limit=counters[0][0] if counters else None,
        rate_counters=tuple(counters),
    )
