"""`search-tools`, `detect-context`, `doctor` and `config show`."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from tooli import Tooli
from tooli.core.output_limits import MEASURED_ON, OUTPUT_LIMITS
from tooli.core.tool import Tool
from tooli.providers import Provider, described_tool
from tooli.testing import invoke


class TestSearch:
    def test_best_match_first(self, app: Tooli) -> None:
        found = invoke(app, "search-tools", "make a user", "--json").result
        assert found[0]["name"] == "users.create"
        assert found[0]["signature"].startswith("users.create(name: str)")

    def test_with_schema_adds_a_valid_input_schema(self, app: Tooli) -> None:
        found = invoke(app, "search-tools", "items", "--with-schema", "--json").result
        jsonschema.Draft202012Validator.check_schema(found[0]["input_schema"])

    def test_no_match(self, app: Tooli) -> None:
        done = invoke(app, "search-tools", "zzzz", "--json")
        assert (done.exit_code, done.result) == (0, [])


class Catalogue(Provider):
    """A provider whose list works although its source does not."""

    name = "books"

    def __init__(self, problem: str = "", broken: str = "") -> None:
        self.problem, self.broken = problem, broken

    def tools(self) -> list[Tool]:
        if self.problem == "list":
            raise OSError("no books")
        return [described_tool("read", lambda arguments: arguments)]

    @property
    def problems(self) -> dict[str, str]:
        return {self.broken: "it is torn"} if self.broken else {}

    def check(self) -> None:
        if self.problem == "source":
            raise ConnectionError("nobody answers")


class TestDoctor:
    def test_app_without_providers(self, app: Tooli) -> None:
        found = invoke(app, "doctor", "--json").result
        assert (found["ok"], found["problems"], found["providers"]) == (True, [], [])
        assert found["tools"] == len(list(app.catalog))

    def test_providers_that_fail(self) -> None:
        app, inner = Tooli("app"), Tooli("inner")
        app.command("own")(lambda: 1)
        for name, provider in {
            "good": Catalogue(),
            "empty": Catalogue("list"),
            "gone": Catalogue("source"),
            "torn": Catalogue(broken="page"),
        }.items():
            (inner if name == "gone" else app).add_provider(provider, namespace=name)
        app.add_typer(inner, name="inner")
        found = invoke(app, "doctor", "--json").result
        states = {row["namespace"]: (row["ok"], row["tools"]) for row in found["providers"]}
        assert states == {"good": (True, 1), "empty": (False, 0), "gone": (False, 1)} | {
            "torn": (False, 1)
        }
        assert not found["ok"]
        listed = [
            "'books': it cannot list its tools: OSError: no books",
            "'books': it does not work now: ConnectionError: nobody answers",
            "'books': page: it is torn",
        ]
        for text in listed:
            assert any(text in problem for problem in found["problems"]), found["problems"]
        assert invoke(app, "own", "--json").result == 1


class TestDetectContext:
    def test_named_caller_is_an_agent(self, app: Tooli) -> None:
        env = {"TOOLI_CALLER": "my-agent", "TOOLI_SESSION_ID": "s1"}
        found = invoke(app, "detect-context", "--json", env=env).result
        assert (found["caller_id"], found["session_id"]) == ("my-agent", "s1")
        assert (found["category"], found["confidence"]) == ("ai_agent", 1.0)
        assert found["candidates"][0]["name"] == "my-agent"
        assert found["behavior"]["output"] == "json"

    def test_settings_and_their_origin(self, app: Tooli) -> None:
        env = {"TOOLI_TIMEOUT": "9"}
        found = invoke(app, "detect-context", "--json", env=env).result
        assert found["configuration"]["timeout"] == {"value": 9.0, "origin": "TOOLI_TIMEOUT"}


class TestConfigShow:
    @pytest.fixture(autouse=True)
    def project(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        (tmp_path / ".git").mkdir()
        return tmp_path

    def test_values_and_layers(self, app: Tooli, project: Path) -> None:
        (project / ".tooli.yaml").write_text("timeout: 7\n")
        env = {"TOOLI_TIMEOUT": "5", "TOOLI_CONFIG": "on"}
        assert invoke(app, "config", "show", "--json", env=env).result["timeout"] == 5.0
        row = invoke(app, "config", "show", "--origin", "--json", env=env).result["timeout"]
        assert (row["value"], row["origin"]) == (5.0, "TOOLI_TIMEOUT")
        project_layer = {"value": 7.0, "layer": "project", "origin": ".tooli.yaml:1"}
        assert row["overruled"] == [project_layer]

    def test_merged_layers_are_listed_with_origins(self, app: Tooli, project: Path) -> None:
        (project / ".tooli.yaml").write_text("deny_paths: /a\n")
        env = {"TOOLI_DENY_PATHS": "/b", "TOOLI_CONFIG": "on"}
        row = invoke(app, "config", "show", "--origin", "--json", env=env).result["deny_paths"]
        assert row["value"] == ["/b", "/a"]
        assert row["merged"] == [
            {"value": ["/b"], "layer": "environment", "origin": "TOOLI_DENY_PATHS"},
            {"value": ["/a"], "layer": "project", "origin": ".tooli.yaml:1"},
        ]
        assert "overruled" not in row

    def test_merged_setting_in_one_layer_has_a_single_origin(self, app: Tooli) -> None:
        env = {"TOOLI_DENY_PATHS": "/b"}
        row = invoke(app, "config", "show", "--origin", "--json", env=env).result["deny_paths"]
        assert row == {"value": ["/b"], "layer": "environment", "origin": "TOOLI_DENY_PATHS"}

    def test_invalid_settings_are_shown(self, app: Tooli, project: Path) -> None:
        (project / ".tooli.yaml").write_text("verbos: 1\n")
        done = invoke(app, "config", "show", "--json", env={"TOOLI_CONFIG": "on"})
        assert done.exit_code == 0
        assert done.result["faults"][0].startswith(".tooli.yaml:1: unknown setting")

    def test_password_of_the_store_is_hidden(self, app: Tooli) -> None:
        env = {"TOOLI_STORE": "postgresql://ada:hunter2@db/keys"}
        for args in (["config", "show"], ["config", "show", "--origin"], ["detect-context"]):
            shown = invoke(app, *args, "--json", env=env).stdout
            assert "hunter2" not in shown
            assert "ada" in shown


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (
            {"CLAUDECODE": "1"},
            {
                "max_bytes": 30_000,
                "by": "claude-code",
                "version": OUTPUT_LIMITS["claude-code"].version,
                "measured": MEASURED_ON,
            },
        ),
        ({"CLAUDECODE": "1", "TOOLI_MAX_TOKENS": "900"}, {"max_tokens": 900, "by": "settings"}),
        ({"CLAUDECODE": "1", "TOOLI_MAX_BYTES": "0"}, {"max_bytes": 0, "by": "settings"}),
        ({"TOOLI_CALLER": "another-agent"}, {"by": "none"}),
    ],
)
def test_detect_context_shows_the_output_limit(
    app: Tooli, env: dict[str, str], expected: dict[str, object]
) -> None:
    done = invoke(app, "detect-context", "--json", env=env)
    assert done.result["output_limit"] == expected
