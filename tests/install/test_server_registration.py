"""The app's MCP server in the settings of agents."""

from __future__ import annotations

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tooli import Tooli
from tooli.core.agent_hosts import SERVER_HOSTS, server_settings
from tooli.errors import ConflictError, FormatError, InputError
from tooli.execution.interpreter import module_argv
from tooli.install.agent_install import (
    DEFAULT_SERVER_AGENTS,
    add_server,
    list_servers,
    remove_server,
    server_config_paths,
)
from tooli.install.server_registration import program_argv, server_argv

PROJECT = {agent: server_settings(agent).project for agent in SERVER_HOSTS}
IN_PROJECTS = [agent for agent, path in PROJECT.items() if path]
SETTINGS = {
    "claude-code": b'{\n  "mcpServers": {\n    "other": {"command": "x"}\n  }\n}\n',
    "codex": b'# mine\nmodel = "x"\r\n\r\n[tools]\r\nweb = true',
    "cursor": b'\xef\xbb\xbf{"mcpServers": {}}',
    "gemini": b'{\r\n\t// my theme\r\n\t"theme": "dark"\r\n}\r\n',
    "copilot": b'{"mcpServers":{}}',
    "kimi-code": b'{\n  "mcpServers": {"a": {"url": "https://a.example"}}\n}',
    "opencode": b'{\n  // mine\n  "permission": {"bash": "ask"},\n}\n',
    "qwen-code": b'{"ui": {"theme": "dark"}}\n',
    "vscode": b'{\n  "inputs": [],\n  "servers": {\n    // mine\n    "a": {},\n  },\n}\n',
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home, project = tmp_path / "home dir", tmp_path / "a project"
    home.mkdir()
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for name in (
        *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"),
        *("COPILOT_HOME", "KIMI_CODE_HOME", "CLINE_DATA_DIR"),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOOLI_STATE_DIR", str(home / "state"))
    monkeypatch.chdir(project)
    return home


def app(name: str = "shop") -> Tooli:
    new_app = Tooli(name)
    new_app.command("a")(lambda: None)
    new_app.command("b")(lambda: None)
    return new_app


def add(
    name: str = "shop", *agents: str, user: bool = False, command: str | None = None, **more: bool
):
    return add_server(app(name), agents, user, command or name, more.pop("force", False), **more)


def remove(
    name: str = "shop", *agents: str, user: bool = False, command: str | None = None, **more: bool
):
    return remove_server(app(name), agents, user, command or name, more.pop("force", False), **more)


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in found
        if "state" not in path.parts
    }


class TestAddAndRemove:
    def test_remove_deletes_the_files_that_add_created(self) -> None:
        assert [row["action"] for row in add()] == ["created"] * 5
        written = files(Path())
        assert [row["action"] for row in add()] == ["current"] * 5
        assert files(Path()) == written
        removed = [row["agent"] for row in remove() if row["action"] == "removed"]
        assert tuple(removed) == DEFAULT_SERVER_AGENTS
        assert [path.name for path in Path().iterdir()] == [".git"]
        assert {row["action"] for row in remove()} == {"absent"}

    def test_existing_content_stays_byte_for_byte(self) -> None:
        for agent, text in SETTINGS.items():
            Path(PROJECT[agent]).parent.mkdir(exist_ok=True)
            Path(PROJECT[agent]).write_bytes(text)
        assert set(SETTINGS) == set(IN_PROJECTS)
        before = files(Path())
        assert {row["action"] for row in add("shop", *IN_PROJECTS)} == {"updated"}
        after = files(Path())
        assert all(b"shop" in text for text in after.values())
        assert b"// my theme" in after[".gemini/settings.json"]
        assert b"// mine" in after[".vscode/mcp.json"]
        add("shop", *IN_PROJECTS)
        assert files(Path()) == after
        remove()
        assert files(Path()) == before

    def test_add_writes_the_settings_of_every_agent(self) -> None:
        add(command="uvx 'my shop'")
        entry = {"command": "uvx", "args": ["my shop", "mcp", "serve", "--transport", "stdio"]}
        typed = {"type": "stdio", **entry}
        for agent, container in (("claude-code", "mcpServers"), ("cursor", "mcpServers")):
            assert json.loads(Path(PROJECT[agent]).read_text()) == {container: {"shop": typed}}
        assert json.loads(Path(".vscode/mcp.json").read_text()) == {"servers": {"shop": typed}}
        assert json.loads(Path(".gemini/settings.json").read_text())["mcpServers"] == {
            "shop": entry
        }
        assert Path(".codex/config.toml").read_text() == (
            '[mcp_servers.shop]\ncommand = "uvx"\n'
            'args = ["my shop", "mcp", "serve", "--transport", "stdio"]\n'
        )

    def test_user_scope_writes_to_the_home_folder(self, home: Path) -> None:
        before = files(home)
        add(user=True)
        code = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
        where = code.get(sys.platform, ".config")
        assert sorted(files(home)) == sorted(
            [
                ".claude.json",
                ".codex/config.toml",
                ".cursor/mcp.json",
                ".gemini/settings.json",
                f"{where}/Code/User/mcp.json",
            ]
        )
        remove(user=True)
        assert files(home) == before
        assert {path.name for path in home.iterdir()} <= {"state", where.partition("/")[0]}

    def test_environment_variables_set_the_config_folders(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
            monkeypatch.setenv(name, str(home / name))
        add("shop", "claude-code", "codex", "gemini", user=True)
        assert sorted(files(home)) == [
            "CLAUDE_CONFIG_DIR/.claude.json",
            "CODEX_HOME/config.toml",
            "GEMINI_CLI_HOME/.gemini/settings.json",
        ]

    @pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
    def test_two_apps_are_removed_in_any_order(self, order: tuple[str, str]) -> None:
        add("one")
        add("two")
        remove(order[0])
        assert {row["state"] for row in list_servers(app("x")) if row["scope"] == "project"} == {
            "absent"
        }
        assert json.loads(Path(".mcp.json").read_text())["mcpServers"].keys() == {order[1]}
        remove(order[1])
        assert [path.name for path in Path().iterdir()] == [".git"]

    def test_entry_is_removed_from_a_reformatted_file(self) -> None:
        Path(".mcp.json").write_text('{"a": 1}')
        add("shop", "claude-code")
        Path(".mcp.json").write_text(json.dumps(json.loads(Path(".mcp.json").read_text())))
        remove("shop", "claude-code")
        assert json.loads(Path(".mcp.json").read_text()) == {"a": 1}

    def test_remove_keeps_an_existing_empty_file(self) -> None:
        Path(".mcp.json").write_text("")
        add("shop", "claude-code")
        remove("shop", "claude-code")
        assert Path(".mcp.json").read_bytes() == b""

    def test_app_name_becomes_an_ascii_server_name(self) -> None:
        add("Läden & Söhne", "codex", "cursor", command="x")
        assert json.loads(Path(".cursor/mcp.json").read_text())["mcpServers"].keys() == {
            "l-den-s-hne"
        }
        remove("Läden & Söhne", command="x")
        assert [path.name for path in Path().iterdir()] == [".git"]


USER_SETTINGS = {
    "yaml": b"# mine\nGOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\nother: 1\n",
    "toml": b'model = "x"\n',
    "json": b'{"mcpServers": {"other": {"command": "x"}}, "mcp": {}, "servers": {}}',
}


class TestEveryAgent:
    """Add and remove for the user, in files that exist and in files that do not."""

    @pytest.mark.parametrize("exists", [True, False], ids=["existing", "new"])
    @pytest.mark.parametrize("agent", SERVER_HOSTS)
    def test_remove_restores_the_settings_of_the_user(
        self, agent: str, exists: bool, home: Path
    ) -> None:
        ((path, _, _),) = [
            (Path(at.path), at.agent, at.root) for at in server_config_paths((agent,), user=True)
        ]
        if exists:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(USER_SETTINGS[server_settings(agent).file_format])
        before = files(home)
        (row,) = add("shop", agent, user=True)
        assert row["action"] == ("updated" if exists else "created")
        assert b"shop" in path.read_bytes()
        assert [row["state"] for row in add("shop", agent, user=True)] == ["current"]
        states = {
            row["agent"]: row["state"] for row in list_servers(app()) if row["scope"] == "user"
        }
        assert [name for name, state in states.items() if state != "absent"] == [agent]
        add("shop", agent, user=True, command="other")
        remove("shop", agent, user=True)
        assert files(home) == before
        assert path.parent.exists() == (exists or path.parent == home)

    @pytest.mark.parametrize(
        ("agent", "entry"),
        [
            ("opencode", {"type": "local", "command": ["uvx", "shop"], "enabled": True}),
            ("copilot", {"type": "local", "command": "uvx", "args": ["shop"], "tools": ["*"]}),
            ("kimi-code", {"command": "uvx", "args": ["shop"]}),
        ],
    )
    def test_entry_has_the_form_that_the_agent_reads(self, agent: str, entry: Any) -> None:
        add("shop", agent, command="uvx shop")
        serve = ["mcp", "serve", "--transport", "stdio"]
        key = "command" if agent == "opencode" else "args"
        document = json.loads(Path(PROJECT[agent]).read_text())
        assert document == {
            server_settings(agent).container: {"shop": {**entry, key: [*entry[key], *serve]}}
        }

    def test_goose_gets_an_extension(self, home: Path) -> None:
        (row,) = add("shop", "goose", user=True, command="uvx shop")
        assert yaml.safe_load(Path(row["path"]).read_text()) == {
            "extensions": {
                "shop": {
                    "type": "stdio",
                    "name": "shop",
                    "enabled": True,
                    "cmd": "uvx",
                    "args": ["shop", "mcp", "serve", "--transport", "stdio"],
                    "timeout": 300,
                }
            }
        }


class TestStates:
    @pytest.mark.parametrize("agent", IN_PROJECTS)
    def test_stale_entry_is_updated(self, agent: str) -> None:
        add("shop", agent, command="older")
        (row,) = add("shop", agent)
        assert (row["state"], row["action"]) == ("stale", "updated")
        assert "older" not in Path(PROJECT[agent]).read_text()
        remove("shop", agent)
        assert [path.name for path in Path().iterdir()] == [".git"]

    @pytest.mark.parametrize("agent", IN_PROJECTS)
    def test_edited_entry_is_a_conflict(self, agent: str) -> None:
        add("shop", agent)
        path = Path(PROJECT[agent])
        edited = path.read_text().replace('"shop"', '"mine"', 2).replace('"mine":', '"shop":')
        path.write_text(edited)
        for operation in (add, remove):
            with pytest.raises(ConflictError) as raised:
                operation("shop", agent)
            (conflict,) = raised.value.details["conflicts"]  # type: ignore[index,misc]
            assert "mine" in conflict["diff"]
        assert path.read_text() == edited
        (row,) = add("shop", agent, force=True)
        assert Path(row["kept"]).read_text() == edited
        assert add("shop", agent)[0]["state"] == "current"

    def test_one_conflict_prevents_all_changes(self) -> None:
        Path(".mcp.json").write_text('{"mcpServers": {"shop": {"command": "theirs"}}}')
        with pytest.raises(ConflictError):
            add()
        assert [path.name for path in Path().iterdir() if path.name != ".git"] == [".mcp.json"]

    def test_entry_is_recognized_without_the_install_record(self, home: Path) -> None:
        add("shop", "cursor")
        (home / "state" / "installed.json").unlink()
        assert add("shop", "cursor")[0]["state"] == "current"
        (home / "state" / "installed.json").unlink()
        assert remove("shop", "cursor")[0]["action"] == "removed"
        assert json.loads(Path(".cursor/mcp.json").read_text()) == {"mcpServers": {}}

    def test_unwritable_state_folder_does_not_prevent_changes(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home / "file").write_text("")
        monkeypatch.setenv("TOOLI_STATE_DIR", str(home / "file" / "state"))
        assert add("shop", "cursor")[0]["action"] == "created"
        assert remove("shop", "cursor")[0]["action"] == "removed"

    def test_dry_run_returns_diffs_and_writes_nothing(self) -> None:
        rows = add(dry=True)
        assert all("shop" in row["diff"] and "+++ b/" in row["diff"] for row in rows)
        assert [path.name for path in Path().iterdir()] == [".git"]

    def test_linked_settings_files_are_updated_once(self, home: Path) -> None:
        Path(".cursor").mkdir()
        Path(".mcp.json").write_text("{}\n")
        Path(".cursor/mcp.json").symlink_to("../.mcp.json")
        add("shop", "claude-code", "cursor")
        assert Path(".cursor/mcp.json").is_symlink()
        assert [row["state"] for row in add("shop", "claude-code", "cursor")] == ["current"] * 2
        remove("shop", "claude-code", "cursor")
        assert Path(".mcp.json").read_text() == "{}\n"


class TestErrors:
    @pytest.mark.parametrize(
        ("agent", "text", "message"),
        [
            ("claude-code", b"{\n  nope\n}", "line 2"),
            ("codex", b"a = 1\nb = \n", "line 2"),
            ("cursor", b"[]", "expected a JSON object"),
            ("vscode", b'{"servers": 1}', "not an object"),
            ("gemini", b"\xff\xfe{}", "UTF-8"),
            ("codex", b"mcp_servers = 1\n", "not a table"),
        ],
    )
    def test_invalid_settings_file_is_not_changed(
        self, agent: str, text: bytes, message: str
    ) -> None:
        path = Path(PROJECT[agent])
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)
        for operation in (add, remove):
            with pytest.raises(FormatError, match=message) as raised:
                operation()
            assert str(path) in raised.value.message
        assert files(Path()) == {str(path): text}

    def test_list_shows_damaged_files(self) -> None:
        Path(".mcp.json").write_text("{")
        assert list_servers(app())[0]["state"] == "damaged"

    @pytest.mark.parametrize("command", ["", "'open"])
    def test_invalid_command_is_rejected(self, command: str) -> None:
        with pytest.raises(InputError):
            server_argv("shop", command)


class TestProgram:
    @pytest.fixture(autouse=True)
    def no_main_spec(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)

    def program(self, folder: Path, name: str = "shop") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return path

    def test_program_on_the_path_is_registered_by_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = self.program(tmp_path / "bin")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setattr(sys, "argv", [str(path)])
        assert program_argv("shop") == ("shop",)

    def test_shadowed_program_is_registered_by_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.program(tmp_path / "bin")
        mine = self.program(tmp_path / "elsewhere")
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setattr(sys, "argv", [str(mine)])
        assert program_argv("shop") == (str(mine),)

    def test_program_in_a_virtual_environment_is_registered_by_path(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = self.program(tmp_path / "venv" / "bin")
        monkeypatch.setenv("PATH", str(path.parent))
        monkeypatch.setattr(sys, "argv", [str(path)])
        monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
        assert program_argv("shop") == (str(path),)

    def test_script_is_registered_with_the_interpreter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = tmp_path / "my app.py"
        script.write_text("")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["my app.py"])
        assert program_argv("shop") == (sys.executable, str(script))

    def test_module_is_registered_with_the_interpreter(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spec = ModuleSpec("shop.cli.__main__", None, origin="/nowhere/shop/cli/__main__.py")
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
        assert program_argv("shop") == module_argv("shop.cli")
        monkeypatch.setattr(sys, "path", ["/nowhere", "/usr"])
        assert program_argv("shop") == module_argv("shop.cli", "/nowhere")
        monkeypatch.setattr(sys, "path", ["/nowhere", "/usr", "/nowhere"])
        assert program_argv("shop") == module_argv("shop.cli")

    def test_archive_is_started_with_the_interpreter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        archive = tmp_path / "shop.pyz"
        archive.touch()
        spec = ModuleSpec("__main__", None, origin=f"{archive}/__main__.py")
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
        monkeypatch.setattr(sys, "argv", [str(archive)])
        assert program_argv("shop") == (sys.executable, str(archive))

    def test_unknown_program_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", ["-c"])
        monkeypatch.setenv("PATH", "")
        with pytest.raises(InputError) as raised:
            program_argv("shop")
        assert raised.value.field == "command"
