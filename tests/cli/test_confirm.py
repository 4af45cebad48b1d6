"""Questions to a person: approval and missing secrets."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from tooli import SecretInput, Tooli
from tooli.cli import confirm
from tooli.cli.confirm import Confirm
from tooli.core.call import Call, Caller, Failed, Options
from tooli.errors import ApprovalRequired, InputError
from tooli.inputs.secret import SecretShape
from tooli.schema import RawText


def make_call(app: Tooli, name: str, **arguments: Any) -> Call:
    tool = app.find(name)
    assert tool is not None
    return Call(tool, arguments, Caller("cli"), [], Options(interactive=True))


def needs_approval(code: str = "E2101") -> Failed:
    error = ApprovalRequired("Needs approval.", code=code)
    error.approval_text = "drop(item='x')"
    return Failed(error, has_started=False)


def missing(*fields: str, code: str = "E1002") -> Failed:
    errors = [{"field": field, "code": code, "message": "missing"} for field in fields]
    error = InputError("missing", code="E1002", details={"errors": errors})
    return Failed(error, has_started=False)


def malformed_errors(errors: list[Any]) -> Failed:
    error = InputError("missing", code="E1002", details={"errors": errors})
    return Failed(error, has_started=False)


@pytest.fixture
def keys() -> Tooli:
    app = Tooli("keys")

    @app.command()
    def login(user: str, key: SecretInput[str]) -> str:
        return user

    @app.command(danger_level="high")
    def burn() -> None: ...

    return app


def test_approved_call_runs_again(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "ask_yes_no", lambda _: True)
    completed = Confirm(make_call(shop, "drop", item="x")).complete(needs_approval())
    assert isinstance(completed, Call)
    assert completed.approved


def test_secret_that_was_read_from_stdin_is_kept(
    keys: Tooli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirm, "ask_yes_no", lambda _: True)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"hush-1234")))
    tool = keys.find("login")
    assert tool is not None
    (param,) = [param for param in tool.params if param.name == "key"]
    assert isinstance(param.shape, SecretShape)
    secrets = [param.shape.parse(text, param, is_cli_text=True) for text in ("-", "env:PATH")]
    for secret in secrets:
        secret.load()
    call = make_call(keys, "login", user="ada", key=RawText(["-"])).replace(secrets=secrets)
    completed = Confirm(call).complete(needs_approval())
    assert isinstance(completed, Call)
    assert completed.arguments == {"user": "ada", "key": secrets[0]}


def test_declined_call_is_a_failure(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "ask_yes_no", lambda _: False)
    completed = Confirm(make_call(shop, "drop", item="x")).complete(needs_approval())
    assert isinstance(completed, Failed)
    assert completed.error.code == "E2103"


def test_failure_without_a_question_is_unchanged(shop: Tooli) -> None:
    failed = Failed(ApprovalRequired("Needs approval.", code="E2101"), has_started=False)
    assert Confirm(make_call(shop, "drop", item="x")).complete(failed) is failed


def test_error_of_the_function_is_no_question(shop: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "ask_yes_no", lambda _: pytest.fail("was asked"))
    failed = needs_approval().replace(has_started=True)
    assert Confirm(make_call(shop, "drop", item="x")).complete(failed) is failed


@pytest.mark.parametrize(("typed", "runs"), [("burn\n", True), ("yes\n", False), ("", False)])
def test_dangerous_call_runs_only_if_its_name_is_typed(
    keys: Tooli, monkeypatch: pytest.MonkeyPatch, typed: str, runs: bool
) -> None:
    def ask(_: str) -> str:
        if not typed:
            raise EOFError
        return typed

    monkeypatch.setattr(confirm, "ask_line", ask)
    completed = Confirm(make_call(keys, "burn")).complete(needs_approval())
    assert isinstance(completed, Call) is runs


def test_missing_secret_is_asked_for(keys: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "has_terminal", lambda: True)
    monkeypatch.setattr(confirm, "ask_hidden", lambda question: f"typed {question}")
    completed = Confirm(make_call(keys, "login", user="ada")).complete(missing("key"))
    assert isinstance(completed, Call)
    assert completed.arguments == {"user": "ada", "key": "typed key (not shown): "}


@pytest.mark.parametrize(
    ("failed", "terminal", "typed"),
    [
        (missing("user"), True, "x"),  # not a secret
        (missing("key", "user"), True, "x"),  # not only secrets
        (missing("key", code="E1003"), True, "x"),  # something else is wrong
        (missing("key").replace(has_started=True), True, "x"),  # an error of the function
        (malformed_errors([1]), True, "x"),
        (malformed_errors([{"code": "E1002", "field": ["key"]}]), True, "x"),
        (missing("key"), False, "x"),
        (missing("key"), True, ""),
    ],
)
def test_failure_that_a_secret_cannot_fix_is_unchanged(
    keys: Tooli, monkeypatch: pytest.MonkeyPatch, failed: Failed, terminal: bool, typed: str
) -> None:
    monkeypatch.setattr(confirm, "has_terminal", lambda: terminal)
    monkeypatch.setattr(confirm, "ask_hidden", lambda _: typed)
    assert Confirm(make_call(keys, "login")).complete(failed) is failed


@pytest.mark.parametrize("options", [Options(), Options(interactive=True, no_input=True)])
def test_no_question_is_asked_if_input_is_disabled(
    keys: Tooli, monkeypatch: pytest.MonkeyPatch, options: Options
) -> None:
    monkeypatch.setattr(confirm, "has_terminal", lambda: pytest.fail("was checked"))
    failed = missing("key")
    assert Confirm(make_call(keys, "login").replace(options=options)).complete(failed) is failed


@pytest.mark.parametrize(("code", "exit_code"), [("E1010", 2), ("E2101", 101)])
def test_no_ends_with_one_line(
    shop: Tooli, monkeypatch: pytest.MonkeyPatch, code: str, exit_code: int
) -> None:
    monkeypatch.setattr(confirm, "ask_yes_no", lambda question: False)
    tool = shop.find("drop")
    assert tool is not None
    call = Call(tool, {"item": "x"}, Caller("cli"), [])
    error = InputError("needs a confirmation", code=code)
    error.approval_text = "shop.drop may destroy data."
    completed = confirm.Confirm(call).complete(Failed(error, has_started=False))
    assert isinstance(completed, Failed)
    assert completed.error.message == "drop was not run."
    assert (completed.error.suggestion, completed.error.exit_code) == (None, exit_code)
