"""The errors of scripts that have started."""

from __future__ import annotations

from tests.orchestrate.script_app import Shop

from tooli import NotFoundError
from tooli.orchestrate import script_errors
from tooli.orchestrate.inner_calls import InnerCall
from tooli.orchestrate.script_tools import read_script_tools
from tooli.testing import invoke

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


def test_refused_script_need_not_be_corrected() -> None:
    for code in ("E1010", "E2101"):
        shop = Shop()
        name = "drop" if code == "E1010" else "buy"
        error = shop.app.orchestrate(f"await {name}('tea')").error
        assert error is not None
        assert error.code == code
        assert error.suggestion["fix"].endswith("Nothing was changed.")


def test_option_that_raises_the_limit_is_named() -> None:
    error = Shop().app.orchestrate("await find()\nawait find()", max_calls=1).error
    assert error is not None
    assert "raise the limit with `max_calls`" in error.suggestion["fix"]
    argv = ("orchestrate", "run", "-", "--max-calls", "1")
    done = invoke(Shop().app, *argv, input="await find()\nawait find()")
    assert "with --max-calls." in done.envelope["error"]["suggestion"]["fix"]


def test_missing_variable_may_be_an_input() -> None:
    done = invoke(Shop().app, "orchestrate", "run", "-", input="quantity + 1")
    assert "--inputs sets its variables" in done.envelope["error"]["suggestion"]["fix"]
