"""Resolve and check the paths in the arguments."""

from __future__ import annotations

import os
from copy import copy

from tooli.core.call_fingerprint import caller_arguments
from tooli.core.caller_files import check_bounds, current_file_rules
from tooli.core.tool import ConversionError, check_path_size, is_path
from tooli.errors import AuthError, InputError, Suggestion
from tooli.policy.allowed_access import make_file_rules, resolve_bounds
from tooli.text.jsonable import iter_children

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from tooli.core import AppState
    from tooli.core.call import Call, Stage, StageRun
    from tooli.core.declared_capabilities import AllowedAccess
    from tooli.pipeline import StageContext


def set_file_rules(context: StageContext) -> Stage | None:
    """Check the files that a caller names (`@FILE`, inputs) before anything reads them.

    The stage sets the rules while `bind` converts the arguments. Inputs and secrets keep them, and
    check the file when they open it.
    """
    rules = make_file_rules(context.tool, context.state)
    if rules is None:
        return None

    def apply_file_rules(call: Call) -> StageRun:
        previous = current_file_rules.get()
        current_file_rules.set(rules)
        try:
            return (yield call)
        finally:
            current_file_rules.set(previous)

    return apply_file_rules


def resolve_work_dir(context: StageContext) -> Stage:
    """Resolve relative paths against the setting `work_dir`.

    A command line changes into that folder when it starts. Other processes keep their current
    folder. For these the stage joins the paths in the arguments to `work_dir`, before `bind`
    checks the files.
    """
    state = context.state

    def resolve_paths(call: Call) -> StageRun:
        work_dir = _other_work_dir(state)
        if work_dir is None:
            return (yield call)
        arguments = dict(call.arguments)
        for param in call.tool.public_params:
            if param.name in arguments and is_path(param.shape):
                arguments[param.name] = _join_work_dir(arguments[param.name], work_dir)
        return (yield call.replace(arguments=arguments))

    return resolve_paths


def enforce_path_rules(context: StageContext) -> Stage:
    """Reject paths outside `allow_paths` or below `deny_paths`.

    The stage checks parameters that are paths. Paths in other text are checked when the function
    opens them (stage `capabilities`).
    """
    state = context.state

    def check_paths(call: Call) -> StageRun:
        work_dir, bounds = _other_work_dir(state), resolve_bounds(state)
        bound = dict(call.arguments)
        for name, value in caller_arguments(call).items():
            if work_dir is not None:  # defaults and paths in objects are not joined yet
                bound[name] = _join_paths(value, work_dir, {})
            if bounds is not None:
                for path in _iterate_paths(bound[name], set()):
                    _check_size(name, path)
                    if work_dir is not None and not os.path.isabs(path):
                        raise _relative_path_error(call, name, path)
                    check_path(call.tool.name, name, path, bounds)
        return (yield call if work_dir is None else call.replace(arguments=bound))

    return check_paths


def _other_work_dir(state: AppState) -> str | None:
    """Return the setting `work_dir`, if the process is in another folder."""
    work_dir = state.security_settings.get("work_dir")
    if work_dir is None:
        return None
    work_dir = os.path.realpath(os.path.expanduser(work_dir))
    return None if work_dir == os.path.realpath(os.curdir) else work_dir


def _join_work_dir(value: Any, work_dir: str) -> Any:
    """Join a path, or each path of a collection, to a folder; return other values unchanged."""
    if type(value) in (list, tuple, set, frozenset):
        return type(value)([_join_work_dir(item, work_dir) for item in value])
    if isinstance(value, str):
        return value if value == "-" or "://" in value else os.path.join(work_dir, value)
    if hasattr(value, "__fspath__") and not hasattr(value, "tooli_location"):
        return type(value)(os.path.join(work_dir, os.fsdecode(value)))
    return value


def _join_paths(value: Any, work_dir: str, joined_by_id: dict[int, Any]) -> Any:
    """Join each path inside a value to a folder. The function then uses the path that is checked.

    Collections, dicts, dataclasses and pydantic models are copied if they contain a path. Plain
    text is not a path. `joined_by_id` has the values that were joined before.
    """
    if hasattr(value, "tooli_location") or isinstance(value, (str, bytes)):
        return value
    if isinstance(value, os.PathLike):
        return _join_work_dir(value, work_dir)
    if id(value) not in joined_by_id:
        joined_by_id[id(value)] = value  # a value that contains itself is not joined
        joined_by_id[id(value)] = _join_parts(
            value, lambda part: _join_paths(part, work_dir, joined_by_id)
        )
    return joined_by_id[id(value)]


def _join_parts(value: Any, join: Callable[[Any], Any]) -> Any:
    """Return a copy of a value with each part joined, or the value if no part changes."""
    if type(value) in (list, tuple, set, frozenset):
        return type(value)([join(item) for item in value])
    if type(value) is dict:
        entries: dict[Any, Any] = {**value}
        return {join(key): join(item) for key, item in entries.items()}
    return _join_fields(value, join)


def _join_fields(value: Any, join: Callable[[Any], Any]) -> Any:
    """Return a copy of a dataclass or model with each field joined; other values unchanged."""
    names: Iterable[str] = getattr(value, "__dataclass_fields__", ())
    if hasattr(value, "__pydantic_fields__"):
        names = getattr(value, "__dict__", ())
    parts: dict[str, Any] = {name: getattr(value, name) for name in names if hasattr(value, name)}
    joined = {name: join(part) for name, part in parts.items()}
    if all([joined[name] is part for name, part in parts.items()]):
        return value
    copied = copy(value)
    for name, part in joined.items():
        object.__setattr__(copied, name, part)  # the object may be frozen
    return copied


def _relative_path_error(call: Call, name: str, path: str) -> AuthError:
    """Return the error for a relative path that cannot be joined to `work_dir`."""
    return AuthError(
        f"{call.tool.name} may not use the relative path {path!r} here: it is not resolved against "
        "the setting work_dir.",
        code="E2005",
        field=name,
        suggestion=Suggestion("retry_with_modified_input", "Use an absolute path."),
    )


def _iterate_paths(value: Any, seen_ids: set[int]) -> Iterator[str]:
    """Yield every path inside a value. Plain text is not a path."""
    if hasattr(value, "tooli_location"):
        location = getattr(value, "tooli_real_path", None) or value.tooli_location
        if location is not None and "://" not in location:
            yield os.fsdecode(location)
    elif isinstance(value, os.PathLike):
        yield os.fsdecode(value)  # pyright: ignore[reportUnknownArgumentType]
    elif id(value) not in seen_ids:
        seen_ids.add(id(value))
        for part in iter_children(value):
            yield from _iterate_paths(part, seen_ids)


def _check_size(name: str, path: str) -> None:
    try:
        check_path_size(path)
    except ConversionError as error:  # a path inside an object
        raise InputError(f"{name!r}: {error.message}", field=name) from None


def check_path(command: str, name: str, path: str, bounds: AllowedAccess) -> None:
    """Raise AuthError if the settings do not allow a path, which is the argument `name`."""
    for candidate in dict.fromkeys((path, os.path.expanduser(path))):  # the function may expand it
        check_bounds(command, path, os.path.realpath(candidate), bounds, name)
