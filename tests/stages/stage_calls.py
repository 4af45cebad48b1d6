"""Helpers for tests of single stages: make a call, and pass it through one stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tooli import Tooli
from tooli.core.call import Call, Caller, Ok, Options
from tooli.core.peer import Peer
from tooli.pipeline import StageContext
from tooli.pipeline.drivers import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tooli.core import AppState
    from tooli.core.call import Outcome, Stage


def make_call(
    fn: Callable[..., Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    surface: str = "cli",
    policy: str = "standard",
    options: Mapping[str, Any] | None = None,
    caller: Mapping[str, Any] | None = None,
    **command: Any,
) -> Call:
    """Return a call of a function that is the command `go` of the app `a`."""
    app = Tooli("a", security_policy=policy)
    app.command("other")(lambda: None)  # an app with one command has no command names
    app.command("go", **command)(fn or (lambda: None))
    tool = app.find("go")
    assert tool is not None
    identity = Caller(surface, **(caller or {}))
    return Call(
        tool, arguments or {}, identity, [], Options(**(options or {})), policy=policy, meta={}
    )


def make_state(**settings: Any) -> AppState:
    """Return the state of an app with these security settings."""
    state = Tooli("a")._state
    state.security_settings = settings
    state.security_settings_loaded = True
    return state


def make_context(call: Call, **settings: Any) -> StageContext:
    return StageContext(
        call.tool, call.options, make_state(**settings), call.caller, lambda name: None
    )


def pass_through(stage: Stage, call: Call, outcome: Outcome | None = None) -> tuple[Call, Outcome]:
    """Return the call that a stage passes on, and the outcome that it returns for `outcome`."""
    steps = stage(call)
    passed = next(steps)
    try:
        steps.send(Ok(None) if outcome is None else outcome)
    except StopIteration as end:
        return passed, end.value
    raise AssertionError("the stage yielded twice")


class AskingPeer(Peer):
    """A client that supports every kind of question."""

    def supports(self, method: str) -> bool:
        return True


class Files:
    """An app whose commands append their name to `ran`."""

    def __init__(self, **settings) -> None:
        self.app = Tooli("files", version="1.0", **settings)
        self.app.command("other")(lambda: None)
        self.ran: list[str] = []

    def add(self, name: str, fn=None, **settings):
        self.app.command(name, **settings)(fn or (lambda: self.ran.append(name)))
        return self

    def run(self, name: str, *, caller: Caller | None = None, approved: bool = False, **options):
        tool = self.app.find(name)
        call = Call(tool, {}, caller or Caller("cli"), [], Options(**options))
        if approved:
            asking, stages = self.app.prepare(call.replace(peer=AskingPeer()))
            parts = run(asking, stages).error.approval_parts
            assert parts is not None
            call = call.replace(approved=True, approved_parts=parts)
        call, stages = self.app.prepare(call)
        return run(call, stages), call
