"""An app with every kind of parameter, groups in groups, models and streams."""

import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from tooli import Argument, Context, Option, Tooli
from tooli.annotations import Destructive

app = Tooli("demo", version="9.9", description="Every kind of parameter.")
group = Tooli("group", description="A group.")
inner = Tooli("inner", description="A group in it.")
group.add_typer(inner, name="inner")
app.add_typer(group, name="group")


class Colour(enum.Enum):
    """A few words."""

    RED = "red"
    DEEP_BLUE = "deep-blue"


class Level(enum.IntEnum):
    """A few numbers."""

    LOW = 1
    HIGH = 2


@app.command()
def plain(
    word: str,
    count: int = 1,
    ratio: float = 0.5,
    loud: bool = False,
    path: Path = Path("."),
    colour: Colour = Colour.RED,
    level: Level = Level.LOW,
    kind: Literal["a", "b-c"] = "a",
    maybe: int | None = None,
) -> dict:
    """Scalar types."""
    return dict(locals())


@app.command()
def rich(
    when: dt.datetime | None = None,
    day: dt.date | None = None,
    at: dt.time | None = None,
    span: dt.timedelta | None = None,
    key: uuid.UUID | None = None,
    price: decimal.Decimal | None = None,
    raw: bytes | None = None,
    either: int | str | None = None,
) -> dict:
    """Types that pydantic converts."""
    return dict(locals())


@app.command()
def many(
    files: list[Path],
    tags: Annotated[list[str], Option("--tag", "-t", help="A tag.")] = [],  # noqa: B006
    sizes: set[int] = set(),  # noqa: B006
    pair: tuple[int, str] = (1, "x"),
    table: dict[str, int] = {},  # noqa: B006
) -> dict:
    """Collections."""
    return dict(locals())


@app.command()
def short(
    name: Annotated[str, Argument(help="Who.")],
    number: Annotated[int, Option("-n", "--number", min=1, max=9)] = 1,
    flag: Annotated[bool, Option("-f/-F", "--flag/--no-flag")] = False,
    verbose: Annotated[int, Option("-v", count=True)] = 0,
) -> dict:
    """Short flags, one of them also used by the framework."""
    return dict(locals())


app.lazy_command("demo_models:model")
app.lazy_command("demo_models:people")
inner.lazy_command("demo_models:two", "two")


@app.command()
def numbers(until: int = 3, fail_at: int = -1) -> Iterator[int]:
    """A stream."""
    for i in range(min(until, 1000)):
        if i == fail_at:
            raise ValueError(f"failed at {i}")
        yield i


@app.command()
async def later(word: str = "x", ctx: Context = None) -> str:
    """A coroutine."""
    ctx.warn("slow")
    return word


@app.command(annotations=Destructive)
def delete(path: Path) -> str:
    """Run a destructive command."""
    return str(path)


@app.command()
def shout(word: str = "hey"):
    """Print."""
    print(word)


@app.command()
def named(
    json: str = "j",
    output: str = "o",
    limit: int = 1,
    schema: str = "s",
    help: str = "h",
    name: str = "n",
    self: str = "me",
    ctx: str = "c",
    kwargs: str = "k",
    version: str = "v",
    quiet: str = "q",
    input: str = "i",
) -> dict:
    """Parameters named like framework options or Python names."""
    return dict(locals())


@group.command()
def one(a: int, b: int = 2) -> int:
    """In a group."""
    return a + b


if __name__ == "__main__":
    app()
