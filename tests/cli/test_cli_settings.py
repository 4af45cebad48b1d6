"""Caller profiles and settings, as the command line applies them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.integration.app_process import (
    environment,
    parse_json,
    read_envelope,
    run,
    run_on_terminal,
)

from tooli import Context, Tooli
from tooli.annotations import Destructive
from tooli.cli import process
from tooli.config import config_files
from tooli.core.call import AGENT_TIMEOUT, CALLER_PROFILES
from tooli.detect import CallerCategory
from tooli.errors import DefinitionError, InputError
from tooli.testing import invoke

APP = '''
from tooli import Context, NotFoundError, Tooli
from tooli.annotations import Destructive

app = Tooli("shop", version="1.0")


@app.command()
def stock(item: str) -> list[str]:
    """Return the stock."""
    return [item]


@app.command()
def shout(item: str):
    """Print it."""
    print(item)


@app.command()
def miss() -> str:
    """Find nothing."""
    raise NotFoundError("nothing", details={"looked": "everywhere"})


@app.command(annotations=Destructive)
def burn() -> str:
    """Burn it down."""
    return "burnt"


@app.command(requires_approval=True)
def launch() -> str:
    """Launch it."""
    return "launched"


@app.command(agent_auto_confirm=True)
def scan(ctx: Context) -> str:
    """Look at many files."""
    return "scanned" if ctx.confirm("This takes a while. Go on?") else "left"


@app.command()
def weigh(ctx: Context) -> str:
    """Ask first."""
    return "weighed" if ctx.confirm("Go on?") else "left"


app()
'''
AGENT = {"CLAUDECODE": "1"}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    (folder / ".git").mkdir()
    (folder / "shop.py").write_text(APP)
    return folder / "shop.py"


def terminal(**more: str) -> dict[str, str]:
    return environment(TERM="xterm-256color", **more)


class TestCallerProfiles:
    def test_every_category_has_a_profile(self) -> None:
        assert tuple(sorted(CALLER_PROFILES)) == tuple(sorted(CallerCategory))

    def test_undetected_callers_have_the_profile_of_a_human(self) -> None:
        """Without caller variables, the command line uses the defaults and loads no profile."""
        for name in ("human", "container", "unknown_automation", "python_api"):
            assert CALLER_PROFILES[name] == CALLER_PROFILES["human"]

    def test_only_agents_have_a_timeout(self) -> None:
        assert {name for name, profile in CALLER_PROFILES.items() if profile.timeout} == {
            "ai_agent"
        }
        assert CALLER_PROFILES["ai_agent"].timeout == AGENT_TIMEOUT == 120.0


class TestOutput:
    @pytest.mark.parametrize(
        ("env", "category"),
        [({}, "human"), (AGENT, "ai_agent"), ({"CI": "true"}, "ci_cd")],
    )
    def test_mode_at_a_terminal(self, app: Path, env: dict[str, str], category: str) -> None:
        out = run_on_terminal(app, "stock", "pears", env=terminal(**env)).out
        if CALLER_PROFILES[category].output == "json":
            assert read_envelope(out)["result"] == ["pears"]
        else:
            assert out == b"pears\n"
        printed = run_on_terminal(app, "shout", "pears", env=terminal(**env)).out
        if CALLER_PROFILES[category].printed == "result":
            assert read_envelope(printed)["ok"]
        else:
            assert printed == b"pears\n"

    def test_requested_mode_wins(self, app: Path) -> None:
        out = run_on_terminal(app, "stock", "pears", "--text", env=terminal(**AGENT)).out
        assert out == b"pears\n"

    def test_tooli_caller_human_overrides_an_agent(self, app: Path) -> None:
        env = terminal(**AGENT, TOOLI_CALLER="human")
        assert run_on_terminal(app, "stock", "pears", env=env).out == b"pears\n"


class TestHelp:
    def test_help_for_an_agent_is_compact(self, app: Path) -> None:
        compact = run(app, "--help-agent").out
        assert run(app, "--help", env=environment(**AGENT)).out == compact
        assert run_on_terminal(app, "--help", env=terminal(**AGENT)).out == compact
        one = run(app, "stock", "--help", env=environment(**AGENT)).out
        assert one == run(app, "stock", "--help-agent").out

    def test_help_for_ci_and_pipes_is_plain(self, app: Path) -> None:
        plain = run(app, "--help").out
        assert plain.startswith(b"Usage: ")
        assert run(app, "--help", env=environment(CI="true")).out == plain
        assert run_on_terminal(app, "--help", env=terminal(CI="true")).out == plain

    def test_agent_can_request_help_for_people(self, app: Path) -> None:
        shown = run_on_terminal(app, "--help", "--text", env=terminal(**AGENT)).out
        assert "╭".encode() in shown


class TestErrors:
    @pytest.mark.parametrize(
        ("env", "category"),
        [({}, "human"), (AGENT, "ai_agent"), ({"CI": "true"}, "ci_cd")],
    )
    def test_agents_and_ci_get_error_details(
        self, app: Path, env: dict[str, str], category: str
    ) -> None:
        done = run(app, "miss", "--text", env=environment(**env))
        assert (b"everywhere" in done.err) is (CALLER_PROFILES[category].errors == "full")

    def test_no_colour_for_agents(self, app: Path) -> None:
        done = run_on_terminal(app, "miss", "--text", env=terminal(**AGENT))
        assert b"\x1b[3" not in done.err
        assert b"\x1b[" in run_on_terminal(app, "miss", "--text", env=terminal()).err
        forced = run_on_terminal(app, "miss", "--text", env=terminal(**AGENT, FORCE_COLOR="1"))
        assert b"\x1b[" in forced.err


class TestConfirming:
    callers = pytest.mark.parametrize(
        "env",
        [
            AGENT,
            {"TOOLI_CALLER": "claude-code"},
            {"TOOLI_CALLER": "human"},
            {"AGENT": "1"},
            {"CI": "true"},
            {},
        ],
        ids=str,
    )

    @callers
    def test_caller_name_does_not_confirm_destructive_commands(
        self, app: Path, env: dict[str, str]
    ) -> None:
        done = run(app, "burn", "--json", env=environment(**env))
        assert done.code == 2
        assert read_envelope(done.out)["error"]["code"] == "E1010"
        assert run(app, "burn", "--json", "--yes", env=environment(**env)).code == 0

    @callers
    def test_caller_name_does_not_approve(self, app: Path, env: dict[str, str]) -> None:
        for argv in ((), ("--yes",)):
            assert run(app, "launch", "--json", *argv, env=environment(**env)).code == 101

    @pytest.mark.parametrize(
        ("env", "answer"),
        [
            (AGENT, "scanned"),
            ({"TOOLI_CALLER": "my-agent"}, "scanned"),
            ({"TOOLI_CALLER": "human"}, "left"),
            ({"CI": "true"}, "left"),
            ({}, "left"),
        ],
    )
    def test_auto_confirm_answers_for_agents_only(
        self, app: Path, env: dict[str, str], answer: str
    ) -> None:
        assert (
            read_envelope(run(app, "scan", "--json", env=environment(**env)).out)["result"]
            == answer
        )
        other = read_envelope(run(app, "weigh", "--json", env=environment(**env)).out)
        assert other["result"] == "left"

    def test_strict_policy_disables_auto_confirm(self) -> None:
        app = Tooli("shop", security_policy="strict")

        @app.command(agent_auto_confirm=True, auth=[])
        def scan(ctx: Context) -> bool:
            """Scan."""
            return ctx.confirm("Go on?")

        assert app.options(caller="my-agent").call("scan").result is False

    def test_auto_confirm_on_every_interface(self) -> None:
        app = Tooli("shop")

        @app.command(agent_auto_confirm=True)
        def scan(ctx: Context) -> bool:
            """Scan."""
            return ctx.confirm("Go on?")

        assert app.options(caller="my-agent").call("scan").result is True
        assert app.options(caller="human").call("scan").result is False
        assert app.call("scan").result is False

    @pytest.mark.parametrize(
        "options",
        [
            {"annotations": Destructive},
            {"requires_approval": True},
            {"human_in_the_loop": True},
            {"danger_level": "high"},
        ],
        ids=str,
    )
    def test_auto_confirm_of_a_dangerous_command_is_rejected(self, options: dict[str, Any]) -> None:
        app = Tooli("shop")
        with pytest.raises(DefinitionError, match="harmless"):
            app.command(agent_auto_confirm=True, **options)
        with pytest.raises(DefinitionError, match="harmless"):
            app.lazy_command("somewhere:nothing", agent_auto_confirm=True, **options)


class TestMeta:
    def test_meta_has_the_name_and_version_of_the_caller(self, app: Path) -> None:
        env = environment(**AGENT, AI_AGENT="claude-code_2-1-325_agent", CLAUDE_CODE_SESSION_ID="s")
        meta = read_envelope(run(app, "stock", "x", "--json", env=env).out)["meta"]
        assert (meta["caller_id"], meta["caller_version"]) == ("claude-code", "2.1.325")
        assert "session_id" not in meta
        assert "execution_context" not in meta

    def test_detailed_meta_has_session_and_context(self, app: Path) -> None:
        env = environment(TOOLI_CALLER="me", TOOLI_CALLER_VERSION="2", TOOLI_SESSION_ID="s")
        argv = ("stock", "x", "--json", "--response-format", "detailed")
        meta = read_envelope(run(app, *argv, env=env).out)["meta"]
        found = {name: meta[name] for name in ("caller_id", "caller_version", "session_id")}
        assert found == {"caller_id": "me", "caller_version": "2", "session_id": "s"}
        assert meta["execution_context"] == "ai_agent"

    def test_meta_has_a_category_without_a_caller_name(self, app: Path) -> None:
        for env, kind in (({"CI": "1"}, "ci_cd"), ({"AGENT": "1"}, "ai_agent")):
            meta = read_envelope(run(app, "stock", "x", "--json", env=environment(**env)).out)[
                "meta"
            ]
            assert meta["execution_context"] == kind
            assert "caller_id" not in meta

    def test_meta_without_a_caller_has_no_caller_fields(self, app: Path) -> None:
        meta = read_envelope(run(app, "stock", "x", "--json").out)["meta"]
        assert set(meta) == {"tool", "version", "duration_ms"}

    def test_escapes_in_a_caller_name_are_removed(self, app: Path) -> None:
        env = environment(TOOLI_CALLER="\x1b[2J" + "x" * 9999, TOOLI_SESSION_ID="a\nb")
        meta = read_envelope(run(app, "stock", "x", "--json", env=env).out)["meta"]
        assert meta["caller_id"] == ("[2J" + "x" * 9999)[:200]
        assert meta["session_id"] == "ab"


class TestHints:
    def test_hint_for_moderate_confidence(self, app: Path) -> None:
        env = environment(AGENT="1")
        assert run(app, "stock", "x", "--json", env=env).err == b""
        verbose = run(app, "stock", "x", "--json", "-v", env=env)
        assert b"confidence 0.75: AGENT=1" in verbose.err
        assert b"TOOLI_CALLER" in verbose.err
        assert read_envelope(verbose.out)["ok"]
        assert run(app, "stock", "x", "--json", "-v", "-q", env=env).err == b""

    def test_hint_for_two_weak_signals(self, app: Path) -> None:
        env = environment(TERM_PROGRAM="vscode", GIT_PAGER="cat")
        assert b"confidence 0.50" in run(app, "stock", "x", "--json", "-v", env=env).err

    def test_no_hint_for_a_known_caller(self, app: Path) -> None:
        for env in ({}, AGENT, {"TOOLI_CALLER": "x"}, {"GIT_PAGER": "cat"}):
            done = run(app, "stock", "x", "--json", "-v", env=environment(**env))
            assert done.err == b"", env


class TestSettings:
    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        (tmp_path / ".git").mkdir()
        return tmp_path

    def write_settings(self, project: Path, text: str, name: str = ".tooli.yaml") -> None:
        (project / name).write_text(text)

    def test_settings_apply_to_a_run(self, app: Path, project: Path) -> None:
        self.write_settings(project, "output: plain\nresponse_format: detailed\n")
        assert run(app, "stock", "pears", cwd=project).out == b"pears\n"
        answer = read_envelope(run(app, "stock", "pears", "--json", cwd=project).out)
        assert "output_schema" in answer["meta"]
        argv = ("--json", "--response-format", "concise")
        answer = read_envelope(run(app, "stock", "pears", *argv, cwd=project).out)
        assert "output_schema" not in answer["meta"]

    def test_project_settings_apply_in_a_subfolder(self, app: Path, project: Path) -> None:
        self.write_settings(project, "TOOLI_OUTPUT=plain\n", ".env")
        inner = project / "src" / "deep"
        inner.mkdir(parents=True)
        assert run(app, "stock", "pears", cwd=inner).out == b"pears\n"

    def test_pyproject_settings_apply(self, app: Path, project: Path) -> None:
        pytest.importorskip("tomllib")
        self.write_settings(project, '[tool.tooli.apps.shop]\noutput = "plain"\n', "pyproject.toml")
        assert run(app, "stock", "pears", cwd=project).out == b"pears\n"

    def test_invalid_setting_names_file_and_line(self, app: Path, project: Path) -> None:
        self.write_settings(project, "output: json\nverbos: 2\nquiet: 7\n")
        done = run(app, "stock", "pears", cwd=project)
        assert done.code == 2
        error = read_envelope(done.out)["error"]
        assert error["code"] == "E1011"
        assert f"{project / '.tooli.yaml'}:2: unknown setting 'verbos'" in error["message"]
        assert len(error["details"]["errors"]) == 2
        done = run(app, "stock", "pears", "--text", cwd=project)
        assert (done.code, done.out) == (2, b"")
        assert b".tooli.yaml:2" in done.err.replace(b"\n", b"").replace(b" ", b"")

    def test_help_works_with_invalid_settings(self, app: Path, project: Path) -> None:
        self.write_settings(project, "verbos: 2\n")
        done = run(app, "--help", cwd=project)
        assert (done.code, done.out[:6]) == (0, b"Usage:")
        assert b"Warning: " in done.err

    @pytest.mark.skipif(os.name == "nt", reason="no such names there")
    def test_escapes_in_a_folder_name_are_removed(self, app: Path, project: Path) -> None:
        inner = project / "\x1b[31mred\u202e"
        inner.mkdir()
        self.write_settings(inner, "verbos: 2\n")
        for argv in (("--help",), ("stock", "x", "--text"), ("stock", "x", "--plain")):
            done = run(app, *argv, cwd=inner)
            assert b".tooli.yaml:1" in done.err.replace(b"\n", b"").replace(b" ", b"")
            assert b"\x1b" not in done.err
            assert "\u202e".encode() not in done.err

    def test_invalid_variable_is_named_in_the_error(self, app: Path) -> None:
        done = run(app, "stock", "x", "--json", env=environment(TOOLI_TIMEOUT="soon"))
        message = read_envelope(done.out)["error"]["message"]
        assert message == "TOOLI_TIMEOUT: timeout must be a number of seconds above 0, not soon"
        done = run(app, "stock", "x", "--json", env=environment(TOOLI_CONFIG="perhaps"))
        assert read_envelope(done.out)["error"]["message"] == (
            "TOOLI_CONFIG: must be on, off or user"
        )

    def test_security_settings_only_restrict(self, app: Path, project: Path) -> None:
        self.write_settings(project, "security_policy: off\n")
        assert run(app, "burn", "--json", cwd=project).code == 2
        self.write_settings(project, "security_policy: strict\n")
        done = run(app, "stock", "x", "--json", cwd=project)
        assert (done.code, read_envelope(done.out)["error"]["code"]) == (30, "E2002")
        env = environment(TOOLI_SECURITY_POLICY="off")
        assert run(app, "stock", "x", "--json", cwd=project, env=env).code == 30
        env = environment(TOOLI_SECURITY_POLICY="strict")
        assert run(app, "stock", "x", "--json", env=env).code == 30

    def test_verbose_and_no_input_settings_apply(self, app: Path, project: Path) -> None:
        self.write_settings(project, "verbose: 1\n")
        env = environment(AGENT="1")
        assert b"confidence" in run(app, "stock", "x", "--json", cwd=project, env=env).err
        done = run_on_terminal(app, "weigh", env=terminal(TOOLI_NO_INPUT="yes"))
        assert (done.out, b"[y/N]" in done.err) == (b"left\n", False)

    def test_colour_variable_and_flag_apply(self, app: Path) -> None:
        never = run_on_terminal(app, "miss", env=terminal(TOOLI_COLOR="never")).err
        assert b"\x1b[3" not in never
        always = run(app, "miss", "--text", env=environment(TOOLI_COLOR="always", NO_COLOR="1"))
        assert b"\x1b[" in always.err
        off = run(app, "miss", "--text", "--no-color", env=environment(TOOLI_COLOR="always"))
        assert b"\x1b[3" not in off.err

    def test_config_off_ignores_project_settings(self, app: Path, project: Path) -> None:
        self.write_settings(project, "output: plain\n")
        env = environment(TOOLI_CONFIG="off")
        assert read_envelope(run(app, "stock", "x", cwd=project, env=env).out)["ok"]

    def test_settings_of_a_caller_apply_to_that_caller_only(self, app: Path, project: Path) -> None:
        self.write_settings(project, "callers:\n  claude-code:\n    output: plain\n")
        assert run(app, "stock", "x", cwd=project, env=environment(**AGENT)).out == b"x\n"
        assert read_envelope(run(app, "stock", "x", cwd=project).out)["ok"]


class TestOtherInterfaces:
    @pytest.fixture(autouse=True)
    def system_config(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        file = tmp_path / "system.yaml"
        monkeypatch.setattr(config_files, "SYSTEM_CONFIG_PATH", str(file))
        monkeypatch.setattr(process, "SYSTEM_CONFIG_PATH", str(file))
        monkeypatch.setenv("TOOLI_CONFIG", "off")
        return file

    def make_app(self) -> Tooli:
        app = Tooli("shop")

        @app.command()
        def stock() -> str:
            """Return the stock."""
            return "pears"

        return app

    def test_every_interface_applies_the_system_policy(self, system_config: Path) -> None:
        from tooli.serving.dispatcher import ToolDispatcher

        assert self.make_app().call("stock").ok
        system_config.write_text("security_policy: strict\n")
        app = self.make_app()
        refused = app.call("stock")
        assert not refused.ok
        assert refused.error is not None
        assert refused.error.code == "E2002"
        served = self.make_app()
        ToolDispatcher(served)
        assert served._state.policy == "strict"

    @pytest.mark.parametrize(
        "text",
        [
            *("nonsense: 1", "}{", "human_in_the_loop: maybe", "security_policy: strct"),
            *("isolation: yes", "deny_paths:\n  a: b", "allow_paths: ''", "allow_paths: ':'"),
            *("work_dir: ''", "work_dir: /absent", "audit_log: ''", "store:\n  a: b"),
            *("timeout: soon", "token_key: ''", "rate_limit:\n  a: b"),
            "callers:\n  claude-code:\n    human_in_the_loop: true",
            "callers:\n  codex:\n    timeout: soon",
        ],
    )
    async def test_invalid_security_settings_stop_every_interface(
        self, system_config: Path, text: str
    ) -> None:
        from tooli.mcp.stdio_server import serve_stdio

        system_config.write_text(f"{text}\n")
        app = self.make_app()
        if "work_dir: /" not in text:  # only a standalone run changes the folder and detects it
            assert (invoke(app, "--json").error or {})["code"] == "E1011"
        by_python = app.call("stock")
        assert by_python.error is not None
        assert by_python.error.code == "E1011"
        assert by_python.error.message.startswith(str(system_config))
        with pytest.raises(InputError, match=r"system\.yaml"):
            list(app.stream("stock"))
        async_error = (await app.acall("stock")).error
        assert async_error is not None
        assert async_error.to_dict() == by_python.error.to_dict()
        for served in (app, self.make_app()):
            with pytest.raises(InputError) as caught:
                served.asgi()
            assert caught.value.code == "E1011"
            with pytest.raises(InputError):
                serve_stdio(served)

    @pytest.mark.parametrize("text", ["output: loud", "verbose: often", "max_items: few"])
    def test_invalid_cli_settings_affect_no_other_interface(
        self, system_config: Path, text: str
    ) -> None:
        system_config.write_text(f"{text}\n")
        assert self.make_app().call("stock").ok

    def test_settings_do_not_leak_into_the_next_run(self, system_config: Path) -> None:
        app = self.make_app()
        system_config.write_text("security_policy: strict\n")
        assert invoke(app, "--json").exit_code == 30
        system_config.unlink()
        assert invoke(app, "--json").exit_code == 0


class TestDetectContext:
    def test_fields_of_detect_context(self, app: Path) -> None:
        env = environment(**AGENT, GITHUB_ACTIONS="true", TOOLI_TIMEOUT="9")
        shown = read_envelope(run(app, "detect-context", env=env).out)["result"]
        documented_fields = (
            "category agent_name confidence is_agent is_ci is_interactive "
            "identified_via_convention caller_id caller_version session_id platform signals"
        ).split()
        assert list(shown)[: len(documented_fields)] == documented_fields
        assert (shown["caller_id"], shown["agent_name"]) == ("claude-code", "Claude Code")
        assert [candidate["name"] for candidate in shown["candidates"]][:2] == [
            "claude-code",
            "github-actions",
        ]
        assert shown["configuration"]["timeout"] == {"value": 9.0, "origin": "TOOLI_TIMEOUT"}
        assert shown["behavior"]["help"] == "compact"

    def test_default_timeout_of_an_agent(self, app: Path) -> None:
        shown = read_envelope(run(app, "detect-context", env=environment(**AGENT)).out)["result"]
        expected = {"value": 120.0, "origin": "default for ai_agent"}
        assert shown["configuration"]["timeout"] == expected
        shown = read_envelope(run(app, "detect-context").out)["result"]
        assert "timeout" not in shown["configuration"]

    def test_detect_context_as_text(self, app: Path) -> None:
        done = run_on_terminal(app, "detect-context", env=terminal(NO_COLOR="1"))
        shown = done.out.decode()
        assert done.code == 0
        assert "stdout is a terminal" in shown
        assert "candidates" in shown

    def test_detect_context_reports_invalid_settings(self, app: Path, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / ".tooli.yaml").write_text("verbos: 1\n")
        for argv in (("detect-context",), ("config", "show")):
            done = run(app, *argv, "--json", cwd=tmp_path)
            assert done.code == 0
            (fault,) = read_envelope(done.out)["result"]["faults"]
            assert fault.startswith(".tooli.yaml:1: unknown setting 'verbos'")

    def test_deep_detection_reports_signals(self, app: Path) -> None:
        shown = read_envelope(run(app, "detect-context", "--deep").out)["result"]
        assert shown["signals"]

    def test_config_show_reports_values_and_origins(self, app: Path, tmp_path: Path) -> None:
        (tmp_path / ".git").mkdir()
        (tmp_path / ".tooli.yaml").write_text("timeout: 7\noutput: plain\n")
        shown = parse_json(run(app, "config", "show", "-o", "jsonl", cwd=tmp_path).out)
        assert (shown["timeout"], shown["output"]) == (7.0, "jsonl")
        shown = parse_json(run(app, "config", "show", "--origin", "--jsonl", cwd=tmp_path).out)
        assert shown["timeout"] == {"value": 7.0, "layer": "project", "origin": ".tooli.yaml:1"}
        assert shown["output"]["overruled"][0] == {
            "value": "plain",
            "layer": "project",
            "origin": ".tooli.yaml:2",
        }

    def test_command_of_the_app_wins(self) -> None:
        app = Tooli("shop")

        @app.command()
        def config(name: str) -> str:
            """Its own."""
            return name

        @app.command()
        def other() -> None:
            """Another."""

        assert invoke(app, "config", "show", "--json").result == "show"
