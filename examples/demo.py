"""`make demo`: show file-tools at a terminal, for agents, and from Python, MCP and HTTP.

Every command really runs, in a temporary folder that is also its home folder. The demo marks
a step with an unexpected result and then ends with exit code 1.
"""

import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from terminal import run_at_terminal, strip_escapes

EXAMPLES = Path(__file__).resolve().parent
BENCHMARKS = EXAMPLES.parent / "benchmarks" / "apps"

FILES = {
    "src/main.py": "from util import greet\n\ngreet()  # TODO: say to whom\n",
    "src/util.py": "def greet():\n    print('hello')  # TODO: in other languages\n",
    "src/deep/table.py": "ROWS = []\n",
    "docs/notes.txt": "TODO: write more\n",
    "docs/plan.txt": "one, two, three\n",
    "old.log": "nobody reads this\n",
    "rule.json": '{"match": "*.md", "replace": {"old": "draft-", "new": ""}}\n',
}

LAUNCHER = """\
#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
import sys
sys.path.insert(0, {examples!r})
from file_tools.app import app
app()
"""

PYTHON = """\
from file_tools.app import app

found = app.call("find-files", pattern="*.py", root="src", max_depth=1)
print([file["path"] for file in found.unwrap()], found.meta["warnings"])

wrong = app.find_files(patterns="*.py", root="nowhere")
print(wrong.ok, [error["message"] for error in wrong.error.details["errors"]])

for match in app.stream("search", text="TODO", root="src"):
    print(match["path"], match["line"])
"""


class Demo:
    """A folder with files, `file-tools` on the PATH, and the transcript of what was run."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "project"
        self.failures: list[str] = []
        self.color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        programs = home / "bin"
        programs.mkdir()
        launcher = programs / "file-tools"
        launcher.write_text(
            LAUNCHER.format(python=shlex.quote(sys.executable), examples=str(EXAMPLES))
        )
        launcher.chmod(0o755)
        for name, text in FILES.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        keep = {key: os.environ[key] for key in ("LANG", "TMPDIR") if key in os.environ}
        self.env = keep | {
            "HOME": str(home),
            "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "PYTHONPATH": str(EXAMPLES),
            "PYTHONPYCACHEPREFIX": str(home / "bytecode"),
            "PYTHONIOENCODING": "utf-8",
            "TERM": "xterm-256color",
        }

    # -------------------------------------------------------------- the transcript

    def heading(self, text: str) -> None:
        """Start a section."""
        self._write(f"\n{self._paint('1', text)}\n{'═' * len(text)}\n")

    def remark(self, text: str) -> None:
        """Explain the next step."""
        self._write(f"\n{self._paint('3', text)}\n")

    def check(self, condition: bool, expectation: str) -> None:
        """Record and print an expectation that is not met."""
        if not condition:
            self.failures.append(expectation)
            self._write(f"{self._paint('31', '✗')} Expected: {expectation}\n")

    def _paint(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color else text

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    # -------------------------------------------------------------- running things

    def in_pipe(self, *argv: str, code: int = 0) -> str:
        """Run a command with its output in a pipe, as a program would."""
        self._write(f"$ {shlex.join(argv)}\n")
        done = subprocess.run(
            argv, cwd=self.folder, env=self.env, capture_output=True, encoding="utf-8"
        )
        self._write(done.stdout + done.stderr)
        self.check(done.returncode == code, f"exit code {code}, not {done.returncode}")
        return done.stdout

    def in_pipe_json(self, *argv: str, code: int = 0) -> dict[str, Any]:
        """Run a command and return the JSON document that it prints."""
        answer: dict[str, Any] = json.loads(self.in_pipe(*argv, code=code))
        self.check(answer["ok"] is (code == 0), "`ok` agrees with the exit code")
        return answer

    def at_terminal(self, *argv: str, code: int = 0, answer: str = "") -> str:
        """Run a command at a terminal, where a person can answer a question."""
        self._write(f"$ {shlex.join(argv)}\n")
        shown, exit_code = run_at_terminal(argv, self.folder, self.env, width=96, answer=answer)
        text = strip_escapes(shown)
        self._write(shown if self.color else text)
        self.check(exit_code == code, f"exit code {code}, not {exit_code}")
        return text

    # -------------------------------------------------------------- talking to servers

    def send_lines(
        self, argv: Sequence[str], lines: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Start a server, send it lines, and return its answers."""
        self._write(f"$ {shlex.join(argv)}\n")
        sent = "".join(f"{json.dumps(line)}\n" for line in lines)
        done = subprocess.run(
            argv, cwd=self.folder, env=self.env, input=sent, capture_output=True, encoding="utf-8"
        )
        self.check(done.returncode == 0, f"exit code 0, not {done.returncode}")
        for line in sent.splitlines():
            self._write(f"→ {line}\n")
        for line in done.stdout.splitlines():
            self._write(f"← {line}\n")
        return [json.loads(line) for line in done.stdout.splitlines()]

    @contextmanager
    def serve(self, *argv: str) -> Iterator[str]:
        """Run a server and yield its address."""
        self._write(f"$ {shlex.join(argv)}\n")
        with subprocess.Popen(
            argv, cwd=self.folder, env=self.env, stderr=subprocess.PIPE, encoding="utf-8"
        ) as server:
            assert server.stderr is not None
            line = server.stderr.readline()
            self._write(line)
            found = re.search(r"http://[\d.:]+\d", line)
            try:
                if found is None:
                    raise RuntimeError(f"the server did not print its address: {line}")
                yield found[0]
            finally:
                server.terminate()

    def post(self, url: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Send arguments to a tool and return the answer."""
        body = json.dumps(arguments)
        self._write(f"$ curl {url} -H 'Content-Type: application/json' -d {shlex.quote(body)}\n")
        request = Request(url, body.encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(request) as response:
                text = response.read().decode()
        except HTTPError as error:
            text = error.read().decode()
        self._write(f"{text}\n")
        answer: dict[str, Any] = json.loads(text)
        return answer


# ------------------------------------------------------------------ sections


def show_terminal(demo: Demo) -> None:
    """Show help, a table, a warning and an error at a terminal."""
    demo.heading("A person at a terminal")
    demo.remark(
        "Typer prints the help. The last two panels list what tooli adds: commands and options."
    )
    shown = demo.at_terminal("file-tools", "--help")
    demo.check("find-files" in shown and "╭" in shown, "help has panels")
    demo.remark("A list of records is printed as a table.")
    shown = demo.at_terminal("file-tools", "find-files", "*.py")
    demo.check("src/deep/table.py" in shown and "─" in shown, "the files are in a table")
    demo.remark("Warnings go to stderr.")
    shown = demo.at_terminal("file-tools", "find-files", "*.py", "--max-depth", "2")
    demo.check("Warning: Folders below src" in shown, "the warning is shown")
    demo.remark("An error suggests a command that works.")
    shown = demo.at_terminal("file-tools", "find-files", "*.rs", code=10)
    demo.check(
        "Try: file-tools find-files '*.py' --root ." in shown, "the error suggests a command"
    )


def show_json(demo: Demo) -> None:
    """Run the same command with its output in a pipe."""
    demo.heading("An agent, or any other program")
    demo.remark(
        "If stdout is not a terminal, the same command prints one JSON document.\n"
        '"enforcement": "audit" means that file access was compared with what the command declares.'
    )
    answer = demo.in_pipe_json("file-tools", "find-files", "*.py")
    demo.check(len(answer["result"]) == 3, "three files were found")
    demo.remark("At a terminal, --json prints the document.")
    shown = demo.at_terminal("file-tools", "checksum", "old.log", "--algorithm", "md5", "--json")
    demo.check(json.loads(shown)["ok"], "the document is printed at the terminal")


def show_repair(demo: Demo) -> None:
    """Run the command that an error suggests."""
    demo.heading("Repairing a call")
    demo.remark("This call finds nothing. The error contains a call that does:")
    answer = demo.in_pipe_json("file-tools", "find-files", "*.rs", "--root", "src", code=10)
    repair = answer["error"]["suggestion"]["argv"]
    demo.remark("error.suggestion.argv can be run as it is:")
    answer = demo.in_pipe_json(*repair)
    demo.check(answer["result"][0]["path"] == "src/main.py", "the repaired call finds files")


def show_all_problems(demo: Demo) -> None:
    """Report every problem of the input in one answer."""
    demo.heading("All problems at once")
    demo.remark(
        "One answer reports a missing argument, a number out of range, a missing folder and a typo:"
    )
    wrong = ("--max-depth", "0", "--root", "nowhere", "--include-hiden")
    answer = demo.in_pipe_json("file-tools", "find-files", *wrong, code=2)
    fields = {error.get("field") for error in answer["error"]["details"]["errors"]}
    expected = {"pattern", "max_depth", "root", "include_hiden"}
    demo.check(fields == expected, f"problems are reported for {', '.join(sorted(expected))}")


def show_confirmation(demo: Demo) -> None:
    """Refuse, plan, decline and confirm a destructive command."""
    demo.heading("A destructive command")
    demo.remark("Without a terminal nobody can confirm, so the command is refused.")
    answer = demo.in_pipe_json("file-tools", "delete", "old.log", code=2)
    demo.check(answer["error"]["code"] == "E1010", "the code is E1010")
    demo.remark("--dry-run returns a plan of what the command would do.")
    answer = demo.in_pipe_json("file-tools", "delete", "old.log", "--dry-run")
    demo.check(answer["meta"]["dry_run"], "the answer is marked as a dry run")
    demo.check((demo.folder / "old.log").exists(), "the file is still there")
    demo.remark("At a terminal the command asks first. Here the answer is no.")
    demo.at_terminal("file-tools", "delete", "old.log", code=2, answer="n")
    demo.check((demo.folder / "old.log").exists(), "the file is still there")
    demo.remark("--yes confirms.")
    demo.in_pipe_json("file-tools", "delete", "old.log", "--yes")
    demo.check(not (demo.folder / "old.log").exists(), "the file is gone")


def show_model(demo: Demo) -> None:
    """Pass a pydantic model by dotted flags and from a file."""
    demo.heading("A pydantic model as a parameter")
    demo.remark("Each field has a flag of its own:")
    parts = ("--rule.match", "*.txt", "--rule.ending", ".md", "--rule.prefix", "draft-")
    demo.in_pipe_json("file-tools", "rename", *parts, "--root", "docs")
    demo.check((demo.folder / "docs/draft-plan.md").exists(), "plan.txt is draft-plan.md")
    demo.remark("A file can hold the whole model:")
    demo.in_pipe("cat", "rule.json")
    demo.in_pipe_json("file-tools", "rename", "--rule", "@rule.json", "--root", "docs")
    demo.check((demo.folder / "docs/plan.md").exists(), "draft-plan.md is plan.md")
    demo.remark("An error names the field:")
    answer = demo.in_pipe_json("file-tools", "rename", "--rule", '{"prefix": 1}', code=2)
    demo.check(answer["error"]["field"] == "rule.match", "the first field is rule.match")


def show_stream(demo: Demo) -> None:
    """Print one JSON value per line."""
    demo.heading("A stream")
    demo.remark(
        "search is a generator function. With --jsonl it prints each match as soon as it is found."
    )
    lines = demo.in_pipe("file-tools", "search", "TODO", "--jsonl").splitlines()
    demo.check(len(list(map(json.loads, lines))) == 3, "there are three lines of JSON")


def show_descriptions(demo: Demo) -> None:
    """Print what an agent reads before it calls a command."""
    demo.heading("Descriptions for agents")
    demo.remark("All commands, in as few tokens as possible:")
    shown = demo.in_pipe("file-tools", "--help-agent")
    demo.check("(destructive)" in shown, "the destructive command is marked")
    demo.remark("One command in detail:")
    demo.in_pipe("file-tools", "find-files", "--help-agent")
    demo.remark("Its JSON Schema (--schema mcp, openai and anthropic print other formats):")
    schema = json.loads(demo.in_pipe("file-tools", "find-files", "--schema"))
    demo.check(schema["input_schema"]["required"] == ["pattern"], "pattern is required")


def show_python(demo: Demo) -> None:
    """Call the tools from Python."""
    demo.heading("From Python")
    demo.remark("app.call checks the arguments as well. It returns a result and prints nothing.")
    (demo.folder / "calls.py").write_text(PYTHON)
    demo.in_pipe("cat", "calls.py")
    shown = demo.in_pipe("python", "calls.py")
    demo.check("did you mean 'pattern'?" in shown, "the misspelled parameter is recognised")


def show_mcp(demo: Demo) -> None:
    """Serve the tools to an MCP client over stdin and stdout."""
    demo.heading("An MCP client")
    demo.remark(
        "`file-tools mcp serve` is an MCP server. → marks what the client sends,\n"
        "← what the server answers. Calls run at the same time, so answers\n"
        "may come in another order (see `id`)."
    )
    initialize = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "demo", "version": "1"},
    }
    call = {"name": "find_files", "arguments": {"pattern": "main.*"}}
    wrong = {"name": "delete", "arguments": {"files": ["src/main.py"]}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": wrong},
    ]
    argv = ("file-tools", "mcp", "serve")
    answers = {reply["id"]: reply["result"] for reply in demo.send_lines(argv, lines)}
    found = answers[2]["structuredContent"]["result"]
    demo.check([file["path"] for file in found] == ["src/main.py"], "the file is found")
    demo.check(answers[3]["isError"], "a destructive call without confirmation is refused")


def show_http(demo: Demo) -> None:
    """Serve the tools over HTTP."""
    demo.heading("HTTP")
    demo.remark(
        "`file-tools api serve` answers with the same JSON documents, and has a page for browsers."
    )
    with demo.serve("file-tools", "api", "serve", "--port", "0") as url:
        answer = demo.post(f"{url}/tools/find-files", {"pattern": "main.*"})
        demo.check(answer["result"][0]["path"] == "src/main.py", "the file is found")
        answer = demo.post(f"{url}/tools/find-files", {"patterns": "main.*"})
        demo.check(answer["error"]["code"] == "E1004", "a misspelled parameter is recognised")


def show_documents(demo: Demo) -> None:
    """Generate, install, check and remove documents for agents."""
    demo.heading("Documents for agents")
    demo.remark("The first lines of a skill, generated from the functions:")
    skill = demo.in_pipe("sh", "-c", "file-tools generate-skill | head -32")
    demo.check("name: file-tools" in skill, "the skill has a name")
    demo.remark("Install the skill where agents look for it, check that it is current, remove it:")
    demo.in_pipe_json("file-tools", "skills", "add", "--agents-md", "--json")
    demo.check((demo.folder / "AGENTS.md").exists(), "AGENTS.md was written")
    demo.in_pipe_json("file-tools", "docs", "check", ".agents", "AGENTS.md", "--json")
    demo.in_pipe_json("file-tools", "skills", "remove", "--json")
    demo.check(not (demo.folder / "AGENTS.md").exists(), "AGENTS.md was removed")


def show_exports(demo: Demo) -> None:
    """Export the tools as code for an agent framework, and as permissions."""
    demo.heading("Exports")
    demo.remark("The first lines of a module for the OpenAI Agents SDK:")
    code = demo.in_pipe("sh", "-c", "file-tools export --target openai | head -40")
    demo.check("from agents import" in code, "the module is for that SDK")
    demo.remark("Permissions for Claude Code: which commands run without a question:")
    rules = json.loads(
        demo.in_pipe("file-tools", "export", "--target", "permissions", "--host", "claude-code")
    )
    asked = rules["permissions"]["ask"]
    demo.check("Bash(file-tools delete *)" in asked, "delete needs a question")


def show_startup(demo: Demo) -> None:
    """Compare the start-up of a small app with one written with argparse."""
    demo.heading("Start-up")
    env = demo.env | {"PYTHONPATH": str(BENCHMARKS)}
    argv = ("hello", "bob", "--json")
    runs = {
        name: [sys.executable, "-c", f"import two_{name} as app; app.main()", *argv]
        for name in ("tooli", "argparse")
    }
    durations: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(16):
        for name, command in runs.items():
            seconds = _cpu_seconds(command, env)
            if number:  # the first one writes the bytecode
                durations[name].append(seconds)
    tooli_ms, argparse_ms = (statistics.median(times) * 1000 for times in durations.values())
    demo.remark(
        f"CPU time of `{' '.join(argv)}`, median of 15 runs: {tooli_ms:.0f} ms with tooli, "
        f"{argparse_ms:.0f} ms with argparse ({tooli_ms / argparse_ms:.2f} ×).\n"
        "`make bench` measures this in more runs."
    )


def _cpu_seconds(argv: Sequence[str], env: dict[str, str]) -> float:
    child = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    used = os.wait4(child.pid, 0)[2]
    child.returncode = 0
    return used.ru_utime + used.ru_stime


SECTIONS: tuple[Callable[[Demo], None], ...] = (
    show_terminal,
    show_json,
    show_repair,
    show_all_problems,
    show_confirmation,
    show_model,
    show_stream,
    show_descriptions,
    show_python,
    show_mcp,
    show_http,
    show_documents,
    show_exports,
    show_startup,
)


def main() -> int:
    """Run all sections; return 1 if a result was unexpected."""
    with TemporaryDirectory() as home:
        demo = Demo(Path(home).resolve())
        for section in SECTIONS:
            section(demo)
    if demo.failures:
        print(f"\n{len(demo.failures)} results above were not as expected.")
        return 1
    print("\nAll results above were as expected.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
