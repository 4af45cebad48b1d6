"""Apps for the tests of generated documents."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Annotated, TypedDict

from tooli import Option, Tooli
from tooli.annotations import Destructive, ReadOnly


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class File(TypedDict):
    path: str
    size: int


def make_documented_app() -> Tooli:
    app = Tooli(
        "My tool",
        description='Finds "files",\nand more.',
        version="1.2",
        sections={"Gotchas": "Mind the `gap`."},
    )

    @app.command(
        annotations=ReadOnly,
        when_to_use="When a file\nis lost",
        examples=[
            {"args": ["*.py", "--depth", 3], "description": "All of Python"},
            {"args": ["*"]},
        ],
        error_codes={"E3001": "no file matched"},
        handoffs=[{"command": "wipe", "when": "the file is not wanted"}, "digest"],
        capabilities=["fs:read"],
        delegation_hint="An agent with a disk.",
        timeout=5,
        cost_hint="low",
    )
    def find(
        pattern: str,
        depth: int = 2,
        level: Level | None = None,
        deep: bool = False,
        secret: Annotated[str, Option(hidden=True)] = "",
    ) -> list[File]:
        """Find files.

        Args:
            pattern: What they are called.
        """
        return []

    @app.command(annotations=ReadOnly)
    def digest(files: list[str]) -> Iterator[str]:
        """Digest files."""
        yield from files

    @app.command(annotations=Destructive, requires_approval=True, examples=[{"args": ["--yes"]}])
    def wipe(target: Annotated[str, Option(help="What to wipe.")] = "disk") -> None:
        pass

    @app.command(hidden=True)
    def internal() -> None:
        pass

    return app


def make_large_app(count: int, groups: bool = False) -> Tooli:
    app = Tooli("big", description="A big one.")
    parents = {"": app}
    for i in range(count):
        group = f"group-{i % 20}" if groups else ""
        if group not in parents:
            parents[group] = Tooli(group)
            app.add_typer(parents[group], name=group)

        def command(first: str, second: int = 3, third: bool = False) -> list[File]:
            """Do one of the things that this app can do, in its own way."""
            return []

        parents[group].command(f"do-thing-{i}")(command)
    return app


def make_callback_app() -> Tooli:
    """An app with a callback and a group with a callback, both with options."""
    app, group = Tooli("safe", version="1"), Tooli()
    app.add_typer(group, name="box")

    @app.callback()
    def main(
        token: Annotated[str, Option(help="Opens the safe.")],
        verbose: bool = False,
        debug: Annotated[bool, Option(hidden=True)] = False,
    ) -> None:
        print(token, verbose, debug)

    @group.callback()
    def choose(level: int = 3) -> None:
        print(level)

    @app.command()
    def count(name: str) -> int:
        """Count."""
        return len(name)

    @group.command("open")
    def open_box(number: int) -> int:
        """Open a box."""
        return number

    return app
