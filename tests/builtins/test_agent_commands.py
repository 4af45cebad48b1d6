"""`mcp`, `api` and `skills`; tests/install/test_agent_install.py tests the installation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from openapi_spec_validator import validate

from tooli import Tooli
from tooli.builtins.agent_commands import ServerAgents, SkillAgents
from tooli.core.agent_hosts import SERVER_HOSTS, SKILL_HOSTS
from tooli.mcp.deferred_tools import DeferredTools
from tooli.testing import invoke


class TestExports:
    def test_mcp_export_prints_the_definitions(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "export")
        assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == [
            "find_items",
            "users_create",
        ]
        assert done.exit_code == 0

    def test_json_adds_the_envelope(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "export", "--json")
        assert done.envelope["meta"]["tool"] == "shop.mcp.export"
        assert len(done.result["tools"]) == 2

    def test_mcp_export_with_deferred_loading(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "export", "--defer-loading", "--json")
        assert [tool["name"] for tool in done.result["tools"]] == ["search_tools", "run_tool"]

    def test_openapi_document_is_valid(self, app: Tooli) -> None:
        document = json.loads(invoke(app, "api", "export-openapi").stdout)
        validate(document)
        assert (document["info"]["title"], document["info"]["version"]) == ("shop", "2.0")
        assert "/tools/users/create" in document["paths"]


class TestServing:
    def test_unknown_transport(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "serve", "--transport", "carrier-pigeon")
        assert done.exit_code == 2
        assert "stdio" in done.stderr and "sse" in done.stderr

    @pytest.mark.parametrize("options", [("--port", "abc"), ("--transprt", "http")])
    def test_invalid_option_is_an_envelope_with_json(
        self, app: Tooli, options: tuple[str, str]
    ) -> None:
        done = invoke(app, "mcp", "serve", *options, "--json")
        assert (done.exit_code, done.envelope["meta"]["tool"]) == (2, "shop.mcp.serve")

    def test_public_address_needs_a_token(self, app: Tooli) -> None:
        done = invoke(app, "api", "serve", "--host", "0.0.0.0", "--json")
        assert (done.exit_code, done.envelope["error"]["code"]) == (2, "E1020")

    def test_mcp_serve_uses_the_defaults_of_the_app(self, monkeypatch: pytest.MonkeyPatch) -> None:
        served: list[Any] = []
        app = Tooli("shop", mcp_transport="sse", defer_loading=True)
        app.command("a")(lambda: None)
        app.command("b")(lambda: None)
        monkeypatch.setattr(
            "tooli.http.http_server.serve_http", lambda *a, **k: served.append((a[1:], k))
        )
        assert invoke(app, "mcp", "serve", "--port", "0").exit_code == 0
        ((address, settings),) = served
        assert (address, settings["display_path"], settings["tools"]) == (
            ("127.0.0.1", 0),
            "/sse",
            False,
        )
        assert isinstance(settings["mounts"][""].server.service.listing, DeferredTools)

    @pytest.mark.parametrize("command", [("api", "serve"), ("mcp", "serve", "--transport", "http")])
    def test_flags_become_settings(
        self, app: Tooli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
    ) -> None:
        served: list[Any] = []
        monkeypatch.setattr(
            "tooli.http.http_server.serve_http", lambda *a, **k: served.append((a[1:], k))
        )
        flags = "--port 9 --workers 3 --limit 7 --root-path /shop --tls-cert c --tls-key k"
        names = "--allow-host a.example --allow-host b.example --allow-origin https://c.example"
        done = invoke(app, *command, *flags.split(), *names.split(), "--json-response", "--reload")
        assert done.exit_code == 0, done.stderr
        ((address, settings),) = served
        assert address == ("127.0.0.1", 9)
        assert settings["allowed_hosts"] == ["a.example", "b.example"]
        assert settings["allowed_origins"][-1] == "https://c.example"
        assert [settings[name] for name in ("workers", "limit", "root_path")] == [3, 7, "/shop"]
        assert (settings["tls_cert"], settings["tls_key"]) == ("c", "k")
        assert settings["json_response"] and settings["reload"]
        if command[0] == "mcp":
            assert not settings["mounts"]["/mcp"].server.has_sessions
        else:
            assert settings["mcp"]

    def test_api_serve_without_mcp(self, app: Tooli, monkeypatch: pytest.MonkeyPatch) -> None:
        served: list[Any] = []
        monkeypatch.setattr("tooli.http.http_server.serve_http", lambda *a, **k: served.append(k))
        assert invoke(app, "api", "serve", "--no-mcp").exit_code == 0
        assert served[0]["mcp"] is False

    def test_sse_needs_one_worker(self, app: Tooli) -> None:
        done = invoke(app, "mcp", "serve", "--transport", "sse", "--workers", "2")
        assert done.exit_code == 2
        assert "The transport sse needs one worker" in done.stderr


APP = Path(__file__).parents[2] / "examples" / "file_tools" / "app.py"


def test_options_accept_every_agent_of_the_table() -> None:
    def names(annotated: Any) -> tuple[str, ...]:
        return get_args(get_args(get_args(annotated)[0])[0])

    assert names(SkillAgents) == SKILL_HOSTS
    assert names(ServerAgents) == SERVER_HOSTS


def test_agent_without_settings_in_projects_needs_the_user_scope(app: Tooli) -> None:
    args = ("mcp", "add", "--agent", "windsurf", "--agent", "codex", "--command", "shop", "--yes")
    failed = invoke(app, *args, "--json").envelope["error"]
    assert (failed["code"], failed["field"]) == ("E1000", "user")
    assert "Windsurf" in failed["message"] and "--user" in failed["suggestion"]["fix"]


def test_mcp_export_does_not_import_the_install_package() -> None:
    code = (
        "import sys, runpy; sys.argv = ['app.py', 'mcp', 'export']\n"
        f"try: runpy.run_path({str(APP)!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "assert not [name for name in sys.modules if name.startswith('tooli.install')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["skills", "add", "--agent", "codex", "--agents-md"],
        ["mcp", "add", "--agent", "codex", "--command", "shop"],
    ],
    ids=lambda args: args[0],
)
def test_dry_run_shows_the_diff_and_writes_nothing(
    app: Tooli, args: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = invoke(app, *args, "--dry-run", "--json").result
    assert {row["action"] for row in rows} == {"created"}
    assert all(row["diff"].startswith("--- /dev/null") for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_unknown_agent(app: Tooli) -> None:
    assert invoke(app, "mcp", "add", "--agent", "nobody", "--json").error["code"] == "E1003"
