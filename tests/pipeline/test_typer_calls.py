from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import pytest
import typer
from typer.core import TyperGroup

from tooli import Context, Tooli
from tooli.pipeline.typer_calls import MAX_COUNT, CommandTrees


class Color(enum.Enum):
    RED = "red"


def check(value: int) -> int:
    if value > 3:
        raise typer.BadParameter("too large")
    return value


def make_app(**callback: Any) -> Tooli:
    app = Tooli("a")

    @app.callback(**callback)
    def main(ctx: typer.Context, user: str = "nobody") -> None:
        ctx.obj = user

    return app


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str, "text"),
        (str, "-x"),
        (str, ""),
        (int, -3),
        (float, 1.5),
        (bool, True),
        (bool, False),
        (Path, Path("a/b")),
        (Color, Color.RED),
        (UUID, UUID("12345678-1234-5678-1234-567812345678")),
        (datetime, datetime(2024, 2, 29, 1, 2, 3)),
        (list[str], ["a", "-b", "--"]),
        (list[int], [1, -2]),
        (tuple[int, str], (1, "-x")),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [typer.Option, typer.Argument], ids=["option", "argument"])
def test_a_callback_gets_the_value_of_the_call(annotation: Any, value: Any, kind: Any) -> None:
    seen: list[Any] = []
    app = Tooli("a")
    if kind is typer.Argument and (annotation is bool or annotation in (list[str], list[int])):
        pytest.skip("such an argument of a callback takes the name of the command")

    def main(given: Any) -> None:
        seen.append(given)

    main.__annotations__["given"] = Annotated[annotation, kind()]
    app.callback()(main)
    app.command("run")(lambda: None)
    result = app.call("run", given=value)
    assert result.ok, result.error
    assert seen == [value]


def test_typer_fills_in_what_the_caller_does_not_give(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Tooli("a", context_settings={"default_map": {"show": {"size": 5}}})

    @app.callback()
    def main(ctx: typer.Context, level: Annotated[int, typer.Option(envvar="LEVEL")] = 1) -> None:
        ctx.obj = level

    @app.command()
    def show(ctx: typer.Context, size: int = 2) -> list[int]:
        return [ctx.obj, size]

    assert app.call("show").result == [1, 5]
    monkeypatch.setenv("LEVEL", "7")
    assert app.call("show").result == [7, 5]
    assert app.call("show", level=1, size=2).result == [1, 2]  # the defaults, but given


def test_a_required_option_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Tooli("a")

    @app.callback()
    def main(token: Annotated[str, typer.Option(envvar="TOKEN")]) -> None: ...

    app.command("run")(lambda: "done")
    error = app.call("run").error
    assert error is not None
    assert (error.code, error.field) == ("E1002", "token")
    monkeypatch.setenv("TOKEN", "x")
    assert app.call("run").ok


def test_context_of_typer() -> None:
    app = make_app()

    @app.command()
    def show(ctx: typer.Context, tooli: Context, name: str) -> list[Any]:
        assert ctx.parent is not None
        path = ctx.command_path
        return [ctx.obj, ctx.params, ctx.parent.invoked_subcommand, path, tooli.caller.surface]

    assert app.call("show", name="x", user="ada").result == [
        "ada",
        {"name": "x"},
        "show",
        "a show",
        "python",
    ]


def test_result_callback_gets_the_result() -> None:
    seen: list[Any] = []
    app = make_app(result_callback=lambda value, **options: seen.append((value, options)))

    @app.command()
    def add(number: int) -> int:
        return number + 1

    assert app.call("add", number=1).result == 2
    assert seen == [(2, {"user": "nobody"})]


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        (typer.Exit(4), "E4001", "The command ended with exit code 4."),
        (typer.Abort(), "E4001", "Aborted."),
        (typer.BadParameter("too long"), "E1003", "too long"),
        (SystemExit(5), "E4001", "The command ended with exit code 5."),
        (ValueError("wrong"), "E5000", "ValueError: wrong"),
        (FileNotFoundError("no file"), "E3010", "no file"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_exceptions_of_a_callback_are_errors(
    failure: BaseException, code: str, message: str
) -> None:
    app = Tooli("a")

    @app.callback()
    def main() -> None:
        raise failure

    app.command("run")(lambda: None)
    error = app.call("run").error
    assert error is not None
    assert error.code == code
    assert message in error.message


def test_an_error_names_the_parameter_of_the_tool() -> None:
    app = Tooli("a")

    @app.callback()
    def main(size: Annotated[int, typer.Option(callback=check)] = 1) -> None: ...

    @app.command()
    def run(size: Annotated[int, typer.Option(callback=check)] = 1) -> int:
        return size

    for name in ("size", "app_size"):
        error = app.call("run", **{name: 4}).error
        assert error is not None
        assert (error.code, error.field, error.message) == ("E1003", name, f"{name!r}: too large")
    assert app.call("run", size=2, app_size=3).result == 2


def test_a_value_that_a_command_line_cannot_express_is_refused() -> None:
    calls: list[str] = []
    app = Tooli("a")

    @app.callback()
    def main(
        show: Annotated[bool, typer.Option("--show")] = True,
        level: Annotated[int, typer.Option(count=True)] = 0,
        name: str | None = "x",
        file: Annotated[typer.FileText | None, typer.Option()] = None,
    ) -> None:
        calls.append("main")

    app.command("run")(lambda: calls.append("run"))
    for arguments in ({"show": False}, {"level": MAX_COUNT + 1}, {"name": None}, {"file": "-"}):
        error = app.call("run", **arguments).error
        assert error is not None, arguments
        assert error.code == "E1003"
        assert error.field in arguments
        assert "cannot be passed to Typer" in error.message
    assert not calls
    assert app.call("run", show=True, level=3, name="y").ok


def test_async_functions_run_behind_callbacks() -> None:
    app = make_app()

    @app.command()
    async def later(ctx: typer.Context) -> str:
        await asyncio.sleep(0)
        return ctx.obj

    assert app.call("later", user="ada").result == "ada"
    assert asyncio.run(app.acall("later", user="ada")).result == "ada"


def make_stream_app(events: list[str]) -> Tooli:
    app = make_app()

    @app.command()
    def count(ctx: typer.Context, stop: int) -> Iterator[str]:
        ctx.call_on_close(lambda: events.append("closed"))
        try:
            for number in range(stop):
                events.append(f"item {number}")
                yield f"{ctx.obj} {number}"
        finally:
            events.append("end")

    @app.command()
    async def later(ctx: typer.Context, stop: int) -> AsyncIterator[str]:
        for number in range(stop):
            yield f"{ctx.obj} {number}"

    return app


def test_streams_are_read_while_the_context_is_open() -> None:
    events: list[str] = []
    app = make_stream_app(events)
    assert list(app.stream("count", stop=2, user="ada")) == ["ada 0", "ada 1"]
    assert events == ["item 0", "item 1", "end", "closed"]
    assert list(app.stream("later", stop=2)) == ["nobody 0", "nobody 1"]
    assert app.call("later", stop=1).result == ["nobody 0"]


def test_items_are_produced_when_they_are_requested() -> None:
    events: list[str] = []
    stream = make_stream_app(events).stream("count", stop=5)
    assert not events
    assert next(stream) == "nobody 0"
    assert events == ["item 0"]
    stream.close()
    assert events == ["item 0", "end", "closed"]
    assert not [thread for thread in threading.enumerate() if "_produce" in thread.name]


def test_trees_are_used_by_one_call_at_a_time() -> None:
    app = make_app()
    app.command("run")(lambda: None)
    state, trees = app._state, CommandTrees()
    first = trees.take(state)
    second = trees.take(state)
    assert first is not second
    trees.give_back(first, state.revision)
    assert trees.take(state) is first
    trees.give_back(first, state.revision)
    app.command("more")(lambda: None)
    changed = trees.take(state)
    assert changed is not first
    assert "more" in changed.commands
    trees.give_back(second, -5)  # a tree of an older app is dropped
    assert trees.take(state) is not second


def test_a_callback_can_invoke_another_function() -> None:
    app = Tooli("a")
    seen: list[str] = []

    @app.command()
    def prepare() -> None:
        seen.append("prepared")

    @app.callback()
    def main(ctx: typer.Context) -> None:
        ctx.invoke(prepare)

    @app.command()
    def run() -> str:
        return "done"

    assert app.call("run").result == "done"
    assert seen == ["prepared"]


def test_prompts_are_not_shown() -> None:
    app = Tooli("a")

    @app.callback()
    def main(name: Annotated[str, typer.Option(prompt=True)]) -> None: ...

    app.command("run")(lambda: None)
    error = app.call("run").error
    assert error is not None
    assert (error.code, error.field) == ("E1002", "name")


@pytest.mark.parametrize(
    ("annotation", "value", "seen"),
    [
        (
            Annotated[datetime, typer.Option(formats=["%d.%m.%Y", "%Y"])],
            datetime(2024, 2, 29),
            datetime(2024, 2, 29),
        ),
        (Annotated[tuple[bool, int], typer.Option()], (True, 2), (True, 2)),
        (Annotated[list[str] | None, typer.Option()], [], None),
    ],
    ids=["formats", "tuple", "empty list"],
)
def test_values_are_written_as_typer_reads_them(annotation: Any, value: Any, seen: Any) -> None:
    received: list[Any] = []
    app = Tooli("a")

    def main(given: Any = None) -> None:
        received.append(given)

    main.__annotations__["given"] = annotation
    app.callback()(main)
    app.command("run")(lambda: None)
    result = app.call("run", given=value)
    assert result.ok, result.error
    assert received in ([seen], [[]] if seen is None else [seen])


def test_a_callback_that_exits_ends_the_call() -> None:
    app = Tooli("a")
    calls: list[str] = []

    @app.callback()
    def main(code: int = 0) -> None:
        raise typer.Exit(code)

    app.command("run")(lambda: calls.append("run"))
    assert app.call("run").ok
    assert not app.call("run", code=3).ok
    assert not calls


def test_a_group_with_a_main_of_its_own_runs() -> None:
    events: list[str] = []

    class Group(TyperGroup):
        def main(self, *args: Any, **kwargs: Any) -> Any:
            events.append("main")
            return 4 if events.count("main") > 1 else super().main(*args, **kwargs)

    app = Tooli("a", cls=Group)

    @app.callback()
    def main(user: str = "nobody") -> None: ...

    @app.command()
    def run() -> str:
        return "done"

    assert app.call("run").result == "done"
    error = app.call("run").error
    assert error is not None
    assert "4" in error.message


def test_an_empty_argument_before_other_words_is_refused() -> None:
    app = Tooli("a")
    calls: list[Any] = []

    @app.callback()
    def main(folder: Annotated[str | None, typer.Argument()] = None) -> None:
        calls.append(folder)

    @app.command()
    def run(
        first: Annotated[str | None, typer.Argument()] = None,
        second: Annotated[str | None, typer.Argument()] = None,
    ) -> list[str | None]:
        return [first, second]

    error = app.call("run").error
    assert error is not None
    assert (error.code, error.field) == ("E1003", "folder")
    assert not calls
    assert app.call("run", folder="x", second=None).result == [None, None]
    error = app.call("run", folder="x", second="b").error
    assert error is not None
    assert (error.code, error.field) == ("E1003", "first")
    assert calls == ["x"]


def test_an_object_for_a_callback_is_refused() -> None:
    app = Tooli("a")
    calls: list[str] = []

    @app.callback()
    def main(key: Annotated[dict[str, int] | None, typer.Option()] = None) -> None:
        calls.append("main")

    app.command("run")(lambda: calls.append("run"))
    error = app.call("run", key={"a": 1}).error
    assert error is not None
    assert (error.code, error.field) == ("E1003", "key")
    assert not calls
    assert app.call("run").ok
