"""What is wrong with a call, in words, and the command line that would have been right."""

from __future__ import annotations

import sys

from tooli.call.model import Problem
from tooli.contract.fit import Given, Misfit, Words, fit
from tooli.contract.tool import (
    MISSING,
    Choice,
    Handle,
    ListOf,
    PathShape,
    Scalar,
    Structured,
    is_handle,
    is_structured,
    plain,
)
from tooli.errors import InputError, Suggestion, nearest

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.call.model import Call
    from tooli.contract.tool import Param, Shape, Tool


def problems_of(param: Param, misfit: Misfit | None) -> Iterator[Problem]:
    """What is wrong with one parameter: nothing given, or something that does not fit."""
    if misfit is None:
        yield Problem("E1002", param.name, f"{param.name!r} is required: {wants(param)}")
        return
    for reason in (misfit, *misfit.others):
        field = ".".join([param.name, *map(str, reason.at)])
        message = f"{field!r}: {reason.message}"
        if reason.meant is not None and isinstance(reason.meant, str):
            message += f"; did you mean {reason.meant!r}?"
        yield Problem(reason.code, field, message, reason.meant)


def whole_problems(misfit: Misfit) -> Iterator[Problem]:
    """What is wrong with arguments that only do not fit together."""
    for reason in (misfit, *misfit.others):
        field = ".".join(map(str, reason.at)) or None
        yield Problem("E1003", field, f"{field!r}: {reason.message}" if field else reason.message)


def unknown(name: str, tool: Tool) -> Problem:
    """A parameter that the tool does not have, and the one that was probably meant."""
    if name in tool.names:
        message = f"{name!r} is an argument: give it by position, without a name"
        return Problem("E1004", name, message, name)
    words = {name: name for name in tool.names}
    for param in tool.public:
        for flag in param.flags:
            words.setdefault(flag.lstrip("-").replace("-", "_"), param.name)
    meant = words.get(nearest(name, words) or "")
    hint = f"; did you mean {meant!r}?" if meant else ""
    return Problem("E1004", name, f"There is no parameter {name!r}{hint}", meant)


def refusal(call: Call, wrong: Sequence[Problem]) -> InputError:
    """Everything wrong with a call as one error, the first in front, with a way out."""
    tool = call.tool
    stray = [
        unknown(name, tool)
        for name, value in call.arguments.items()
        if name not in tool.names and type(value) is not Given
    ]
    door = _news(call.problems, [*stray, *wrong]) if call.problems else []
    misnamed = {problem.meant for problem in stray}
    missing = [p for p in wrong if p.code == "E1002" and p.field in misnamed]
    wrong = sorted([p for p in wrong if p not in missing], key=_order(call))
    surplus = [p for p in door if p.code == "E1005"]
    problems = [*[p for p in door if p.code != "E1005"], *stray, *wrong, *surplus]
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    listing = [
        {"field": p.field, "code": p.code, "message": p.message}
        if p.field is not None
        else {"code": p.code, "message": p.message}
        for p in problems
    ]
    return InputError(
        first.message + more,
        code=first.code,
        field=first.field,
        suggestion=_suggest(call, problems),
        details={"errors": listing},
    )


def _news(found: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """What a door found that is not known already, there or in a part of it."""
    places: set[tuple[str, str]] = set()
    for problem in known:
        at = problem.field or ""
        while at and (problem.code, at) not in places:
            places.add((problem.code, at))
            at = at.rpartition(".")[0]
    return [problem for problem in found if (problem.code, problem.field) not in places]


def no_such_command(branch: Any, name: str, typed: Sequence[str]) -> InputError:
    """The error for a command that does not exist, with the one that was probably meant."""
    known = [".".join(path) for path, r in branch.walk() if not r.said.get("hidden")]
    meant = nearest(name.replace("_", "-"), [*branch.commands, *branch.groups, *known])
    hint = f"; did you mean {meant!r}?" if meant else ""
    if meant is not None:
        argv = [*typed, *meant.split(".")]
        suggestion = Suggestion(
            "retry_with_modified_input",
            f"Use {meant!r}.",
            argv=argv,
        )
    else:
        suggestion = Suggestion("retry_with_modified_input", "Name one of the commands.")
    return InputError(
        f"There is no command {name!r}{hint}",
        code="E1001",
        suggestion=suggestion,
        details={"commands": known},
    )


def no_command_given(branch: Any) -> InputError:
    """The error of a line that stops before any command."""
    known = [".".join(path) for path, r in branch.walk() if not r.said.get("hidden")]
    return InputError(
        "No command was given.",
        code="E1001",
        suggestion=Suggestion(
            "retry_with_modified_input", "Name one of the commands; --help-agent describes them."
        ),
        details={"commands": known},
    )


def _order(call: Call) -> Callable[[Problem], tuple[int, int]]:
    """Problems in the order in which Typer meets them: options as typed, arguments, the rest."""
    typed = {
        name: i
        for i, (name, value) in enumerate(call.arguments.items())
        if not isinstance(value, Words) or value.typed
    }
    declared = {param.name: (i, param.kind) for i, param in enumerate(call.tool.params)}

    def key(problem: Problem) -> tuple[int, int]:
        name = (problem.field or "").partition(".")[0]
        position, kind = declared.get(name, (0, "option"))
        if kind == "argument":
            return 1, position
        return (0, typed[name]) if name in typed else (2, position)

    return key


def _suggest(call: Call, problems: Sequence[Problem]) -> Suggestion:
    """A corrected command line: what was meant in place of what was given, gaps as <names>."""
    tool = call.tool
    arguments: dict[str, Any] = {
        k: v.value if type(v) is Given else v for k, v in call.arguments.items() if k in tool.names
    }
    sure = True
    for problem in problems:
        field = problem.field or ""
        head, _, below = field.partition(".")
        if problem.code == "E1004":
            value = call.arguments.get(head)
            if problem.meant and value is not None:
                fits = _fits(tool, problem.meant, value)
                arguments.setdefault(problem.meant, value if fits else _Gap(problem.meant))
            sure = sure and problem.meant is not None
        elif problem.code == "E1005":
            continue
        elif not head or problem.code in _ASIDE:
            sure = False
        elif problem.meant is not None and not below and _takes_one(tool, head):
            arguments[head] = problem.meant
        elif (mended := _mended(arguments.get(head), below, problem.meant)) is not None:
            arguments[head] = mended
        elif head in tool.names:
            param = tool.param(head)
            arguments[head] = True if param is not None and param.is_flag else _Gap(head)
    for param in tool.public:
        if param.required and param.name not in arguments:
            arguments[param.name] = _Gap(param.name)
        elif is_handle(param.shape) and arguments.get(param.name) is not None:
            arguments[param.name] = _named(param, arguments[param.name])
        elif is_structured(param.shape) and param.name in arguments and _holds_secrets(param):
            arguments[param.name] = _Gap(param.name)
    gaps = any(isinstance(value, _Gap) for value in arguments.values())
    argv = [*(call.caller.prog or (tool.app,)), *tool.words, *compose(tool, arguments)]
    if gaps:
        applicability = "has_placeholders"
    else:
        applicability = "machine_applicable" if sure else "maybe_incorrect"
    return Suggestion(
        "retry_with_modified_input",
        _advice(tool, problems),
        applicability=applicability,
        argv=argv,
    )


_ASIDE = ("E1007", "E1040", "E1041", "E1042")
"""What is wrong with what was asked of the framework: the suggested line does not ask for it."""


def _named(param: Param, value: Any) -> Any:
    """What names an input or a secret on a command line; a gap for what is the thing itself."""
    if isinstance(value, _Gap):
        return value
    try:
        fitted = fit(param, value)
    except Misfit:
        return _Gap(param.name)
    words = [item.tooli_word for item in (fitted if param.many else [fitted])]
    return _Gap(param.name) if None in words else words


def _holds_secrets(param: Param) -> bool:
    """Whether a secret is among the parts of a parameter: what was given for it is not repeated."""
    if "tooli.inputs.secret" not in sys.modules:  # then nobody has one
        return False
    from tooli.contract.schema import param_schema

    return "'writeOnly': True" in repr(param_schema(param))


def _takes_one(tool: Tool, name: str) -> bool:
    """Whether what was meant for the parameter of that name is all of its value."""
    param = tool.param(name)
    return param is not None and not param.many and param.width == 1


def _mended(value: Any, at: str, meant: Any) -> list[Any] | None:
    """A list with what was meant in the place of an item; None where that is not what is wrong."""
    items: Any = value.texts if isinstance(value, Words) else value
    if meant is None or type(items) not in (list, tuple) or not at.isdigit():
        return None
    return [*items[: int(at)], meant, *items[int(at) + 1 :]]


def _fits(tool: Tool, name: str, value: Any) -> bool:
    param = tool.param(name)
    try:
        return param is not None and fit(param, value) is not None
    except Misfit:
        return False


class _Gap:
    def __init__(self, name: str) -> None:
        self.text = f"<{name}>"


def _advice(tool: Tool, problems: Sequence[Problem]) -> str:
    parts: list[str] = []
    for problem in problems:
        param = tool.param((problem.field or "").partition(".")[0])
        if problem.code == "E1004" and (problem.field is None or problem.field in tool.names):
            parts.append(f"{problem.message}.")
        elif problem.code == "E1004":
            known = ", ".join(p.name for p in tool.public) or "none"
            parts.append(
                f"Use {problem.meant!r} instead of {problem.field!r}."
                if problem.meant
                else f"Leave {problem.field!r} out; the parameters are: {known}."
            )
        elif problem.code == "E1005":
            parts.append("Leave the surplus words out.")
        elif problem.code in _ASIDE:
            parts.append(problem.message if problem.message[-1] == "?" else f"{problem.message}.")
        elif param is not None:
            parts.append(f"Give {param.name!r} {wants(param)}.")
        elif problem.code == "E1003":
            parts.append("Change the arguments so that they fit together.")
        else:
            parts.append("Give the option its value.")
    return " ".join(dict.fromkeys(parts))


def wants(param: Param) -> str:
    """What a parameter takes, in words, with its bounds."""
    low, high = param.settings.get("min"), param.settings.get("max")
    if low is not None and high is not None:
        return f"{describe(param.shape)} from {low} to {high}"
    if low is not None:
        return f"{describe(param.shape)}, {low} or more"
    return describe(param.shape) if high is None else f"{describe(param.shape)}, {high} at most"


def describe(shape: Shape) -> str:
    """What a parameter wants, in words."""
    shape = plain(shape)
    if isinstance(shape, Scalar):
        return {str: "text", int: "an integer", float: "a number", bool: "true or false"}[
            shape.type
        ]
    if isinstance(shape, PathShape):
        return "a path"
    if isinstance(shape, Choice):
        return "one of " + ", ".join(shape.words)
    if isinstance(shape, ListOf):
        return f"one or more values, each {describe(shape.item)}"
    if isinstance(shape, Structured):
        return "a JSON object (or @file)"
    if isinstance(shape, Handle):
        return shape.wants
    name = getattr(getattr(shape, "annotation", None), "__name__", None)
    return f"a {name}" if name else "a value"


# ------------------------------------------------------------------ a call as a command line


def compose(tool: Tool, arguments: Mapping[str, Any], *flags: str) -> list[str]:
    """The words after the command that stand for these arguments; positions first.

    `flags` are the framework's own, to stand among the options.
    """
    positional = _positions(tool, arguments)
    optional: list[str] = []
    for param in tool.public:
        if param.kind == "option" and param.name in arguments:
            value = arguments[param.name]
            if not _is_default(param, value):
                optional += _option(param, value)
    optional += flags
    if any(text[:1] == "-" and len(text) > 1 for text in positional):
        return [*optional, "--", *positional]
    return [*positional, *optional]


def _is_default(param: Param, value: Any) -> bool:
    return type(value) is type(param.default) and value == param.default


def _positions(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """The words that stand for themselves, up to the last that has to be said."""
    words: list[str] = []
    said = 0
    for param in tool.public:
        if param.kind == "argument":
            value = arguments.get(param.name, param.default)
            words += _texts(value)
            if not _is_default(param, value):
                said = len(words)
    return words[:said]


def _option(param: Param, value: Any) -> list[str]:
    """One option as it is typed."""
    if param.is_flag and isinstance(value, bool):
        return list((param.flags if value else param.negations)[:1])
    if not param.flags:
        return []
    flag = max(param.flags, key=len)
    if param.settings.get("count") and isinstance(value, int):
        return [flag] * min(value, 9)
    texts = _texts(value)
    if param.width > 1 and len(texts) == param.width:
        return [flag, *texts]
    words: list[str] = []
    for text in texts:
        words += [f"{flag}={text}"] if text[:1] == "-" else [flag, text]
    if isinstance(value, Words):
        for path, parts in (value.dotted or {}).items():
            for text in parts:
                words += [f"{flag}.{path}", text]
    return words


def _texts(value: Any) -> list[str]:
    """The words that a value is typed as; nothing says None, and nothing says nothing."""
    if isinstance(value, Words):
        return list(value.texts)
    if isinstance(value, _Gap):
        return [value.text]
    if value is None or value is MISSING:
        return []
    if type(value) in (list, tuple, set, frozenset):
        return [text for item in value for text in _texts(item)]
    if type(value) in (str, int, float):
        return [str(value)]
    if hasattr(value, "tooli_word"):  # a secret says where it is, never what
        return [value.tooli_word or f"<{value.field or 'value'}>"]
    from tooli.call.envelope import encode
    from tooli.contract.jsonable import jsonable

    step = jsonable(value, [])
    return [step if isinstance(step, str) else encode(step, []).decode()]
