"""Answer the questions in the code of a command that Python code calls."""

from __future__ import annotations

from tooli.pipeline.question_routing import route_questions

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, StageRun


def answer_questions(call: Call) -> StageRun:
    """Answer `typer.confirm` with `yes=True`, and refuse all questions with `no_input=True`.

    Without these options, the code asks on the terminal or reads the pipe of the process. Servers
    route the questions of all calls.
    """
    end = route_questions()
    try:
        return (yield call)
    finally:
        end()
