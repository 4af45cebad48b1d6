"""Typer programs behave with Tooli as with Typer: output, exit code and files, byte by byte."""

from __future__ import annotations

import pytest
from tests.integration.typer_apps.comparison import Programs

LINES = {
    "printing": (
        *("", "--help", "plain", "plain --help", "plain --name Bo", "nothing -c 2", "nothing -c 9"),
        *("returns", "anything", "thing", "leave", "quoted", "code", "abort", "bad", "missing"),
        *("crash", "old", "users", "users --help", "users create Ada", "users create"),
        *("users creat Ada", "plian", "--nope", "plain --nope", "plain extra", "--version"),
        *("plain --version", "nothing --count x"),
    ),
    "aliases": (
        *("", "--help", "rm a", "rem a -f", "remove --help", "config", "config --json"),
        *("json --json", "skills", "docs", "docs llms", "mcp", "con", "x", "r", "rm"),
        *("export", "generate-skill", "detect-context"),
    ),
    "lazy": (
        *("", "--help", "alpha", "alpha --json", "beta --value 3 --json", "export", "-v export"),
        *("gamma", "alpha --help", "beta --help", "beta --value x", "alpha --value x", "-v"),
        "--version",
    ),
    "default_command": ("", "status", "a b", "a --json", "--json a", "skills", "docs", "show x"),
    "command_class": ("run x", "run x --json", "run --help", "run", "plain --json"),
    "callback_only": (
        *("", ".", "src", "--version", "-V", "--json", "src --json", "--limit 3", "--help"),
        *("src --limit x", "--nope", "config", "docs", "a b"),
    ),
    "guarded": (
        *("", "--version", "show", "show -q", "-vv show", "--user root show", "--user Ada show"),
        *("items", "items add x", "--user Bo items add x", "items export", "--help"),
        *("items --help", "show --help", "nope", "items nope", "--user", "items add", "--nope"),
    ),
    "positional_callback": (
        *("", "p build", "p -n build", "-n p build --target x", "p", "build", "p test a b"),
        *("p nope", "--help", "p --help", "p build --help", "p --dry-run test x", "docs build"),
    ),
    "passthrough": (
        *("run --json --yes -q -v --limit 3", "run a --help-agent", "run --level 2 -x --json y"),
        *("pytest -x --json -q", "pytest -- --json", "proxy --help --json", "proxy", "run --help"),
        *("extra n a b", "extra n --json", "extra n --nope", "execute ls -l --json"),
        *("execute --json ls", "execute ls --help", "ordinary --name y", "run --version"),
        *("run --schema", "--help"),
    ),
    "passthrough_single": (
        *("ls -l --json", "ls --limit 3 -q", "--help", "", "ls --help", "--json ls"),
        *("ls --version", "mcp serve"),
    ),
    "inherited_settings": ("-h", "Ada -x --json", "Ada", ""),
    "single": ("Ada", "", "Ada --formal", "Ada Bo", "--nope", "Ada -l 2", "Ada -l x", "--version"),
    "no_args": (
        *("", "greet", "greet x", "sub", "sub one", "sub two x", "--help", "greet --help", "x"),
    ),
    "prompts": ("silent", "init --name x --port 1 --use-git", "delete a -f", "init --help"),
}

ANSWERS = {
    "init": (b"a\n1\nn\n", b"\n\n\n", b"a\nx\n2\ny\n"),
    "login": (b"u\np\np\n", b"u\np\nq\nr\nr\n"),
    "delete a": (b"y\n", b"n\n", b"\n"),
    "confirm": (b"y\n", b"n\n", b"\n"),
    "prompt": (b"Ada\n", b"\n"),
    "builtin": (b"x\n",),
    "secret": (b"x\n",),
}
"""Lines of the program `prompts`, and what is typed or piped."""


TERMINAL_LINES = {
    "printing": ("", "returns", "anything", "crash", "old", "plian", "--version", "users --help"),
    "aliases": ("--help", "rm a", "json --json", "docs llms", "mcp", "x"),
    "lazy": ("--help", "alpha --json", "beta --value 3 --json", "gamma"),
    "default_command": ("", "a --json", "docs"),
    "callback_only": ("src", "--version", "--json", "docs"),
    "guarded": ("", "--version", "-vv show", "--user root show", "items", "nope"),
    "positional_callback": ("p build", "p", "p build --help"),
    "passthrough": ("run --json --yes -q -v --limit 3", "proxy --help --json", "execute --json ls"),
    "passthrough_single": ("--json ls", "mcp serve"),
    "no_args": ("", "greet", "sub"),
    "prompts": ("silent",),
}


def _flatten(lines: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    return [(program, line) for program, group in lines.items() for line in group]


@pytest.mark.parametrize(("program", "line"), _flatten(LINES))
def test_line_in_a_pipe(programs: Programs, program: str, line: str) -> None:
    argv = line.split()
    assert programs.run(program, *argv) == programs.run(program, *argv, kind="typer")


@pytest.mark.parametrize(("program", "line"), _flatten(TERMINAL_LINES))
def test_line_at_a_terminal(programs: Programs, program: str, line: str) -> None:
    argv = line.split()
    expected = programs.run(program, *argv, kind="typer", terminal=True)
    assert programs.run(program, *argv, terminal=True) == expected


@pytest.mark.parametrize(
    ("line", "answer"), [(line, answer) for line, answers in ANSWERS.items() for answer in answers]
)
def test_prompt_in_a_pipe(programs: Programs, line: str, answer: bytes) -> None:
    argv = line.split()
    expected = programs.run("prompts", *argv, kind="typer", stdin=answer)
    assert programs.run("prompts", *argv, stdin=answer) == expected


@pytest.mark.parametrize("line", ["init", "delete a", "confirm", "prompt", "builtin"])
def test_prompt_at_a_terminal(programs: Programs, line: str) -> None:
    argv, answer = line.split(), ANSWERS[line][0]
    expected = programs.run("prompts", *argv, kind="typer", stdin=answer, terminal=True)
    assert programs.run("prompts", *argv, stdin=answer, terminal=True) == expected


@pytest.mark.parametrize("line", [*ANSWERS, "read", "silent"])
@pytest.mark.parametrize("variable", ["TOOLI_OUTPUT", "PLAIN"])
def test_prompt_at_the_end_of_stdin(programs: Programs, line: str, variable: str) -> None:
    """Typer aborts. The default of a prompt is not taken."""
    env = {variable: "text"}
    expected = programs.run("prompts", *line.split(), kind="typer", env=env)
    assert programs.run("prompts", *line.split(), env=env) == expected
    assert "settings.txt" not in expected.files


@pytest.mark.parametrize(
    ("program", "line", "answer"),
    [
        ("printing", "returns", b""),
        ("printing", "crash", b""),
        ("printing", "plian", b""),
        ("printing", "--help", b""),
        ("aliases", "rm a", b""),
        ("guarded", "--version", b""),
        ("prompts", "init", b"a\n1\nn\n"),
        ("prompts", "confirm", b"y\n"),
        ("prompts", "builtin", b"x\n"),
    ],
)
def test_line_in_ci(programs: Programs, program: str, line: str, answer: bytes) -> None:
    """A CI system pipes its answers, if any."""
    argv, env = line.split(), {"CI": "true"}
    expected = programs.run(program, *argv, kind="typer", stdin=answer, env=env)
    assert programs.run(program, *argv, stdin=answer, env=env) == expected


@pytest.mark.parametrize("program", ["printing", "guarded", "aliases"])
def test_help_has_two_more_panels(programs: Programs, program: str) -> None:
    """With the help of the framework, the rest of the help is the same."""
    env = {"TOOLI_FRAMEWORK_HELP": "1"}
    expected = programs.run(program, "--help", kind="typer", env=env)
    found = programs.run(program, "--help", env=env)
    typer_help = found.out.partition("╭─ Built-in")[0].partition("╭─ Framework options")[0]
    assert typer_help.rstrip("\n") == expected.out.rstrip("\n")
    assert (found.code, found.err) == (expected.code, expected.err)
