"""Permission rules in the files of agents, beside servers and the settings of a person."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.core.agent_hosts import AGENT_HOSTS, RULE_HOSTS
from tooli.describe.sections import collect_app_info
from tooli.errors import ConflictError, FormatError
from tooli.export.permissions import is_settings_file, render_rules
from tooli.install.agent_install import add_server, list_servers, remove_server
from tooli.install.rule_files import write_rules
from tooli.install.rule_formats import JsonRules, TomlRules, prune

SETTINGS = {
    ".claude/settings.json": '{\n  // mine\n  "permissions": {"allow": ["Read"]},\n}\n',
    ".codex/config.toml": '# mine\nmodel = "x"\n\n[tools]\nweb = true  # last\n',
    ".cursor/cli.json": '{"permissions":{"allow":["Shell(ls)"],"deny":[]}}',
    ".qwen/settings.json": '{\r\n\t"permissions": {\r\n\t\t"deny": ["x"]\r\n\t}\r\n}\r\n',
    "opencode.json": '{\n  "permission": {\n    "bash": {"rm *": "ask"}\n  }\n}',
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(project)
    return project


def make_app(*more: str, name: str = "shop") -> Tooli:
    app = Tooli(name)
    app.command("find", annotations=ReadOnly)(lambda: None)
    app.command("add")(lambda: None)
    app.command("wipe", danger_level="critical")(lambda: None)
    for command in more:
        app.command(command, annotations=ReadOnly)(lambda: None)
    return app


def rules(host: str, app: Tooli | None = None, **options: bool) -> list[dict[str, str]]:
    folder = str(Path().resolve())
    options = {"force": False, "dry_run": False, **options}
    return write_rules(collect_app_info(app or make_app()), host, folder, **options)


def server(host: str, app: Tooli | None = None, *, remove: bool = False) -> list[dict[str, str]]:
    change = remove_server if remove else add_server
    return change(app or make_app(), [host], False, "uvx shop", False)


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def contents() -> dict[str, Any]:
    """Return the settings without empty lists and objects, which may stay."""
    formats = {".json": JsonRules(), ".toml": TomlRules()}
    return {
        path: prune(formats[Path(path).suffix].load(text.decode()))
        for path, text in files().items()
    }


def write_settings(host: str) -> None:
    for path in render_rules(collect_app_info(make_app()), host):
        if is_settings_file(path):
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_bytes(SETTINGS[path].encode())


HOSTS_WITH_SERVERS = [name for name in RULE_HOSTS if AGENT_HOSTS[name].servers]
ORDERS = [
    order
    for order in itertools.permutations(("+server", "+rules", "-server", "-rules"))
    if order.index("+server") < order.index("-server")
    and order.index("+rules") < order.index("-rules")
]


class TestTwoWriters:
    @pytest.mark.parametrize("exists", [True, False], ids=["existing", "new"])
    @pytest.mark.parametrize("host", HOSTS_WITH_SERVERS)
    @pytest.mark.parametrize("order", ORDERS, ids="".join)
    def test_server_and_rules_are_never_edited_by_hand(
        self, host: str, exists: bool, order: tuple[str, ...]
    ) -> None:
        if exists:
            write_settings(host)
        before, content = files(), contents()
        for operation in order:
            change = server if operation.endswith("server") else rules
            found = change(host, remove=operation.startswith("-"))
            assert "edited" not in {row["state"] for row in found}
            assert rules(host, dry_run=True) and list_servers(make_app())
        assert contents() == content
        is_last_removed_first = order[1].strip("+") == order[2].strip("-")
        is_replaced = host == "codex" and order[0] == "+rules"  # an entry that the rules created
        if is_last_removed_first and not is_replaced:
            assert files() == before

    @pytest.mark.parametrize("host", RULE_HOSTS)
    def test_rules_are_added_and_removed_byte_for_byte(self, host: str) -> None:
        write_settings(host)
        before = files()
        assert {row["state"] for row in rules(host)} == {"absent"}
        written = files()
        assert all(b"shop" in text for text in written.values())
        assert {row["action"] for row in rules(host)} == {"current"}
        assert files() == written
        assert {row["action"] for row in rules(host, remove=True)} == {"removed"}
        assert files() == before
        assert {row["action"] for row in rules(host, remove=True)} == {"absent"}

    @pytest.mark.parametrize("host", RULE_HOSTS)
    def test_rules_of_a_changed_app_replace_the_old_ones(self, host: str) -> None:
        write_settings(host)
        before = files()
        rules(host, make_app("look"))
        assert any(b"look" in text for text in files().values())
        assert {row["state"] for row in rules(host)} <= {"stale", "current"}
        assert not any(b"look" in text for text in files().values())
        rules(host, remove=True)
        assert files() == before

    @pytest.mark.parametrize("host", HOSTS_WITH_SERVERS)
    def test_two_apps_share_a_file(self, host: str) -> None:
        write_settings(host)
        before = contents()
        first, second = make_app(), make_app(name="store")
        for app in (first, second):
            rules(host, app)
        rules(host, first, remove=True)
        assert any(b"store" in text for text in files().values())
        assert not any(b"shop" in text for text in files().values())
        rules(host, second, remove=True)
        assert contents() == before

    def test_server_of_codex_keeps_its_rules_when_it_is_updated(self) -> None:
        rules("codex")
        text = Path(".codex/config.toml").read_text()
        assert 'command = "shop"' in text
        (row,) = server("codex")
        assert (row["state"], row["action"]) == ("stale", "updated")
        text = Path(".codex/config.toml").read_text()
        assert 'command = "uvx"' in text and 'disabled_tools = ["wipe"]' in text
        assert "approval_mode" in text
        assert {row["state"] for row in rules("codex")} == {"current"}


class TestPerson:
    def test_rules_of_a_person_stay_and_win(self) -> None:
        mine: dict[str, Any] = {"permission": {"shop_find": "ask", "bash": {"shop add": "allow"}}}
        Path("opencode.json").write_text(json.dumps(mine))
        rules("opencode")
        found = json.loads(Path("opencode.json").read_text())["permission"]
        assert found["shop_find"] == "ask" and found["bash"]["shop add"] == "allow"
        assert found["shop_wipe"] == "deny" and found["bash"]["shop wipe *"] == "deny"
        rules("opencode", remove=True)
        assert json.loads(Path("opencode.json").read_text()) == mine

    def test_rule_that_a_person_changed_stays_when_rules_are_removed(self) -> None:
        rules("opencode")
        text = Path("opencode.json").read_text()
        changed = text.replace('"shop_find": "allow"', '"shop_find": "ask"')
        assert changed != text
        Path("opencode.json").write_text(changed.replace("{", '{\n  "share": "disabled",', 1))
        rules("opencode", remove=True)
        left = json.loads(Path("opencode.json").read_text())
        assert left == {"share": "disabled", "permission": {"shop_find": "ask"}}

    def test_setting_of_another_type_is_refused(self) -> None:
        Path("opencode.json").write_text('{"permission": "allow"}')
        with pytest.raises(FormatError, match="'permission' is not an object"):
            rules("opencode")
        assert Path("opencode.json").read_text() == '{"permission": "allow"}'

    def test_own_file_that_a_person_edited_is_a_conflict(self) -> None:
        rules("copilot")
        path = Path(".github/copilot/shop.sh")
        path.write_text(path.read_text() + "# mine\n")
        for remove in (False, True):
            with pytest.raises(ConflictError):
                rules("copilot", remove=remove)
        assert path.read_text().endswith("# mine\n")
