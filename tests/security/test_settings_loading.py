"""A load of the settings that fails, or that is not finished, never leaves an app without them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tooli import Tooli
from tooli.config import applied_settings, config_files, layers, load_security_settings
from tooli.config.setting_definitions import SettingDefinition
from tooli.core import AppState
from tooli.errors import InputError, ToolError

HOSTILE_FILES = {
    "escape above Unicode": (".tooli.yaml", 'output: "\\UFFFFFFFF"\n'),
    "first escape above Unicode": (".tooli.yaml", 'output: "\\U00110000"\n'),
    "version of 5,000 digits": (".tooli.yaml", f"%YAML 1.{'4' * 5_000}\n---\noutput: json\n"),
    "number of 4,000 digits": ("pyproject.toml", f"[tool.tooli]\ntimeout = 0x{'f' * 4_000}\n"),
    "inner number": ("pyproject.toml", f"[tool.tooli.apps.a]\ntimeout = 0x{'f' * 4_000}\n"),
}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder; the operator has set `strict`, and denies the folder `denied`."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "denied").mkdir()
    (tmp_path / "denied" / "key").write_text("secret")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(config_files, "SYSTEM_CONFIG_PATH", str(tmp_path / "etc" / "none"))
    monkeypatch.setenv("TOOLI_SECURITY_POLICY", "strict")
    monkeypatch.setenv("TOOLI_DENY_PATHS", str(tmp_path / "denied"))
    return folder


def make_app() -> Tooli:
    app = Tooli("a", version="1")

    @app.command(auth=[])
    def read(p: Path) -> str:
        """Read a file."""
        return p.read_text()

    @app.command(auth=[])
    def ping() -> str:
        """Answer."""
        return "pong"

    return app


def call(app: Tooli) -> None:
    app.call("ping").unwrap()


def call_with_options(app: Tooli) -> None:
    app.options(yes=True).call("ping").unwrap()


def acall(app: Tooli) -> None:
    asyncio.run(app.acall("ping")).unwrap()


def stream(app: Tooli) -> None:
    list(app.stream("ping"))


def astream(app: Tooli) -> None:
    async def read_all() -> None:
        async for _ in app.astream("ping"):
            pass

    asyncio.run(read_all())


def asgi(app: Tooli) -> None:
    app.asgi(mcp=False)


def mcp(app: Tooli) -> None:
    from tooli.mcp.service import McpService

    McpService(app)


def plain_typer(app: Tooli) -> None:
    outer = typer.Typer()
    outer.add_typer(app, name="inner")
    result = CliRunner().invoke(outer, ["inner", "ping"])
    if result.exception is not None:
        raise result.exception


def command_line(app: Tooli) -> None:
    result = CliRunner().invoke(app, ["ping", "--json"])
    if result.exit_code:
        assert "E1011" in result.output
        raise InputError("refused", code="E1011")


INTERFACES: list[Callable[[Tooli], None]] = [
    call,
    call_with_options,
    acall,
    stream,
    astream,
    asgi,
    mcp,
    plain_typer,
    command_line,
]


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda run: run.__name__)
@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_unreadable_file_stops_every_call(
    project: Path, name: str, interface: Callable[[Tooli], None]
) -> None:
    file, text = HOSTILE_FILES[name]
    (project / file).write_text(text)
    app = make_app()
    for _ in range(3):  # an agent repeats a call that failed
        with pytest.raises(ToolError) as caught:
            interface(app)
        assert caught.value.code == "E1011"


@pytest.mark.parametrize("first", INTERFACES, ids=lambda run: run.__name__)
@pytest.mark.parametrize("second", INTERFACES, ids=lambda run: run.__name__)
def test_interfaces_of_one_process(
    project: Path, first: Callable[[Tooli], None], second: Callable[[Tooli], None]
) -> None:
    (project / ".tooli.yaml").write_text("security_policy: none\n")
    app = make_app()
    for interface in (first, second, first):
        with pytest.raises(ToolError) as caught:
            interface(app)
        assert caught.value.code == "E1011"


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda run: run.__name__)
@pytest.mark.parametrize(
    ("module", "function"),
    [
        (layers, "read_config_file"),
        (layers, "find_config_files"),
        (layers, "_add_environment"),
        (SettingDefinition, "convert"),
        (applied_settings, "extract_security_rules"),
    ],
)
def test_any_exception_becomes_a_fault(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    interface: Callable[[Tooli], None],
    module: Any,
    function: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("broken")

    (project / ".tooli.yaml").write_text("timeout: 5\n")
    monkeypatch.setattr(module, function, fail)
    app = make_app()
    for _ in range(2):
        with pytest.raises(ToolError) as caught:
            interface(app)
        assert caught.value.code == "E1011"


def test_interrupted_load_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    app = make_app()
    with monkeypatch.context() as patch:
        patch.setattr(applied_settings, "resolve_settings", interrupt)
        with pytest.raises(KeyboardInterrupt):
            app.call("ping")
    assert not app._state.security_settings_loaded
    assert app.call("ping").ok
    assert app._state.policy == "strict" and "deny_paths" in app._state.security_settings


def test_parallel_calls_wait_for_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load of the first call is held until all other calls have started."""
    started = threading.Barrier(8)
    released = threading.Event()
    real = applied_settings.resolve_settings
    loads: list[int] = []

    def hold(*args: Any, **kwargs: Any) -> layers.Settings:
        loads.append(1)
        released.wait(10)
        return real(*args, **kwargs)

    monkeypatch.setattr(applied_settings, "resolve_settings", hold)
    app, codes = make_app(), list[str]()

    def read() -> None:
        started.wait(10)
        result = app.call("read", p=str(tmp_path / "denied" / "key"))
        codes.append("ran" if result.error is None else result.error.code)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    while not loads:
        threads[0].join(0.01)
    for thread in threads:
        thread.join(0.02)  # a call that does not wait for the settings ends here
    assert codes == []
    released.set()
    for thread in threads:
        thread.join(30)
    assert len(codes) == 8 and "ran" not in codes
    assert len(loads) == 1


def test_settings_are_published_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread sees all settings or none."""
    seen: list[tuple[object, ...]] = []
    real = AppState.__setattr__

    def record(state: AppState, name: str, value: object) -> None:
        real(state, name, value)
        if name in ("policy", "security_settings", "security_settings_loaded"):
            seen.append((state.policy, "deny_paths" in state.security_settings, name))

    state = AppState("a", {})
    monkeypatch.setattr(AppState, "__setattr__", record, raising=False)
    load_security_settings(state)
    assert seen[-1] == ("strict", True, "security_settings_loaded")


def test_command_line_keeps_the_faults_for_python(project: Path) -> None:
    (project / ".tooli.yaml").write_text("security_policy: none\n")
    app = make_app()
    assert not app.call("ping").ok
    assert CliRunner().invoke(app, ["ping", "--json"]).exit_code
    result = app.options(yes=True).call("ping")
    assert result.error is not None and result.error.code == "E1011"


def test_command_line_keeps_the_timeout_for_python(project: Path) -> None:
    (project / ".tooli.yaml").write_text("timeout: 7\n")
    app = make_app()
    assert app.call("ping").ok
    assert CliRunner().invoke(app, ["ping", "--json", "--timeout", "70"]).exit_code == 0
    assert app._state.security_settings["timeout"] == 7
