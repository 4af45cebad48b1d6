"""The program `tooli`, in real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from tests.integration.app_process import environment
from tests.integration.mcp.stdio_client import LAUNCHER_CODE, connect, launcher_command
from tests.sources.source_home import SourceHome

from tooli.launcher import find_source
from tooli.sources.loader import load_app

PROGRAM = Path(sys.executable).parent / "tooli"
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test-client", "version": "1"},
}


def run(*argv: str, folder: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", "from tooli.launcher import main; main()"]
    return subprocess.run(
        [*program, *argv],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(),
        timeout=60,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plain.py").write_text(
        "import typer\n"
        "cli = typer.Typer()\n"
        "@cli.command()\n"
        "def greet(name: str, loud: bool = False):\n"
        "    print(name.upper() if loud else name)\n"
        "@cli.command()\n"
        "def leave(): ...\n"
        "if __name__ == '__main__': cli()\n"
    )
    (tmp_path / "two.py").write_text(
        "from tooli import Tooli\none, other = Tooli('one'), Tooli('other')\n"
        "other.command('run')(lambda: 'ran')\n"
    )
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    return tmp_path


def test_serve_runs_a_typer_app_over_mcp(folder: Path) -> None:
    call = {"name": "greet", "arguments": {"name": "ann", "loud": True}}
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    done = run("serve", "plain.py", folder=folder, stdin="\n".join(map(json.dumps, lines)))
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["result"]["serverInfo"]["name"] == "plain"
    assert second["result"]["content"] == [{"type": "text", "text": "ANN"}]


@pytest.mark.parametrize("which", ["plain.py", "plain.py:cli", "plain:cli", "plain"])
def test_app_is_found_by_file_or_module_reference(folder: Path, which: str) -> None:
    done = run("tools", which, "--json", folder=folder)
    found = json.loads(done.stdout)["result"]
    assert [tool["name"] for tool in found] == ["greet", "leave"]


@pytest.mark.parametrize(
    ("which", "code", "message"),
    [
        ("missing.py", 10, "no file"),
        ("missing.mod:app", 10, "no module"),
        ("two.py", 2, "one, other"),
        ("two.py:third", 2, "one, other"),
        ("none.py", 2, "no app"),
    ],
)
def test_missing_or_ambiguous_app_is_an_error(
    folder: Path, which: str, code: int, message: str
) -> None:
    done = run("tools", which, "--json", folder=folder)
    assert (done.returncode, message in json.loads(done.stdout)["error"]["message"]) == (
        code,
        True,
    )


def test_import_error_of_an_app_is_reported(folder: Path) -> None:
    done = run("tools", "broken.py", "--json", folder=folder)
    assert "nothing_of_this_name" in json.loads(done.stdout)["error"]["message"]


def test_help_lists_the_serve_command(folder: Path) -> None:
    assert "serve" in run("--help", "--text", folder=folder).stdout


@pytest.mark.parametrize(
    "argv",
    [
        ["mcp", "export", "plain.py"],
        ["plain.py", "mcp", "export"],
        ["mcp", "export", "plain:cli"],
    ],
)
def test_builtin_command_of_an_app(folder: Path, argv: list[str]) -> None:
    done = run(*argv, folder=folder)
    assert [tool["name"] for tool in json.loads(done.stdout)["tools"]] == ["greet", "leave"]


def test_builtin_command_runs_whatever_the_app_does_with_its_words(folder: Path) -> None:
    (folder / "words.py").write_text(
        "from tooli import Tooli\napp = Tooli('words')\n"
        "@app.command()\ndef show(words: list[str]): print(words)\n"
    )
    done = run("docs", "llms", "words.py", folder=folder)
    assert done.stdout.startswith("# file: llms.txt\n# words\n")


def test_suggestion_for_a_builtin_command_of_an_app_works(folder: Path) -> None:
    done = run("export", "plain.py", "--target", "opnai", "--json", folder=folder)
    argv = json.loads(done.stdout)["error"]["suggestion"]["argv"]
    assert argv == ["tooli", "plain.py", "export", "--target", "openai", "--json"]
    assert run(*argv[1:], folder=folder).returncode == 0


def test_builtin_command_of_a_missing_app(folder: Path) -> None:
    done = run("docs", "llms", "missing.py", "--json", folder=folder)
    assert done.returncode == 10
    assert json.loads(done.stdout)["error"]["message"] == "There is no file 'missing.py'."


def test_builtin_commands_of_the_launcher_itself(folder: Path) -> None:
    assert run("docs", "llms", folder=folder).stdout.startswith("# file: llms.txt\n# tooli\n")
    assert run("approvals", "list", "plain.py", folder=folder).returncode == 2


def test_version(folder: Path) -> None:
    done = run("--version", folder=folder)
    assert done.stdout.split()[0] == "tooli" and done.stdout.split()[1][0].isdigit()


def test_names_stay_the_same_when_a_typer_app_becomes_a_tooli_app(folder: Path) -> None:
    source = (
        "import typer\nfrom {module} import {cls} as App\napp = App()\nsub = App()\n"
        "app.add_typer(sub, name='sub')\n"
        "@app.callback()\ndef main(level: int = 0): ...\n"
        "@app.command()\ndef say_hi(name: str): print(name)\n"
        "@sub.command('x')\ndef other(level: int = 1): print(level)\n"
    )
    found: list[list[str]] = []
    for module, cls in (("typer", "Typer"), ("tooli", "Tooli")):
        path = folder / "same_names.py"
        path.write_text(source.replace("{module}", module).replace("{cls}", cls))
        app = load_app(str(path))
        found.append([f"{tool.id} {sorted(tool.param_names)}" for tool in app.catalog])
    assert found[0] == found[1]
    assert found[0] == [
        "same-names.say-hi ['level', 'name']",
        "same-names.sub.x ['app_level', 'level']",
    ]


def test_second_command_of_one_name_replaces_the_first_one(folder: Path) -> None:
    """`tooli run` does not change programs. In other apps it is an error."""
    commands = "\n".join(f"@app.command('a')\ndef f{i}(): print({i})" for i in (1, 2))
    source = f"import typer\napp = typer.Typer()\n{commands}\n@app.command()\ndef b(): ...\n"
    (folder / "twice.py").write_text(source)
    assert run("run", "twice.py", "a", folder=folder).stdout == "2\n"


# ------------------------------------------------------------------ sources


@pytest.fixture
def desk(tmp_path: Path) -> SourceHome:
    return SourceHome(tmp_path)


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["app.py", "docs", "llms"], (0, 1)),
        (["docs", "llms", "app.py"], (2, 3)),
        (["--include", "a", "@x", "docs", "llms"], (0, 3)),
        (["mcp", "export", "--read-only", "files:x", "--json"], (2, 4)),
        (["generate-skill", "@x"], (1, 2)),
        (["tools", "app.py"], None),
        (["approvals", "list", "app.py"], None),
        (["registry", "show", "@x"], None),
        (["adopt", "x", "files:y"], None),
        (["docs", "llms"], None),
        (["docs", "llms", "--include"], None),
        (["--include", "a"], None),
        ([], None),
    ],
)
def test_source_in_a_line(argv: list[str], found: tuple[int, int] | None) -> None:
    assert find_source(argv) == found


def test_sources_in_all_commands(desk: SourceHome) -> None:
    assert [tool["name"] for tool in desk("tools", "files:desk")["result"]] == [
        "list-orders",
        "cancel",
    ]
    assert desk("run", "files:desk", "list-orders", "--limit", "1")["result"] == [1]
    suggestion = desk("run", "--exclude", "x y", "files:desk", "list-orders", "--limt", "1")
    assert suggestion["error"]["suggestion"]["argv"] == [
        *("tooli", "run", "--exclude", "x y", "files:desk"),
        *("list-orders", "--limit", "1", "--json"),
    ]
    text = desk.start("docs", "llms", "--read-only", "files:desk").stdout
    folder = desk.folder / "desk"
    assert f"tooli run --read-only files:{folder} COMMAND" in text
    assert "cancel" not in text
    assert "list-orders" in desk.start("files:desk", "generate-skill").stdout
    assert "list_orders" in desk.start("export", "files:desk", "--target", "openai").stdout
    added = desk("mcp", "add", "files:desk", "--agent", "cursor", PATH=str(PROGRAM.parent))
    assert added["result"][0]["action"] == "created"
    entry = json.loads((desk.folder / ".cursor" / "mcp.json").read_text())["mcpServers"]["desk"]
    assert entry["args"][-4:] == ["serve", f"files:{folder}", "--transport", "stdio"]


def test_failing_source_is_loaded_once(desk: SourceHome) -> None:
    (desk.folder / "once.py").write_text(
        "from pathlib import Path\nfrom tooli.errors import ToolRuntimeError\n"
        "with Path('runs').open('a') as file:\n    file.write('x')\n"
        "raise ToolRuntimeError('It failed.')\n"
    )
    for argv in (["run", "once.py", "a"], ["docs", "llms", "once.py"], ["once.py", "docs", "llms"]):
        (desk.folder / "runs").unlink(missing_ok=True)
        done = desk.start(*argv, "--json")
        assert json.loads(done.stdout)["error"]["message"] == "It failed."
        assert done.returncode == 70
        assert (desk.folder / "runs").read_text() == "x"


def test_source_that_is_not_written_correctly(desk: SourceHome) -> None:
    for argv, field in (
        (["run", "--include", "a", "--header", "files:desk", "x"], "headers"),
        (["--database", "a.db", "files:desk", "docs", "llms"], "database"),
        (["run", "files:"], "source"),
        (["tools", "shop.json"], "source"),
    ):
        assert desk(*argv)["error"]["field"] == field


@pytest.mark.parametrize(
    ("flags", "has_api", "has_mcp"),
    [
        (["--api"], True, True),
        (["--no-mcp"], True, False),
        (["--transport", "http"], True, True),
        (["--transport", "http", "--no-api"], False, True),
    ],
)
def test_interfaces_over_http(
    desk: SourceHome, flags: list[str], has_api: bool, has_mcp: bool
) -> None:
    command = [sys.executable, "-c", LAUNCHER_CODE, "serve", "files:desk", "--port", "0", *flags]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=desk.env, cwd=desk.folder
    ) as process:
        try:
            assert process.stderr is not None
            base = process.stderr.readline().split()[-1].removesuffix("/mcp")
            answer = httpx2.post(f"{base}/tools/list-orders", json={"limit": 1})
            assert (answer.status_code, answer.json().get("result")) == (
                (200, [1]) if has_api else (404, None)
            )
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}
            accept = {"Accept": "application/json, text/event-stream"}
            status = httpx2.post(f"{base}/mcp", json=hello, headers=accept).status_code
            assert status == (200 if has_mcp else 404)
        finally:
            process.terminate()
            process.wait(30)


def test_interfaces_that_contradict_each_other(desk: SourceHome) -> None:
    for flags in (
        ["--no-api", "--no-mcp"],
        ["--api", "--transport", "stdio"],
        ["--no-mcp", "--transport", "sse"],
    ):
        assert desk.start("serve", "files:desk", *flags).returncode == 2


def test_mcp_client_of_a_source(desk: SourceHome) -> None:
    command = launcher_command("files:desk", "--read-only")
    with connect("desk", command=command, env=desk.env, cwd=desk.folder) as client:
        tools = client.result("tools/list")["tools"]
        assert [tool["name"] for tool in tools] == ["list_orders"]
        assert client.call("list_orders", {"limit": 1})["structuredContent"] == {"result": [1]}


def test_completion_knows_sources(desk: SourceHome) -> None:
    desk("adopt", "desk", "files:desk")

    def complete(words: str) -> list[str]:
        count = len(words.split(" ")) - 1
        variables = {"_TOOLI_COMPLETE": "complete_bash", "COMP_WORDS": words}
        env = {**desk.env, **variables, "COMP_CWORD": str(count)}
        done = subprocess.run([PROGRAM], capture_output=True, text=True, env=env, timeout=60)
        return done.stdout.split()

    assert complete("tooli tools @") == ["@desk"]
    assert complete("tooli adopt x o") == ["openapi:"]
    assert complete("tooli registry f") == ["forget"]
    assert "--install" in complete("tooli adopt --in")
    (desk.folder / ".config" / "tooli" / "sources.json").write_text("{")
    assert complete("tooli tools @") == []
