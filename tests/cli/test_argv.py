"""Parameters named like framework flags or like Python names; flags at any position."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tooli import Tooli

NAMES = (
    *("json", "jsonl", "output", "limit", "schema", "help", "name", "self", "ctx", "kwargs"),
    *("version", "quiet", "input", "args", "text", "plain", "verbose", "yes", "timeout", "cls"),
    *("dry_run", "call", "tool", "mode", "app", "param", "argv", "result", "tool_name", "class_"),
)

app = Tooli("names", version="1")
group = Tooli("group")
inner = Tooli("inner")


def _register(name: str) -> None:
    """Register a command with an option of this name, and one with such an argument."""
    scope: dict[str, Any] = {}
    exec(f"def option({name}: str = 'd') -> str:\n    return {name}", scope)
    exec(f"def argument({name}: str) -> str:\n    return {name}", scope)
    app.command(f"option-{name.replace('_', '-')}")(scope["option"])
    app.command(f"argument-{name.replace('_', '-')}")(scope["argument"])


for _name in NAMES:
    _register(_name)


@app.command()
def every(
    json: str = "j", output: int = 1, schema: bool = False, help: str = "h", input: str = "i"
) -> list[Any]:
    """Return all parameters, which are named like framework flags."""
    return [json, output, schema, help, input]


@inner.command()
def leaf(text: str, count: int = 1) -> str:
    """Repeat a text."""
    return text * count


group.add_typer(inner, name="inner")
app.add_typer(group, name="group")


@pytest.fixture(autouse=True)
def no_caller_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOLI_OUTPUT", "TOOLI_CALLER", "TOOLI_SESSION_ID", "CLAUDECODE", "AGENT"):
        monkeypatch.delenv(name, raising=False)


def run_app(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        app(list(argv))
    return int(end.value.code or 0), capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_flag_of_the_command_wins(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    option_name = name.replace("_", "-")
    code, out = run_app(
        capsys, f"option-{option_name}", f"--{option_name}", "given", "--tooli-json"
    )
    assert (code, json.loads(out)["result"]) == (0, "given")
    code, out = run_app(
        capsys, f"option-{option_name}", f"--{option_name}=given", "--tooli-output=json"
    )
    assert (code, json.loads(out)["result"]) == (0, "given")
    code, out = run_app(capsys, f"argument-{option_name}", "given", "--json")
    assert (code, json.loads(out)["result"]) == (0, "given")
    code, out = run_app(capsys, f"option-{option_name}", "--tooli-json")
    assert (code, json.loads(out)["result"]) == (0, "d")


@pytest.mark.parametrize("name", NAMES)
def test_parameter_can_be_set_by_payload_and_from_python(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    option_name = name.replace("_", "-")
    payload = json.dumps({name: "given"})
    code, out = run_app(capsys, f"option-{option_name}", "--tooli-input", payload, "--tooli-json")
    assert (code, json.loads(out)["result"]) == (0, "given")
    assert app.call(f"option-{option_name}", **{name: "given"}).unwrap() == "given"


def test_framework_flag_with_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run_app(capsys, "every", "--json", "a", "--output", "3", "--schema", "--tooli-json")
    assert (code, json.loads(out)["result"]) == (0, ["a", 3, True, "h", "i"])
    code, out = run_app(capsys, "every", "--tooli-schema")
    assert set(json.loads(out)["input_schema"]["properties"]) >= {"json", "output", "help"}
    code, out = run_app(capsys, "every", "--tooli-help", "--plain")
    assert out.startswith("Usage: ")
    assert "--help str" in out
    code, out = run_app(capsys, "--json", "every", "--tooli-json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "E1007"


LINES = (
    "--json group inner leaf x --count 2",
    "group --json inner leaf x --count 2",
    "group inner --json leaf x --count 2",
    "group inner leaf --json x --count 2",
    "group inner leaf x --json --count 2",
    "group inner leaf x --count 2 --json",
    "--text group --plain inner --output jsonl leaf x --count 2 --output=json",
    "-ojson group inner leaf x --count=2",
    "-q -v group -vv inner leaf x --count 2 -o json",
    "group inner leaf --count 2 --json -- x",
)


@pytest.mark.parametrize("line", LINES)
def test_flags_at_any_position(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run_app(capsys, *line.split())
    found = json.loads(out)
    assert (code, found["result"]) == (0, "xx")


def test_command_in_a_nested_group_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run_app(capsys, "group", "inner", "leaf", "x", "--json")[1])
    assert found["meta"]["tool"] == "names.group.inner.leaf"
    assert found["meta"]["version"] == "1"


@pytest.mark.parametrize(
    "line", ["group.inner.leaf x", "group inner.leaf x", "--json group.inner leaf x"]
)
def test_key_of_a_command_is_its_path(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Search and documents name a command by its key."""
    code, out = run_app(capsys, *line.split(), "--json", "--count", "2")
    assert (code, json.loads(out)["result"]) == (0, "xx")


@pytest.mark.parametrize("line", ["group.inner.laef x", "group.", ".leaf", "group..leaf", "leaf.x"])
def test_key_of_no_command_is_an_error(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run_app(capsys, *line.split(), "--json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "E1001")


def test_command_with_a_dot_in_its_name_wins(capsys: pytest.CaptureFixture[str]) -> None:
    own, nested = Tooli("own"), Tooli("a")
    own.command("a.b")(lambda: 1)
    own.command("other")(lambda: 2)
    nested.command("b")(lambda: 3)
    nested.command("c")(lambda: 4)
    own.add_typer(nested, name="a")
    for argv, expected in ((["a.b"], 1), (["a", "b"], 3), (["a.c"], 4)):
        with pytest.raises(SystemExit):
            own([*argv, "--json"])
        assert json.loads(capsys.readouterr().out)["result"] == expected


def test_double_dash_ends_the_flags(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run_app(capsys, "group", "inner", "leaf", "--json", "--", "--json")
    assert (code, json.loads(out)["result"]) == (0, "--json")
