"""SKILL.md: what it says about an app."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated

from tooli import Option, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.views.skill import write_skill


class Level(Enum):
    LOW = "low"
    HIGH = "high"


def page() -> str:
    app = Tooli("My tool", description='Finds "files",\nand more.')

    @app.command(
        annotations=ReadOnly,
        when_to_use="when a file\nis lost",
        examples=[{"args": ["*.py", "--depth", 3], "description": "All of Python"}, {"args": []}],
        error_codes={"E3001": "no file matched"},
    )
    def find(
        pattern: str,
        depth: int = 2,
        level: Level | None = None,
        deep: bool = False,
        secret: Annotated[str, Option(hidden=True)] = "",
    ) -> list[str]:
        """Find files.

        Args:
            pattern: What they are called.
        """
        return []

    @app.command(annotations=Destructive, requires_approval=True)
    def wipe(target: Annotated[str, Option(help="What to wipe.")]) -> None:
        pass

    @app.command(hidden=True)
    def internal() -> None:
        pass

    return write_skill("My tool", app._house.description, app.catalog)


def test_page() -> None:
    text = page()
    head, name, description, rest = text.split("\n", 3)
    assert head == "---"
    assert name == "name: my-tool"
    assert json.loads(description.removeprefix("description: ")) == 'Finds "files", and more.'
    assert rest.startswith("---\n")
    assert "- `find`: when a file is lost" in text
    assert "`My tool find PATTERN [--depth DEPTH=2] [--level low|high] [--deep]`" in text
    assert "- `PATTERN`: What they are called." in text
    assert "Behaviour: read-only." in text
    assert "All of Python\n```\n'My tool' find '*.py' --depth 3\n```" in text
    assert "A human must approve each call." in text
    assert "- `--target TARGET`: What to wipe." in text
    assert "- `E3001`: no file matched" in text
    assert "internal" not in text
    assert "secret" not in text
    assert text.endswith("\n") and not text.endswith("\n\n")


def test_an_app_that_says_nothing() -> None:
    text = write_skill("!", None, [])
    assert text.startswith('---\nname: app\ndescription: "The commands of !."\n---')
    assert "When to use" not in text
