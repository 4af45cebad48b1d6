"""Check commands whose own parameters have the names of safety options.

A parameter `dry_run` takes `--dry-run` away from tooli, which then answers to `--tooli-dry-run`. If
the function ignores its parameter, `rm --dry-run --yes` deletes the file. The author is told when
the command is registered: by a warning, or by an error under the policy `strict`. The keyword
`own_options` says that it is meant.
"""

from __future__ import annotations

from _warnings import warn

from tooli.core import SAFETY_OPTIONS, SafetyOptionWarning
from tooli.errors import DefinitionError, function_location
from tooli.schema.tool_reader import parameter_names

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tooli.core import AppState
    from tooli.providers import Registration

_REGISTERING_FRAMES = 4  # from `warn` to the decorator in the code of the app


def check_safety_options(registration: Registration, state: AppState) -> None:
    """Warn about a command whose parameters replace safety options, or raise DefinitionError."""
    fn = registration.known_fn
    if fn is None:  # a lazy command, which is not imported
        return
    declared = frozenset(registration.kwargs.get("own_options") or ())
    model = registration.kwargs.get("input_model")
    names = {*_parameter_names(fn), *getattr(model, "model_fields", ())}
    location = registration.location or function_location(fn)
    missing = sorted(declared - names)
    if missing:
        message = f"own_options={missing!r}: the command has no such parameter"
        raise DefinitionError(message, location)
    replaced = sorted((SAFETY_OPTIONS & names) - declared)
    if not replaced or state.policy == "off":
        return
    message = _describe(registration.command_name, replaced)
    if any([level.declared_policy == "strict" for level in state.self_and_ancestors()]):
        raise DefinitionError(message, location)
    try:
        warn(message, SafetyOptionWarning, stacklevel=_REGISTERING_FRAMES)
    except SafetyOptionWarning:  # warnings are errors: the app must run as with Typer
        pass


def _parameter_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return parameter_names(fn)
    except (TypeError, ValueError):  # a function in C has no signature; its call reports that
        return ()


def _describe(command: str, replaced: Sequence[str]) -> str:
    flags = [f"--{name.replace('_', '-')}" for name in replaced]
    tooli_flags = [f"--tooli-{flag[2:]}" for flag in flags]
    return (
        f"the command {command!r} has a parameter {' and '.join(map(repr, replaced))}: "
        f"{' and '.join(flags)} sets the parameter, and tooli's own option is "
        f"{' and '.join(tooli_flags)}. Rename the parameter, or write own_options={replaced!r} if "
        "the function does what the option promises"
    )
