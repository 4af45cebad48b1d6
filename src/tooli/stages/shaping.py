"""What is wanted of a result, read before anything runs: what does not fit is an input error."""

from __future__ import annotations

from tooli.call.flow import Flow
from tooli.call.model import Problem
from tooli.call.shaping import resolve

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.call.model import Call, Outcome
    from tooli.call.shaping import Shaping
    from tooli.contract.fields import Fields


def open_flow(call: Call) -> Generator[Call, Outcome, Outcome]:
    """Make the way that the records will take; all that is wrong with it is said at once."""
    shaping = resolve(call.options.shaping, call.tool)
    flow = Flow(shaping, call.arguments)
    problems = [*call.problems, *shaping.problems]
    if shaping.filter is not None or shaping.fields is not None:
        problems += _compile(call, flow, shaping)
    if shaping.cursor is not None:
        from tooli.state.cursors import BrokenCursor, unseal
        from tooli.state.keys import lasting_key

        try:
            flow.start = unseal(shaping.cursor, lasting_key(call.caller.surface))
        except BrokenCursor:
            message = "The cursor is none of ours, or was changed: start again without it"
            problems.append(Problem("E1042", _field(call, "cursor"), message))
    return (yield call.replace(flow=flow, problems=tuple(problems)))


def _compile(call: Call, flow: Flow, shaping: Shaping) -> list[Problem]:
    from tooli.contract.fields import Fields, Unfit
    from tooli.contract.sketch import record_schema

    fields = Fields(record_schema(call.tool))
    problems: list[Problem] = []
    try:
        if shaping.filter is not None:
            from tooli.contract.filters import compile_filter

            _must_be_listed(fields)
            flow.keep = compile_filter(shaping.filter, fields)
    except Unfit as unfit:
        problems.append(Problem("E1040", _field(call, "filter"), unfit.message))
    try:
        if shaping.fields is not None:
            from tooli.contract.selection import compile_selection

            flow.project = compile_selection(shaping.fields, fields)
    except Unfit as unfit:
        problems.append(Problem("E1041", _field(call, "fields"), unfit.message))
    return problems


def _must_be_listed(fields: Fields) -> None:
    from tooli.contract.fields import Unfit

    if not fields.listed:
        raise Unfit("The result is no list: there is nothing to filter")


def _field(call: Call, name: str) -> str:
    """What an error names: the framework's word, unless the tool has it for itself."""
    return f"tooli_{name}" if name in call.tool.names else name
