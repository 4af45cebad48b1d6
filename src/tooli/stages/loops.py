"""A way out of loops: the same call, failing in the same way again and again, is told so.

    1, 2    the error as it is
    3, 4    the same error, with a word on the repetition
    5 …     another error (E4031), and the tool is not run

A changed argument, a success or ten minutes end it. What may well work the next time, or waits
for a human, is never held back.
"""

from __future__ import annotations

import os

from tooli.call.model import Failed, Ok
from tooli.contract.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from tooli.call.model import Call, Outcome, Stage
    from tooli.errors import ToolError
    from tooli.state.loops import Failure, Files, Memory

FIRM, STUCK, HOPELESS = 3, 5, 8
"""From which repetition on the error is firmer, another one, and a human's."""
_STOPPED = ("E4130", "E4143", "E4031")
_LONGEST_WAIT = 300
_LONGEST_TEXT = 500


def break_loops(call: Call) -> Generator[Call, Outcome, Outcome]:
    """On a command line: count the identical failures of a session, each in its own process."""
    who = _session(call)
    if who is None:
        return (yield call)
    from tooli.state.loops import Files

    return (yield from _look_after(call, who, Files()))


def break_loops_in(memory: Memory, house: Any = None) -> Stage:
    """The same on a server, for as many sessions as it has: those of known callers, or its one.

    `house` is the app's, which may say in which folder relative paths begin.
    """

    def stage(call: Call) -> Generator[Call, Outcome, Outcome]:
        caller = call.caller
        who = f"{caller.surface} {caller.principal or ''} {caller.session or ''}"
        folder = house.rules.get("work_dir") if house is not None else None
        return (yield from _look_after(call, who, memory, folder or ""))

    return stage


def _look_after(
    call: Call, who: str, kept: Memory | Files, folder: str = ""
) -> Generator[Call, Outcome, Outcome]:
    """Count identical failures in a row, and end a row that leads nowhere."""
    before, mark = kept.recall(who, call.tool.id), None
    if before is not None:
        mark = mark_of(call, folder)
        if before.mark == mark and before.count + 1 >= STUCK and before.error.get("blocks"):
            again = before.replace(count=before.count + 1)
            kept.note(who, call.tool.id, again)
            raise _stuck(call, again)
    outcome = yield call
    if isinstance(outcome, Ok):
        if before is not None:
            kept.forget(who, call.tool.id)
        return outcome
    return _noted(call, outcome, before, mark or mark_of(call, folder), who, kept)


def note_failure(call: Call, outcome: Failed) -> Outcome:
    """What `break_loops` does at the end, for a call that it did not stand around."""
    from tooli.state.loops import Files

    who = _session(call)
    return outcome if who is None else _noted(call, outcome, None, mark_of(call), who, Files())


def _noted(
    call: Call,
    outcome: Failed,
    before: Failure | None,
    mark: str,
    who: str,
    kept: Memory | Files,
) -> Outcome:
    from time import time

    from tooli.call.canonical import digest
    from tooli.call.cleaning import clean_line
    from tooli.state.loops import Failure

    error = outcome.error
    if error.code in _STOPPED:  # nobody's failure: somebody stopped it
        return outcome
    message = clean_line(error.message, call)  # who is told of it later knows no secret to hide
    way = error.code if error.category == "input" else f"{error.code} {message}"
    way = digest(way.encode(errors="surrogatepass"), 16).hex()
    same = before is not None and (before.mark, before.way) == (mark, way)
    count = before.count + 1 if before is not None and same else 1
    told: dict[str, Any] = {
        "code": error.code,
        "message": message[:_LONGEST_TEXT],
        "blocks": not (_may_work_later(error) or _reads_stdin(call)),
    }
    kept.note(who, call.tool.id, Failure(mark, way, count, time(), told))
    return Failed(_firmer(error, count)) if count >= FIRM else outcome


# ------------------------------------------------------------------ whose failures


def _session(call: Call) -> str | None:
    """The session of a command line: ours, or what an agent calls its own in a variable."""
    if call.caller.surface != "cli":
        return None  # a server has a memory of its own
    if call.caller.session is not None:
        return call.caller.session
    from tooli.detect import detect_execution_context

    return detect_execution_context().session_id


# ------------------------------------------------------------------ which call


def mark_of(call: Call, folder: str = "") -> str:
    """The tool and all that was asked, as given: equal calls have equal marks.

    Of a file that an argument names, its size and date belong to it: who corrects an input and
    tries again does not repeat himself.
    """
    from tooli.call.canonical import digest, stable
    from tooli.call.envelope import encode

    given = {name: _plain(value) for name, value in call.arguments.items()}
    options = call.options
    asked = [
        *(options.yes, options.dry_run, options.apply, options.idempotency_key, options.timeout),
        *(call.approved, call.caller.principal, repr(options.shaping)),
    ]
    wrong = [[one.code, one.field, one.message] for one in call.problems]
    files = list(_files(_named(call, given), folder))
    whole = [sorted((name, stable(value)) for name, value in given.items()), asked, wrong, files]
    return digest(call.tool.id.encode() + b"\0" + encode(whole, []), 16).hex()


def _plain(value: Any) -> Any:
    """A value as it was given: the words of a line, or what stands for them."""
    from tooli.contract.fit import Given, Words

    if isinstance(value, Words):
        dotted: list[Any] = [[name, *words] for name, words in (value.dotted or {}).items()]
        return [*value.texts, *dotted]
    return value.value if isinstance(value, Given) else value


def _named(call: Call, given: dict[str, Any]) -> list[Any]:
    """What may name files: any word of a line; on a server, whose callers may be anybody, only
    what the command itself takes for a path."""
    if call.caller.surface == "cli":
        return list(given.values())
    from tooli.contract.tool import is_path

    paths = {param.name for param in call.tool.params if is_path(param.shape)}
    return [value for name, value in given.items() if name in paths]


def _files(values: list[Any], folder: str) -> Iterator[list[Any]]:
    """Where a line was typed, and what the files are like that it names."""
    try:
        yield [os.getcwd()]
    except OSError:
        yield []
    for value in values:
        texts: list[Any] = list(value) if is_list(value) else [value]
        for text in texts:
            path: Any = text.lstrip("@") if isinstance(text, str) else text
            if isinstance(path, (str, os.PathLike)):
                yield _looks(path, folder)


def _looks(path: Any, folder: str) -> list[int]:
    """The size and the date of a file; nothing where there is none."""
    try:
        found = os.stat(os.path.join(os.path.expanduser(folder), path))
    except (OSError, ValueError, TypeError):
        return []
    return [found.st_size, found.st_mtime_ns]


def _reads_stdin(call: Call) -> bool:
    """Whether a command line may have read its input from a pipe: that tells no two calls apart."""
    from tooli.contract.tool import Handle, plain

    if call.caller.surface != "cli" or not call.tool.handles:
        return False
    given = {name: _plain(value) for name, value in call.arguments.items()}
    taking = [p.name for p in call.tool.params if isinstance(plain(p.shape), Handle)]
    return any([name not in given or given[name] in ("-", ["-"]) for name in taking])


# ------------------------------------------------------------------ what is said about it


def _may_work_later(error: ToolError) -> bool:
    """Whether the same call may well succeed after a while, or after a human's word."""
    patient = error.is_retryable and error.category not in ("input", "auth")
    return patient or error.exit_code in (75, 101) or _is_for_humans(error)


def _is_for_humans(error: ToolError) -> bool:
    return error.category == "human" or error.code == "E1010"  # a door may ask them there and then


def _firmer(error: ToolError, count: int) -> ToolError:
    """The same error, with a suggestion that speaks of the repetition."""
    from tooli.errors import Suggestion

    error = _copied(error)

    before = f" {error.suggestion.fix}" if error.suggestion is not None else ""
    argv = error.suggestion.argv if error.suggestion is not None else None
    details: dict[str, object] = {**(error.details or {}), "repeated": count}
    if _is_for_humans(error):
        error.suggestion = Suggestion(
            "ask_human",
            f"Asked {count} times: do not repeat it before a human has answered.{before}",
            argv=argv,
        )
    elif _may_work_later(error):
        wait = details.setdefault("retry_after", min(2 ** (count - FIRM + 1), _LONGEST_WAIT))
        error.suggestion = Suggestion(
            "retry_later", f"Failed {count} times in a row: wait {wait} s before the next attempt."
        )
    else:
        error.suggestion = Suggestion(
            "retry_with_modified_input" if error.category == "input" else "use_different_tool",
            f"The same call has failed {count} times in the same way; repeating it does not "
            f"help: change its arguments, or do without it.{before}",
            argv=argv,
        )
    error.details = details
    return error


def _copied(error: ToolError) -> ToolError:
    """An error of its own: a tool may raise the same one again."""
    from copy import copy

    try:
        made = copy(error)
    except Exception:  # a class of its author's that wants more than a message
        return error
    made.__cause__ = error.__cause__
    return made.with_traceback(error.__traceback__)


def _stuck(call: Call, failure: Failure) -> ToolError:
    """The error of a call that is not run any more."""
    from tooli.errors import Suggestion, ToolRuntimeError
    from tooli.state.loops import KEPT

    told = {"code": failure.error.get("code"), "message": failure.error.get("message")}
    minutes = int(KEPT // 60)
    return ToolRuntimeError(
        f"{call.tool.name} was not run: the same call has failed {STUCK - 1} times in the "
        f"same way ({told['code']}).",
        code="E4031",
        is_retryable=False,
        suggestion=Suggestion(
            "ask_human" if failure.count >= HOPELESS else "abort",
            f"Stop repeating it. Change an argument, use another tool or ask a human; "
            f"unchanged, it runs again {minutes} minutes after its last failure.",
        ),
        details={"repeated": failure.count, "error": told},
    )
