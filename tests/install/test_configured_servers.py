"""The MCP servers in the settings of agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tooli.install.configured_servers import ConfiguredServer, read_configured_servers


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    return project


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def find(name: str) -> ConfiguredServer:
    return next(server for server in read_configured_servers()[0] if server.name == name)


def test_servers_of_several_agents(project: Path) -> None:
    home = project.parent / "home"
    entry = {"command": "npx", "args": ["-y", "server"], "env": {"TOKEN": "hunter2"}}
    write(project / ".mcp.json", json.dumps({"mcpServers": {"one": entry}}))
    write(project / "opencode.json", json.dumps({"mcp": {"two": {"command": ["uvx", "x"]}}}))
    write(
        home / ".codex" / "config.toml",
        '[mcp_servers.three]\nurl = "https://h.example/mcp"\nhttp_headers = {Auth = "hunter2"}\n',
    )
    write(
        home / ".config" / "goose" / "config.yaml",
        'extensions:\n  "four": {"cmd": "goose", "args": ["a"], "envs": {"K": "v"}}\n',
    )
    write(home / ".gemini" / "settings.json", '{"mcpServers": {"five": {"httpUrl": "http://h"}}}')
    servers, problems = read_configured_servers()
    assert problems == [] and "hunter2" not in repr(servers)
    assert find("one") == ConfiguredServer(
        "one", "claude-code", "project", ".mcp.json", ("npx", "-y", "server"), "", ("TOKEN",)
    )
    assert (find("two").agent, find("two").command) == ("opencode", ("uvx", "x"))
    three = find("three")
    assert (three.url, three.headers, three.scope) == ("https://h.example/mcp", ("Auth",), "user")
    assert (find("four").command, find("four").variables) == (("goose", "a"), ("K",))
    assert find("five").url == "http://h"


def test_settings_that_cannot_be_read(project: Path) -> None:
    write(project / ".mcp.json", '{"mcpServers": {')
    write(project / ".cursor" / "mcp.json", '{"mcpServers": {"a": 1, "b": {}, "c": {"args": []}}}')
    (project / ".gemini").mkdir()
    (project / ".gemini" / "settings.json").write_bytes(b"\xff")
    (project / ".vscode" / "mcp.json").mkdir(parents=True)
    servers, problems = read_configured_servers()
    assert servers == []
    text = "\n".join(problems)
    assert all(name in text for name in (".mcp.json: line 1", "settings.json", "mcp.json is a"))


def test_large_settings(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project / ".mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')
    monkeypatch.setattr("tooli.install.configured_servers.MAX_SETTINGS_BYTES", 5)
    assert read_configured_servers() == ([], [])
