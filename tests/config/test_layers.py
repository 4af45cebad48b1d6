"""Seven layers: which one wins, for every combination of them; what is wrong, by file and line."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tooli.cli import process
from tooli.config import config_files
from tooli.config.layers import LAYERS, Settings, SettingValue, resolve_settings
from tooli.config.setting_definitions import SECURITY_POLICIES, SETTINGS
from tooli.core.output_modes import OUTPUT_MODES
from tooli.describe.schema_formats import ENVIRONMENT_VARIABLES

COMBINATIONS = list(itertools.product((False, True), repeat=len(LAYERS)))


def layered(*values: Any) -> dict[str, Any]:
    """A value for each layer, highest first."""
    return dict(zip(LAYERS, values, strict=True))


SAID: dict[str, dict[str, Any]] = {  # a word, a number, a security setting
    "output": layered("json", "jsonl", "text", "plain", "json", "jsonl", "text"),
    "timeout": layered(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 120.0),
    "security_policy": layered("off", "standard", "strict", "off", "standard", "off", "strict"),
}


class World:
    """A machine with a project, a user and a system, each of which may say something."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.here = self.project / "src" / "deep"
        self.here.mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.user = folder / "home" / ".config" / "tooli" / "config.yaml"
        self.system = folder / "etc" / "config.yaml"
        for file in (self.user, self.system):
            file.parent.mkdir(parents=True)
        self.files = {
            ".env": self.project / ".env",
            "project": self.project / ".tooli.yaml",
            "user": self.user,
            "system": self.system,
        }
        self.env = {"HOME": str(folder / "home")}

    def say(self, layer: str, text: str) -> None:
        self.files[layer].write_text(text)

    def settle(self, app: str = "shop", **more: Any) -> Settings:
        return resolve_settings(
            app, env={**self.env, **more.pop("env", {})}, folder=str(self.here), **more
        )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(config_files, "SYSTEM_CONFIG_PATH", str(made.system))
    monkeypatch.setattr(process, "SYSTEM_CONFIG_PATH", str(made.system))
    return made


def speak(world: World, key: str, layers: set[str]) -> Settings:
    """The settings where just these layers say something about a key."""
    said = SAID[key]
    for layer, file in world.files.items():
        file.unlink(missing_ok=True)
        if layer in layers:
            name = SETTINGS[key].variable + "=" if layer == ".env" else f"{key}: "
            file.write_text(f"# a setting\n{name}{said[layer]}\n")
    default = SettingValue(said["default"], "default", "the app's own")
    return world.settle(
        flags={key: said["flag"]} if "flag" in layers else {},
        env={SETTINGS[key].variable: str(said["environment"])} if "environment" in layers else {},
        defaults={key: default} if "default" in layers else {},
    )


@pytest.mark.parametrize("key", SAID)
def test_every_combination_of_layers(world: World, key: str) -> None:
    seen = 0
    for combination in COMBINATIONS:
        layers = {layer for layer, present in zip(LAYERS, combination, strict=True) if present}
        settings = speak(world, key, layers)
        assert not settings.faults
        values = [SAID[key][layer] for layer in LAYERS if layer in layers]
        usual = SETTINGS[key].default
        if "default" not in layers and usual is not None:
            values.append(usual)
        word = settings.effective(key)
        if not values:
            assert word is None
        elif SETTINGS[key].is_security:
            assert settings.get(key) == max(values, key=SECURITY_POLICIES.index)
        else:
            assert settings.get(key) == values[0]
            assert word is not None
            assert word.layer == next((one for one in LAYERS if one in layers), "default")
            if word.layer in world.files:
                assert word.origin == f"{world.files[word.layer]}:2"
        seen += 1
    assert seen == 128


def test_through_the_door_of_the_command_line(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every combination again, as a run of an app has it."""
    from tooli import Tooli
    from tooli.testing import invoke

    monkeypatch.chdir(world.here)
    said = SAID["output"]
    for combination in COMBINATIONS:
        layers = {layer for layer, present in zip(LAYERS, combination, strict=True) if present}
        speak(world, "output", layers)
        app = Tooli("shop", default_output=said["default"] if "default" in layers else "auto")

        @app.command()
        def one() -> list[int]:
            """Two numbers."""
            return [1, 2]

        @app.command()
        def other() -> None:
            """Nothing."""

        words = ["--output", said["flag"]] if "flag" in layers else []
        env: dict[str, str | None] = {**world.env, "TOOLI_CONFIG": None}
        if "environment" in layers:
            env["TOOLI_OUTPUT"] = said["environment"]
        done = invoke(app, "one", *words, env=env)
        wanted = next((said[layer] for layer in LAYERS if layer in layers), "json")
        assert done.exit_code == 0
        looks = {"json": '{"ok":true', "jsonl": "1\n2\n", "text": "1\n2\n", "plain": "1\n2\n"}
        assert done.stdout.startswith(looks[wanted]), (sorted(layers), done.stdout)
        shown = invoke(app, "config", "show", "--origin", "--json", env=env).result["output"]
        assert shown["layer"] == "flag"
        layers_below = [one["layer"] for one in shown["overruled"]]
        held = [one for one in LAYERS[1:6] if one in layers]
        assert layers_below == [*held, "default"]


class TestSections:
    def test_the_more_particular_wins_inside_a_file_and_the_layer_between_files(
        self, world: World
    ) -> None:
        world.say("project", "max_items: 5\ntimeout: 9\n")
        world.say(
            "user",
            "max_items: 1\nmax_bytes: 1\nmax_tokens: 1\nquiet: yes\n"
            "apps:\n  shop:\n    max_bytes: 2\n    max_tokens: 2\n  other:\n    quiet: no\n"
            "callers:\n  ai_agent:\n    max_tokens: 3\n  claude-code:\n    max_tokens: 4\n"
            "    timeout: 4\n",
        )
        found = world.settle(callers=lambda: ("claude-code", "ai_agent"))
        values = {name: found.get(name) for name in ("max_items", "max_bytes", "max_tokens")}
        assert values == {"max_items": 5, "max_bytes": 2, "max_tokens": 4}
        assert (found.get("quiet"), found.get("timeout")) == (True, 9.0)
        assert world.settle(callers=lambda: ("codex", "ai_agent")).get("max_tokens") == 3
        assert world.settle(callers=lambda: ("ci_cd",)).get("max_tokens") == 2
        assert world.settle("other").get("quiet") is False

    def test_a_section_of_another_app_cannot_break_this_one(self, world: World) -> None:
        world.say("project", "apps:\n  other:\n    nonsense: 1\n")
        assert not world.settle().faults
        assert world.settle("other").faults

    def test_a_section_of_another_caller_is_checked_before_he_calls(self, world: World) -> None:
        for text in ("nonsense: 1", "timeout: soon"):
            world.say("project", f"callers:\n  codex:\n    {text}\n")
            assert len(world.settle().faults) == 1
            assert len(world.settle(callers=lambda: ("codex",)).faults) == 1


class TestSecurity:
    @pytest.mark.parametrize("layer", [".env", "project", "user", "system"])
    def test_no_file_loosens(self, world: World, layer: str) -> None:
        name = "TOOLI_SECURITY_POLICY=" if layer == ".env" else "security_policy: "
        world.say(layer, f"{name}off\n")
        assert world.settle().get("security_policy") == "standard"
        world.say(layer, f"{name}strict\n")
        assert world.settle(env={"TOOLI_SECURITY_POLICY": "off"}).get("security_policy") == "strict"

    def test_a_section_does_not_loosen_what_its_file_says(self, world: World) -> None:
        world.say("user", "security_policy: strict\napps:\n  shop:\n    security_policy: off\n")
        assert world.settle().get("security_policy") == "strict"

    @pytest.mark.parametrize("name", [key.name for key in SETTINGS.values() if key.is_security])
    def test_none_depends_on_who_calls(self, world: World, name: str) -> None:
        value = {"security_policy": "strict", "human_in_the_loop": "yes", "isolation": "required"}
        world.say("user", f"callers:\n  human:\n    {name}: {value.get(name, 'x')}\n")
        for callers in ((), ("human",)):
            found = world.settle(callers=lambda callers=callers: callers)
            (fault,) = found.faults
            assert fault.key == name
            assert fault.message == f"{name} holds whoever calls: say it outside of callers"
            assert name not in found.non_default()

    def test_an_app_may_declare_itself_open(self, world: World) -> None:
        own = {"security_policy": SettingValue("off", "default", "the app's own")}
        assert world.settle(defaults=own).get("security_policy") == "off"
        world.say("system", "security_policy: standard\n")
        assert world.settle(defaults=own).get("security_policy") == "standard"

    def test_switching_configuration_off_leaves_the_machines_own(self, world: World) -> None:
        world.say("project", "output: plain\n")
        world.say("user", "output: text\n")
        world.say("system", "security_policy: strict\n")
        found = world.settle(env={"TOOLI_CONFIG": "off"})
        assert (found.get("output"), found.get("security_policy")) == ("auto", "strict")


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            (
                "output: json\noutptu: 1\n",
                2,
                "there is no setting 'outptu'; did you mean 'output'?",
            ),
            ("zzz: 1\n", 1, "there is no setting 'zzz': there are output, "),
            ("output: loud\n", 1, f"output is {'|'.join(OUTPUT_MODES)}, not loud"),
            ("output:\n", 1, f"output is {'|'.join(OUTPUT_MODES)}, not ''"),
            ("max_items: '3'\n", 1, "max_items is a whole number, 0 for no limit, not '3'"),
            ("quiet: 3\n", 1, "quiet is true or false, not 3"),
            ("quiet:\n  x: 1\n", 2, "quiet is true or false, not a section"),
            ("apps: 3\n", 1, "apps is a section of names, each with settings"),
            ("apps:\n  shop: 3\n", 2, "apps: shop is a section of settings"),
            ("apps:\n  shop:\n    colour: never\n", 3, "did you mean 'color'?"),
        ],
    )
    def test_by_file_and_line(self, world: World, text: str, line: int, message: str) -> None:
        world.say("project", text)
        (fault,) = world.settle().faults
        assert fault.origin == f"{world.files['project']}:{line}"
        assert message in fault.message

    def test_all_at_once(self, world: World) -> None:
        world.say("project", "a: 1\nquiet: 7\n")
        world.say("user", "b: 1\n")
        assert len(world.settle(env={"TOOLI_TIMEOUT": "soon"}).faults) == 4

    def test_two_files_of_one_project(self, world: World) -> None:
        world.say("project", "output: json\n")
        (world.project / "pyproject.toml").write_text("[tool.tooli]\noutput = 'json'\n")
        (fault,) = world.settle().faults
        assert fault.origin.endswith("pyproject.toml")
        assert ".tooli.yaml holds settings, too" in fault.message

    def test_dotenv_is_shared_with_others(self, world: World) -> None:
        world.say(".env", "OUTPUT=x\nTOOLI_TOKEN=x\nTOOLI_SHOP_FILE=x\nTOOLI_OUTPTU=json\n")
        (fault,) = world.settle().faults
        assert fault.origin.endswith(".env:4")
        assert "TOOLI_OUTPUT" in fault.message
        assert "TOOLI_TOKEN" not in os.environ


class TestPlaces:
    def test_the_nearest_project(self, world: World) -> None:
        world.say("project", "output: plain\n")
        (world.here / "pyproject.toml").write_text("[project]\nname = 'x'\n[tool.ruff]\n")
        assert world.settle().get("output") == "plain"
        (world.here / "pyproject.toml").write_text("[tool.tooli]\noutput = 'jsonl'\n")
        assert world.settle().get("output") == "jsonl"

    def test_a_repository_is_where_the_search_ends(self, world: World) -> None:
        world.say("project", "output: plain\n")
        (world.here.parent / ".git").mkdir()
        assert world.settle().get("output") == "auto"

    def test_no_project_at_all(self, tmp_path: Path) -> None:
        (tmp_path / ".env").write_text("TOOLI_OUTPUT=plain\n")
        found = resolve_settings("shop", env={}, folder=str(tmp_path))
        assert found.get("output") == "plain"

    def test_xdg(self, world: World, tmp_path: Path) -> None:
        world.say("user", "output: plain\n")
        other = tmp_path / "xdg" / "tooli" / "config.yaml"
        other.parent.mkdir(parents=True)
        other.write_text("output: text\n")
        assert world.settle(env={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).get("output") == "text"

    def test_a_folder_that_is_gone(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        gone = world.here / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        assert resolve_settings("shop", env={}).get("output") == "auto"
        assert not process._has_config_file()
        monkeypatch.chdir(world.here)

    def test_none_is_exported(self, world: World) -> None:
        world.say(".env", "TOOLI_OUTPUT=plain\nTOOLI_VERBOSE=2\n")
        before = dict(os.environ)
        world.settle()
        assert dict(os.environ) == before


def worlds() -> Iterator[tuple[str, str]]:
    """Files that may hold settings, and what they hold."""
    yield "a/b/.tooli.yaml", "x: 1"
    yield "a/.tooli.yaml", ""
    yield ".tooli.yaml", "x: 1"
    yield "a/b/pyproject.toml", "[tool.tooli]\n"
    yield "a/pyproject.toml", "[ tool . 'tooli' ]\n"
    yield "pyproject.toml", "[tool]\ntooli = {}\n"
    yield "pyproject.toml", "tool = {tooli = {}}\n"
    yield "a/pyproject.toml", "[project]\ndependencies = ['tooli']\n[tool.ruff]\n"
    yield "a/b/.env", "TOOLI_OUTPUT=json\n"
    yield "a/b/.env", "OTHER=1\n"
    yield "a/.env", "export TOOLI_QUIET=1\n"
    yield ".env", "TOOLI_QUIET=1\n"


@pytest.mark.parametrize(("file", "text"), [*worlds()])
@pytest.mark.parametrize("repository", ["", "a", "a/b"])
def test_the_glance_never_misses_what_the_search_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, repository: str
) -> None:
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    if repository:
        (tmp_path / repository / ".git").mkdir()
    monkeypatch.chdir(here)
    for name in ("HOME", "XDG_CONFIG_HOME", "TOOLI_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    found = [
        place for place in config_files.find_config_files(os.environ) if str(tmp_path) in place.path
    ]
    says = [place for place in found if "TOOLI_" in text or place.layer != ".env"]
    assert process._has_config_file() or not says
    if not found and not file.endswith(".env"):
        assert not process._has_config_file()


def test_the_glance_asks_for_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLI_CONFIG", raising=False)
    asked: list[str] = []
    usual = os.access

    def access(path: str, mode: int) -> bool:
        asked.append(path)
        return usual(path, mode)

    monkeypatch.setattr(os, "access", access)
    assert not process._has_config_file()
    assert len(asked) == len(set(asked))
    assert str(tmp_path / ".env") in asked


def test_the_glance_knows_every_variable() -> None:
    variables = {key.variable for key in SETTINGS.values()} - {"TOOLI_OUTPUT"}
    assert variables == process.SETTING_VARIABLES - {"TOOLI_RECORD_CAPABILITIES"}
    assert variables < set(ENVIRONMENT_VARIABLES)
    assert process.SYSTEM_CONFIG_PATH == config_files.SYSTEM_CONFIG_PATH.replace("\\", "/")


def test_a_file_may_name_every_mode() -> None:
    from tooli.config.setting_definitions import SETTINGS

    assert SETTINGS["output"].choices == OUTPUT_MODES
