"""Check the arguments of a tool that a JSON Schema describes."""

from __future__ import annotations

from tooli.core.call import Problem
from tooli.core.tool import quote

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
    injected = [param.name for param in tool.params if param.kind == "injected"]
    if tool.argument_check.takes_extra:
        for name, value in call.arguments.items():
            if name in tool.param_names:
                continue
            # a caller must not replace what tooli or a transform passes
            if name in injected or name in tool.argument_check.hidden:
                yield Problem("E1004", name, f"There is no parameter {quote(name)}")
            else:
                bound[name] = value
    arguments = {name: value for name, value in bound.items() if name not in injected}
    for problem in tool.argument_check.find_problems(arguments, invalid):
        yield Problem(*problem)
