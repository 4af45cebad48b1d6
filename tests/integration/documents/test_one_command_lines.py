"""Run every command line in the documents of apps with a single command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.documents.command_line_checks import (
    fenced_blocks,
    shell_lines,
    split_commands,
)

from tooli import Argument, Tooli
from tooli.annotations import ReadOnly
from tooli.describe.agent_documents import (
    build_discovery,
    build_llms_files,
    build_manifest,
    build_skill_files,
    render_document,
)
from tooli.describe.man import build_man_pages
from tooli.describe.sections import collect_app_info
from tooli.testing import invoke


def returning_app() -> Tooli:
    app = Tooli("file-tools", version="1.0", description="Work with files.")

    @app.command(
        annotations=ReadOnly,
        paginated=True,
        examples=[
            {"args": ["*.py"], "description": "Find Python files"},
            {
                "args": ["docs", "--root", "src"],
                "description": "The name of a built-in command",
            },
            {"args": ["find-files"], "description": "The name of the command"},
            {"args": ["--pattern", "*.py", "--max_depth", "3"], "description": "Other spellings"},
        ],
    )
    def find_files(
        pattern: str = Argument(help="What to find."),
        root: str = ".",
        max_depth: int = 9,
    ) -> list[str]:
        """Find files."""
        return [pattern, root]

    return app


def printing_app() -> Tooli:
    app = Tooli("greeter", version="1.0")

    @app.command(examples=[{"args": ["docs"]}, {"args": ["Ada", "--loud"]}])
    def hello(name: str, loud: bool = False) -> None:
        """Greet someone."""
        print(f"Hello {name}")

    return app


def app_with_own_builtin() -> Tooli:
    app = Tooli("shop", version="1.0")

    @app.command("detect-context")
    def detect(word: str) -> str:
        """Detect a word."""
        return word

    return app


APPS = {"file-tools": returning_app, "greeter": printing_app, "shop": app_with_own_builtin}


def document_lines(app: Tooli) -> Iterator[list[str]]:
    """Yield the words of every command line in the documents."""
    info = collect_app_info(app)
    program = info.name
    texts = [
        *build_skill_files(info).values(),
        *build_llms_files(info).values(),
        render_document(info, "claude-md"),
        render_document(info, "agents-md"),
    ]
    for text in texts:
        for language, body in fenced_blocks(text):
            if language == "bash":
                for line in shell_lines(body):
                    yield from [words for words in split_commands(line) if words[:1] == [program]]
        for span in re.findall(rf"`({program} [^`]*)`", text):
            if not set("…<[") & set(span):  # a template
                yield shlex.split(span)
    manifest: dict[str, Any] = build_manifest(info)
    yield manifest["caller_convention"]["detect_command"]
    yield [*manifest["invocation"]["mcp"], "--help"]
    yield build_discovery(info)["schema"]
    for command in manifest["commands"].values():
        yield shlex.split(command["example"])
    for page in build_man_pages(info).values():
        for block in re.findall(r"^\.EX\n(.*?)^\.EE", page, re.S | re.M):
            for line in block.replace(r"\-", "-").replace(r"\&", "").strip().split("\n"):
                if line.startswith(f"{program} "):
                    yield shlex.split(line)
    for line in invoke(app, "--help-agent").stdout.splitlines():
        if line.startswith("example: "):
            yield shlex.split(line.removeprefix("example: ").partition("  #")[0])


@pytest.mark.parametrize("make_app", APPS.values(), ids=APPS)
def test_every_line_works(make_app: Callable[[], Tooli]) -> None:
    app = make_app()
    lines = [words for words in document_lines(app) if "CURSOR" not in words]
    assert len(lines) >= 6
    for words in lines:
        assert words[0] == app._state.name, words
        done = invoke(app, *words[1:])
        assert done.exit_code == 0, (words, done.stdout, done.stderr)


def test_builtin_lines_run_the_builtin() -> None:
    for make_app in APPS.values():
        app = make_app()
        argv = build_manifest(collect_app_info(app))["caller_convention"]["detect_command"]
        assert "candidates" in invoke(app, *argv[1:]).result


def test_example_with_a_name_as_argument_runs_the_command() -> None:
    app = returning_app()
    pages = {
        tuple(words)
        for words in document_lines(app)
        if "docs" in words or words.count("find-files") == 2
    }
    assert pages
    for words in pages:
        result = invoke(app, *words[1:], "--json").result
        assert result[0] in ("docs", "find-files"), words
