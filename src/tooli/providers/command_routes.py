"""Decide which commands Typer must run on every interface, and add a route to their tools.

Typer runs a command if a callback or a custom class along its path may have an effect, or if it
takes an open file. The options of the callbacks become parameters of the tool. All other commands
are called directly.
"""

from __future__ import annotations

import functools
from pathlib import Path

from tooli.core.command_route import (
    CONVERTING_KEYWORDS,
    CommandRoute,
    RoutedParam,
    changes_runs,
)
from tooli.core.tool import (
    SCALAR_SHAPES,
    Injected,
    ListOf,
    Maybe,
    PathShape,
    TyperOnly,
    has_handle,
    is_handle,
    unwrap_optional,
)
from tooli.errors import DefinitionError, InternalError, function_location
from tooli.schema.tool_reader import may_have_secrets, read_tool

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool
    from tooli.providers import CommandGroup, Registration

_DESCRIPTIVE_SETTINGS = frozenset(
    (
        *("help_option_names", "max_content_width", "terminal_width", "color", "show_default"),
        *("allow_extra_args", "allow_interspersed_args", "ignore_unknown_options"),
    )
)
"""Keys of `context_settings` that only matter for a command line."""

_PARSING_KEYWORDS = frozenset(("parser", "click_type"))
_TYPER_KEYWORDS = CONVERTING_KEYWORDS | {
    *("mode", "encoding", "errors", "lazy", "atomic"),
    *("prompt", "confirmation_prompt", "prompt_required", "hide_input"),
}
"""Keywords of Option(…) that Typer applies when it runs the command."""


def add_route(tool: Tool, registration: Registration, tree: CommandGroup) -> Tool:
    """Return a tool that Typer runs, or the tool itself if it can be called directly."""
    groups = tree.along(tool.path)
    if not (
        any(map(_runs_code, groups))
        or changes_runs(registration.kwargs.get("cls"))
        or any([is_open_file(p) or _is_converted_by_author(p) for p in tool.params])
    ):
        return tool
    params = [_to_call_param(p) for p in tool.params]
    routed = {p.name: RoutedParam(p.name, None, p) for p in tool.params if p.kind != "injected"}
    for level, group in enumerate(groups):
        for param in _callback_params(group):
            name = _unused_name(param.name, ("app", *tool.path)[level], routed)
            routed[name] = RoutedParam(param.name, level, param)
            params.append(_to_call_param(param).replace(name=name))
    route = CommandRoute(tree.state, tool.path, registration, routed)
    return tool.replace(
        fn=functools.update_wrapper(RoutedFunction(), tool.fn),
        params=tuple(params),
        param_names=frozenset(routed),
        is_fast_path=False,
        has_handles=has_handle(tuple(params)),
        may_have_secrets=may_have_secrets(tuple(params)),
        route=route,
    )


class RoutedFunction:
    """The function of a tool with a route. The stage `callbacks` replaces it for each call."""

    def __call__(self, /, **arguments: object) -> object:
        """Refuse to run the function without its callbacks."""
        name = getattr(self, "__name__", "the function")
        raise InternalError(f"{name} was not run, because its callbacks would not have run.")


# ------------------------------------------------------------------ which commands


def _runs_code(group: CommandGroup) -> bool:
    """True if a level has a callback or settings that have an effect when a command runs."""
    settings = group.typer_settings
    return (
        (group.callback is not None and not _does_nothing(group.callback))
        or "result_callback" in settings
        or changes_runs(settings.get("cls"))
        or not settings.get("context_settings", {}).keys() <= _DESCRIPTIVE_SETTINGS
    )


def _does_nothing(callback: Callable[..., object]) -> bool:
    """True for a callback that exists only for its docstring."""
    code = getattr(callback, "__code__", None)
    if code is None or hasattr(callback, "__wrapped__"):
        return False
    has_parameters = code.co_argcount or code.co_kwonlyargcount or code.co_flags & 0x0C
    return not has_parameters and code.co_code in _EMPTY_CODE and not code.co_names


def _empty() -> None:
    pass


def _empty_with_docstring() -> None:
    """Do nothing."""


_EMPTY_CODE = (_empty.__code__.co_code, _empty_with_docstring.__code__.co_code)


# ------------------------------------------------------------------ parameters


def is_open_file(param: Param) -> bool:
    """True for `typer.FileText` and the other open files of Typer."""
    return isinstance(param.shape, TyperOnly) and any(_file_classes(param.shape.annotation))


def _is_converted_by_author(param: Param) -> bool:
    """True if a callback, a type of Click or a parser of the app needs Typer.

    Typer also passes the default to them. A parser of a required value is called directly.
    """
    keywords = param.option_kwargs
    return (
        "callback" in keywords
        or "click_type" in keywords
        or ("parser" in keywords and isinstance(param.default, str))
    )


def _file_classes(annotation: Any) -> Iterator[bool]:
    """Yield True for each class in an annotation that is an open file of Typer."""
    for part in getattr(annotation, "__args__", ()):
        yield from _file_classes(part)
    if isinstance(annotation, type):
        for base in annotation.__mro__:
            yield base.__module__ == "typer.models" and base.__name__.startswith("File")


def read_callback(fn: Callable[..., object]) -> Tool:
    """Return a Tool that describes the parameters of a callback.

    Raises a DefinitionError for a parameter that only commands support. Callbacks run before the
    call, so nothing would read its input, hide its secret or put its output file in place.
    """
    tool = read_tool(fn, app="", path=("",), kwargs={})
    for param in tool.params:
        is_injected = isinstance(param.shape, Injected) and param.shape.kind != "typer"
        if is_injected or is_handle(param.shape):
            name = getattr(fn, "__name__", "callback")
            declared = getattr(param.annotation, "__name__", None) or str(param.annotation)
            advice = (
                "use typer.Context, or declare it in the commands"
                if is_injected
                else "declare it in the commands, or take the text as str"
            )
            raise DefinitionError(
                f"{name}({param.name}): callbacks do not support {declared}; {advice}",
                function_location(fn),
            )
    return tool


def _callback_params(group: CommandGroup) -> Iterator[Param]:
    """Yield the parameters of a level's callback, with the help from its docstring."""
    if group.callback is None:
        return
    from tooli.core.docstring import read_docstring

    docs = read_docstring(group.callback.__doc__).params
    for param in read_callback(group.callback).params:
        if param.kind == "injected":
            continue
        if param.help is None and param.name in docs:
            param = param.replace(option_kwargs={**param.option_kwargs, "help": docs[param.name]})
        yield param


def _unused_name(name: str, group: str, taken: Mapping[str, object]) -> str:
    """Return the name of a callback's parameter; if it is taken, add the name of the group."""
    if name not in taken:
        return name
    full_name = f"{group.replace('-', '_')}_{name}"
    while full_name in taken:
        full_name += "_"
    return full_name


def _to_call_param(param: Param) -> Param:
    """Return a parameter as callers give it.

    A value that only Typer can convert is given as on the command line: as text, or as the path
    of a file.
    """
    if param.kind == "injected":
        return param
    keywords = {k: v for k, v in param.option_kwargs.items() if k not in _TYPER_KEYWORDS}
    changes: dict[str, Any] = {"option_kwargs": keywords}
    is_parsed = isinstance(param.shape, TyperOnly) or bool(
        param.option_kwargs.keys() & _PARSING_KEYWORDS
    )
    shape, default, required = param.shape, param.default, param.required
    if is_parsed:
        shape, changes["annotation"] = _text_shape(param)
        default = default if required or isinstance(default, str) else None
    if param.option_kwargs.get("envvar"):  # Typer reads the variable if nothing is given
        required, default = False, None
    elif not is_parsed:
        return param.replace(**changes)
    if default is None:
        shape = Maybe(unwrap_optional(shape))
    return param.replace(
        **changes,
        shape=shape,
        default=default,
        required=required,
        exact_type=None,
        has_valid_default=default is None and not required,
    )


def _text_shape(param: Param) -> tuple[Shape, object]:
    """Return the shape and the annotation of a value that Typer converts from text."""
    item: Shape = SCALAR_SHAPES[str]
    annotation: Any = str
    if is_open_file(param):
        item, annotation = PathShape(Path), Path
    members = (param.annotation, *getattr(param.annotation, "__args__", ()))  # of Optional[…]
    is_list = isinstance(unwrap_optional(param.shape), ListOf) or any(
        [getattr(member, "__origin__", None) in (list, tuple) for member in members]
    )
    return (ListOf(item), list[annotation]) if is_list else (item, annotation)
