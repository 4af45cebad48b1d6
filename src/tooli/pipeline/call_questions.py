"""Questions that the code of a command asks itself, in processes that run many calls.

    input, getpass, typer.confirm ─┬▶ the user of the MCP client, if it supports forms
                                   └▶ E1038, which says how to answer

`question_routing` loads this module when a command asks.
"""

from __future__ import annotations

import sys

from tooli.core.current_call import current_call
from tooli.core.option_words import spell_option
from tooli.core.peer import Elicit
from tooli.core.tool import MAX_QUOTED_CHARS, cut_text
from tooli.errors import InputError, Suggestion
from tooli.pipeline.context import YES_NO_SCHEMA, Reply, is_yes, parse_reply
from tooli.pipeline.present import present_questions
from tooli.pipeline.prompt_functions import AskedQuestion, read_traceback
from tooli.pipeline.suggestions import suggest_call
from tooli.pipeline.terminal_prompts import declined_error

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tooli.core.call import Call
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool

_CONFIRMING_NAMES = ("yes", "force", "assume_yes", "confirm", "no_confirm", "non_interactive")
"""Names of parameters that usually answer a question with yes."""


def find_answer(call: Call, question: AskedQuestion) -> str | None:
    """Return the answer to a question; raise an error if nobody can answer it.

    `yes` and an approval answer a question with yes, as they do for `ctx.confirm`. The result is
    None if the stdin of this process has the answer: in Python, unless `no_input` is set.
    """
    if question.is_confirmation and (call.options.yes or call.approved):
        return echo_answer(question, "y")
    if call.caller.is_in_process and not call.options.no_input:
        return None
    peer = call.peer
    may_ask = peer is not None and peer.supports(Elicit.method) and peer.can_wait()
    if peer is None or not may_ask or question.is_hidden or not question.text:
        raise unanswered_error(call, question)
    if question.is_repeated:
        raise InputError(
            f"The answer to {cut_text(question.text, MAX_QUOTED_CHARS)!r} is not valid.",
            code="E1003",
        )
    questions = present_questions({"answer": _build_form(question)}, call)
    return echo_answer(question, _read_answer(question, parse_reply(peer.ask(questions)["answer"])))


def echo_answer(question: AskedQuestion, answer: str) -> str:
    """Print an answer after its question, as a terminal shows it; return the answer."""
    if question.is_shown:
        print(
            f"{question.last_character}{answer}",
            file=sys.stderr if question.writes_to_stderr else sys.stdout,
        )
    return answer


def _build_form(question: AskedQuestion) -> Elicit:
    """Return the form for a question."""
    default = question.default
    if question.is_confirmation:
        schema: JsonObject = {**YES_NO_SCHEMA}
        if isinstance(default, bool):
            schema["properties"] = {"yes": {**schema["properties"]["yes"], "default": default}}
        return Elicit(question.text, schema)
    field: JsonObject = {"type": _JSON_TYPES.get(question.kind, "string"), "title": question.text}
    if question.choices:
        field = {"type": "string", "title": question.text, "enum": list(question.choices)}
    default = getattr(default, "value", default)  # of an Enum
    if isinstance(default, (str, int, float)):
        field["default"] = str(default) if field["type"] == "string" else default
    schema = {"type": "object", "properties": {"answer": field}}
    return Elicit(
        question.text, schema if "default" in field else {**schema, "required": ["answer"]}
    )


_JSON_TYPES: dict[object, str] = {int: "integer", float: "number", bool: "boolean"}


def _read_answer(question: AskedQuestion, reply: Reply) -> str:
    """Return the reply to a form as it would be typed."""
    if question.is_confirmation and reply.action != "cancel":
        return "y" if is_yes(reply) else "n"
    if not reply.accepted:
        raise declined_error(InputError(f"The command asks {question.text!r}."))
    answer = reply.content.get("answer")
    text = "" if answer is None else str(answer)
    if not text and question.default is None and question.kind is not None:
        raise unanswered_text_error(question)
    return text


def unanswered_text_error(question: AskedQuestion) -> InputError:
    """Return the error for a form that was sent without an answer."""
    text = cut_text(question.text, MAX_QUOTED_CHARS)
    return InputError(f"The form for {text!r} has no answer.", code="E1038", is_retryable=False)


# ------------------------------------------------------------------ the error


def question_message(question: AskedQuestion) -> str:
    """Return the message of the error for a question that nobody can answer."""
    text = cut_text(question.text, MAX_QUOTED_CHARS)
    asked = f"The command asks {text!r}" if text else "The command asks for input"
    return f"{asked}, and nobody can answer."


def unanswered_error(call: Call, question: AskedQuestion) -> InputError:
    """Return the error for a question that nobody can answer. It says how to answer it."""
    suggestion = _suggest_answer(call, question)
    return InputError(
        question_message(question), code="E1038", suggestion=suggestion, is_retryable=False
    )


def _suggest_answer(call: Call, question: AskedQuestion) -> Suggestion:
    tool = call.tool
    arguments = tool.arguments_by_param(call.arguments)
    param = find_answering_param(tool, question, arguments)
    if param is not None and param.is_flag:
        suggestion = Suggestion("ask_human", f"Pass {param.name!r} to answer yes.")
        suggestion.target = suggest_call(call, {**arguments, param.name: True})
    elif param is not None:
        fix = f"Pass {param.name!r} if it is the answer."
        suggestion = Suggestion("retry_with_modified_input", fix, applicability="has_placeholders")
        suggestion.target = suggest_call(call, {**arguments, param.name: f"<{param.name}>"})
    elif question.is_confirmation:
        fix = f"Ask a human, then repeat the call with {spell_option(call, 'yes')}."
        suggestion = Suggestion("ask_human", fix)
        suggestion.target = suggest_call(call, yes=True)
    else:
        fix = "No argument of this command answers it. Let a human run the command at a terminal."
        suggestion = Suggestion("ask_human", fix)
    return suggestion


def find_answering_param(
    tool: Tool, question: AskedQuestion, arguments: Mapping[str, object]
) -> Param | None:
    """Return the parameter that answers a question, if its name shows that."""
    unused = [param for param in tool.public_params if param.name not in arguments]
    flags = [param for param in unused if param.is_flag and param.name in _CONFIRMING_NAMES]
    if flags:
        return flags[0]
    letters = [char if char.isalnum() else " " for char in question.text.lower()]
    words = "".join(letters).split()
    named = [
        param
        for param in unused
        if not param.is_flag and set(param.name.lower().split("_")).issubset(words)
    ]
    return None if question.is_confirmation or not named else named[0]


def end_of_input_error(exc: BaseException, call: Call) -> InputError:
    """Return the error for a question that was asked when stdin had ended."""
    question = read_traceback(exc) or AskedQuestion()
    error = unanswered_error(current_call.get() or call, question)
    error.__cause__ = exc
    return error
