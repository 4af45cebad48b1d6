"""Budgets of a command line: what was typed, what is set, what is known of the caller."""

from __future__ import annotations

import os

from tooli.call.model import Ok
from tooli.call.shaping import NUMBERS, Shaping, read_shaping
from tooli.errors import quote
from tooli.surfaces.cli.argv import SHAPING
from tooli.surfaces.cli.channel import budgeted, complain

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
SETTINGS = {f"TOOLI_{name.upper()}": name for name in NUMBERS[1:]}


def shaping_of(session: Session) -> Shaping | None:
    """What holds for a line: its own words, else settings, else what its caller can take."""
    said = {name: session.line.options[name] for name in SHAPING & session.line.options.keys()}
    shaping = read_shaping(said, tuple(session.argv))
    tool = session.line.tool
    if not budgeted() or tool is None or hasattr(tool.fn, "tooli_mode"):
        return shaping if session.line.shaped else None
    settings = {name: os.environ[key] for key, name in SETTINGS.items() if os.environ.get(key)}
    assumed = read_shaping(settings)
    sizes: dict[str, Any] = {}
    if assumed.max_bytes is None and assumed.max_tokens is None:
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
    if not session.line.shaped and not any(sizes.values()) and not assumed.problems:
        return None
    return shaping.replace(**sizes, problems=(*shaping.problems, *_named(assumed)))


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


def _named(assumed: Shaping) -> list[Any]:
    """What is wrong with settings, by the names that they are set by."""
    keys = {name: key for key, name in SETTINGS.items()}
    found: list[Any] = []
    for problem in assumed.problems:
        key = keys[str(problem.field)]
        message = f"{key}={os.environ[key][:60]!r} is no whole number, 0 or more"
        found.append(problem.replace(message=message))
    return found


def _caller() -> str:
    from tooli.detect import detect_execution_context

    return detect_execution_context().agent_name or ""


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
    complain(said + following)
