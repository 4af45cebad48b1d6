"""Context: what a running tool may ask of the framework."""

from __future__ import annotations

import json

import pytest
import typer

from tooli import Tooli
from tooli.core.call import Call, Caller, Options
from tooli.pipeline import terminal_prompts
from tooli.pipeline.context import Context, typer_context
from tooli.schema.tool_reader import read_tool
from tooli.testing import invoke


def context(*, approved: bool = False, **options) -> Context:
    tool = read_tool(lambda: None, app="app", path=("users", "sync"), kwargs={})
    return Context(Call(tool, {}, Caller("cli", "me"), [], Options(**options), approved=approved))


def test_who_and_what() -> None:
    ctx = context(dry_run=True)
    assert ctx.caller.name == "me"
    assert ctx.options.dry_run
    assert ctx.tool == "app.users.sync"


def test_warnings_end_up_in_the_call() -> None:
    ctx = context()
    ctx.warn("careful")
    assert ctx._call.warnings == ["careful"]


def test_a_warning_that_is_no_text_is_told_by_its_text() -> None:
    app = Tooli("app")

    @app.command()
    def look(ctx: Context) -> str:
        """Look."""
        ctx.warn(ValueError("no luck"))  # pyright: ignore[reportArgumentType]
        ctx.warn({"a": 1})  # pyright: ignore[reportArgumentType]
        return "x"

    told = ["no luck", "{'a': 1}"]
    assert app.call("look").to_dict()["meta"]["warnings"] == told
    assert json.loads(invoke(app, "--json").stdout)["meta"]["warnings"] == told
    assert "Warning: no luck" in invoke(app, "--plain").stderr


@pytest.mark.parametrize(
    ("options", "level", "shown"),
    [
        ({}, 1, False),
        ({}, 0, True),
        ({"verbose": 1}, 1, True),
        ({"verbose": 1}, 2, False),
        ({"verbose": 3}, 2, True),
        ({"verbose": 3, "quiet": True}, 1, False),
    ],
)
def test_log(capsys, options, level, shown) -> None:
    context(**options).log("hello", level=level)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "hello\n" if shown else "")


class TestProgress:
    @pytest.mark.parametrize("options", [{}, {"interactive": True, "quiet": True}])
    def test_silent(self, capsys, options) -> None:
        assert list(context(**options).progress([1, 2])) == [1, 2]
        assert capsys.readouterr() == ("", "")

    def test_a_bar_on_stderr_for_a_person(self, capsys, monkeypatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.delenv("NO_COLOR", raising=False)
        items = context(interactive=True).progress(iter([1, 2]), total=2, label="copying")
        assert list(items) == [1, 2]
        out, err = capsys.readouterr()
        assert out == ""
        assert "copying" in err

    def test_the_tools_name_is_the_label(self, capsys, monkeypatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        list(context(interactive=True).progress([1]))
        assert "sync" in capsys.readouterr().err

    def test_lazy(self) -> None:
        def endless():
            while True:
                yield 1

        assert next(context().progress(endless())) == 1


class TestConfirm:
    @pytest.mark.parametrize("default", [True, False])
    def test_yes_is_yes(self, default) -> None:
        assert context(yes=True).confirm("Sure?", default=default)
        assert context(approved=True).confirm("Sure?", default=default)

    @pytest.mark.parametrize("options", [{}, {"interactive": True, "no_input": True}])
    @pytest.mark.parametrize("default", [True, False])
    def test_nobody_there(self, monkeypatch, options, default) -> None:
        monkeypatch.setattr(terminal_prompts, "ask_yes_no", None)
        assert context(**options).confirm("Sure?", default=default) is default

    def test_somebody_is_asked(self, monkeypatch) -> None:
        asked = []
        monkeypatch.setattr(
            terminal_prompts, "ask_yes_no", lambda q, default: asked.append((q, default)) or True
        )
        assert context(interactive=True).confirm("Sure?")
        assert asked == [("Sure?", False)]


def test_typers_context_where_no_typer_runs() -> None:
    def tool(ctx: typer.Context): ...

    call = Call(read_tool(tool, app="app", path=("sync",), kwargs={}), {}, Caller("python"), [])
    ctx = typer_context(call)
    assert isinstance(ctx, typer.Context)
    assert (ctx.info_name, ctx.command.name, ctx.parent) == ("sync", "sync", None)
