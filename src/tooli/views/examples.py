"""An example's words, as a command line has them, turned into arguments as JSON has them."""

from __future__ import annotations

from tooli.contract.tool import Choice, ListOf, Scalar, Structured, TupleOf, plain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.contract.tool import Param, Shape, Tool


class Unclear(Exception):  # noqa: N818  an example that is left out
    """The words say more than can be read without the command line itself."""


def arguments_of(tool: Tool, words: Iterable[str]) -> dict[str, Any] | None:
    """The arguments that the words give; None where that cannot be said for sure."""
    try:
        given, dotted = _sort(tool, [str(word) for word in words])
        arguments = {
            param.name: _value(param, given[param.name])
            for param in tool.public
            if param.name in given
        }
        for param in tool.public:
            if param.name in dotted:
                arguments[param.name] = dotted[param.name]
    except (Unclear, ValueError):
        return None
    missing = [p.name for p in tool.public if p.required and p.name not in arguments]
    return None if missing else arguments


def _sort(tool: Tool, words: list[str]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """The words of each parameter, and the parts that were given with dots."""
    given: dict[str, list[str]] = {}
    dotted: dict[str, Any] = {}
    loose: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            loose += words
            break
        if word[:1] != "-" or len(word) == 1:
            loose.append(word)
            continue
        name, equals, value = word.partition("=")
        param, below, truth = _named(tool, name)
        if param.is_flag:
            given[param.name] = ["true" if truth else "false"]
            continue
        taken = [value] if equals else words[: param.width]
        if not equals:
            del words[: param.width]
        if not taken:
            raise Unclear
        if below:
            dotted.setdefault(param.name, {})[below] = taken[0]
        else:
            given.setdefault(param.name, []).extend(taken)
    _place(tool, loose, given)
    return given, dotted


def _named(tool: Tool, flag: str) -> tuple[Param, str, bool]:
    """The parameter of a flag, the part of it that is meant, and whether it says yes."""
    head, _, below = flag.partition(".")
    for param in tool.public:
        if head in param.flags:
            return param, below, True
        if head in param.negations:
            return param, "", False
    raise Unclear


def _place(tool: Tool, loose: list[str], given: dict[str, list[str]]) -> None:
    """Give the words without a flag to the parameters that stand by position."""
    places = [param for param in tool.public if param.kind == "argument"]
    for i, param in enumerate(places):
        if param.many:
            behind = sum([p.width for p in places[i + 1 :]])
            count = max(len(loose) - behind, 0)
        else:
            count = param.width
        if loose[:count]:
            given[param.name] = loose[:count]
            del loose[:count]
    if loose:
        raise Unclear


def _value(param: Param, texts: list[str]) -> Any:
    if param.settings.keys() & {"parser", "click_type"}:
        return texts[-1]
    shape = plain(param.shape)
    if isinstance(shape, ListOf):
        return [_one(shape.item, text) for text in texts]
    if isinstance(shape, TupleOf):
        if len(texts) != len(shape.items):
            raise Unclear
        return [_one(item, text) for item, text in zip(shape.items, texts, strict=True)]
    return _one(shape, texts[-1])


def _one(shape: Shape, text: str) -> Any:
    if isinstance(shape, Scalar):
        if shape.type is bool:
            return text == "true"
        return shape.type(text)
    if isinstance(shape, Choice):
        values = [v.value for v in shape.values] if shape.enum is not None else shape.values
        for value in values:
            if str(value) == text:
                return value
        raise Unclear
    if isinstance(shape, Structured):
        from json import loads

        return loads(text)
    return text


def request_examples(tool: Tool) -> Mapping[str, Any]:
    """The tool's examples by name, as OpenAPI shows them."""
    shown: dict[str, Any] = {}
    for i, example in enumerate(tool.guidance.examples, 1):
        arguments = arguments_of(tool, example.get("args", ()))
        if arguments is not None:
            shown[f"example{i}"] = {"summary": example.get("description", ""), "value": arguments}
    return shown
