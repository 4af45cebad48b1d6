"""Limit the size of a result after the call has ended.

The stages for size limits normally run during a call. Here they run after the answer was encoded,
because most answers are small and need no limit.
"""

from __future__ import annotations

from tooli.core.call import Ok
from tooli.pipeline.drivers import bind, run
from tooli.stages import pages, record_selection

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator

    from tooli.core.call import Call, Outcome
    from tooli.records.call_options import ResultOptions


def limit_value(call: Call, value: object, result_options: ResultOptions) -> tuple[Call, Outcome]:
    """Return the result of a call within the limits, and the call with the new `meta`.

    `value` is the result in JSON types, because the value itself may be an exhausted iterator.
    """

    def return_value(call: Call) -> Generator[Call, Outcome, Outcome]:
        yield from ()
        return Ok(value)

    # printed text cannot be continued with a cursor
    paging_stages = () if call.tool.returns_printed_text else (pages.paginate,)
    limited_call = call.replace(
        options=call.options.replace(result_options=result_options), meta={**(call.meta or {})}
    )
    limits = (record_selection.open_record_flow, bind, pages.limit_size, *paging_stages)
    return limited_call, run(limited_call, (*limits, return_value))
