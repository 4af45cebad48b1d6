"""Typer programs with Tooli answer agents and machine modes as well."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.app_process import parse_json
from tests.integration.typer_apps.comparison import Observed, Programs

AGENT = {"AI_AGENT": "somebody"}
CI = {"CI": "true"}


def envelope(observed: Observed) -> dict[str, Any]:
    return parse_json(observed.out)


@pytest.mark.parametrize(
    ("program", "line", "result"),
    [
        ("aliases", "rm a --json", "removed a False"),
        ("aliases", "--json rem a -f", "removed a True"),
        ("aliases", "config --json --tooli-json", "config all True"),
        ("aliases", "docs llms --json", "docs llms"),
        ("lazy", "alpha --json --tooli-json", "alpha 1 True"),
        ("lazy", "-v beta --value 3 --tooli-json", "verbose\nbeta 3 False"),
        ("default_command", "a --tooli-json", "show ['a'] False"),
        ("command_class", "run x --json --tooli-json", "run x True"),
        ("callback_only", "--tooli-json --json src", "list src True 10"),
        ("guarded", "--user Bo items add x --json", "add x Bo"),
        ("guarded", "--version --json", "guarded 2.0"),
        ("positional_callback", "p build --json", "project p False\nbuild all"),
        ("passthrough", "run -x --json --tooli-json", "run 0 ['-x', '--json']"),
        ("passthrough", "--json run -x --limit 3", "run 0 ['-x', '--limit', '3']"),
        ("passthrough_single", "ls --tooli-json --json", "ls ['--json']"),
        ("printing", "returns --json", {"returned": True}),
        ("printing", "anything --json", ["returned"]),
        ("printing", "plain --json", "Hello World"),
    ],
)
def test_result_in_json(programs: Programs, program: str, line: str, result: object) -> None:
    """Flags of the program are its own; `--tooli-NAME` is always tooli's."""
    observed = programs.run(program, *line.split())
    assert (observed.code, envelope(observed)["result"]) == (0, result)


@pytest.mark.parametrize(
    ("program", "line", "result"),
    [
        ("aliases", "config --json", "config all True"),
        ("lazy", "alpha --json", "alpha 1 True"),
        ("callback_only", "--version", "callback-only 1.2.3"),
        ("passthrough", "run --json", "run 0 ['--json']"),
        ("printing", "plain", "Hello World"),
    ],
)
@pytest.mark.parametrize("env", [AGENT, {"TOOLI_OUTPUT": "json"}], ids=["agent", "variable"])
def test_result_for_an_agent(
    programs: Programs, program: str, line: str, result: str, env: dict[str, str]
) -> None:
    observed = programs.run(program, *line.split(), env=env)
    assert (observed.code, envelope(observed)["result"]) == (0, result)


@pytest.mark.parametrize(
    ("program", "line", "code"),
    [
        ("aliases", "x --json", "E1001"),
        ("aliases", "--json", "E1001"),
        ("aliases", "rm --json", "E1002"),
        ("lazy", "gamma --json", "E1001"),
        ("guarded", "--user Bo items nope --json", "E1001"),
        ("positional_callback", "--json", "E1002"),
        ("no_args", "--json", "E1001"),
        ("printing", "plian --json", "E1001"),
        ("printing", "plain --nope --json", "E1004"),
        ("printing", "--version --json", "E1007"),
    ],
)
def test_usage_error_in_json(programs: Programs, program: str, line: str, code: str) -> None:
    observed = programs.run(program, *line.split())
    error = envelope(observed)["error"]
    assert (observed.code, error["code"], bool(error["message"])) == (2, code, True)


def test_builtin_command_of_an_app_with_a_custom_group(programs: Programs) -> None:
    observed = programs.run("aliases", "tooli", "generate-skill")
    assert (observed.code, observed.out[:4]) == (0, "---\n")


class TestMixedApp:
    """Some commands of the app declare a result."""

    @pytest.mark.parametrize(
        ("line", "is_json"),
        [
            ("size abc", True),
            ("size", True),
            ("show abc", False),
            ("show", False),
            ("nope", True),
            ("", True),
            ("--help", False),
            ("--nope", True),
            ("--version", False),
        ],
    )
    def test_pipe(self, programs: Programs, line: str, is_json: bool) -> None:
        """A line follows its command; without one, it follows the app. Information is text."""
        observed = programs.run("mixed", *line.split())
        assert observed.out.startswith('{"ok"') is is_json
        assert is_json or observed.out or observed.err

    def test_version_of_a_callback(self, programs: Programs) -> None:
        assert programs.run("mixed", "--version").out == "mixed 3.0\n"
        observed = programs.run("mixed", "--version", env=AGENT)
        assert envelope(observed)["result"] == "mixed 3.0"


def test_unexpected_exception_in_text_mode_exits_with_1(programs: Programs) -> None:
    """The traceback is not shown, because the message has a control character."""
    observed = programs.run("printing", "escape")
    assert observed.code == 1
    assert "\x1b" not in observed.err


# ------------------------------------------------------------------ questions


@pytest.mark.parametrize(
    ("line", "option"),
    [("init", "--name"), ("login --user x", "--password"), ("delete a", "--force")],
)
@pytest.mark.parametrize(
    ("flags", "env"),
    [("--json", {}), ("--no-input", {}), ("--text --no-input", {}), ("", AGENT), ("", CI)],
    ids=["json", "no-input", "text", "agent", "ci"],
)
def test_prompt_of_an_option_that_nobody_answers(
    programs: Programs, line: str, option: str, flags: str, env: dict[str, str]
) -> None:
    """It does not wait, takes no default and names the option. Stdin is an open, silent pipe."""
    observed = programs.run("prompts", *line.split(), *flags.split(), stdin=None, env=env)
    assert observed.code == 2, observed
    assert option in observed.out + observed.err
    assert not observed.files


@pytest.mark.parametrize("line", ["confirm", "prompt", "builtin", "secret"])
@pytest.mark.parametrize(
    ("flags", "env"),
    [("--json", {}), ("--jsonl", {}), ("--no-input", {}), ("", AGENT), ("", CI)],
    ids=["json", "jsonl", "no-input", "agent", "ci"],
)
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_question_of_a_command_that_nobody_answers(
    programs: Programs, line: str, flags: str, env: dict[str, str], terminal: bool
) -> None:
    observed = programs.run("prompts", line, *flags.split(), stdin=None, env=env, terminal=terminal)
    assert observed.code == 2, observed
    assert "nobody can answer" in observed.out + observed.err
    assert f"prompts.py {line}" in observed.out + observed.err  # a line to try


def test_error_names_the_flag_that_confirms(programs: Programs) -> None:
    observed = programs.run("prompts", "purge", "--json", stdin=None)
    error = envelope(observed)["error"]
    assert error["code"] == "E1038"
    assert "Remove everything?" in error["message"]
    assert "--yes-really" not in error["suggestion"]["fix"]
    assert "--force" in error["suggestion"]["fix"]
    assert programs.run("prompts", "purge", "--force", "--json").code == 0


def test_agent_pipes_the_answer_in_text_mode(programs: Programs) -> None:
    """As the suggestion of the error says."""
    observed = programs.run("prompts", "confirm", "--text", stdin=b"y\n", env=AGENT)
    assert (observed.code, observed.out.splitlines()[-1][-7:]) == (0, "removed")


def test_command_that_asks_nothing_ignores_a_silent_pipe(programs: Programs) -> None:
    for flags in ([], ["--no-input"], ["--json"]):
        assert programs.run("prompts", "silent", *flags, stdin=None).code == 0
