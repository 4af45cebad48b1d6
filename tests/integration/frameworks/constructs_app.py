"""An app whose commands have the schemas of `constructs`, to be exported."""

from __future__ import annotations

from typing import Annotated, Any

from tests.integration.frameworks.constructs import CONSTRUCTS, parameter_of, schema_of

from tooli import Option, Tooli

app = Tooli("every-thing", version="1.0")


@app.command()
def later(n: int) -> int:
    """Exist, because the scripted models of `run_exports` call it."""
    return n


@app.command()
def grep() -> None:
    """Exist, because it has the name of a built-in tool of Copilot."""


def add_command(name: str) -> None:
    """Add a command with the schema of a construct."""

    def echo(value: Annotated[Any, Option()]) -> Any:
        return {"value": value}

    def echo_size(größe: Annotated[Any, Option()]) -> Any:
        return {"größe": größe}

    function = echo if parameter_of(name) == "value" else echo_size
    app.command(name, input_schema=schema_of(name), help=f"Try {name}.")(function)


for each in CONSTRUCTS:
    add_command(each)
