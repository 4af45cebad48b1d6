"""AGENTS.md, CLAUDE.md, the manifest, and the document that suits the caller."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from markdown_it import MarkdownIt
from tests.describe.test_skill import big, make

from tooli import Option, Tooli
from tooli.describe.agents_md import render_agents_md, render_agents_md_block
from tooli.describe.app_info import collect_app_info
from tooli.describe.claude_md import render_claude_md, render_claude_md_block
from tooli.describe.llms_txt import build_llms_files
from tooli.describe.man import build_man_pages
from tooli.describe.manifest import build_discovery, build_manifest
from tooli.describe.schema_formats import describe_tool
from tooli.describe.skill import build_skill_files
from tooli.testing import invoke
from tooli.text.sanitize import is_clean
from tooli.text.tokens import estimate_tokens


def test_agents_md() -> None:
    text = render_agents_md(collect_app_info(make()))
    assert text.startswith('# AGENTS.md\n\n## My tool\n\nFinds "files",\nand more.\n\n### Commands')
    assert "#### find\n\nFind files." in text
    assert "### Gotchas\n\nMind the `gap`." in text
    assert "- Run a destructive command with `--dry-run` first" in text
    assert "- Exit code 101: show the human" in text
    assert render_agents_md_block(collect_app_info(make())) in text


def test_claude_md() -> None:
    text = render_claude_md(collect_app_info(make()))
    assert text.startswith("# CLAUDE.md\n\n## My tool\n")
    assert "- `find <pattern:str>" in text
    assert "TOOLI_CALLER=claude-code" in text
    thin = render_claude_md_block(collect_app_info(make()), refer_to_agents_md=True)
    assert thin.startswith("@AGENTS.md\n\n## My tool\n")
    assert "- `find" not in thin


@pytest.mark.parametrize("count", [1, 10, 40, 200, 1_000])
def test_each_keeps_within_its_room(count: int) -> None:
    app_info = collect_app_info(big(count))
    assert estimate_tokens(render_agents_md(app_info)) <= 4_000
    assert estimate_tokens(render_claude_md(app_info)) <= 1_000


def test_manifest() -> None:
    told = build_manifest(collect_app_info(make()))
    assert told["name"] == "My tool"
    assert list(told["commands"]) == ["find", "digest", "wipe"]
    find = told["commands"]["find"]
    assert find["argv"] == ["My tool", "find"]
    assert find["input_schema"]["required"] == ["pattern"]
    assert find["capabilities"] == ["fs:read"]
    assert find["delegation_hint"] == "An agent with a disk."
    assert find["handoffs"][0] == {"command": "wipe", "when": "the file is not wanted"}
    assert find["cost_hint"] == "cheap"
    assert told["commands"]["wipe"]["commonly_after"] == ["find"]
    assert told["commands"]["wipe"]["requires_approval"] is True
    assert told["exit_codes"]["101"] == "a human must approve or answer"
    assert told["errors"]["E1010"]
    assert told["caller_convention"]["env_var"] == "TOOLI_CALLER"
    assert json.loads(json.dumps(told)) == told


def test_discovery() -> None:
    told = build_discovery(collect_app_info(make()))
    assert told["commands"][0] == {"name": "find", "description": "Find files."}


class TestFromOutside:
    @pytest.fixture
    def app(self) -> Tooli:
        return make()

    def test_manifest(self, app: Tooli) -> None:
        done = invoke(app, "--agent-manifest")
        assert json.loads(done.stdout) == build_manifest(collect_app_info(app))

    def test_discover(self, app: Tooli) -> None:
        assert json.loads(invoke(app, "--discover").stdout) == build_discovery(
            collect_app_info(app)
        )

    @pytest.mark.parametrize(
        ("variables", "head"),
        [
            ({"TOOLI_CALLER": "claude-code"}, "# CLAUDE.md"),
            ({"CODEX_THREAD_ID": "1"}, "# AGENTS.md"),
            ({"COPILOT_CLI": "1"}, "# AGENTS.md"),
            ({"TOOLI_CALLER": "somebody"}, "---\nname: my-tool"),
            ({}, "---\nname: my-tool"),
        ],
    )
    def test_bootstrap(self, app: Tooli, variables: dict[str, str], head: str) -> None:
        done = invoke(app, "--agent-bootstrap", env=variables)
        assert done.stdout.startswith(head)

    def test_bootstrap_in_an_envelope(self, app: Tooli) -> None:
        assert invoke(app, "--agent-bootstrap", "--json").result.startswith("---\n")

    def test_a_flag_of_the_commands_own_wins(self) -> None:
        app = Tooli("t")

        @app.command()
        def find(discover: bool = False) -> bool:
            return discover

        assert invoke(app, "--discover", "--json").result is True

    @pytest.mark.parametrize(
        ("words", "head"),
        [
            (["generate-skill"], "---\nname: my-tool"),
            (["generate-skill", "--format", "claude-md"], "# CLAUDE.md\n"),
            (["generate-skill", "--format", "agents-md"], "# AGENTS.md\n"),
            (["generate-agents-md"], "# AGENTS.md\n"),
        ],
    )
    def test_generating(self, app: Tooli, words: list[str], head: str) -> None:
        done = invoke(app, *words)
        assert done.stdout.startswith(head)
        assert done.stdout.endswith("\n")
        assert not done.stdout.endswith("\n\n")

    def test_details_for_agents(self, app: Tooli) -> None:
        text = invoke(app, "find", "--help-agent").stdout
        for line in (
            "use when: When a file",
            "capabilities: fs:read",
            "next: wipe  # the file is not wanted",
            "next: digest",
            "timeout: 5 s",
            "delegate: An agent with a disk.",
        ):
            assert line in text


# ------------------------------------------------------------------ hostile texts

ODD = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe\u202c z\u200bw \x9b31m\x7f\r over"
OPEN = "\x1b]0;a sequence that nobody ends"


def hostile() -> Tooli:
    app = Tooli("odd", help=f"An app {ODD}.\n\n~~~\nnobody closes it", version=f"1{ODD}")

    @app.command(
        help=f"Show: {OPEN}\n\n{ODD}\n\n```python\ncode\n`` `",
        examples=[{"args": ["--name", ODD], "description": f"{ODD}\n```"}],
        error_codes={"E3001": ODD},
        when_to_use=f"Never \x07 {ODD}",
    )
    def show(name: Annotated[str, Option(help=f"Its {ODD}\n---\n```")] = f"a\nb{ODD}") -> str:
        return name

    @app.command(help=f"Burn it \x07 {ODD}")
    def burn() -> str:
        return ""

    return app


def documents() -> dict[str, str]:
    app_info = collect_app_info(hostile())
    written = {"AGENTS.md": render_agents_md(app_info), "CLAUDE.md": render_claude_md(app_info)}
    return {
        **written,
        **build_skill_files(app_info),
        **{f"llms/{name}": text for name, text in build_llms_files(app_info).items()},
    }


def test_no_document_holds_what_a_terminal_obeys() -> None:
    app = hostile()
    texts = [*documents().values(), *build_man_pages(collect_app_info(app)).values()]
    texts += [invoke(app, *words, "--help-agent").stdout for words in ([], ["show"])]
    assert len(texts) > 8
    for text in texts:
        assert is_clean(text)
        assert "\r" not in text
        assert "[31m" not in text
        assert "Burn it" in text or "odd" in text, "and nothing beside it was lost"


@pytest.mark.parametrize("form", ["json", "mcp", "openai", "anthropic"])
def test_no_description_holds_it_either(form: str) -> None:
    told: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            told.extend([text for name, text in value.items() if name == "description"])
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, (dict, list)):
                look(item)

    schema = describe_tool(next(iter(hostile().catalog)), form)
    schema.pop("examples", None)  # the author's own words to be run
    look(schema)
    assert len(told) >= 2
    assert all(map(is_clean, told))


def test_every_command_is_one_line_for_agents() -> None:
    lines = invoke(hostile(), "--help-agent").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["odd", "show", "burn", "call:", "any"]
    assert "Show:" in lines[1]


@pytest.mark.parametrize("name", ["AGENTS.md", "SKILL.md", "references/show.md", "llms/llms.txt"])
def test_code_that_nobody_closed_ends_with_its_text(name: str) -> None:
    text = documents()[name]
    _, _, body = text.rpartition("\n---\n") if text.startswith("---") else ("", "", text)
    found = MarkdownIt().parse(body)
    heads = [found[i + 1].content for i, one in enumerate(found) if one.type == "heading_open"]
    wanted = {"references/show.md": ["Call", "Result"], "llms/llms.txt": ["Commands"]}
    assert set(wanted.get(name, ["Commands", "Answers", "burn"])) <= set(heads)


def test_the_front_matter_stays_whole() -> None:
    yaml = pytest.importorskip("yaml")
    head = documents()["SKILL.md"].split("---\n")[1]
    text = yaml.safe_load(head)
    assert list(text) == ["name", "description", "compatibility", "metadata"]
    assert "burn it" in text["description"]
