"""Permission rules, evaluated the way each host evaluates them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples.file_tools.app import app as file_tools

from tooli import Tooli
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly
from tooli.core.agent_hosts import RULE_HOSTS
from tooli.describe.sections import collect_app_info
from tooli.errors import InputError
from tooli.export.permissions import decide, render_rules

SNAPSHOTS = Path(__file__).parent / "permissions"


def make_app() -> Tooli:
    app, users = Tooli("shop"), Tooli()

    def command(name: str, group: Tooli = app, **options: Any) -> None:
        group.command(name, **options)(lambda: None)

    command("find", annotations=ReadOnly)
    command("find-and-delete", annotations=Destructive)
    command("plain")
    command("fetch", annotations=ReadOnly | OpenWorld)
    command("wipe", annotations=Destructive, danger_level="critical")
    command("list", users, annotations=ReadOnly, capabilities=["fs:read:./data"])
    command("purge", users, danger_level="critical")
    app.add_typer(users, name="users")
    return app


APP = make_app()


@pytest.mark.parametrize("host", RULE_HOSTS)
def test_rules_match_the_snapshot(host: str) -> None:
    found = render_rules(collect_app_info(file_tools), host)
    assert found == render_rules(collect_app_info(file_tools), host)
    text = "".join([f"==> {path} <==\n{text}" for path, text in found.items()])
    path = SNAPSHOTS / f"{host}.txt"
    if os.environ.get("TOOLI_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


class TestDecisions:
    @pytest.mark.parametrize(
        ("options", "decision"),
        [
            ({}, "ask"),
            ({"annotations": ReadOnly}, "allow"),
            ({"annotations": ReadOnly, "capabilities": ["fs:read"]}, "allow"),
            ({"annotations": ReadOnly, "capabilities": ["fs:read:/srv/x"]}, "allow"),
            ({"annotations": ReadOnly, "capabilities": ["none"]}, "allow"),
            ({"annotations": ReadOnly, "danger_level": "low"}, "allow"),
            ({"annotations": ReadOnly, "capabilities": ["net:read"]}, "ask"),
            ({"annotations": ReadOnly, "capabilities": ["env:read"]}, "ask"),
            ({"annotations": Idempotent, "capabilities": ["fs:read", "fs:write"]}, "ask"),
            ({"annotations": ReadOnly, "capabilities": ["proc:spawn"]}, "ask"),
            ({"annotations": ReadOnly, "capabilities": ["fs:read", "env:write"]}, "ask"),
            ({"annotations": ReadOnly | OpenWorld}, "ask"),
            ({"annotations": ReadOnly, "requires_approval": True}, "ask"),
            ({"annotations": ReadOnly, "human_in_the_loop": True}, "ask"),
            ({"annotations": ReadOnly, "danger_level": "high"}, "ask"),
            ({"annotations": ReadOnly, "danger_level": "medium"}, "ask"),
            ({"annotations": Destructive}, "ask"),
            ({"annotations": ReadOnly, "danger_level": "critical"}, "deny"),
            ({"annotations": ReadOnly, "danger_level": "forbidden"}, "deny"),
            ({"danger_level": "critical", "requires_approval": True}, "deny"),
        ],
    )
    def test_decision_follows_from_the_command_options(
        self, options: dict[str, Any], decision: str
    ) -> None:
        app = Tooli("shop")
        app.command("x", **options)(lambda: None)
        app.command("y")(lambda: None)
        assert decide(collect_app_info(app).tools[0])[0] == decision

    def test_capability_text_stays_inside_a_comment(self) -> None:
        app = Tooli("shop")
        capability = "fs:read:a\n[[rule]]\ntoolName='*'\ndecision='allow'"
        app.command("x", capabilities=[capability])(lambda: None)
        app.command("y")(lambda: None)
        text = render_rules(collect_app_info(app), "gemini")[".gemini/policies/shop.toml"]
        assert all(line == "[[rule]]" for line in text.splitlines() if line.startswith("[["))
        assert 'decision = "allow"' not in text and "\ndecision='allow'" not in text

    def test_unknown_host_is_rejected(self) -> None:
        with pytest.raises(InputError, match=", ".join(RULE_HOSTS)):
            render_rules(collect_app_info(APP), "emacs")


LINES = {
    # command line: the most permissive decision on any host
    "shop find": "allow",
    "shop find x --yes": "allow",
    "shop find-and-delete x": "ask",
    "shop find-and-delete": "ask",
    "shop findx": "ask",
    "shop plain": "ask",
    "shop fetch x": "ask",
    "shop users list": "allow",
    "shop users list --json": "allow",
    "shop users lists": "ask",
    "shop users": "ask",
    "shop": "ask",
    "shop mcp serve": "ask",
    "shop skills add --force": "ask",
    "shop --json find": "ask",
    "shopping find": "ask",
    "shop wipe": "deny",
    "shop wipe --yes": "deny",
    "shop users purge x": "deny",
}
LINES_WITH_FLAGS = [
    "shop --json wipe",
    "shop -q --yes wipe x",
    "shop users --yes purge",
    "shop -q users -q purge x",
]


class Claude:
    """Claude Code: `*` matches anything, a final ` *` also nothing. Deny wins, then ask."""

    def __init__(self, files: dict[str, str]) -> None:
        self.lists = json.loads(files[".claude/settings.json"])["permissions"]

    def __call__(self, line: str) -> str:
        for decision in ("deny", "ask", "allow"):
            for rule in self.lists[decision]:
                if rule.startswith("Bash(") and self.matches(rule[5:-1], line):
                    return decision
        return "ask"

    @staticmethod
    def matches(pattern: str, line: str) -> bool:
        regex = re.escape(pattern).replace(r"\*", ".*")
        if pattern.endswith(" *") and pattern.count("*") == 1:
            regex = re.escape(pattern[:-2]) + "( .*)?"
        return re.fullmatch(regex, line) is not None


class Qwen(Claude):
    """Qwen Code: the rules of Claude Code in another file."""

    def __init__(self, files: dict[str, str]) -> None:
        self.lists = json.loads(files[".qwen/settings.json"])["permissions"]


class OpenCode:
    """OpenCode: `*` matches anything. The last rule that matches wins."""

    def __init__(self, files: dict[str, str]) -> None:
        self.rules = json.loads(files["opencode.json"])["permission"]["bash"]

    def __call__(self, line: str) -> str:
        found = [
            decision
            for pattern, decision in self.rules.items()
            if re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), line)
        ]
        return found[-1] if found else "ask"


class Codex:
    """Codex: a prefix of whole words; the strictest matching rule applies."""

    def __init__(self, files: dict[str, str]) -> None:
        self.rules: list[dict[str, Any]] = []
        exec(
            files[".codex/rules/shop.rules"],
            {"prefix_rule": lambda **rule: self.rules.append(rule)},
        )
        for rule in self.rules:
            assert all(self.matches(rule, line) for line in rule["match"])

    def __call__(self, line: str) -> str:
        found = [rule["decision"] for rule in self.rules if self.matches(rule, line)]
        strictest = next(
            (one for one in ("forbidden", "prompt", "allow") if one in found), "prompt"
        )
        return {"forbidden": "deny", "prompt": "ask", "allow": "allow"}[strictest]

    @staticmethod
    def matches(rule: dict[str, Any], line: str) -> bool:
        return shlex.split(line)[: len(rule["pattern"])] == rule["pattern"]


class Gemini:
    """Gemini: a prefix of whole words in the JSON of the arguments. The highest priority wins."""

    def __init__(self, files: dict[str, str]) -> None:
        import tomllib

        (text,) = files.values()
        self.rules = tomllib.loads(text)["rule"]

    def __call__(self, line: str) -> str:
        arguments = json.dumps({"command": line}, separators=(",", ":"))
        best = max(
            [
                rule
                for rule in self.rules
                if "mcpName" not in rule and self.matches(rule, arguments)
            ],
            key=lambda rule: rule["priority"],
            default={"decision": "ask_user"},
        )
        return {"ask_user": "ask"}.get(best["decision"], best["decision"])

    @staticmethod
    def matches(rule: dict[str, Any], arguments: str) -> bool:
        if "commandPrefix" in rule:
            pattern = re.escape(rule["commandPrefix"]) + r'(?:[\s"]|\\")'
        else:
            pattern = rule["commandRegex"]
            assert not re.search(
                r"\([^)]*[*+?{].*\)[*+?{]", pattern
            )  # Gemini rejects nested quantifiers
        return re.search(f'"command":"{pattern}', arguments) is not None


EVALUATORS = {
    "claude-code": Claude,
    "codex": Codex,
    "gemini": Gemini,
    "opencode": OpenCode,
    "qwen-code": Qwen,
}


@pytest.mark.parametrize("host", EVALUATORS)
class TestShell:
    @pytest.fixture
    def evaluate(self, host: str) -> Any:
        if host == "gemini" and sys.version_info < (3, 11):
            pytest.skip("no tomllib")
        return EVALUATORS[host](render_rules(collect_app_info(APP), host))

    @pytest.mark.parametrize(("line", "decision"), LINES.items())
    def test_rules_decide_on_command_lines(self, evaluate: Any, line: str, decision: str) -> None:
        assert evaluate(line) == decision

    @pytest.mark.parametrize("line", LINES_WITH_FLAGS)
    def test_flags_before_the_command_do_not_bypass_rules(
        self, evaluate: Any, host: str, line: str
    ) -> None:
        assert evaluate(line) == ("ask" if host == "codex" else "deny")

    def test_single_command_app_gets_no_prefix_rule(self, host: str) -> None:
        app = Tooli("shop")
        app.command("find", annotations=ReadOnly)(lambda: None)
        text = "".join(render_rules(collect_app_info(app), host).values())
        assert "shop *" not in text and 'commandPrefix = "shop"' not in text
        assert '["shop"]' not in text and '"bash"' not in text


class TestTools:
    def test_claude_settings_list_each_tool(self) -> None:
        lists = json.loads(
            render_rules(collect_app_info(APP), "claude-code")[".claude/settings.json"]
        )["permissions"]
        tools = {
            decision: [one for one in lists[decision] if one.startswith("mcp__")]
            for decision in lists
        }
        assert tools == {
            "allow": ["mcp__shop__find", "mcp__shop__users_list"],
            "ask": ["mcp__shop__find_and_delete", "mcp__shop__plain", "mcp__shop__fetch"],
            "deny": ["mcp__shop__wipe", "mcp__shop__users_purge"],
        }

    def test_copilot_script_passes_the_rules_as_flags(self) -> None:
        ((path, text),) = render_rules(collect_app_info(APP), "copilot").items()
        assert path == ".github/copilot/shop.sh"
        assert "--allow-tool='shop(find)'" in text and "--deny-tool='shop(wipe)'" in text
        assert "--deny-tool='shell(shop users purge:*)'" in text
        assert "--allow-tool='shell" not in text and "shop(plain)" not in text
        assert subprocess.run(["sh", "-n"], input=text, text=True).returncode == 0

    def test_opencode_settings_list_each_tool(self) -> None:
        rules = json.loads(render_rules(collect_app_info(APP), "opencode")["opencode.json"])
        tools = {name: rule for name, rule in rules["permission"].items() if name != "bash"}
        assert tools["shop_find"] == "allow" and tools["shop_plain"] == "ask"
        assert tools["shop_users_purge"] == "deny"

    def test_cursor_settings_list_each_tool(self) -> None:
        lists = json.loads(render_rules(collect_app_info(APP), "cursor")[".cursor/cli.json"])[
            "permissions"
        ]
        assert lists["allow"] == ["Mcp(shop:find)", "Mcp(shop:users_list)"]
        assert "Mcp(shop:wipe)" in lists["deny"]
        assert "Shell(shop:wipe)" in lists["deny"] and "Shell(shop:-* wipe *)" in lists["deny"]
        assert "Shell(shop:users -* purge *)" in lists["deny"]

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="no tomllib")
    def test_codex_config_has_an_approval_mode_for_each_tool(self) -> None:
        import tomllib

        config = tomllib.loads(render_rules(collect_app_info(APP), "codex")[".codex/config.toml"])
        server = config["mcp_servers"]["shop"]
        assert server["disabled_tools"] == ["wipe", "users_purge"]
        modes = {name: tool["approval_mode"] for name, tool in server["tools"].items()}
        assert modes["find"] == "approve" and modes["plain"] == "prompt" and "wipe" not in modes

    @pytest.mark.parametrize("name", ["my shop", "läden", "a*b", "x) y", 'q"q'])
    @pytest.mark.parametrize("host", RULE_HOSTS)
    def test_unmatchable_app_name_gets_no_shell_rules(self, host: str, name: str) -> None:
        app = Tooli(name)
        app.command("find", annotations=ReadOnly)(lambda: None)
        app.command("wipe", danger_level="critical")(lambda: None)
        found = render_rules(collect_app_info(app), host)
        text = "".join(found.values())
        assert "Bash(" not in text and "Shell(" not in text and "prefix_rule" not in text
        assert "commandPrefix" not in text and "shell(" not in text and '"bash"' not in text
        for path, text in found.items():
            if path.endswith(".json"):
                json.loads(text)
            elif path.endswith(".toml") and sys.version_info >= (3, 11):
                import tomllib

                tomllib.loads(text)
