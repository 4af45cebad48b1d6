"""Every case returns the same envelope through every interface."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import typer
from tests.parity import cases
from tests.parity.sample_apps import make_app, make_callback_app, make_single_command_app

from tooli.testing import Case, assert_parity, invoke
from tooli.testing.app_interfaces import CallInterface, CommandLineInterface

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli import Tooli

WITHOUT_TYPER = {"typer": "the app has not loaded Typer"}
GROUPS = (
    *("VALID_VALUES", "INVALID_VALUES", "USAGE_ERRORS", "COMMAND_LINES", "FUNCTIONS", "POLICY"),
    *("RETURN_VALUES", "FAILURES"),
)


def case_param(group: str, case: Case) -> Any:
    """Return a parameter of a test, with an id that names the group and the call."""
    arguments = list(case.argv) if case.argv is not None else dict(case.arguments)
    options = " ".join(case.options)
    return pytest.param(
        case, id=f"{group.lower()}: {case.tool} {arguments!r:.70} {options}".strip()
    )


SAMPLE_APP_CASES = [case_param(group, case) for group in GROUPS for case in getattr(cases, group)]
every_case = pytest.mark.parametrize("case", SAMPLE_APP_CASES)


@pytest.fixture(scope="module")
def typer_app() -> Tooli:
    """The sample app after it has loaded Typer."""
    app = make_app()
    assert app.registered_commands
    return app


@every_case
def test_interfaces_of_an_app_without_typer_agree(case: Case) -> None:
    assert_parity(make_app(), case.replace(skip={**case.skip, **WITHOUT_TYPER}))


@every_case
def test_interfaces_of_an_app_with_typer_agree(typer_app: Tooli, case: Case) -> None:
    assert_parity(typer_app, case)


@pytest.mark.parametrize("case", [case_param("single", case) for case in cases.SINGLE_COMMAND_APP])
def test_interfaces_of_an_app_with_one_command_agree(case: Case) -> None:
    app = make_single_command_app()
    assert_parity(app, case)
    assert_parity(app, case)


@pytest.mark.parametrize("case", [case_param("callback", case) for case in cases.CALLBACK_APP])
def test_interfaces_of_an_app_with_a_callback_agree(case: Case) -> None:
    app = make_callback_app()
    assert_parity(app, case)
    assert_parity(app, case)


@pytest.mark.parametrize(
    ("case", "tool"),
    [
        (Case("find-files", {"pattern": "x"}), "sample.find-files"),
        (Case("users.list"), "sample.users.list"),
        (Case("users.admin.promote", {"name": "x"}), "sample.users.admin.promote"),
    ],
)
def test_meta_has_the_full_name_of_the_tool(case: Case, tool: str) -> None:
    meta = assert_parity(make_app(), case)["meta"]
    assert meta == {"tool": tool, "version": "1.2.0"}


@pytest.mark.parametrize(
    "case",
    [
        Case("find-files", {"patern": "x"}),
        Case("find-files", {"pattern": "x", "depp": True}),
    ],
)
@pytest.mark.parametrize("make", [make_app, make_single_command_app, make_callback_app])
def test_suggested_command_runs(make: Callable[[], Tooli], case: Case) -> None:
    """A suggestion that is machine-applicable has a command line that runs."""
    app = make()
    suggestion = CommandLineInterface(app).send_case(case).envelope["error"]["suggestion"]
    assert suggestion["applicability"] == "machine_applicable"
    done = invoke(app, *suggestion["argv"][1:], mode="json")
    assert done.ok, done.stdout


def test_another_value_is_not_what_the_caller_meant() -> None:
    """The nearest value in the range is a suggestion, which nobody may apply unseen."""
    found = make_app().call("find-files", pattern="x", limit=1000).to_dict()
    assert found["error"]["suggestion"]["applicability"] == "maybe_incorrect"


def test_all_input_errors_are_listed() -> None:
    """A misspelled name and an invalid value are two errors."""
    error = make_app().call("find-files", root=3, patern="x").to_dict()["error"]
    assert [one["field"] for one in error["details"]["errors"]] == ["patern", "root"]


async def test_stop_iteration_does_not_hang_async_callers() -> None:
    result = await asyncio.wait_for(make_app().acall("fail", kind="stop-iteration"), 3)
    assert result.to_dict()["error"]["category"] == "internal"


@pytest.fixture(scope="module")
def guarded_app() -> Tooli:
    """The sample app with a callback. Typer runs every call."""
    app = make_app()

    @app.callback()
    def before(ctx: typer.Context, guard: str = "open") -> None:
        """Run before every command."""
        ctx.obj = guard

    return app


def comparable(envelope: dict[str, Any]) -> dict[str, Any]:
    """Return an envelope without what differs between two apps: tokens, lists of parameters."""
    error, result = envelope.get("error"), envelope.get("result")
    if error is not None:
        # E2101 contains the id of a request, E1002 the type of a value that Typer converts
        is_other = error["code"] in ("E2101", "E1002")
        return {"code": error["code"], "message": None if is_other else error["message"]}
    if isinstance(result, dict) and "basis" in result:
        result = {name: value for name, value in result.items() if name != "token"}
    return {"result": result}


@pytest.mark.parametrize(
    "case", [p for p in SAMPLE_APP_CASES if p.values[0].tool in make_app().catalog]
)
def test_a_callback_does_not_change_the_answer(
    typer_app: Tooli, guarded_app: Tooli, case: Case
) -> None:
    """A call through Typer has the values and errors of a direct call."""
    reason = CallInterface(guarded_app).skip_reason(case)
    if reason is not None or case.skip.get("cli", "").startswith("a command line cannot contain"):
        pytest.skip(reason or case.skip["cli"])
    direct, routed = [
        CallInterface(app).send_case(case).envelope for app in (typer_app, guarded_app)
    ]
    assert comparable(routed) == comparable(direct)
