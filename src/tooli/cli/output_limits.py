"""Budgets of a command line: what was typed, what is set, what is known of the caller."""

from __future__ import annotations

from tooli.cli.process import write_stderr
from tooli.core._hot_tables import RESULT_OPTIONS
from tooli.core.call import Ok
from tooli.errors import shell_quote
from tooli.records.result_options import ResultOptions, read_result_options

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.cli.main import Invocation
    from tooli.core.call import Call, Outcome

CALLER_OUTPUT_LIMITS: dict[str, dict[str, int]] = {
    # what is left of a longer answer is cut off by these callers themselves, anywhere
    "codex": {"max_bytes": 10 * 1024, "max_lines": 256},
    "claude-code": {"max_tokens": 25_000},
}


def compute_shaping(invocation: Invocation) -> ResultOptions | None:
    """What holds for a line: its own words, else settings, else what its caller can take."""
    line, tool = invocation.line, invocation.line.tool
    typed = {
        name: line.options[name] for name in RESULT_OPTIONS & line.options.keys() - line.from_config
    }
    shaping = read_result_options(typed, tuple(invocation.argv))
    if tool is None or hasattr(tool.fn, "tooli_mode"):
        return shaping if line.has_shaping else None
    configured = read_result_options(
        {name: line.options[name] for name in RESULT_OPTIONS & line.from_config}
    )
    limits: dict[str, Any] = {}
    if invocation.maybe_agent and configured.max_bytes is None and configured.max_tokens is None:
        limits = dict(CALLER_OUTPUT_LIMITS.get(_caller_id(), {}))
    for name in ("max_items", "max_bytes", "max_tokens"):
        if getattr(configured, name) is not None:
            limits[name] = getattr(configured, name)
    if shaping.max_items is not None:
        limits["max_items"] = shaping.max_items
    if shaping.has_size_limit:  # what is typed wins over all that is only known
        limits = {"max_items": limits.get("max_items")}
    elif any(limits.values()):
        limits["has_default_sizes"] = True
    if not line.has_shaping and not any(limits.values()):
        return None
    return shaping.replace(**limits)


def truncate_document(invocation: Invocation, outcome: Outcome, call: Call, data: bytes) -> bytes:
    """A document that is larger than its caller takes, cut; any other one as it is.

    The answer passes the stages that it would have passed had the limit been typed: most answers
    are small, and then nobody has to know what the caller takes.
    """
    shaping = compute_shaping(invocation)
    if shaping is None or not isinstance(outcome, Ok):
        return data
    from json import loads

    from tooli.pipeline.drivers import bind, run
    from tooli.pipeline.present import present
    from tooli.stages.budget import limit_size
    from tooli.stages.pagination import paginate
    from tooli.stages.result_setup import open_record_flow

    value = loads(data).get("result")  # what could be read but once has been read

    def answered(call: Call) -> Generator[Call, Outcome, Outcome]:
        yield from ()
        return Ok(value)

    paging_stages = (
        () if call.tool.returns_printed_text else (paginate,)
    )  # what is printed cannot be taken up again
    limited_call = call.replace(
        options=call.options.replace(result_options=shaping), meta={**(call.meta or {})}
    )
    truncated = run(limited_call, (open_record_flow, bind, limit_size, *paging_stages, answered))
    return (
        present(truncated, limited_call, invocation.milliseconds).envelope_json()
        if isinstance(truncated, Ok)
        else data
    )


def _caller_id() -> str:
    from tooli.detect import detect_execution_context

    return detect_execution_context().caller_id or ""


def report_truncation(call: Call) -> None:
    """Tell on stderr that the answer on stdout is not all, and how to get the rest."""
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
    from tooli.pipeline.present import present_text

    write_stderr(present_text(message + next_command, call, shorten_paths=False))
