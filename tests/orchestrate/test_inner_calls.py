"""How a script sees errors of tools, and what its calls inherit."""

from __future__ import annotations

import pytest
from tests.orchestrate.script_app import Shop

from tooli import (
    AuthError,
    ConflictError,
    Context,
    DependencyError,
    InputError,
    TemporaryError,
    TimeoutExceeded,
    ToolError,
    ToolRuntimeError,
)
from tooli.annotations import ReadOnly


@pytest.mark.parametrize(
    ("error", "name", "text"),
    [
        (InputError("bad"), "ValueError", "E1000: bad"),
        (ConflictError("old"), "LookupError", "E3020: old"),
        (AuthError("no"), "PermissionError", "E2000: no"),
        (TimeoutExceeded("late"), "TimeoutError", "E4050: late"),
        (DependencyError("down"), "OSError", "E4040: down"),
        (TemporaryError("busy"), "OSError", "E4075: busy"),
        (ToolRuntimeError("broken"), "RuntimeError", "E4000: broken"),
    ],
)
def test_exceptions(error: ToolError, name: str, text: str) -> None:
    shop = Shop()

    @shop.app.command(annotations=ReadOnly)
    def fail() -> None:
        """Fail."""
        raise error

    source = f"try:\n    await fail()\nexcept {name} as error:\n    text = str(error)\ntext"
    if name == "OSError":  # PermissionError and TimeoutError are subclasses of it
        source = source.replace("except", "except TimeoutError:\n    text = ''\nexcept", 1)
    assert shop.app.orchestrate(source).unwrap() == text


def test_calls_have_the_caller_and_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_CALLER", "my-agent")
    monkeypatch.setenv("TOOLI_SESSION_ID", "s1")
    shop = Shop()

    @shop.app.command(annotations=ReadOnly)
    async def who(ctx: Context) -> list[str | None]:
        """Return the caller, and count the calls of the session."""
        ctx.state["calls"] = ctx.state.get("calls", 0) + 1
        return [ctx.caller.name, ctx.caller.session, ctx.caller.surface, str(ctx.state["calls"])]

    done = shop.app.orchestrate("await who()\nawait who()")
    assert done.unwrap() == ["my-agent", "s1", "python", "2"]


def test_tool_cannot_ask_and_does_not_read_stdin() -> None:
    shop = Shop()

    @shop.app.command(annotations=ReadOnly)
    def options(ctx: Context) -> list[object]:
        """Return options."""
        return [ctx.options.no_input, ctx.options.stdin_consumed, ctx.options.yes]

    assert shop.app.orchestrate("await options()").unwrap() == [True, True, False]
    assert shop.app.orchestrate("await options()", yes=True).unwrap() == [True, True, True]


def test_deadline_is_that_of_the_script() -> None:
    shop = Shop()

    @shop.app.command(annotations=ReadOnly, timeout=50)
    async def limit(ctx: Context) -> float:
        """Return the limit of the tool."""
        from tooli.pipeline.context import call_of

        return call_of(ctx).tool.limits.timeout or 0

    assert 10 < shop.app.orchestrate("await limit()", timeout=40).unwrap() < 40
    assert shop.app.orchestrate("await limit()", timeout=400).unwrap() == 50
    assert shop.app.orchestrate("await limit()").unwrap() == 50


def test_refused_call_has_changed_nothing() -> None:
    shop = Shop()
    error = shop.app.orchestrate("await drop(name='tea')").error
    assert error is not None
    assert error.code == "E1010"
    assert error.suggestion is not None
    assert "Nothing was changed" in error.suggestion["fix"]
    assert shop.ran == []


def test_call_that_was_not_awaited_is_finished() -> None:
    shop = Shop()
    done = shop.app.orchestrate("pending = drop(name='tea')\n1", yes=True)
    assert done.unwrap() == 1
    assert shop.ran == ["drop tea"]
