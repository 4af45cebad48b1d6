"""The table of stages: which rows apply, and that a new row runs for every call."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from pydantic import BaseModel

import tooli.pipeline
from tooli import SecretInput, StdinOr, Tooli
from tooli.annotations import Destructive
from tooli.core.call import PYTHON_CALLER, Call, Caller, Failed, Ok, Options
from tooli.core.tool import Tool
from tooli.errors import InternalError
from tooli.mcp.sdk_server import AppServer
from tooli.mcp.service import McpService
from tooli.pipeline import (
    CONFINEMENT_STAGES,
    STAGES,
    StageContext,
    load_location,
    select_stages,
    stage_name,
)
from tooli.pipeline.drivers import ONLY_BIND, bind, run
from tooli.records.call_options import ResultOptions
from tooli.testing import Case, invoke
from tooli.testing.app_interfaces import command_line, interfaces

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tooli.core.call import Outcome
    from tooli.pipeline import StageRow

NAMES = [row[0] for row in STAGES]
seen: list[tuple[str, str]] = []


def record_call(call: Call) -> Generator[Call, Outcome, Outcome]:
    """The stage that the tests add to the table."""
    seen.append((call.tool.id, "in"))
    outcome = yield call
    seen.append((call.tool.id, "out"))
    return outcome


ROW: StageRow = ("recorded", f"{__name__}:record_call", (), ())


class Point(BaseModel):
    x: int
    y: int = 0


LAZY = types.ModuleType("stage_table_lazy")
exec("def late(a: int) -> int:\n    return a", LAZY.__dict__)


def make_app() -> Tooli:
    app = Tooli("kinds", version="1")

    @app.command()
    def plain(a: int) -> int:
        return a

    @app.command()
    def streaming(a: int) -> Iterator[int]:
        yield from range(a)

    @app.command("async")
    async def asynchronous(a: int) -> int:
        await asyncio.sleep(0)
        return a

    @app.command()
    async def async_streaming(a: int) -> AsyncIterator[int]:
        for i in range(a):
            yield i

    @app.command()
    def printing(a: int) -> None:
        print(a)

    @app.command(annotations=Destructive)
    def destructive(a: int) -> int:
        return a

    @app.command()
    def handles(source: StdinOr[str], pin: SecretInput[str] | None = None) -> str:
        return source

    @app.command(input_model=Point)
    def model(point: Point) -> int:
        return point.x

    @app.command(paginated=True, timeout=60.0, max_tokens=1000)
    def limited(a: int) -> list[int]:
        return [a]

    app.lazy_command("stage_table_lazy:late", "lazy")
    group = Tooli("group")
    group.command("inner")(plain)
    app.add_typer(group, name="group")
    return app


KINDS: dict[str, dict[str, Any]] = {
    **{
        kind: {"a": 2}
        for kind in (
            *("plain", "streaming", "async", "async-streaming", "printing", "destructive"),
            *("limited", "lazy", "group.inner"),
        )
    },
    "handles": {"source": "FILE"},
    "model": {"x": 1},
}
INTERFACES = [
    *("call", "acall", "stream", "astream", "cli", "jsonl", "typer", "http", "http-lines"),
    *("mcp", "mcp-stateless"),
]


@pytest.fixture(params=["outermost", "before bind", "innermost"])
def added_row(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a row without a condition to the table."""
    indexes = {"outermost": 0, "before bind": NAMES.index("bind"), "innermost": len(STAGES)}
    index = indexes[request.param]
    monkeypatch.setattr(tooli.pipeline, "STAGES", (*STAGES[:index], ROW, *STAGES[index:]))
    monkeypatch.setitem(sys.modules, "stage_table_lazy", LAZY)
    seen.clear()


def make_case(kind: str, tmp_path: Path) -> Case:
    file = tmp_path / "source.txt"
    file.write_text("text")
    arguments = {k: str(file) if v == "FILE" else v for k, v in KINDS[kind].items()}
    return Case(kind, arguments, {"yes": True} if kind == "destructive" else {})


@pytest.mark.usefixtures("added_row")
class TestUnconditionalRow:
    """A row without a condition runs for every kind of command, through every interface."""

    @pytest.mark.parametrize("name", INTERFACES)
    def test_row_runs_on_every_interface(self, name: str, tmp_path: Path) -> None:
        for kind in KINDS:
            app = make_app()
            interface = next(one for one in interfaces(app) if one.name == name)
            response = interface.send_case(make_case(kind, tmp_path))
            assert response.envelope["ok"], (kind, response)
            tool = f"kinds.{kind}"
            assert seen == [(tool, "in"), (tool, "out")], kind
            seen.clear()

    @pytest.mark.parametrize("mode", ["text", "plain"])
    def test_row_runs_in_text_modes(self, mode: str, tmp_path: Path) -> None:
        for kind in KINDS:
            app, case = make_app(), make_case(kind, tmp_path)
            assert invoke(app, *command_line(app, case), mode=mode).exit_code == 0
            assert seen == [(f"kinds.{kind}", "in"), (f"kinds.{kind}", "out")]
            seen.clear()

    def test_row_runs_on_the_typer_path_in_text_mode(self) -> None:
        app = make_app()
        app.callback()(lambda: None)  # an app with a callback takes the Typer path
        assert invoke(app, "plain", "2", mode="text").exit_code == 0
        assert seen == [("kinds.plain", "in"), ("kinds.plain", "out")]

    def test_row_runs_for_built_in_commands(self) -> None:
        assert invoke(make_app(), "detect-context", mode="json").exit_code == 0
        assert [event for _, event in seen] == ["in", "out"]

    @pytest.mark.parametrize("mode", ["legacy", "auto"])
    async def test_row_runs_through_the_mcp_sdk(self, mode: Any, tmp_path: Path) -> None:
        app = make_app()
        async with Client(AppServer(McpService(app)), mode=mode) as client:
            for kind in KINDS:
                case = make_case(kind, tmp_path)
                name = kind.replace("-", "_").replace(".", "_")
                if kind == "destructive":
                    continue  # the client would have to answer a question
                result = await client.call_tool(name, dict(case.arguments))
                assert not result.is_error, kind
                assert seen == [(f"kinds.{kind}", "in"), (f"kinds.{kind}", "out")]
                seen.clear()

    def test_row_runs_for_a_resource(self) -> None:
        app = make_app()

        @app.resource("note://one")
        def one() -> str:
            return "text"

        tool = app._state.resources[0].tool(app._state)
        call, stages = app.prepare(Call(tool, {}, Caller("mcp"), [], Options()))
        assert isinstance(run(call, stages), Ok)
        assert [event for _, event in seen] == ["in", "out"]


def make_context(tool: Tool, **more: Any) -> StageContext:
    app = Tooli("x")
    parts: dict[str, Any] = {"options": Options(), "state": app._state, "caller": PYTHON_CALLER}
    return StageContext(tool, find_tool=app.find, **(parts | more))


def plain_tool(**more: Any) -> Tool:
    app = Tooli("x")
    app.command("go", **more)(lambda: None)
    tool = app.find("go")
    assert tool is not None
    return tool


def selected(context: StageContext) -> list[str]:
    return [stage_name(stage) for stage in select_stages(context)]


class TestTable:
    def test_stage_names_are_unique(self) -> None:
        assert len(set(NAMES)) == len(NAMES)
        assert set(CONFINEMENT_STAGES) <= set(NAMES)

    @pytest.mark.parametrize("row", STAGES, ids=NAMES)
    def test_every_row_can_be_loaded(self, row: StageRow) -> None:
        name, location, when, unless = row
        assert callable(load_location(location))
        assert when or name == "bind"
        context = make_context(plain_tool(), options=Options(result_options=ResultOptions()))
        for path in (*when, *unless):
            assert tooli.pipeline._is_true(context, path) in (True, False)

    def test_only_bind_is_unconditional(self) -> None:
        assert [name for name, _, when, _ in STAGES if not when] == ["bind"]


class TestSelection:
    def test_an_ordinary_call_takes_the_fast_path(self) -> None:
        assert select_stages(make_context(plain_tool())) is ONLY_BIND

    def test_row_is_not_selected_if_part_of_its_condition_fails(self) -> None:
        options = Options(result_options=ResultOptions())
        assert selected(make_context(plain_tool(), options=options)) == ["record_flow", "bind"]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({"dry_run": True}, ["bind", "dry_run"]),
            ({"detailed": True}, ["bind", "output_schema"]),
            ({"timeout": 3.0}, ["bind", "timeout"]),
            ({"idempotency_key": "k"}, ["record_flow", "bind", "idempotency"]),
            ({"idempotency_key": "k", "dry_run": True}, ["record_flow", "bind", "dry_run"]),
            ({"apply": "t"}, ["bind", "apply_plan", "claims"]),
        ],
        ids=str,
    )
    def test_options_select_stages(self, options: dict[str, Any], expected: list[str]) -> None:
        assert selected(make_context(plain_tool(), options=Options(**options))) == expected

    def test_result_options_select_stages(self) -> None:
        options = Options(result_options=ResultOptions(filter="a", fields="a", limit=1))
        expected = ["record_flow", "bind", "field_selection", "pagination", "filter"]
        assert selected(make_context(plain_tool(), options=options)) == expected

    @pytest.mark.parametrize(
        ("policy", "expected"),
        [
            ("off", ["bind", "approval", "claims"]),
            ("standard", ["bind", "denial_audit", "approval", "run_audit", "claims"]),
            (
                "strict",
                [
                    *("identity_audit", "authorization", "bind", "denial_audit", "approval"),
                    *("run_audit", "claims"),
                ],
            ),
        ],
    )
    def test_policy_selects_stages(self, policy: str, expected: list[str]) -> None:
        state = Tooli("x", security_policy=policy)._state
        assert selected(make_context(plain_tool(annotations=Destructive), state=state)) == expected

    def test_security_settings_select_stages(self) -> None:
        state = Tooli("x")._state
        state.security_settings = {"deny_paths": ()}
        expected = ["work_dir", "bind", "path_rules", "capabilities", "timeout"]
        assert selected(make_context(plain_tool(), state=state)) == expected
        state.security_settings = {"store": "somewhere"}
        assert selected(make_context(plain_tool(), state=state)) == ["bind", "timeout"]

    def test_stages_are_selected_by_name(self) -> None:
        context = make_context(plain_tool(capabilities=["fs:read"], timeout=3.0))
        stages = context.select(CONFINEMENT_STAGES)
        assert [stage_name(stage) for stage in stages] == ["capabilities", "timeout"]

    def test_extra_option_selects_a_stage(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row: StageRow = ("recorded", f"{__name__}:record_call", ("options.extra:flag",), ())
        monkeypatch.setattr(tooli.pipeline, "STAGES", (*STAGES, row))
        for extra, expected in (
            (None, ["bind"]),
            ({"other": 1}, ["bind"]),
            ({"flag": True}, ["bind", "recorded"]),
        ):
            assert selected(make_context(plain_tool(), options=Options(extra=extra))) == expected


class TestNames:
    def test_stage_name_comes_from_the_table(self) -> None:
        context = make_context(plain_tool(annotations=Destructive))
        assert selected(context)[-1] == "claims"
        assert stage_name(bind) == "bind"

    def test_name_of_other_stages_comes_from_the_function(self) -> None:
        def mine(call: Call) -> Generator[Call, Outcome, Outcome]:
            return (yield call)

        assert stage_name(mine).endswith("mine")
        assert "object" in stage_name(object())

    def test_an_internal_error_names_its_stage(self) -> None:
        def broken(call: Call) -> Generator[Call, Outcome, Outcome]:
            yield from ()
            raise ZeroDivisionError

        call = Call(plain_tool(), {}, PYTHON_CALLER, [])
        outcome = run(call, [broken, bind])
        assert isinstance(outcome, Failed) and isinstance(outcome.error, InternalError)
        assert outcome.error.details == {"stage": stage_name(broken)}
