"""Apps whose documents are validated, some of them with difficult text."""

# ruff: noqa: UP045  tooli reads the annotations
from __future__ import annotations

import enum
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import pydantic
import typer
from tests.parity import sample_apps

from tooli import Argument, NotFoundError, Option, Tooli
from tooli.annotations import Destructive, OpenWorld, ReadOnly


class Odd(enum.Enum):
    QUOTE = "it's"
    BACK = "a\\b"
    DOT = ".hidden"
    DASH = "--"


class Deep(pydantic.BaseModel):
    """A "model" with .dots and \\slashes."""

    quoted: str = pydantic.Field(default='say "hi"', description=".TH starts this; `code` too")
    child: Optional[Deep] = None
    table: dict[str, list[int]] = {}


class Row(TypedDict):
    """A row."""

    name: str
    value: Optional[float]


def difficult_text() -> Tooli:
    """Return an app with quotes, backslashes, leading dots, emoji, empty texts and long lines."""
    app = Tooli(
        "difficult-text",
        version='1.0 "beta" \\(co',
        description=".SH is not a heading - it's \"text\" \\fBnot bold\\fR.\n\n'quoted' line\n"
        ".second line — naïve 日本語 😀\n\n- a [list](https://x.test/) entry\n"
        "- and [another]: one\n\n"
        "    code with   spaces\n    .dot\n\n```bash\ndifficult-text words one two\n```\n\n---\n\n"
        "# A heading\n\n> a quotation",
        sections={
            "Notes & 'quotes'": "One `thing`.\n\n.TH trick\n\n* bullet\n* second",
            "[Brackets] and # signs": "Odd `unclosed backquote.",
        },
    )

    @app.command(
        annotations=Destructive | OpenWorld,
        when_to_use='When "nothing" else: - helps.\n.dot',
        examples=[
            {"args": ["it's", 'a "b"', "\\n", "--odd", ".hidden"], "description": ".dot 'first'"},
            {"args": ["two\nlines", "--", "-x"], "description": "a [b](https://c.test/): d"},
        ],
        error_codes={"E3999": '.dots and \\backslashes - "quoted"'},
        deprecated="use 'words' instead",
    )
    def everything(
        words: Annotated[list[str], Argument(help=".leading dot, 'quote', \\backslash")],
        odd: Annotated[Odd, Option(envvar="ODD_VAR", help="A [choice]: one | two")] = Odd.QUOTE,
        deep: Annotated[Optional[Deep], Option(help="`code` and ``more``")] = None,
        number: Annotated[int, Option("--number", "-n", min=-5, max=5)] = -1,
        secret: Annotated[str, Option(hidden=True)] = "x",
        ratio: Annotated[Optional[float], Option(envvar=["A_VAR", "B_VAR"])] = None,
        path: Path = Path("\\\\share\\x"),
        loud: bool = True,
    ) -> list[Row]:
        """'Quoted' first line with a trailing backslash \\ and - dashes — and 日本語.

        .dot starts this line
        'quote starts this one

            indented code
              more   of it

        - one `bullet`
        - two

        Args:
            number: Between -5 and 5: "really".

        Returns:
            .dotted rows | with pipes.

        Raises:
            NotFoundError: Nothing.
        """
        raise NotFoundError("nothing")

    @app.command()
    def undescribed(a: str, b: int = 0, *, c: bool = False):
        return None

    @app.command(annotations=ReadOnly, examples=[{"args": []}, {"args": ["--a=-1"]}])
    def wordless(a: int = 0):
        """\u200b."""
        return a

    @app.command(name="long")
    def long_one(word: Literal["x" * 90, "y"] = "y") -> dict[str, Any]:
        return {}

    long_one.__doc__ = "L" + "o" * 300 + "ng word, " + "many words " * 80 + ".\n\n" + "w" * 500
    app.command(name="words", annotations=ReadOnly)(_words)
    inner, deeper = Tooli("inner"), Tooli("deeper")
    inner.command("one-two")(_words)
    deeper.command("two")(_words)
    # The pages of "inner one two" and "inner one-two" would have the same file name.
    inner.add_typer(deeper, name="one")
    app.add_typer(inner, name="inner")
    app.command(hidden=True)(hidden)
    return app


def _words(words: Annotated[list[str], typer.Argument()]) -> Iterator[str]:
    """Yield the words | one by one."""
    yield from words


def hidden(secret_thing: str) -> None:
    """A hidden command."""


def undescribed_app() -> Tooli:
    """Return an app without descriptions, and with a name that is not ASCII."""
    app = Tooli("Ünï café")

    @app.command()
    def a(x: int):
        return x

    @app.command()
    def b():
        return None

    return app


TEXT_PARTS = (
    *(
        ".",
        "'",
        "\\",
        "\\f",
        "\\(",
        "-",
        "--",
        "`",
        "``",
        "```",
        "~~~",
        "%",
        "{",
        "}",
        "[",
        "]",
        "|",
    ),
    *(
        "\n",
        "\n\n",
        "    ",
        " ",
        "\t",
        '"',
        "a",
        "word",
        "x" * 50,
        "- ",
        "* ",
        "# ",
        "> ",
        "1.",
        "---",
    ),
    *(
        "é",
        "e\u0301",
        "日本",
        "😀",
        "\u200b",
        "\u00a0",
        "\ufeff",
        "\u2028",
        "\u202e",
        "\x07",
        "\x7f",
    ),
    *(".SH", ".TH", '.\\"', "'br", "~", "^", "<b>", "&amp;", "\r\n", "\ud800"),
)


def random_app(seed: int) -> Tooli:
    """Return an app with random texts."""
    generator = random.Random(seed)

    def random_text(max_parts: int = 12) -> str:
        return "".join(generator.choices(TEXT_PARTS, k=generator.randrange(max_parts)))

    name = generator.choice(["app", "My App", "a.b", "é"])
    app = Tooli(
        name,
        description=random_text(),
        version=random_text(4),
        sections={random_text(4) or "x": random_text()},
    )
    for command in ("one", "two"):
        default = random_text(5)

        def fn(a: Any, b: Any = default, c: Any = "x") -> Any:
            return {}

        fn.__annotations__ = {
            "a": Annotated[str, Argument(help=random_text())],
            "b": Annotated[str, Option(help=random_text())],
            "c": Annotated[Literal["x", "y"], Option(help=random_text())],
            "return": dict[str, int],
        }
        fn.__doc__ = random_text(30)
        app.command(
            command,
            annotations=ReadOnly if generator.random() < 0.5 else None,
            when_to_use=random_text(6),
            examples=[{"args": [random_text(4)], "description": random_text(5)}],
            error_codes={"E3001": random_text(5)},
        )(fn)
    return app


def file_tools() -> Tooli:
    """Return the example app."""
    from examples.file_tools.app import app

    return app


APPS: dict[str, Callable[[], Tooli]] = {
    "file-tools": file_tools,
    "sample": sample_apps.make_app,
    "single": sample_apps.make_single_command_app,
    "callback": sample_apps.make_callback_app,
    "difficult-text": difficult_text,
    "undescribed": undescribed_app,
}
