"""An example's words, as a command line has them, turned into arguments as JSON has them."""

from __future__ import annotations

from tooli.core.tool import Choice, ListOf, Scalar, Structured, TupleOf, unwrap_optional

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool


class AmbiguousExample(Exception):  # noqa: N818  an example that is left out
    """The words say more than can be read without the command line itself."""


def parse_example(tool: Tool, argv: Iterable[str]) -> dict[str, Any] | None:
    """The arguments that the words give; None where that cannot be said for sure."""
    try:
        given, dotted = _assign_tokens(tool, [str(word) for word in argv])
        arguments = {
            param.name: _convert_value(param, given[param.name])
            for param in tool.public_params
            if param.name in given
        }
        for param in tool.public_params:
            if param.name in dotted:
                arguments[param.name] = dotted[param.name]
    except (AmbiguousExample, ValueError):
        return None
    missing = [p.name for p in tool.public_params if p.required and p.name not in arguments]
    return None if missing else arguments


def _assign_tokens(tool: Tool, argv: list[str]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """The words of each parameter, and the parts that were given with dots."""
    given: dict[str, list[str]] = {}
    dotted: dict[str, Any] = {}
    positionals: list[str] = []
    while argv:
        word = argv.pop(0)
        if word == "--":
            positionals += argv
            break
        if word[:1] != "-" or len(word) == 1:
            positionals.append(word)
            continue
        name, equals, value = word.partition("=")
        param, subfield, is_set = _find_flag(tool, name)
        if param.is_flag:
            given[param.name] = ["true" if is_set else "false"]
            continue
        values = [value] if equals else argv[: param.nargs]
        if not equals:
            del argv[: param.nargs]
        if not values:
            raise AmbiguousExample
        if subfield:
            dotted.setdefault(param.name, {})[subfield] = values[0]
        else:
            given.setdefault(param.name, []).extend(values)
    _assign_positionals(tool, positionals, given)
    return given, dotted


def _find_flag(tool: Tool, flag: str) -> tuple[Param, str, bool]:
    """The parameter of a flag, the part of it that is meant, and whether it says yes."""
    head, _, subfield = flag.partition(".")
    for param in tool.public_params:
        if head in param.flags:
            return param, subfield, True
        if head in param.negations:
            return param, "", False
    raise AmbiguousExample


def _assign_positionals(
    tool: Tool, positionals: list[str], texts_by_param: dict[str, list[str]]
) -> None:
    """Give the words without a flag to the parameters that stand by position."""
    positional_params = [param for param in tool.public_params if param.kind == "argument"]
    for i, param in enumerate(positional_params):
        if param.is_multiple:
            reserved = sum([p.nargs for p in positional_params[i + 1 :]])
            count = max(len(positionals) - reserved, 0)
        else:
            count = param.nargs
        if positionals[:count]:
            texts_by_param[param.name] = positionals[:count]
            del positionals[:count]
    if positionals:
        raise AmbiguousExample


def _convert_value(param: Param, texts: list[str]) -> Any:
    if param.settings.keys() & {"parser", "click_type"}:
        return texts[-1]
    shape = unwrap_optional(param.shape)
    if isinstance(shape, ListOf):
        return [_convert_item(shape.item, text) for text in texts]
    if isinstance(shape, TupleOf):
        if len(texts) != len(shape.items):
            raise AmbiguousExample
        return [_convert_item(item, text) for item, text in zip(shape.items, texts, strict=True)]
    return _convert_item(shape, texts[-1])


def _convert_item(shape: Shape, text: str) -> Any:
    if isinstance(shape, Scalar):
        if shape.type is bool:
            return text == "true"
        return shape.type(text)
    if isinstance(shape, Choice):
        values = [v.value for v in shape.values] if shape.enum is not None else shape.values
        for value in values:
            if str(value) == text:
                return value
        raise AmbiguousExample
    if isinstance(shape, Structured):
        from json import loads

        return loads(text)
    return text


def build_request_examples(tool: Tool) -> Mapping[str, Any]:
    """The tool's examples by name, as OpenAPI shows them."""
    examples: dict[str, Any] = {}
    for i, example in enumerate(tool.guidance.examples, 1):
        arguments = parse_example(tool, example.get("args", ()))
        if arguments is not None:
            examples[f"example{i}"] = {
                "summary": example.get("description", ""),
                "value": arguments,
            }
    return examples
