"""Size limits of an answer, from the command line, the settings and the caller."""

from __future__ import annotations

from tooli.cli.process import write_stderr
from tooli.core._hot_tables import RESULT_OPTIONS
from tooli.core.call import Ok
from tooli.detect import detect_execution_context
from tooli.errors import shell_quote
from tooli.pipeline.drivers import bind, run
from tooli.pipeline.present import present, present_text
from tooli.records.result_options import ResultOptions, read_result_options

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.cli.main import Invocation
    from tooli.core.call import Call, Outcome
    from tooli.core.tool import Tool

CALLER_OUTPUT_LIMITS: dict[str, dict[str, int]] = {
    # these callers cut a longer answer themselves, at an arbitrary place
    "codex": {"max_bytes": 10 * 1024, "max_lines": 256},
    "claude-code": {"max_tokens": 25_000},
}


def compute_result_options(invocation: Invocation, tool: Tool | None) -> ResultOptions | None:
    """Return the result options of a call.

    The line has priority over the settings, and the settings over the limits of the caller.
    """
    line = invocation.line
    typed = {
        name: line.options[name] for name in RESULT_OPTIONS & line.options.keys() - line.from_config
    }
    result_options = read_result_options(typed, tuple(invocation.argv))
    if tool is None or hasattr(tool.fn, "tooli_mode"):
        return result_options if line.needs_result_options(tool) else None
    limits = _default_limits(invocation)
    if result_options.max_items is not None:
        limits["max_items"] = result_options.max_items
    if result_options.has_size_limit:  # a limit on the line replaces every other one
        limits = {"max_items": limits.get("max_items")}
    elif any(limits.values()):
        limits["has_default_sizes"] = True
    if not line.needs_result_options(tool) and not any(limits.values()):
        return None
    return result_options.replace(**limits)


def _default_limits(invocation: Invocation) -> dict[str, Any]:
    """Return the limits from the settings, and those of the caller if no size limit is set."""
    line = invocation.line
    configured = read_result_options(
        {name: line.options[name] for name in RESULT_OPTIONS & line.from_config}
    )
    limits: dict[str, Any] = {}
    if invocation.maybe_agent and configured.max_bytes is None and configured.max_tokens is None:
        limits = dict(CALLER_OUTPUT_LIMITS.get(detect_execution_context().caller_id or "", {}))
    for name in ("max_items", "max_bytes", "max_tokens"):
        if getattr(configured, name) is not None:
            limits[name] = getattr(configured, name)
    return limits


def limit_document(invocation: Invocation, outcome: Outcome, call: Call, data: bytes) -> bytes:
    """Return a JSON document, truncated if it is larger than the caller accepts.

    The result runs through the stages that apply a limit on the command line. They run only now,
    after the document was encoded, because most documents are small and need no limit.
    """
    from json import loads  # slow to import, and few calls need it

    if call.options.result_options is not None or not isinstance(outcome, Ok):
        return data
    result_options = compute_result_options(invocation, call.tool)
    if result_options is None:
        return data
    from tooli.stages.pagination import paginate
    from tooli.stages.record_selection import open_record_flow
    from tooli.stages.size_limit import limit_size

    value = loads(data).get("result")  # the value itself may be an iterator that is exhausted

    def return_value(call: Call) -> Generator[Call, Outcome, Outcome]:
        yield from ()
        return Ok(value)

    # printed text cannot be continued with a cursor
    paging_stages = () if call.tool.returns_printed_text else (paginate,)
    limited_call = call.replace(
        options=call.options.replace(result_options=result_options), meta={**(call.meta or {})}
    )
    stages = (open_record_flow, bind, limit_size, *paging_stages, return_value)
    truncated = run(limited_call, stages)
    if not isinstance(truncated, Ok):
        return data
    return present(truncated, limited_call, invocation.milliseconds).envelope_json()


def report_truncation(call: Call) -> None:
    """Write to stderr that the answer on stdout is incomplete, and how to get the rest."""
    meta = call.meta or {}
    page, truncated = meta.get("page", {}), meta.get("truncated")
    if truncated is None and "next_cursor" not in page:
        return
    total = (truncated or page).get("total")
    total_text = f" of {total}" if total is not None else ""
    if truncated is not None:
        unit = truncated.get("unit", "records")
        message = f"Cut by {truncated['by']}: {truncated['shown']}{total_text} {unit} are shown."
    else:
        records = f"{page['limit']} records" if "limit" in page else "the records"
        message = f"One page of {records}" + (f", {total} in all." if total is not None else ".")
    steps = meta.get("next", ())
    next_command = f" For the rest: {' '.join(map(shell_quote, steps[0]['argv']))}" if steps else ""
    write_stderr(present_text(message + next_command, call, shorten_paths=False))
