"""Budgets of a command line: what was typed, what is set, what is known of the caller."""

from __future__ import annotations

from tooli.call.model import Ok
from tooli.call.shaping import NUMBERS, Shaping, read_shaping
from tooli.errors import quote
from tooli.surfaces.cli.argv import SHAPING
from tooli.surfaces.cli.channel import complain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from tooli.call.model import Call, Outcome
    from tooli.surfaces.cli.main import Session

KNOWN: dict[str, dict[str, int]] = {
    # what is left of a longer answer is cut off by these callers themselves, anywhere
    "codex": {"max_bytes": 10 * 1024, "max_lines": 256},
    "claude-code": {"max_tokens": 25_000},
}


def shaping_of(session: Session) -> Shaping | None:
    """What holds for a line: its own words, else settings, else what its caller can take."""
    line, tool = session.line, session.line.tool
    said = {name: line.options[name] for name in SHAPING & line.options.keys() - line.settled}
    shaping = read_shaping(said, tuple(session.argv))
    if tool is None or hasattr(tool.fn, "tooli_mode"):
        return shaping if line.shaped else None
    assumed = read_shaping({name: line.options[name] for name in SHAPING & line.settled})
    sizes: dict[str, Any] = {}
    if session.marked and assumed.max_bytes is None and assumed.max_tokens is None:
        sizes = dict(KNOWN.get(_caller(), {}))
    for name in NUMBERS[1:]:
        if getattr(assumed, name) is not None:
            sizes[name] = getattr(assumed, name)
    if shaping.max_items is not None:
        sizes["max_items"] = shaping.max_items
    if shaping.sized:  # what is typed wins over all that is only known
        sizes = {"max_items": sizes.get("max_items")}
    elif any(sizes.values()):
        sizes["assumed"] = True
    if not line.shaped and not any(sizes.values()):
        return None
    return shaping.replace(**sizes)


def refit(session: Session, outcome: Outcome, call: Call, data: bytes) -> bytes:
    """A document that is larger than its caller takes, cut; any other one as it is.

    The answer passes the stages that it would have passed had the limit been typed: most answers
    are small, and then nobody has to know what the caller takes.
    """
    shaping = shaping_of(session)
    if shaping is None or not isinstance(outcome, Ok):
        return data
    from json import loads

    from tooli.call.envelope import document
    from tooli.call.pipeline import bind, run
    from tooli.stages.budget import keep_within
    from tooli.stages.pagination import paginate
    from tooli.stages.shaping import open_flow

    value = loads(data).get("result")  # what could be read but once has been read

    def answered(call: Call) -> Generator[Call, Outcome, Outcome]:
        yield from ()
        return Ok(value)

    paged = () if call.tool.prints else (paginate,)  # what is printed cannot be taken up again
    wanted = call.replace(options=call.options.replace(shaping=shaping), meta={**(call.meta or {})})
    cut = run(wanted, (open_flow, bind, keep_within, *paged, answered))
    return document(cut, wanted, session.milliseconds) if isinstance(cut, Ok) else data


def _caller() -> str:
    from tooli.detect import detect_execution_context

    return detect_execution_context().caller_id or ""


def tell_rest(call: Call) -> None:
    """Tell on stderr that the answer on stdout is not all, and how to get the rest."""
    meta = call.meta or {}
    page, truncated = meta.get("page", {}), meta.get("truncated")
    if truncated is None and "next_cursor" not in page:
        return
    total = (truncated or page).get("total")
    counted = f" of {total}" if total is not None else ""
    if truncated is not None:
        unit = truncated.get("unit", "records")
        said = f"Cut by {truncated['by']}: {truncated['shown']}{counted} {unit} are shown."
    else:
        records = f"{page['limit']} records" if "limit" in page else "the records"
        said = f"One page of {records}" + (f", {total} in all." if total is not None else ".")
    steps = meta.get("next", ())
    following = f" For the rest: {' '.join(map(quote, steps[0]['argv']))}" if steps else ""
    from tooli.call.cleaning import clean_line

    complain(clean_line(said + following, call, paths=False))
