"""Calls from Python: `app.call`, `acall`, `stream`, `astream`, options and accessors."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import pathlib
import pprint
import subprocess
import sys
import types
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import typer

from tooli import Context, InputError, NotFoundError, SecretInput, Tooli, TooliResult
from tooli.annotations import Destructive
from tooli.core import CommandNameWarning
from tooli.errors import CommandExited, DefinitionError, InternalError


class Colour(enum.Enum):
    RED = "red"


def make_app() -> Tooli:
    app = Tooli("file-tools", version="1.2.0")
    users, admins = Tooli("users"), Tooli("admins")

    @app.command()
    def find_files(pattern: str, root: pathlib.Path = pathlib.Path(), depth: int = 3) -> list[str]:
        """Find files."""
        if depth == 0:
            raise NotFoundError("nothing there", field="pattern")
        return [f"{root}/{pattern}"] * depth

    @app.command()
    def numbers(count: int = 3, break_at: int = -1) -> Iterator[int]:
        for i in range(count):
            if i == break_at:
                raise NotFoundError("gone")
            yield i

    @app.command()
    async def fetch(what: str = "x") -> str:
        await asyncio.sleep(0)
        return what.upper()

    @app.command()
    async def ticks(count: int = 3) -> AsyncIterator[int]:
        for i in range(count):
            await asyncio.sleep(0)
            yield i

    @app.command(annotations=Destructive)
    def delete(path: str) -> str:
        return f"deleted {path}"

    @app.command()
    def plan(dry_run: bool = False) -> bool:
        return dry_run

    @app.command()
    def warns(ctx: Context) -> str:
        ctx.warn("careful")
        return ctx.caller.surface

    @app.command()
    def silent() -> None:
        pass

    @users.command()
    def create(name: str = "x") -> str:
        return name

    @admins.command()
    def list_all() -> str:
        return "all"

    users.add_typer(admins)
    app.add_typer(users)
    return app


@pytest.fixture
def app() -> Tooli:
    return make_app()


class TestCall:
    def test_call_returns_result_and_meta(self, app) -> None:
        result = app.call("find-files", pattern="*.py", root="src", depth="2")
        assert isinstance(result, TooliResult)
        assert (result.ok, result.error) == (True, None)
        assert result.result == result.unwrap() == ["src/*.py", "src/*.py"]
        assert list(result.meta) == ["tool", "version", "duration_ms"]
        assert result.meta["tool"] == "file-tools.find-files"

    @pytest.mark.parametrize(
        "name", ["users.create", "users create", "users/create", "find-files", "find_files"]
    )
    def test_tool_is_found_by_any_form_of_its_name(self, app, name) -> None:
        assert app.call(name, **({} if "users" in name else {"pattern": "x"})).ok

    def test_every_error_is_reported(self, app) -> None:
        result = app.call("find-files", root=3, patern="x")
        assert not result.ok
        assert result.result is None
        found = [(e["field"], e["code"]) for e in result.error.details["errors"]]
        assert found == [("patern", "E1004"), ("root", "E1003")]
        assert result.error.field == "patern"
        assert result.error.suggestion["arguments"]["pattern"] == "x"
        with pytest.raises(InputError):
            result.unwrap()

    def test_error_of_the_function_is_in_the_result(self, app) -> None:
        result = app.call("find-files", pattern="x", depth=0)
        assert (result.error.code, result.error.field) == ("E3010", "pattern")
        with pytest.raises(NotFoundError, match="nothing there"):
            result.unwrap()
        assert list(result.to_dict()) == ["ok", "error", "meta"]

    def test_unknown_tool_is_an_error_with_a_suggestion(self, app) -> None:
        result = app.call("find-fils")
        assert result.error.code == "E1001"
        assert "did you mean 'find-files'?" in result.error.message
        assert result.meta["tool"] == "file-tools"
        assert "users.admins.list-all" in result.error.details["commands"]
        assert app.call("").error.code == "E1001"
        assert app.call("users.nobody").error.code == "E1001"
        assert app.call("users").error.code == "E1001"

    def test_warnings_are_in_meta_and_caller_is_python(self, app) -> None:
        result = app.call("warns")
        assert result.result == "python"
        assert result.meta["warnings"] == ["careful"]
        assert "warnings" not in app.call("silent").meta

    def test_result_field_is_left_out_if_nothing_is_returned(self, app) -> None:
        assert app.call("silent").to_dict().keys() == {"ok", "meta"}

    def test_streams_are_collected(self, app) -> None:
        assert app.call("numbers").result == [0, 1, 2]
        assert app.call("ticks").result == [0, 1, 2]

    def test_failed_stream_reports_the_number_of_items(self, app) -> None:
        error = app.call("numbers", break_at=2).error
        assert error.details == {"items_before_failure": 2}

    def test_async_function_can_be_called(self, app) -> None:
        assert app.call("fetch", what="y").result == "Y"

    async def test_async_function_can_be_called_inside_a_running_loop(self, app) -> None:
        assert app.call("fetch", what="y").result == "Y"
        assert app.call("ticks").result == [0, 1, 2]
        assert list(app.stream("ticks")) == [0, 1, 2]

    def test_positional_arguments_are_rejected(self, app) -> None:
        with pytest.raises(TypeError):
            app.call("find-files", "x")

    def test_tool_parameters_may_be_named_like_parameters_of_call(self) -> None:
        app = Tooli("a")

        @app.command()
        def odd(tool_name: str, self: int, name: str = "n") -> list[object]:
            return [tool_name, self, name]

        assert app.call("odd", tool_name="t", self=1, name="x").result == ["t", 1, "x"]
        assert list(app.stream("odd", tool_name="t", self=1)) == ["t", 1, "n"]

    def test_tool_registered_later_is_found(self, app) -> None:
        assert not app.call("late").ok
        app.command("late")(lambda: 1)
        assert app.call("late").result == 1

    def test_tool_of_a_group_registered_later_is_found(self) -> None:
        app, group = Tooli("app"), Tooli("group")
        app.add_typer(group)
        assert not app.call("group.late").ok
        group.command("late")(lambda: 1)
        assert app.call("group.late").result == 1

    def test_functions_are_unchanged(self) -> None:
        app = Tooli("a")

        def fn(x: int = 1) -> int:
            return x

        before = dict(vars(fn))
        assert app.command("x")(fn) is fn
        app.call("x")
        assert vars(fn) == before
        assert fn(3) == 3


@pytest.mark.parametrize(
    ("exc", "ok", "code", "exit_code"),
    [
        (SystemExit(), True, None, None),
        (SystemExit(3), False, "E4001", 3),
        (typer.Exit(), True, None, None),
        (typer.Exit(4), False, "E4001", 4),
        (typer.Abort(), False, "E4001", 1),
        (typer.BadParameter("no"), False, "E1003", 2),
        (ValueError("x"), False, "E5000", 70),
        (FileNotFoundError("x"), False, "E3010", 10),
        (RecursionError("x"), False, "E5000", 70),
    ],
    ids=lambda v: type(v).__name__ if isinstance(v, BaseException) else None,
)
class TestNeverExits:
    def app(self, exc) -> Tooli:
        app = Tooli("a")

        @app.command()
        def now():
            raise exc

        @app.command()
        async def later():
            raise exc

        @app.command()
        def stream():
            raise exc
            yield

        return app

    def check(self, result, ok, code, exit_code) -> None:
        assert result.ok is ok
        if not ok:
            assert result.error.code == code
            assert result.error.to_exception().exit_code == exit_code

    @pytest.mark.parametrize("name", ["now", "later", "stream"])
    def test_call_returns_exits_and_exceptions_as_results(
        self, exc, ok, code, exit_code, name
    ) -> None:
        self.check(self.app(exc).call(name), ok, code, exit_code)

    @pytest.mark.parametrize("name", ["now", "later", "stream"])
    async def test_acall_returns_exits_and_exceptions_as_results(
        self, exc, ok, code, exit_code, name
    ) -> None:
        self.check(await self.app(exc).acall(name), ok, code, exit_code)


def test_keyboard_interrupt_is_raised() -> None:
    app = Tooli("a")

    @app.command()
    def now():
        raise KeyboardInterrupt

    @app.command()
    async def later():
        raise KeyboardInterrupt

    for name in ("now", "later"):
        with pytest.raises(KeyboardInterrupt):
            app.call(name)


class TestOptions:
    def test_destructive_tool_needs_yes(self, app) -> None:
        assert app.call("delete", path="a").error.code == "E1010"
        assert app.call("delete", path="a", yes=True).result == "deleted a"
        assert app.options(yes=True).call("delete", path="a").result == "deleted a"

    def test_dry_run_by_keyword(self, app) -> None:
        result = app.call("delete", path="a", dry_run=True)
        assert result.result["tool"] == "file-tools.delete"
        assert result.meta["dry_run"] is True

    def test_parameter_takes_precedence_over_an_option(self, app) -> None:
        result = app.call("plan", dry_run=True)
        assert result.result is True
        assert "dry_run" not in result.meta
        assert app.options(dry_run=True).call("plan").result["tool"] == "file-tools.plan"

    def test_keyword_overrides_an_option_of_the_surface(self, app) -> None:
        assert app.options(yes=True).call("delete", path="a", yes=False).error.code == "E1010"

    @pytest.mark.filterwarnings("ignore:app.find is an attribute")
    def test_commands_with_common_names_take_options(self) -> None:
        app = Tooli("names")
        app.command("find", annotations=Destructive)(lambda: "found")
        app.command("run", annotations=Destructive)(lambda: "ran")
        assert app.options(yes=True).find().result == "found"
        assert app.options(yes=True).run().result == "ran"

    def test_options_do_not_change_the_app(self, app) -> None:
        app.options(yes=True).call("delete", path="a")
        assert app.call("delete", path="a").error.code == "E1010"

    def test_detailed_adds_the_output_schema(self, app) -> None:
        assert app.call("fetch", detailed=True).meta["output_schema"] == {"type": "string"}

    async def test_options_apply_to_every_kind_of_call(self, app) -> None:
        surface = app.options(yes=True)
        assert (await surface.acall("delete", path="a")).ok
        assert list(surface.stream("delete", path="a")) == ["deleted a"]
        assert [item async for item in surface.astream("delete", path="a")] == ["deleted a"]


class TestAsync:
    async def test_acall_runs_every_kind_of_function(self, app) -> None:
        assert (await app.acall("fetch", what="y")).result == "Y"
        assert (await app.acall("find-files", pattern="x", depth=1)).result == ["./x"]
        assert (await app.acall("ticks")).result == [0, 1, 2]
        assert (await app.acall("numbers")).result == [0, 1, 2]

    async def test_acall_returns_failures(self, app) -> None:
        assert (await app.acall("find-files", root=3, patern="x")).error.code == "E1004"
        assert (await app.acall("nobody")).error.code == "E1001"
        assert (await app.acall("numbers", break_at=1)).error.details == {"items_before_failure": 1}

    async def test_concurrent_calls_return_their_own_results(self, app) -> None:
        results = await asyncio.gather(*[app.acall("fetch", what=str(i)) for i in range(20)])
        assert [r.result for r in results] == [str(i) for i in range(20)]


class TestStream:
    def test_stream_yields_the_items(self, app) -> None:
        assert list(app.stream("numbers")) == [0, 1, 2]
        assert list(app.stream("ticks")) == [0, 1, 2]

    def test_stream_yields_lists_and_single_values(self, app) -> None:
        assert list(app.stream("find-files", pattern="x", depth=2)) == ["./x", "./x"]
        assert list(app.stream("fetch")) == ["X"]
        assert list(app.stream("silent")) == []

    def test_failures_are_raised(self, app) -> None:
        items = app.stream("numbers", break_at=1)
        assert next(items) == 0
        with pytest.raises(NotFoundError):
            next(items)
        with pytest.raises(InputError, match="did you mean"):
            list(app.stream("nubmers"))
        with pytest.raises(InputError):
            list(app.stream("numbers", count="x"))

    def test_dry_run_yields_only_the_plan(self, app) -> None:
        (only,) = app.stream("numbers", dry_run=True)
        assert only["tool"] == "file-tools.numbers"

    def test_return_value_of_a_generator_is_not_an_item(self) -> None:
        app = Tooli("a")

        @app.command()
        def items() -> Iterator[int]:
            yield 1
            return "done"

        assert list(app.stream("items")) == app.call("items").result == [1]

    async def test_astream_yields_the_items(self, app) -> None:
        for name in ("numbers", "ticks"):
            assert [item async for item in app.astream(name)] == [0, 1, 2]
        assert [item async for item in app.astream("fetch")] == ["X"]

    async def test_astream_raises_failures(self, app) -> None:
        seen = []
        with pytest.raises(NotFoundError):
            async for item in app.astream("numbers", break_at=2):
                seen.append(item)
        assert seen == [0, 1]
        with pytest.raises(InputError):
            [item async for item in app.astream("nobody")]

    def test_closing_a_stream_closes_the_generator(self) -> None:
        app = Tooli("a")
        closed = []

        @app.command()
        def items():
            try:
                while True:
                    yield 1
            finally:
                closed.append(True)

        stream = app.stream("items")
        assert next(stream) == 1
        stream.close()
        assert closed == [True]

    async def test_closing_an_astream_closes_the_generator(self) -> None:
        app = Tooli("a")
        closed = []

        @app.command()
        async def items():
            try:
                while True:
                    yield 1
            finally:
                closed.append(True)

        stream = app.astream("items")
        assert await anext(stream) == 1
        await stream.aclose()
        assert closed == [True]


class TestAccessors:
    def test_tool_can_be_called_as_an_attribute(self, app) -> None:
        found = app.find_files(pattern="x", depth=1)
        assert isinstance(found, TooliResult)
        assert found.result == ["./x"]
        assert app.find_files("x", "src", 1).result == ["src/x"]

    def test_groups_are_attributes(self, app) -> None:
        assert app.users.create(name="Ada").result == "Ada"
        assert app.users.admins.list_all().result == "all"

    def test_accessor_has_the_attributes_of_the_function(self, app) -> None:
        assert app.find_files.__name__ == "find_files"
        assert app.find_files.__doc__ == "Find files."
        assert app.find_files.__wrapped__("x", depth=1) == ["./x"]

    def test_invalid_positional_arguments_raise_type_error(self, app) -> None:
        with pytest.raises(TypeError, match="takes 3 arguments, 4 given"):
            app.find_files(1, 2, 3, 4)
        with pytest.raises(TypeError, match="'pattern' twice"):
            app.find_files("x", pattern="y")

    def test_unknown_attribute_raises_attribute_error(self, app) -> None:
        with pytest.raises(AttributeError):
            app.no_such_tool  # noqa: B018
        with pytest.raises(AttributeError, match=r"users has no command 'nobody'"):
            app.users.nobody  # noqa: B018

    def test_invalid_arguments_are_in_the_result(self, app) -> None:
        assert app.find_files(patern="x").error.code == "E1004"


def test_concurrent_threads_get_their_own_results() -> None:
    """Eight threads call a new app at the same time."""
    import threading

    app = make_app()
    barrier = threading.Barrier(8)

    def work(number: int) -> list[object]:
        barrier.wait()
        found: list[object] = []
        for i in range(50):
            found.append(app.call("find-files", pattern=f"{number}-{i}", depth=1).result)
            found.append(app.call("find-files", pattern=number).error.code)
            found.append(app.users.create(name=str(i)).result)
        return found

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    for number, found in enumerate(results):
        expected: list[object] = []
        for i in range(50):
            expected += [[f"./{number}-{i}"], "E1003", str(i)]
        assert found == expected


def test_tool_that_needs_typer_can_be_called() -> None:
    app = Tooli("a")

    @app.command()
    def tool(ctx: typer.Context, name: str = typer.Option("x", prompt=True)) -> list[str]:
        return [name, ctx.info_name]

    assert app.call("tool", name="y").result == ["y", "tool"]
    assert app.call("tool").error.field == "name"  # nobody is asked, and the default is no answer


def test_error_of_a_parser_is_an_input_error() -> None:
    app = Tooli("a")

    @app.command()
    def tool(n: int = typer.Option(3, parser=int)) -> int:
        return n

    assert app.call("tool", n="4").result == 4
    error = app.call("tool", n="x").error
    assert (error.code, error.field) == ("E1003", "n")


def test_exit_message_is_the_error_message() -> None:
    app = Tooli("a")

    @app.command()
    def leave():
        sys.exit("bye")

    result = app.call("leave")
    assert result.error.message == "bye"
    assert isinstance(result.error.to_exception(), CommandExited)
    assert not isinstance(result.error.to_exception(), InternalError)


def test_group_of_two_apps_has_the_tool_id_of_each_app() -> None:
    users = Tooli("users", version="3")

    @users.command()
    def create(n: int) -> int:
        return n

    @users.command()
    def remove() -> None: ...

    first, second = Tooli("first", version="1"), Tooli("second", version="2")
    first.add_typer(users)
    second.add_typer(users)
    assert first.call("users.create", n=1).meta["tool"] == "first.users.create"
    assert second.users.create(1).meta["version"] == "2"
    assert users.call("create", n=1).meta["tool"] == "users.create"
    assert [tool.id for tool in first.catalog] == ["first.users.create", "first.users.remove"]


def test_caller_name_of_the_options_is_used() -> None:
    app = Tooli("named")

    @app.command()
    def who(ctx: Context, caller: str = "c") -> list[str | None]:
        return [ctx.caller.surface, ctx.caller.name, caller]

    named = app.options(caller="langchain")
    answer = named.call("who")
    assert answer.result == ["python", "langchain", "c"]
    assert answer.meta["caller_id"] == "langchain"
    assert named.call("who", caller="own").result == ["python", "langchain", "own"]
    assert named.call("nope").meta["caller_id"] == "langchain"
    planned = app.options(caller="x", dry_run=True).call("who")
    assert planned.meta["caller_id"] == "x"
    assert planned.meta["dry_run"] is True
    assert "caller_id" not in app.call("who").meta
    with pytest.raises(DefinitionError, match="did you mean 'caller'"):
        app.options(calller="x")


@pytest.mark.parametrize(
    "module", ["tooli.pipeline.dry_run_recorder", "tooli.core.result_types", "pathlib", "typing"]
)
def test_module_that_another_thread_imports_is_not_used(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Tooli("a")

    @app.command()
    def double(number: int) -> int:
        return 2 * number

    monkeypatch.setitem(sys.modules, module, types.ModuleType(module))  # without attributes
    assert app.call("double", number=2).unwrap() == 4


# ------------------------------------------------------------------ names, records, options


def make_colliding_app() -> Tooli:
    app = Tooli("tools")

    @app.command()
    def find(pattern: str) -> str:
        return pattern

    @app.command("stream")
    def stream_lines(count: int = 1) -> int:
        return count

    return app


@pytest.mark.parametrize("name", ["find", "options", "stream", "call", "commands", "info"])
def test_command_with_the_name_of_an_attribute_warns(name: str) -> None:
    app = Tooli("tools")
    message = f"app.{name} is an attribute of Tooli; the command '{name}' is app.commands.{name}"
    with pytest.warns(CommandNameWarning, match=message) as caught:
        app.command(name)(lambda: name)
    assert caught[0].filename == __file__
    assert getattr(app.commands, name)().result == name


def test_other_names_do_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    app = Tooli("tools")
    app.command("find-files")(lambda: 1)
    app.add_typer(Tooli("users"), name="users")
    assert not recwarn
    with pytest.warns(CommandNameWarning, match="the group 'call'"):
        app.add_typer(Tooli("calls"), name="call")


def test_commands_work_whatever_their_names() -> None:
    app = make_colliding_app()
    assert app.commands.find("x").result == "x"
    assert app.commands.stream(count=3).result == 3
    assert dir(app.commands) == ["find", "stream"]
    with pytest.raises(AttributeError, match="tools has no command 'nope'"):
        _ = app.commands.nope


def test_commands_with_options() -> None:
    app = Tooli("tools")

    @app.command(annotations=Destructive)
    def drop(name: str) -> str:
        return name

    users = Tooli("users")
    users.command("create")(lambda name: name)
    users.command("find")(lambda name: name)
    app.add_typer(users, name="users")
    assert not app.drop("x").ok
    assert app.options(yes=True).drop("x").result == "x"
    assert app.options(yes=True).commands.drop(name="x").result == "x"
    assert app.options(dry_run=True).users.create("Ada").meta["dry_run"] is True
    assert app.commands.users.find("Ada").result == "Ada"
    with pytest.raises(AttributeError, match="tools has no command 'nope'"):
        _ = app.options(yes=True).nope


@pytest.mark.parametrize("options", [{"detailed": True}, {"response_format": "detailed"}])
def test_detailed_answers(options: dict[str, Any]) -> None:
    app = make_colliding_app()
    assert app.call("find", pattern="x", **options).meta["output_schema"] == {"type": "string"}
    assert "output_schema" not in app.call("find", pattern="x", response_format="concise").meta


def test_unknown_response_format() -> None:
    result = make_colliding_app().call("find", pattern="x", response_format="long")
    assert result.error is not None
    assert result.error.message == "response_format must be concise or detailed"


def test_duration_has_a_fraction() -> None:
    app = make_colliding_app()
    durations = [app.call("find", pattern="x").meta["duration_ms"] for _ in range(20)]
    assert all(isinstance(value, float) for value in durations)
    assert any(value % 1 for value in durations)


def test_results_work_with_dataclasses() -> None:
    app = make_colliding_app()
    result = app.call("find", pattern="x")
    fields = dataclasses.asdict(result)
    assert fields == {"ok": True, "result": "x", "error": None, "meta": dict(result.meta)}
    assert [field.name for field in dataclasses.fields(result)] == list(fields)
    changed = dataclasses.replace(result, result="y")
    assert type(changed) is TooliResult and (changed.ok, changed.result) == (True, "y")
    failed = app.call("nope")
    assert failed.error is not None
    assert dataclasses.asdict(failed)["error"]["code"] == "E1001"
    assert "source" not in dataclasses.asdict(failed.error)
    other = dataclasses.replace(failed.error, message="other")
    assert other.message == "other" and other.source is failed.error.source
    pprint.pformat(result)


def test_dataclasses_replace_keeps_the_output_policy() -> None:
    app = Tooli("vault")

    @app.command()
    def show(token: SecretInput[str]) -> str:
        return token.reveal()

    result = app.call("show", token="hunter22")
    assert "hunter22" not in result.model_dump_json()
    for copy in (dataclasses.replace(result, ok=True), result.replace(ok=True)):
        assert "hunter22" not in copy.model_dump_json()
    assert "_output_policy" not in repr(result) + str(dataclasses.asdict(result))


def test_call_does_not_import_dataclasses() -> None:
    code = (
        "import sys\nfrom tooli import Tooli\napp = Tooli('x')\n"
        "app.command('a')(lambda: 1)\nr = app.call('a')\nassert r.ok and r.meta\n"
        "assert 'dataclasses' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
