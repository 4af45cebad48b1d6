"""An error that an app makes in a wrong way reaches the caller on every interface."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import ErrorCategory, NotFoundError, StateError, Suggestion, ToolError, Tooli
from tooli.testing import Case, assert_parity
from tooli.testing.app_interfaces import interfaces


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class BrokenText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class QuotaReached(ToolError):
    code, category, is_retryable, exit_code, http_status = "E3900", "state", True, 42, 429


class Busy(ToolError):
    code, category = "E4029", ErrorCategory.RUNTIME


class NoInit(NotFoundError):
    def __init__(self, number: int) -> None:  # does not call super().__init__
        self.number = number


class Wrong(StateError):
    exit_code, http_status, code, category = 0, 200, "not a code", "odd"  # type: ignore


def _details_later() -> ToolError:
    error = StateError("later")
    error.details = "text"  # type: ignore[assignment]
    error.suggestion = {"fix": "Wait."}  # type: ignore[assignment]
    return error


ERRORS: dict[str, Any] = {
    "no action": lambda: StateError("x", suggestion=Suggestion(fix="Wait.")),
    "text": lambda: StateError("x", suggestion="Wait."),
    "dict": lambda: StateError("x", suggestion={"action": "abort", "fix": "Wait."}),
    "odd dict": lambda: StateError("x", suggestion={"fixx": "Wait.", "action": "dance"}),
    "number": lambda: StateError("x", suggestion=3),  # type: ignore[arg-type]
    "unknown action": lambda: StateError("x", suggestion=Suggestion("dance", "Wait.")),
    "unprintable fix": lambda: StateError("x", suggestion=Suggestion("fix", Unprintable())),  # type: ignore
    "argv text": lambda: StateError("x", suggestion=Suggestion("fix", "y", argv="app run")),
    "argv numbers": lambda: StateError("x", suggestion=Suggestion(argv=["app", "fail", 1])),  # type: ignore
    "keyword": lambda: StateError("x", detials={}),  # type: ignore
    "arguments text": lambda: StateError("x", suggestion=Suggestion(arguments="y")),  # type: ignore
    "details text": lambda: StateError("x", details="text"),  # type: ignore[arg-type]
    "details list": lambda: StateError("x", details=[1, 2]),  # type: ignore[arg-type]
    "details object": lambda: StateError("x", details={"a": Unprintable()}),
    "details later": _details_later,
    "message object": lambda: StateError(Unprintable()),  # type: ignore[arg-type]
    "message number": lambda: StateError(3),  # type: ignore[arg-type]
    "field number": lambda: StateError("x", field=3),  # type: ignore[arg-type]
    "no init": lambda: NoInit(7),
    "wrong class": lambda: Wrong("x"),
    "exit code": lambda: StateError("x", exit_code=256),
    "broken text": BrokenText,
}


def make_app() -> Tooli:
    app = Tooli("app")

    @app.command()
    def fail(kind: str) -> str:
        """Fail."""
        raise ERRORS[kind]()

    @app.command()
    def stop(kind: str) -> str:
        """Fail with a class of the app."""
        raise {"quota": QuotaReached, "busy": Busy}[kind]("stopped")

    return app


@pytest.mark.parametrize("kind", ERRORS)
def test_error_reaches_the_caller(kind: str) -> None:
    error = assert_parity(make_app(), Case("fail", {"kind": kind}))["error"]
    if kind == "broken text":
        assert (error["code"], error["message"]) == ("E5000", "BrokenText")
    elif kind == "no init":
        assert (error["code"], error["message"]) == ("E3010", "7")
    else:
        assert error["code"] == "E3000", error
        assert error["message"] in ("x", "later", "3", "<Unprintable>")


WARNED = {
    "odd dict": "'fixx'",
    "number": "suggestion",
    "keyword": "did you mean 'details'?",
    "unknown action": "'dance'",
    "argv text": "argv",
    "arguments text": "arguments",
    "details text": "details",
    "details list": "details",
    "details later": "details",
    "wrong class": "exit_code=0",
    "exit code": "exit_code=256",
}


@pytest.mark.parametrize("kind", WARNED)
def test_developer_gets_a_warning(kind: str) -> None:
    envelope = assert_parity(make_app(), Case("fail", {"kind": kind}))
    assert WARNED[kind] in " ".join(envelope["meta"]["warnings"])


def test_suggestion_is_kept() -> None:
    for kind in ("no action", "text", "unknown action", "details later"):
        error = make_app().call("fail", kind=kind).to_dict()["error"]
        assert (error["suggestion"]["action"], error["suggestion"]["fix"]) == ("fix", "Wait.")


@pytest.mark.parametrize(
    ("kind", "code", "exit_code", "status", "is_retryable"),
    [("quota", "E3900", 42, 429, True), ("busy", "E4029", 75, 429, False)],
)
def test_class_attributes_apply_on_every_interface(
    kind: str, code: str, exit_code: int, status: int, is_retryable: bool
) -> None:
    app, case = make_app(), Case("stop", {"kind": kind})
    error = assert_parity(app, case)["error"]
    assert (error["code"], error["is_retryable"]) == (code, is_retryable)
    for interface in interfaces(app):
        found = interface.send_case(case).exit_code
        assert found in (None, exit_code), interface.name
    presented = app.call("stop", kind=kind).error
    assert presented is not None
    raised = presented.to_exception()
    assert (raised.exit_code, raised.http_status) == (exit_code, status)
