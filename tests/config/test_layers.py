"""The layers of settings: precedence in every combination, and faults by file and line."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest
from tests.config.conftest import Machine

from tooli.cli import process
from tooli.config.layers import (
    LAYERS,
    Settings,
    SettingValue,
    resolve_settings,
)
from tooli.config.setting_definitions import SECURITY_POLICIES, SETTINGS, VARIABLES
from tooli.core.output_modes import OUTPUT_MODES

COMBINATIONS = list(itertools.product((False, True), repeat=len(LAYERS)))


def layered(*values: Any) -> dict[str, Any]:
    """Return a value for each layer, highest first."""
    return dict(zip(LAYERS, values, strict=True))


VALUES: dict[str, dict[str, Any]] = {  # a choice, a number, a security setting
    "output": layered("json", "jsonl", "text", "plain", "json", "jsonl", "text"),
    "timeout": layered(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 120.0),
    "security_policy": layered("off", "standard", "strict", "off", "standard", "off", "strict"),
}


def resolve_layers(machine: Machine, key: str, layers: set[str]) -> Settings:
    """Return the settings if only these layers set a key."""
    values = VALUES[key]
    for layer, file in machine.files.items():
        file.unlink(missing_ok=True)
        if layer in layers:
            name = SETTINGS[key].variable + "=" if layer == ".env" else f"{key}: "
            file.write_text(f"# a setting\n{name}{values[layer]}\n")
    default = SettingValue(values["default"], "default", "the app's own")
    return machine.resolve(
        flags={key: values["flag"]} if "flag" in layers else {},
        env={SETTINGS[key].variable: str(values["environment"])} if "environment" in layers else {},
        defaults={key: default} if "default" in layers else {},
    )


@pytest.mark.parametrize("key", VALUES)
def test_layer_precedence(machine: Machine, key: str) -> None:
    combination_count = 0
    for combination in COMBINATIONS:
        layers = {layer for layer, present in zip(LAYERS, combination, strict=True) if present}
        settings = resolve_layers(machine, key, layers)
        assert not settings.faults
        values = [VALUES[key][layer] for layer in LAYERS if layer in layers]
        default = SETTINGS[key].default
        if "default" not in layers and default is not None:
            values.append(default)
        value = settings.effective(key)
        if not values:
            assert value is None
        elif SETTINGS[key].is_security:
            assert settings.get(key) == max(values, key=SECURITY_POLICIES.index)
        else:
            assert settings.get(key) == values[0]
            assert value is not None
            assert value.layer == next((layer for layer in LAYERS if layer in layers), "default")
            if value.layer in machine.files:
                assert value.origin == f"{machine.files[value.layer]}:2"
        combination_count += 1
    assert combination_count == 128


def test_layer_precedence_on_command_line(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tooli import Tooli
    from tooli.testing import invoke

    monkeypatch.chdir(machine.here)
    values = VALUES["output"]
    for combination in COMBINATIONS:
        layers = {layer for layer, present in zip(LAYERS, combination, strict=True) if present}
        resolve_layers(machine, "output", layers)
        app = Tooli("shop", default_output=values["default"] if "default" in layers else "auto")

        @app.command()
        def one() -> list[int]:
            """Two numbers."""
            return [1, 2]

        @app.command()
        def other() -> None:
            """Nothing."""

        flags = ["--output", values["flag"]] if "flag" in layers else []
        env: dict[str, str | None] = {**machine.env, "TOOLI_CONFIG": None}
        if "environment" in layers:
            env["TOOLI_OUTPUT"] = values["environment"]
        done = invoke(app, "one", *flags, env=env)
        expected = next((values[layer] for layer in LAYERS if layer in layers), "json")
        assert done.exit_code == 0
        starts = {"json": '{"ok":true', "jsonl": "1\n2\n", "text": "1\n2\n", "plain": "1\n2\n"}
        assert done.stdout.startswith(starts[expected]), (sorted(layers), done.stdout)
        setting = invoke(app, "config", "show", "--origin", "--json", env=env).result["output"]
        assert setting["layer"] == "flag"
        layers_below = [value["layer"] for value in setting["overruled"]]
        expected_layers = [layer for layer in LAYERS[1:6] if layer in layers]
        assert layers_below == [*expected_layers, "default"]


class TestSections:
    def test_most_specific_section_wins(self, machine: Machine) -> None:
        machine.write("project", "max_items: 5\ntimeout: 9\n")
        machine.write(
            "user",
            "max_items: 1\nmax_bytes: 1\nmax_tokens: 1\nquiet: yes\n"
            "apps:\n  shop:\n    max_bytes: 2\n    max_tokens: 2\n  other:\n    quiet: no\n"
            "callers:\n  ai_agent:\n    max_tokens: 3\n  claude-code:\n    max_tokens: 4\n"
            "    timeout: 4\n",
        )
        found = machine.resolve(callers=lambda: ("claude-code", "ai_agent"))
        values = {name: found.get(name) for name in ("max_items", "max_bytes", "max_tokens")}
        assert values == {"max_items": 5, "max_bytes": 2, "max_tokens": 4}
        assert (found.get("quiet"), found.get("timeout")) == (True, 4.0)
        assert machine.resolve(callers=lambda: ("codex", "ai_agent")).get("max_tokens") == 3
        assert machine.resolve(callers=lambda: ("ci_cd",)).get("max_tokens") == 2
        assert machine.resolve("other").get("quiet") is False

    def test_section_of_another_app_is_not_checked(self, machine: Machine) -> None:
        machine.write("project", "apps:\n  other:\n    nonsense: 1\n")
        assert not machine.resolve().faults
        assert machine.resolve("other").faults

    def test_section_of_another_caller_is_checked(self, machine: Machine) -> None:
        for text in ("nonsense: 1", "timeout: soon"):
            machine.write("project", f"callers:\n  codex:\n    {text}\n")
            assert len(machine.resolve().faults) == 1
            assert len(machine.resolve(callers=lambda: ("codex",)).faults) == 1


class TestSecurity:
    @pytest.mark.parametrize("layer", [".env", "project", "user", "system"])
    def test_file_cannot_weaken_policy(self, machine: Machine, layer: str) -> None:
        name = "TOOLI_SECURITY_POLICY=" if layer == ".env" else "security_policy: "
        machine.write(layer, f"{name}off\n")
        assert machine.resolve().get("security_policy") == "standard"
        machine.write(layer, f"{name}strict\n")
        assert (
            machine.resolve(env={"TOOLI_SECURITY_POLICY": "off"}).get("security_policy") == "strict"
        )

    def test_section_cannot_weaken_file(self, machine: Machine) -> None:
        machine.write("user", "security_policy: strict\napps:\n  shop:\n    security_policy: off\n")
        assert machine.resolve().get("security_policy") == "strict"

    @pytest.mark.parametrize("name", [key.name for key in SETTINGS.values() if key.is_security])
    def test_security_setting_in_caller_section_is_a_fault(
        self, machine: Machine, name: str
    ) -> None:
        value = {"security_policy": "strict", "human_in_the_loop": "yes", "isolation": "required"}
        machine.write("user", f"callers:\n  human:\n    {name}: {value.get(name, 'x')}\n")
        for callers in ((), ("human",)):
            found = machine.resolve(callers=lambda callers=callers: callers)
            (fault,) = found.faults
            assert fault.key == name
            assert fault.message == (
                f"{name} is a security setting, which cannot depend on the caller"
            )
            assert name not in found.non_default()

    def test_app_may_declare_policy_off(self, machine: Machine) -> None:
        own = {"security_policy": SettingValue("off", "default", "the app's own")}
        assert machine.resolve(defaults=own).get("security_policy") == "off"
        machine.write("system", "security_policy: standard\n")
        assert machine.resolve(defaults=own).get("security_policy") == "standard"

    def test_disabled_configuration_keeps_the_system_file(self, machine: Machine) -> None:
        machine.write("project", "output: plain\n")
        machine.write("user", "output: text\n")
        machine.write("system", "security_policy: strict\n")
        found = machine.resolve(env={"TOOLI_CONFIG": "off"})
        assert (found.get("output"), found.get("security_policy")) == ("auto", "strict")


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            (
                "output: json\noutptu: 1\n",
                2,
                "unknown setting 'outptu'; did you mean 'output'?",
            ),
            ("zzz: 1\n", 1, "unknown setting 'zzz'; the settings are output, "),
            ("output: loud\n", 1, f"output must be {'|'.join(OUTPUT_MODES)}, not loud"),
            ("output:\n", 1, f"output must be {'|'.join(OUTPUT_MODES)}, not ''"),
            ("max_items: '3'\n", 1, "max_items must be a whole number, 0 for no limit, not '3'"),
            ("quiet: 3\n", 1, "quiet must be true or false, not 3"),
            ("quiet:\n  x: 1\n", 2, "quiet must be true or false, not a section"),
            ("apps: 3\n", 1, "apps must be a section of names, each with settings"),
            ("apps:\n  shop: 3\n", 2, "apps: shop must be a section of settings"),
            ("apps:\n  shop:\n    colour: never\n", 3, "did you mean 'color'?"),
        ],
    )
    def test_faults_have_file_and_line(
        self, machine: Machine, text: str, line: int, message: str
    ) -> None:
        machine.write("project", text)
        (fault,) = machine.resolve().faults
        assert fault.origin == f"{machine.files['project']}:{line}"
        assert message in fault.message

    def test_all_faults_are_reported(self, machine: Machine) -> None:
        machine.write("project", "a: 1\nquiet: 7\n")
        machine.write("user", "b: 1\n")
        assert len(machine.resolve(env={"TOOLI_TIMEOUT": "soon"}).faults) == 4

    def test_two_project_files_are_a_fault(self, machine: Machine) -> None:
        machine.write("project", "output: json\n")
        (machine.project / "pyproject.toml").write_text("[tool.tooli]\noutput = 'json'\n")
        (fault,) = machine.resolve().faults
        assert fault.origin.endswith("pyproject.toml")
        assert ".tooli.yaml also has settings" in fault.message

    def test_misspelled_dotenv_variable_is_a_fault(self, machine: Machine) -> None:
        machine.write(".env", "OUTPUT=x\nTOOLI_TOKEN=x\nTOOLI_SHOP_FILE=x\nTOOLI_OUTPTU=json\n")
        (fault,) = machine.resolve().faults
        assert fault.origin.endswith(".env:4")
        assert "TOOLI_OUTPUT" in fault.message
        assert "TOOLI_TOKEN" not in os.environ

    def test_dotenv_may_contain_every_variable(self, machine: Machine) -> None:
        others = {*VARIABLES} - {setting.variable for setting in SETTINGS.values()}
        machine.write(".env", "".join([f"{name}=x\n" for name in sorted(others)]))
        assert machine.resolve().faults == []


class TestProject:
    def test_build_table_of_pyproject_is_not_a_setting(self, machine: Machine) -> None:
        text = "[tool.tooli]\noutput = 'jsonl'\n[tool.tooli.build]\napp = 'shop:app'\n"
        (machine.here / "pyproject.toml").write_text(text)
        found = machine.resolve()
        assert found.get("output") == "jsonl"
        assert not found.faults

    def test_nearest_project_folder_wins(self, machine: Machine) -> None:
        machine.write("project", "output: plain\n")
        (machine.here / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.ruff]\n")
        assert machine.resolve().get("output") == "plain"
        (machine.here / "pyproject.toml").write_text("[tool.tooli]\noutput = 'jsonl'\n")
        assert machine.resolve().get("output") == "jsonl"

    def test_search_ends_at_repository(self, machine: Machine) -> None:
        machine.write("project", "output: plain\n")
        (machine.here.parent / ".git").mkdir()
        assert machine.resolve().get("output") == "auto"

    def test_dotenv_is_read_outside_of_a_project(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("TOOLI_OUTPUT=plain\n")
        found = resolve_settings("shop", env={}, folder=str(tmp_path))
        assert found.get("output") == "plain"

    def test_xdg_config_home_replaces_the_user_folder(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        machine.write("user", "output: plain\n")
        other = tmp_path / "xdg" / "tooli" / "config.yaml"
        other.parent.mkdir(parents=True)
        other.write_text("output: text\n")
        assert (
            machine.resolve(env={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).get("output") == "text"
        )

    def test_deleted_working_directory_has_default_settings(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deleted = machine.here / "deleted"
        deleted.mkdir()
        monkeypatch.chdir(deleted)
        deleted.rmdir()
        assert resolve_settings("shop", env={}).get("output") == "auto"
        assert not process._has_config_file()
        monkeypatch.chdir(machine.here)

    def test_dotenv_is_not_exported(self, machine: Machine) -> None:
        machine.write(".env", "TOOLI_OUTPUT=plain\nTOOLI_VERBOSE=2\n")
        before = dict(os.environ)
        machine.resolve()
        assert dict(os.environ) == before


# ------------------------------------------------------------------ security rules


def test_section_of_an_app_wins_within_the_lowest_layer(machine: Machine) -> None:
    machine.write("system", "work_dir: /srv\napps:\n  shop:\n    work_dir: /srv/shop\n")
    machine.write("user", "work_dir: /home\n")
    assert machine.resolve().get("work_dir") == "/srv/shop"
    assert machine.resolve("other").get("work_dir") == "/srv"
