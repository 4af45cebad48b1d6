"""Where a line, its input or the answering itself is not as it should be."""

from __future__ import annotations

from tooli.call.model import Failed, Ok
from tooli.surfaces.cli.argv import FLAGS, Line
from tooli.surfaces.cli.channel import PRINTED_LIMIT, Gone, complain

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.call.model import Call, Outcome
    from tooli.surfaces.cli.main import Session


def answer_breakage(session: Session, exc: BaseException) -> int:
    """What stopped the answering itself, as the answer, if none is out yet."""
    from tooli.call.failure import as_tool_error
    from tooli.errors import InternalError

    error = as_tool_error(exc)
    if not isinstance(exc, KeyboardInterrupt):
        error = InternalError(error.message)  # its details may be what cannot be written
    if session.channel is not None and session.channel.begun and session.mode == "json":
        return session.code or error.exit_code
    from tooli.surfaces.cli.answers import call_without_tool

    session.claim()
    try:
        return session.finish(Failed(error), call_without_tool(session))
    except Gone:
        return session.code


def does_not_fit(session: Session, call: Call) -> bool:
    """Whether the input does not fit: in text mode it is Typer who says so to people."""
    from tooli.call.pipeline import fit_arguments
    from tooli.errors import InputError

    if "input" in session.line.options or session.line.problems:
        return False
    try:
        fit_arguments(call)
    except InputError:
        return True
    return False


def with_printed(outcome: Outcome, printed: str, call: Call) -> Outcome:
    """What a command printed is its result; where it failed, a detail of the failure."""
    if len(printed) > PRINTED_LIMIT:
        printed = printed[:PRINTED_LIMIT]
        call.warnings.append(f"the printed text was cut after {PRINTED_LIMIT} characters")
    if isinstance(outcome, Failed):
        outcome.error.details = {**(outcome.error.details or {}), "printed": printed}
    elif outcome.value is None:
        return Ok(printed)
    else:
        complain(printed)
    return outcome


def modes_of(argv: Sequence[str]) -> Line:
    """A line of which only the output mode can be known."""
    line = Line()
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        setting, width, _ = FLAGS.get(name, ("", 0, None))
        if setting == "output":
            line.set(name, (value if equals else following) if width else None)
    line.problems.clear()
    return line
