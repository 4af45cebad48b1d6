"""Check the arguments of a tool that a JSON Schema describes."""

from __future__ import annotations

from tooli.core.call import Problem

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from tooli.core.call import Call


def check_by_schema(
    call: Call, bound: dict[str, Any], invalid: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems that the tool's schema finds, but for the parameters `invalid`.

    Arguments that only the schema allows are added to `bound`.
    """
    tool = call.tool
    assert tool.argument_check is not None
    if tool.argument_check.takes_extra:
        given = call.arguments.items()
        bound.update({name: value for name, value in given if name not in tool.param_names})
    injected = [param.name for param in tool.params if param.kind == "injected"]
    arguments = {name: value for name, value in bound.items() if name not in injected}
    for problem in tool.argument_check.find_problems(arguments, invalid):
        yield Problem(*problem)
