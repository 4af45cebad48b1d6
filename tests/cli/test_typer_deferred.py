"""Commands of Typer read their parameters when they are used."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import pytest
import typer

from tooli import Tooli
from tooli.cli.typer_deferred import DeferredCommandMixin, DeferredInfo, get_deferred_command
from tooli.cli.typer_register import TooliCommandMixin
from tooli.testing import invoke

Names = list[str]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Names:
    """The names of the functions whose parameters Typer has read."""
    names: Names = []
    original: Callable[..., Any] = typer.main.get_params_from_function

    def record(function: Any) -> Any:
        if not hasattr(function, "tooli_deferred_info"):
            names.append(function.__name__)
        return original(function)

    monkeypatch.setattr(typer.main, "get_params_from_function", record)
    return names


@pytest.fixture
def app() -> Tooli:
    app, inner = Tooli("app"), Tooli("inner")

    @app.command()
    def first(count: int, name: str = "x"):
        """Do the first thing."""
        print("first", count, name)

    @app.command("other-name")
    def second(ctx: typer.Context):
        print("second", ctx.info_name)

    @inner.command(help="Explicit help.")
    def leaf(size: float = 1.5):
        print("leaf", size)

    @inner.command()
    def twig(): ...

    app.add_typer(inner, name="inner")
    return app


def deferred(app: Tooli) -> Any:
    return get_deferred_command(app)


def describe(command: Any) -> list[object]:
    return [(p.name, type(p), p.opts, p.default, p.required, p.nargs) for p in command.params]


def pending(command: Any) -> bool:
    """True if the parameters of a command have not been read."""
    return hasattr(vars(command)["callback"], "tooli_deferred_info")


def test_names_and_help_need_no_parameters(app: Tooli) -> None:
    tree = deferred(app)
    first, second = tree.commands["first"], tree.commands["other-name"]
    assert (first.name, first.help) == ("first", "Do the first thing.")
    assert second.help is None
    assert tree.commands["inner"].commands["leaf"].help == "Explicit help."
    assert pending(first)
    assert pending(second)
    assert isinstance(first, DeferredCommandMixin)
    assert isinstance(first, TooliCommandMixin)
    assert isinstance(first, typer.core.TyperCommand)


def test_the_parameters_are_those_that_typer_reads(app: Tooli) -> None:
    tree, eager = deferred(app), typer.main.get_command(app)  # type: ignore[arg-type]
    assert isinstance(eager, typer.core.TyperGroup)
    for name in ("first", "other-name"):
        expected, actual = eager.commands[name], tree.commands[name]
        assert describe(actual) == describe(expected)
        assert not pending(actual)
        assert actual.callback.__name__ == expected.callback.__name__  # type: ignore[union-attr]
        assert vars(actual)["params"] is actual.params


def test_attributes_can_be_replaced(app: Tooli) -> None:
    command = deferred(app).commands["first"]
    command.params = command.params[:1]
    assert [param.name for param in command.params] == ["count"]
    command.callback = None
    assert command.callback is None


@pytest.mark.parametrize("argv", [["first", "3"], ["other-name"], ["inner", "leaf"]])
def test_a_line_reads_one_command(app: Tooli, read: Names, argv: list[str]) -> None:
    assert invoke(app, *argv, env={"TOOLI_OUTPUT": "text"}).exit_code == 0
    names = {"first", "second", "leaf", "twig"}
    assert len(names.intersection(read)) <= 1


def test_help_of_the_app_reads_no_command(app: Tooli, read: Names) -> None:
    shown = invoke(app, "--help", "--text").stdout
    assert "Do the first thing." in shown
    assert not {"first", "second", "leaf", "twig"}.intersection(read)


def test_an_unreadable_command_fails_when_it_is_used(app: Tooli) -> None:
    @app.command()
    def broken(value: Annotated[str, typer.Option(), typer.Option()]): ...

    env = {"TOOLI_OUTPUT": "text"}
    assert invoke(app, "--help", env=env).exit_code == 0
    assert invoke(app, "inner", "twig", env=env).exit_code == 0
    assert invoke(app, "broken", env=env).exit_code != 0


def test_registered_callback_has_the_signature_of_the_function(app: Tooli) -> None:
    app._initialize_typer()
    info = app.registered_commands[0]
    assert isinstance(info, DeferredInfo)
    assert vars(info)["tooli_make_stub"]
    assert list(inspect.signature(info.callback).parameters) == ["count", "name"]
    assert info.callback is info.callback
    info.callback = app.registered_commands[1].callback
    assert info.callback is app.registered_commands[1].callback


def test_commands_of_typer_are_restored(app: Tooli) -> None:
    app._initialize_typer()
    before = app.registered_commands
    get_deferred_command(app)  # type: ignore[arg-type]
    assert app.registered_commands is before


@pytest.mark.parametrize("kind", ["result", "cls", "callable"])
def test_command_is_read_at_once_if_typer_must_see_it(app: Tooli, kind: str) -> None:
    class Loud(typer.core.TyperCommand):
        pass

    if kind == "result":

        @app.command()
        def special(count: int) -> int:
            """Count.

            Args:
                count: How many.
            """
            return count
    elif kind == "cls":

        @app.command("special", cls=Loud)
        def loud(count: int): ...
    else:

        class Special:
            __name__ = "special"

            def __call__(self, count: int) -> None: ...

        app.command("special")(Special())
    command = deferred(app).commands["special"]
    assert not isinstance(command, DeferredCommandMixin)
    assert [param.name for param in command.params] == ["count"]
