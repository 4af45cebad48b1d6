"""Situations that need a policy, a stored state, a file or a server to make tooli raise an error.

Each function prepares the situation, and returns an app with the calls to send to it. The last call
fails with the code that the function is named for.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import SecretStr
from tests.providers.provided import ToolList

from tooli import (
    ConflictError,
    Context,
    DependencyError,
    InputError,
    InputLimits,
    NotFoundError,
    Option,
    Output,
    Partial,
    SecretInput,
    StateError,
    StdinOr,
    TemporaryError,
    Tooli,
    ToolRuntimeError,
)
from tooli.annotations import Destructive, ReadOnly
from tooli.errors import FormatError
from tooli.pipeline.dry_run_recorder import dry_run_support, record_dry_action
from tooli.providers import described_tool
from tooli.storage.approval_store import ApprovalStore
from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore
from tooli.storage.idempotency_store import AlreadyRunning, IndeterminateAttempt, StoreUnavailable
from tooli.testing import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest


class Situation(NamedTuple):
    """An app, the calls to send to it, and what to do before the last one."""

    app: Tooli
    cases: Sequence[Case]
    change: Callable[[], object] = lambda: None
    applies_plan: bool = False  # the last call applies the plan of the call before


def with_command(function: Callable[..., Any], app: Tooli | None = None, **options: Any) -> Tooli:
    app = app or Tooli("shop")
    app.command("run", **options)(function)
    return app


# ------------------------------------------------------------------ errors that an app raises

_RAISED: dict[str, Callable[[], Exception]] = {
    "E1000": lambda: InputError("The name is taken."),
    "E1065": lambda: FormatError("Line 3 is not a number."),
    "E3000": lambda: StateError("It is closed."),
    "E3010": lambda: NotFoundError("There is no item 7."),
    "E3020": lambda: ConflictError("The item has changed."),
    "E4000": lambda: ToolRuntimeError("The printer failed."),
    "E4040": lambda: DependencyError("The bank does not answer."),
    "E4075": lambda: TemporaryError("The bank is busy."),
}


def raised(code: str) -> Situation:
    def run() -> str:
        raise _RAISED[code]()

    return Situation(with_command(run), [Case("run")])


def some_items_failed(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run() -> Partial[int]:
        return Partial([1], failed=[("b", NotFoundError("There is no b."))])

    return Situation(with_command(run, annotations=ReadOnly), [Case("run")])


# ------------------------------------------------------------------ rules


def missing_scope(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    app = Tooli("shop", security_policy="strict")
    return Situation(with_command(lambda: "", app, auth=["admin"]), [Case("run")])


def undeclared_auth(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    app = Tooli("shop", security_policy="strict")
    return Situation(with_command(lambda: "", app), [Case("run")])


def undeclared_capability(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run() -> str:
        return (folder / "secret").read_text()

    app = Tooli("shop", security_policy="strict")
    return Situation(with_command(run, app, auth=[], capabilities=["env:read"]), [Case("run")])


def denied_path(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(path: Path) -> str:
        return ""

    patch.setenv("TOOLI_DENY_PATHS", str(folder))
    return Situation(with_command(run), [Case("run", {"path": str(folder / "x")})])


def missing_isolation(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    app = Tooli("shop")
    app.add_provider(ToolList(described_tool("run", dict, annotations=ReadOnly, stops_itself=True)))
    app._state.security_settings["isolation"] = "required"
    app._state.security_settings_loaded = True
    return Situation(app, [Case("run")])


def only_in_scripts(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    return Situation(with_command(lambda: "", callers=["code"]), [Case("run")])


# ------------------------------------------------------------------ humans


def unanswered_question(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(ctx: Context) -> str:
        return str(ctx.sample("What is it?"))

    return Situation(with_command(run), [Case("run")])


def rejected_call(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def deny() -> None:
        store = ApprovalStore()
        (request,) = store.list_pending("shop")
        store.decide(request, "denied")

    app = with_command(lambda: "", requires_approval=True)
    return Situation(app, [Case("run"), Case("run")], deny)


def unavailable_approvals(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    (folder / "file").touch()
    patch.setenv("TOOLI_STATE_DIR", str(folder / "file"))
    return Situation(with_command(lambda: "", requires_approval=True), [Case("run")])


def repeated_secret(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(to: str, key: Annotated[SecretStr, Option()]) -> str:
        return ""

    app = with_command(run, requires_approval=True)
    return Situation(app, [Case("run", {"to": "hunter22", "key": "hunter22"})])


# ------------------------------------------------------------------ stored data


def _with_key(begin: object, patch: pytest.MonkeyPatch) -> Situation:
    def begin_attempt(*_: object, **__: object) -> object:
        if isinstance(begin, Exception):
            raise begin
        return begin

    patch.setattr(SqliteIdempotencyStore, "begin", begin_attempt)
    return Situation(with_command(lambda: ""), [Case("run", {}, {"idempotency_key": "k"})])


def running_call(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    return _with_key(AlreadyRunning(0.0, "process 1"), patch)


def interrupted_call(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    return _with_key(IndeterminateAttempt(0.0, "process 1"), patch)


def unavailable_store(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    return _with_key(StoreUnavailable("The store is damaged.", "Delete it."), patch)


def changed_plan(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    file = folder / "list"
    file.write_text("a")

    @dry_run_support
    def run() -> str:
        for name in file.read_text().split():
            record_dry_action("delete", name)
        return ""

    app = with_command(run, annotations=Destructive)
    cases = [Case("run", {}, {"dry_run": True}), Case("run", {}, {"yes": True})]
    return Situation(app, cases, lambda: file.write_text("a b"), applies_plan=True)


def unwritable_log(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    patch.setenv("TOOLI_STATE_DIR", str(folder / "state"))
    (folder / "state").mkdir(mode=0o700)
    (folder / "state" / "audit").touch()
    app = Tooli("shop", security_policy="strict")
    return Situation(with_command(lambda: "", app, auth=[]), [Case("run")])


# ------------------------------------------------------------------ inputs


def too_large_input(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(data: Annotated[StdinOr[str], Option(), InputLimits(max_bytes=3)]) -> str:
        return data

    (folder / "large").write_text("12345")
    return Situation(with_command(run), [Case("run", {"data": str(folder / "large")})])


def invalid_json(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(data: dict[str, int]) -> str:
        return ""

    return Situation(with_command(run), [Case("run", argv=["{x"])])


def secret_on_the_line(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(key: SecretInput[str]) -> str:
        return ""

    return Situation(with_command(run), [Case("run", argv=["hunter22"])])


def result_on_stdout(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(out: Output) -> str:
        return ""

    return Situation(with_command(run), [Case("run", argv=["-"])])


def too_many_arguments(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    return Situation(with_command(lambda: ""), [Case("run", argv=["x"])])


def option_without_value(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run(name: str = "") -> str:
        return ""

    return Situation(with_command(run), [Case("run", argv=["--name"])])


def dead_process(folder: Path, patch: pytest.MonkeyPatch) -> Situation:
    def run() -> str:
        sys.stdout.flush()
        import os

        os._exit(3)

    return Situation(with_command(run), [Case("run", {}, {"timeout": 60})])


STATES: dict[str, Callable[[Path, pytest.MonkeyPatch], Situation]] = {
    "E1005": too_many_arguments,
    "E1006": option_without_value,
    "E1008": invalid_json,
    "E1032": secret_on_the_line,
    "E1034": too_large_input,
    "E1036": result_on_stdout,
    "E1037": repeated_secret,
    "E2001": missing_scope,
    "E2002": undeclared_auth,
    "E2003": undeclared_capability,
    "E2005": denied_path,
    "E2006": missing_isolation,
    "E2007": only_in_scripts,
    "E2102": unanswered_question,
    "E2103": rejected_call,
    "E2104": unavailable_approvals,
    "E3051": running_call,
    "E3052": interrupted_call,
    "E3053": changed_plan,
    "E4051": dead_process,
    "E4060": unavailable_store,
    "E4061": unwritable_log,
    "E4070": some_items_failed,
    **{code: lambda folder, patch, code=code: raised(code) for code in _RAISED},
}

ELSEWHERE = {
    "E2004": "a token of an authorization server: tests/security/test_revoked_tokens.py",
    "E2008": "an expression on the command line: tests/orchestrate/test_python_eval.py",
    "E1011": "the program does not start: tests/config/test_app_settings.py",
    "E1020": "the server does not start: tests/http/test_http_server.py",
    "E1038": "a prompt of a command line: tests/cli/test_prompt_guard.py",
    "E1050": "two keys in one request: tests/stages/test_idempotency.py",
    "E1070": "a script has errors: tests/builtins/test_orchestrate_commands.py",
    "E4080": "a script failed: tests/orchestrate/test_script_run.py",
    "E4081": "a script exceeded a limit: tests/builtins/test_orchestrate_commands.py",
    "E4130": "the caller interrupts: tests/stages/test_repeated_failures.py",
    "E4143": "the process is stopped: tests/http/test_asgi.py",
}
"""Codes whose words a caller of a command does not get, and the tests that raise them."""
