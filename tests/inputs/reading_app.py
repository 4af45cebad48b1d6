"""An app with commands that read inputs of every type."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pydantic

from tooli import Input, StdinOr, Tooli


class Row(pydantic.BaseModel):
    name: str
    age: int
    note: str | None = None


@dataclasses.dataclass
class Pair:
    a: int
    b: int


KINDS: dict[str, Any] = {
    "text": str,
    "bytes": bytes,
    "object": dict,
    "anything": Any,
    "row": Row,
    "rows": list[Row],
    "objects": list[dict],
    "table": list[list[str]],
    "pairs": tuple[Pair, ...],
    "lines": Iterator[str],
    "chunks": Iterator[bytes],
    "each-object": Iterator[dict],
    "each-row": Iterator[Row],
    "each-table": Iterator[list[str]],
    "short": Annotated[str, pydantic.StringConstraints(max_length=3)],
}


def make_reading_app() -> Tooli:
    app = Tooli("reads", version="1.0")
    for name, kind in KINDS.items():

        def read(data) -> Any:
            if hasattr(data, "__next__"):
                data = list(data)
            return data

        read.__annotations__ = {"data": StdinOr[kind], "return": Any}
        app.command(name)(read)

    @app.command()
    def file(data: StdinOr[Path]) -> dict:
        """Read the input like a file."""
        assert isinstance(data, Input)
        with data.open() as opened:
            first = opened.read(1)
        return {
            "source": data.source,
            "stdin": data.is_stdin,
            "first": first,
        }

    @app.command()
    def twice(data: StdinOr[Path]) -> list[int]:
        """Read the input three times."""
        return [len(data.read_bytes()), len(data.read_text()), len(list(data))]

    @app.command()
    def maybe(data: StdinOr[str] | None = None, other: StdinOr[str] = "-") -> list[Any]:
        """Take two optional inputs."""
        return [data, other]

    @app.command()
    def several(data: list[StdinOr[str]]) -> list[str]:
        """Take any number of inputs."""
        return data

    @app.command()
    def both(one: StdinOr[str], two: StdinOr[str]) -> str:
        """Take two inputs."""
        return one + two

    return app
