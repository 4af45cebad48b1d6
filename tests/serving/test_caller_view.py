"""What callers with certain scopes see of an app."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import Tooli
from tooli.serving import caller_view
from tooli.serving.dispatcher import ToolDispatcher, unknown_tool_error


def make_dispatcher(policy: Any = "strict") -> ToolDispatcher:
    app = Tooli("app", security_policy=policy)

    @app.command(auth=["read"])
    def peek() -> None: ...

    @app.command(auth=["read", "write"])
    def put() -> None: ...

    @app.command(auth=[])
    def anyone() -> None: ...

    @app.command()
    def undeclared() -> None: ...

    @app.command(auth=[], danger_level="forbidden")
    def forbidden() -> None: ...

    return ToolDispatcher(app)


@pytest.mark.parametrize(
    ("scopes", "names"),
    [
        (frozenset(), ["anyone"]),
        (frozenset({"read"}), ["peek", "anyone"]),
        (frozenset({"write", "other"}), ["anyone"]),
        (frozenset({"read", "write"}), ["peek", "put", "anyone"]),
        (None, ["peek", "put", "anyone"]),
    ],
)
def test_strict_policy_shows_what_the_caller_may_use(scopes: Any, names: list[str]) -> None:
    view = make_dispatcher().view(scopes)
    assert list(view.tools) == names
    assert not view.is_complete


@pytest.mark.parametrize("policy", ["off", "standard"])
def test_other_policies_show_everything(policy: str) -> None:
    dispatcher = make_dispatcher(policy)
    view = dispatcher.view(frozenset())
    assert view.is_complete
    assert view.tools == dispatcher.tools


def test_policy_of_a_part_of_the_app_applies_to_its_tools() -> None:
    app, part = Tooli("app"), Tooli("part", security_policy="strict")

    @app.command(auth=["a"])
    def outer() -> None: ...

    @part.command(auth=["b"])
    def inner() -> None: ...

    @part.resource("part://x", auth=["b"])
    def item() -> str:
        return "x"

    app.add_typer(part)
    view = ToolDispatcher(app).view(frozenset())
    assert list(view.tools) == ["outer"]


def test_policy_of_a_resource_hides_it() -> None:
    app, part = Tooli("app"), Tooli("part", security_policy="strict")

    @app.command()
    def outer() -> None: ...

    @part.resource("part://x", auth=["b"])
    def item() -> str:
        return "x"

    app.add_typer(part)
    dispatcher = ToolDispatcher(app)
    (resource,) = [resource for resource in dispatcher._served_tools() if resource.name == "item"]
    assert not dispatcher.view(frozenset()).shows(resource)
    assert dispatcher.view(frozenset({"b"})).shows(resource)


def test_number_of_cached_views_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_view, "MAX_CACHED_VIEWS", 1)
    dispatcher = make_dispatcher()
    built: list[str] = []

    def build() -> int:
        built.append("x")
        return 1

    for _ in range(2):
        assert dispatcher.view(frozenset({"read"})).cached("k", build) == 1
    assert len(built) == 1
    for _ in range(2):
        dispatcher.view(frozenset({"write"})).cached("k", build)
    assert len(built) == 3
    assert list(dispatcher.view(frozenset({"read", "other"})).tools) == ["peek", "anyone"]


def test_error_names_only_visible_tools() -> None:
    dispatcher = make_dispatcher()
    error = unknown_tool_error(dispatcher.app, "putt", view=dispatcher.view(frozenset({"read"})))
    assert error.details == {"commands": ["peek", "anyone"]}
    assert "did you mean" not in error.message
    error = unknown_tool_error(dispatcher.app, "peak", view=dispatcher.view(frozenset({"read"})))
    assert "did you mean 'peek'" in error.message
    complete = make_dispatcher("off")
    error = unknown_tool_error(complete.app, "putt", view=complete.view(frozenset()))
    assert "did you mean 'put'" in error.message
