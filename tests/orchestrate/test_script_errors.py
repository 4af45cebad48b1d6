"""The errors of scripts that have started."""

from __future__ import annotations

from tests.orchestrate.script_app import Shop

from tooli import NotFoundError
from tooli.orchestrate import script_errors
from tooli.orchestrate.inner_calls import InnerCall
from tooli.orchestrate.script_tools import read_script_tools

TOOLS = read_script_tools(Shop().app.catalog)


def made(name: str, state: str, line: int = 1) -> InnerCall:
    call = InnerCall(TOOLS[name], line)
    call.state = state
    if state == "failed":
        call.error = NotFoundError("gone")
    return call


def test_calls_are_listed() -> None:
    calls = [made("drop", "ok"), made("find", "failed"), made("drop", "stopped")]
    error = script_errors.limit_error("too much", [*calls, made("find", "waiting")])
    assert (error.code, error.exit_code, error.is_retryable) == ("E4081", 70, False)
    assert error.details == {
        "calls": [
            {"tool": "drop", "line": 1, "ok": True, "ms": 0},
            {"tool": "find", "line": 1, "ok": False, "code": "E3010", "ms": 0},
            {"tool": "drop", "line": 1, "ok": False, "state": "stopped", "ms": 0},
        ]
    }
    assert error.suggestion is not None
    assert "do not repeat" in error.suggestion.fix


def test_many_calls_are_cut() -> None:
    details = script_errors.crash_error("killed", [made("find", "ok")] * 130).details
    assert details is not None
    assert (len(details["calls"]), details["calls_left_out"]) == (100, 30)  # type: ignore[arg-type]


def test_deadline_is_retryable_if_nothing_was_changed() -> None:
    assert script_errors.deadline_error(2.0, [made("find", "stopped")]).is_retryable
    error = script_errors.deadline_error(2.0, [made("drop", "stopped")])
    assert not error.is_retryable
    assert error.exit_code == 50


def test_no_calls() -> None:
    assert script_errors.value_error("the result is x", []).details is None


def test_recursion_is_listed_once() -> None:
    error = Shop().app.orchestrate("def f(n):\n    return f(n)\n\nf(1)").error
    assert error is not None
    assert error.details is not None
    assert error.details["line"] == 2
    assert len(error.details.get("traceback", [])) <= 2


def test_error_keeps_the_class_of_the_tool() -> None:
    error = Shop().app.orchestrate("await price(name='gold')").error
    assert error is not None
    assert isinstance(error.to_exception(), NotFoundError)
    assert error.message == "price() on line 1: There is no gold."
