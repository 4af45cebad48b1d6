"""SKILL.md and the pages of its commands: content and size."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, TypedDict

from tooli import Option, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.describe.agent_documents import build_skill_files, render_skill_md, skill_slug
from tooli.describe.app_info import collect_app_info
from tooli.text.tokens import estimate_tokens


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class File(TypedDict):
    path: str
    size: int


def make() -> Tooli:
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
        cost_hint="cheap",
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


def test_skill_md() -> None:
    text = render_skill_md(collect_app_info(make()))
    assert text.startswith('---\nname: my-tool\ndescription: >-\n  Finds "files", and more. Use it')
    assert '  version: "1.2"\n---\n\n# My tool\n' in text
    assert "### find\n\nFind files. Use it when a file is lost. (read-only; cost: cheap)" in text
    assert "```bash\n'My tool' find '*' --json\n```" in text, "the shortest example"
    assert "- `pattern`: What they are called." in text
    assert "Returns `[{path: str, size: int}]`. Fails with `E3001` (no file matched)." in text
    assert "Next: `wipe` (the file is not wanted), `digest`." in text
    assert "- `wipe` often follows `find`" in text
    assert "- `--target`: What to wipe." in text
    assert "a human must approve each call" in text
    assert "## Gotchas\n\nMind the `gap`." in text
    assert "### internal" not in text
    assert "secret" not in text
    assert "references/" not in text, "no links without reference pages"


def test_destructive_examples_are_dry_runs() -> None:
    text = render_skill_md(collect_app_info(make()))
    assert "'My tool' wipe --dry-run --json" in text
    assert "wipe --yes" not in text


def test_pipes() -> None:
    app = Tooli("t")

    @app.command(annotations=ReadOnly, handoffs=["digest"])
    def find() -> list[File]:
        return []

    @app.command(annotations=ReadOnly)
    def digest(paths: list[str]) -> list[str]:
        return paths

    @app.command(annotations=ReadOnly)
    def other(paths: Annotated[list[str], Option()]) -> list[str]:
        return paths

    text = render_skill_md(collect_app_info(app))
    line = "t find --json | jq -r '.result[].path' | tr '\\n' '\\0' | xargs -0 t digest --json"
    assert line in text
    assert "xargs -0 t other" not in text, "an option cannot take piped arguments"


def test_files() -> None:
    files = build_skill_files(collect_app_info(make()))
    assert list(files) == [
        "SKILL.md",
        *[f"references/{name}.md" for name in ("find", "digest", "wipe")],
    ]
    for target in re.findall(r"\]\(([^)]+)\)", files["SKILL.md"]):
        assert target in files
    page = files["references/find.md"]
    assert page.startswith("# My tool find\n\nFind files.\n\nWhen to use it: When a file is lost.")
    assert "- Capabilities: `fs:read`\n- Takes up to 5 s\n- Delegate: An agent with a disk." in page
    assert "All of Python:\n\n```bash\n'My tool' find '*.py' --depth 3 --json\n```" in page
    assert "- `E3001`: no file matched; check the state it names" in page
    assert "- Next: `wipe`, the file is not wanted" in page
    assert "- Often after `find`" in files["references/wipe.md"]
    assert "Streams `str`, one per line" in files["references/digest.md"]


def test_example_outputs() -> None:
    app_info = collect_app_info(make()).replace(example_outputs={("find", 0): '{"ok":true}'})
    page = build_skill_files(app_info)["references/find.md"]
    assert '--depth 3 --json\n```\n\n```json\n{"ok":true}\n```' in page


def test_app_without_description() -> None:
    text = render_skill_md(collect_app_info(Tooli("!")))
    assert "name: app\n" in text
    assert "The commands of !." in text


def test_slug() -> None:
    assert skill_slug("My  Tool--2") == "my-tool-2"
    assert skill_slug("ß" * 3) == "app"
    assert skill_slug("a" * 63 + "-b") == "a" * 63


def big(count: int, groups: bool = False) -> Tooli:
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


def test_size_of_ten_commands() -> None:
    assert estimate_tokens(render_skill_md(collect_app_info(big(10)))) < 2_000


def test_large_apps_stay_within_the_budget() -> None:
    for count in (30, 60, 120, 300, 1_000):
        text = render_skill_md(collect_app_info(big(count)), linked=True)
        assert estimate_tokens(text) <= 5_000, count
        assert len(text.splitlines()) <= 500
    assert "- `group-3`: 50 commands" in render_skill_md(collect_app_info(big(1_000, groups=True)))
    assert "big search-tools TEXT --json" in text


def test_task_groups() -> None:
    app = Tooli("t")

    @app.command(task_group="Reading")
    def look() -> None:
        """Look."""

    @app.command(task_group="Writing")
    def put() -> None:
        """Put."""

    text = render_skill_md(collect_app_info(app))
    assert "### Reading\n\n#### look" in text
    assert "### Writing\n\n#### put" in text


def test_hostile_text() -> None:
    app = Tooli("t", description="a --- b\n---\n: c")

    @app.command(examples=[{"args": ["```", "a|b`c", "--", "-x"]}])
    def find(a: str, b: str, c: str = "`") -> None:
        """Says `` `tick` `` and | and <!-- -->."""

    @app.command()
    def other() -> None:
        pass

    text = render_skill_md(collect_app_info(app))
    head = text.split("---\n")
    assert head[0] == ""
    assert "a — b — : c" in head[1]
    assert "````bash\nt find '```' 'a|b`c' --json -- -x\n````" in text
