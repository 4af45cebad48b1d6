"""AGENTS.md, CLAUDE.md, the manifest, and the document that suits the caller."""

from __future__ import annotations

import json

import pytest
from tests.views.test_skill import big, make

from tooli import Tooli
from tooli.contract.tokens import estimate
from tooli.testing import invoke
from tooli.views.agents_md import agents_block, write_agents_md
from tooli.views.claude_md import claude_block, write_claude_md
from tooli.views.manifest import discovery, manifest
from tooli.views.portrait import portray


def test_agents_md() -> None:
    text = write_agents_md(portray(make()))
    assert text.startswith('# AGENTS.md\n\n## My tool\n\nFinds "files",\nand more.\n\n### Commands')
    assert "#### find\n\nFind files." in text
    assert "### Gotchas\n\nMind the `gap`." in text
    assert "- Run a destructive command with `--dry-run` first" in text
    assert "- Exit code 101: show the human" in text
    assert agents_block(portray(make())) in text


def test_claude_md() -> None:
    text = write_claude_md(portray(make()))
    assert text.startswith("# CLAUDE.md\n\n## My tool\n")
    assert "- `find <pattern:str>" in text
    assert "TOOLI_CALLER=claude-code" in text
    thin = claude_block(portray(make()), thin=True)
    assert thin.startswith("@AGENTS.md\n\n## My tool\n")
    assert "- `find" not in thin


@pytest.mark.parametrize("count", [1, 10, 40, 200, 1_000])
def test_each_keeps_within_its_room(count: int) -> None:
    portrait = portray(big(count))
    assert estimate(write_agents_md(portrait)) <= 4_000
    assert estimate(write_claude_md(portrait)) <= 1_000


def test_manifest() -> None:
    told = manifest(portray(make()))
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
    assert told["exit_codes"]["101"] == "a human is needed"
    assert told["errors"]["E1010"]
    assert told["caller_convention"]["env_var"] == "TOOLI_CALLER"
    assert json.loads(json.dumps(told)) == told


def test_discovery() -> None:
    told = discovery(portray(make()))
    assert told["commands"][0] == {"name": "find", "description": "Find files."}


class TestFromOutside:
    @pytest.fixture
    def app(self) -> Tooli:
        return make()

    def test_manifest(self, app: Tooli) -> None:
        done = invoke(app, "--agent-manifest")
        assert json.loads(done.stdout) == manifest(portray(app))

    def test_discover(self, app: Tooli) -> None:
        assert json.loads(invoke(app, "--discover").stdout) == discovery(portray(app))

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
