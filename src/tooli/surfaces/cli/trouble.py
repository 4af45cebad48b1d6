"""Where a line, its input or the answering itself is not as it should be."""

from __future__ import annotations

from tooli.call.model import Failed, Problem
from tooli.sources.local import BUILT_IN
from tooli.surfaces.cli.argv import FLAGS, MODES, Line, read_line
from tooli.surfaces.cli.channel import Gone

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tooli.call.model import Call
    from tooli.surfaces.cli.main import Session


def answer_breakage(session: Session, exc: BaseException) -> int:
    """What stopped the answering itself, as the answer, if none is out yet."""
    from tooli.call.failure import as_tool_error
    from tooli.errors import InternalError, TimeoutExceeded

    error = as_tool_error(exc)
    if not isinstance(exc, (KeyboardInterrupt, TimeoutExceeded)):
        error = InternalError(error.message)  # its details may be what cannot be written
    if session.channel is not None and session.channel.begun and session.whole:
        return session.code or error.exit_code
    from tooli.surfaces.cli.answers import call_without_tool

    session.claim()
    try:
        return session.finish(Failed(error), call_without_tool(session))
    except Gone:
        return session.code


def refuse_mode(line: Line, asked: str) -> str:
    """Note that `TOOLI_OUTPUT` names no mode; the mode to say so in."""
    message = f"TOOLI_OUTPUT={asked} is none of {', '.join(MODES)}"
    line.problems.append(Problem("E1007", "output", message))
    return "json"


def does_not_fit(session: Session, call: Call) -> bool:
    """Whether the input does not fit: in text mode it is Typer who says so to people."""
    from tooli.call.pipeline import fit_arguments
    from tooli.errors import InputError

    if session.line.fed or session.line.problems:
        return False
    try:
        fit_arguments(call)
    except InputError:
        return True
    return False


def read_built_in(session: Session, line: Line) -> Line:
    """The line read again, against the commands that every app has; they answer for the app.

    An app that is one single command may take the words for itself: only where it cannot,
    because there are too many, are they ours.
    """
    word = line.stray
    if line.tool is not None:
        word = next((word for word in session.argv if word[:1] != "-"), "")
        surplus = any(problem.code == "E1005" for problem in line.problems)
        if not surplus or session.app.tree().single is None or word not in BUILT_IN:
            return line
    session.app = session.app.builtins(word)
    session.house = session.app._house
    session.command = None
    return read_line(session.app.tree(), session.argv, session.judge)


def unless_it_speaks(session: Session, asked: str) -> str:
    """The mode that was asked for, or text where the command will speak on stdout itself.

    It does not come to that where its input does not fit: then the answer is ours.
    """
    session.mode = "text"
    if session.line.problems:
        return asked
    call, _ = session.prepare(session.line.arguments)
    return asked if does_not_fit(session, call) else "text"


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
