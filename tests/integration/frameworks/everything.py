"""An app with every kind of parameter, result and failure, to be exported."""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union
from uuid import UUID

import pydantic

from tooli import Argument, Context, NotFoundError, Option, Suggestion, Tooli
from tooli.annotations import Destructive, ReadOnly

app = Tooli("every-thing", version="2.1", description="Every kind of {thing}: 'quoted', \"too\".")
users = Tooli("users")
app.add_typer(users, name="users")


class Color(enum.Enum):
    RED = "red"
    BLUE = "deep-blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Span(TypedDict):
    start: int
    stop: int


class User(pydantic.BaseModel):
    name: str = pydantic.Field(description="What the user is called.")
    age: int = pydantic.Field(default=0, ge=0)
    home: Point | None = None


class Tree(pydantic.BaseModel):
    label: str
    below: list[Tree] = []


def describe_arguments(values: dict[str, Any]) -> dict[str, Any]:
    """Return the type and the value of each argument."""
    return {name: [type(value).__name__, value] for name, value in values.items()}


# ------------------------------------------------------------------ parameters


@app.command(annotations=ReadOnly)
def scalars(
    text: str,
    whole: int,
    number: float,
    truth: bool,
    path: Path,
    color: Color,
    level: Level,
    word: Literal["ham", "eggs"],
) -> dict[str, Any]:
    """Take a value of each scalar type.

    Args:
        text: Any text.
        path: Where it is.
    """
    return describe_arguments(locals())


@app.command(annotations=ReadOnly)
def text_values(
    moment: datetime,
    day: date,
    clock: clock_time,
    length: timedelta,
    uid: UUID,
    money: Decimal,
    raw: bytes,
) -> dict[str, Any]:
    """Take values that JSON represents as strings."""
    return describe_arguments(locals())


@app.command(annotations=ReadOnly)
def collections(
    words: list[str],
    bag: set[int],
    row: tuple[int, str],
    rows: Annotated[tuple[int, ...], Option()],
    days: Annotated[list[date], Option()],
    table: Annotated[dict[str, int], Option()],
    either: Annotated[Union[int, str], Option()],  # noqa: UP007
) -> dict[str, Any]:
    """Take collections."""
    bag = sorted(bag)  # type: ignore[assignment]
    return describe_arguments(locals())


@app.command(annotations=ReadOnly)
def structured(
    point: Annotated[Point, Option()],
    span: Annotated[Span, Option()],
    user: Annotated[User, Option()],
    several: Annotated[list[User], Option()],
    tree: Annotated[Tree, Option()],
) -> dict[str, Any]:
    """Take structured values."""
    return describe_arguments(locals())


@app.command(annotations=ReadOnly)
def optional(
    text: Optional[str] = None,  # noqa: UP045
    whole: Annotated[int, Option(min=1, max=9)] = 3,
    color: Color = Color.BLUE,
    words: Annotated[list[str], Option()] = ["a", "b"],  # noqa: B006
    path: Path = Path("."),
    user: Annotated[User | None, Option()] = None,
    day: date = date(2024, 2, 29),
    limit: int | None = 10,
) -> dict[str, Any]:
    """Take optional parameters only."""
    return describe_arguments(locals())


@app.command(annotations=ReadOnly)
def reserved_names(
    config: str = "c",
    callbacks: str = "c",
    run_manager: str = "r",
    self: str = "s",
    tool_context: str = "t",
    input: str = "i",
    json: str = "j",
    yes: bool = False,
    name: str = "n",
    arguments: str = "a",
    timeout: int = 0,
    words: str = "w",
    list: str = "l",
) -> dict[str, Any]:
    """Take parameters with names that frameworks reserve."""
    return dict(locals())


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    key: bytes = b""


@app.command(annotations=ReadOnly)
def refused(
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
    secret: Annotated[pydantic.SecretStr, Option()],
    größe: int,
    имя: str = "n",
) -> dict[str, Any]:
    """Take parameters whose schemas or names frameworks refuse."""
    return {"pet": pet.kind, "length": len(secret.get_secret_value()), "größe": größe, "имя": имя}


# ------------------------------------------------------------------ results


@app.command()
async def later(n: int) -> int:
    """Run in an event loop."""
    return n + 1


@app.command()
def count(n: int, fail_after: int = -1) -> Iterator[dict[str, int]]:
    """Yield items."""
    for i in range(n):
        if i == fail_after:
            raise NotFoundError(f"There is no {i}.")
        yield {"i": i}


@app.command()
async def acount(n: int) -> AsyncIterator[int]:
    """Yield items in an event loop."""
    for i in range(n):
        yield i


@app.command()
def nothing() -> None:
    """Return nothing."""


@app.command("say")
def say(text: str) -> None:
    """Print, and return nothing."""
    print(text)


@app.command("list")
def listed(ctx: Context) -> dict[str, Any]:
    """Return the caller, with a warning."""
    ctx.warn("a warning")
    return {"surface": ctx.caller.surface, "name": ctx.caller.name}


# ------------------------------------------------------------------ failures


@app.command(when_to_use="When nothing else has failed yet.")
def fail(kind: Literal["missing", "final", "crash"]) -> str:
    """Fail in the given way."""
    if kind == "missing":
        raise NotFoundError(
            'There is no such thing: "it\'s {gone}".',
            field="kind",
            suggestion=Suggestion("retry_with_modified_input", "Take another."),
            is_retryable=True,
        )
    if kind == "final":
        raise NotFoundError("It is gone for good.")
    raise KeyError("lost")


@app.command(timeout=1)
def wait(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)
    return "done"


@app.command(timeout=1)
async def await_it(seconds: float) -> str:
    """Wait in an event loop."""
    import asyncio

    await asyncio.sleep(seconds)
    return "done"


@app.command(annotations=ReadOnly, paginated=3)
def pages(total: int = 7) -> list[int]:
    """Return pages of numbers."""
    return list(range(total))


@app.command(annotations=ReadOnly, max_tokens=200)
def long_text() -> str:
    """Return a text that is larger than its token limit."""
    return "x" * 5000


# ------------------------------------------------------------------ policy and names


@app.command(annotations=Destructive)
def delete(path: Annotated[Path, Argument()]) -> str:
    """Run a destructive command."""
    return f"deleted {path}"


@app.command(requires_approval=True)
def launch(target: str) -> str:
    """Run a command that needs an approval."""
    return f"launched {target}"


@app.command("grep")
def search(pattern: str = "x") -> str:
    """Have the name of a built-in tool of Copilot."""
    return pattern


DIFFICULT_TEXT = (
    "Be named like a Python keyword, with \"quotes\", 'quotes', \\back\\slashes and {braces}.\n\n"
    "Triple quotes, too: \"\"\" and ''', a percent %s %(x)s, a $dollar, ünïcode 😀 and שלום,\n"
    "a very long line that goes on and on so that no literal on a single line could ever hold it,\n"
    'and an end in a backslash, or in "quotes\\"'
)


@app.command("class", help=DIFFICULT_TEXT)
def keyword(word: Annotated[str, Option(help=DIFFICULT_TEXT)] = DIFFICULT_TEXT) -> str:
    return word


@users.command()
def create(user: Annotated[User, Option()], notify: bool = False) -> User:
    """Create a user."""
    return user


if __name__ == "__main__":
    app()
