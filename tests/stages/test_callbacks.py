from __future__ import annotations

from typing import Annotated, Any

import pytest
import typer

from tooli import Tooli
from tooli.pipeline.stdout_capture import route_stdout
from tooli.testing import Case
from tooli.testing.app_interfaces import HttpInterface, StatelessInterface


def show_version(value: bool) -> None:
    if value:
        typer.echo("1.2.3")
        raise typer.Exit


def make_app() -> Tooli:
    app = Tooli("a")

    @app.callback()
    def main(
        version: Annotated[bool, typer.Option(callback=show_version, is_eager=True)] = False,
    ) -> None:
        typer.echo("callback")

    @app.command()
    def size(text: str) -> dict[str, int]:
        return {"size": len(text)}

    @app.command()
    def say(text: str):
        typer.echo(text)

    @app.command()
    def nothing() -> int | None:
        typer.echo("a note")
        return None

    return app


@pytest.mark.parametrize("make_interface", [HttpInterface, StatelessInterface])
def test_text_of_a_callback_that_exits_is_the_result(make_interface: Any) -> None:
    interface = make_interface(make_app())

    def send(tool: str, **arguments: Any) -> Any:
        return interface.send_case(Case(tool, arguments)).envelope["result"]

    assert send("size", text="abc", version=True) == "1.2.3"
    assert send("say", text="abc", version=True) == "1.2.3"
    assert send("size", text="abc") == {"size": 3}
    assert send("say", text="abc") == "callback\nabc"


def test_text_of_a_command_with_a_result_is_not_its_result() -> None:
    assert HttpInterface(make_app()).send_case(Case("nothing")).envelope.get("result") is None


def test_printed_text_goes_to_stdout_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    app = make_app()
    assert app.call("say", text="abc").result is None
    assert app.call("say", text="abc", version=True).result is None
    assert capsys.readouterr().out == "callback\nabc\n1.2.3\n"


def test_captured_text_of_a_server_goes_to_its_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    restore = route_stdout()
    try:
        assert make_app().call("nothing").result is None
    finally:
        restore()
    assert capsys.readouterr().err == "callback\na note\n"
