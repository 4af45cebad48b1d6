"""`make demo`: file-tools as people, agents, Python, MCP and HTTP see it, as a transcript.

Everything is run for real in a temporary folder. A step that does not come out as it
should is marked, and the demo then ends with exit code 1.
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

from terminal import run_at_terminal, without_colour

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


class Stage:
    """Where the demo plays: a folder with files, `file-tools` on the PATH, and a transcript."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "project"
        self.failures: list[str] = []
        self.colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
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
        keep = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR") if key in os.environ}
        self.env = keep | {
            "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.defpath}",
            "PYTHONPATH": str(EXAMPLES),
            "PYTHONPYCACHEPREFIX": str(home / "bytecode"),
            "PYTHONIOENCODING": "utf-8",
            "TERM": "xterm-256color",
        }

    # -------------------------------------------------------------- the transcript

    def heading(self, text: str) -> None:
        """Open a chapter."""
        self._write(f"\n{self._paint('1', text)}\n{'═' * len(text)}\n")

    def remark(self, text: str) -> None:
        """Say something about what comes next."""
        self._write(f"\n{self._paint('3', text)}\n")

    def check(self, holds: bool, what: str) -> None:
        """Note what should be so and is not."""
        if not holds:
            self.failures.append(what)
            self._write(f"{self._paint('31', '✗')} This should be so: {what}\n")

    def _paint(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour else text

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    # -------------------------------------------------------------- running things

    def agent(self, *words: str, code: int = 0) -> str:
        """Run a command as a program does: its output goes into a pipe."""
        self._write(f"$ {shlex.join(words)}\n")
        ran = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, encoding="utf-8"
        )
        self._write(ran.stdout + ran.stderr)
        self.check(ran.returncode == code, f"exit code {code}, not {ran.returncode}")
        return ran.stdout

    def envelope(self, *words: str, code: int = 0) -> dict[str, Any]:
        """The same, for a command that answers with one JSON document and nothing else."""
        answer: dict[str, Any] = json.loads(self.agent(*words, code=code))
        self.check(answer["ok"] is (code == 0), "`ok` says what the exit code says")
        return answer

    def person(self, *words: str, code: int = 0, answer: str = "") -> str:
        """Run a command as a person does: at a terminal, where a question can be answered."""
        self._write(f"$ {shlex.join(words)}\n")
        shown, ended = run_at_terminal(words, self.folder, self.env, width=96, answer=answer)
        text = without_colour(shown)
        self._write(shown if self.colour else text)
        self.check(ended == code, f"exit code {code}, not {ended}")
        return text

    # -------------------------------------------------------------- talking to servers

    def talk(self, words: Sequence[str], lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Start a server, send it lines, and read what it answers until it ends."""
        self._write(f"$ {shlex.join(words)}\n")
        sent = "".join(f"{json.dumps(line)}\n" for line in lines)
        ran = subprocess.run(
            words, cwd=self.folder, env=self.env, input=sent, capture_output=True, encoding="utf-8"
        )
        self.check(ran.returncode == 0, f"exit code 0, not {ran.returncode}")
        for line in sent.splitlines():
            self._write(f"→ {line}\n")
        for line in ran.stdout.splitlines():
            self._write(f"← {line}\n")
        return [json.loads(line) for line in ran.stdout.splitlines()]

    @contextmanager
    def served(self, *words: str) -> Iterator[str]:
        """The address of a server, while it runs."""
        self._write(f"$ {shlex.join(words)}\n")
        with subprocess.Popen(
            words, cwd=self.folder, env=self.env, stderr=subprocess.PIPE, encoding="utf-8"
        ) as server:
            assert server.stderr is not None
            line = server.stderr.readline()
            self._write(line)
            found = re.search(r"http://[\d.:]+\d", line)
            try:
                if found is None:
                    raise RuntimeError(f"the server did not say where it is: {line}")
                yield found[0]
            finally:
                server.terminate()

    def post(self, url: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a server answers to arguments."""
        body = json.dumps(arguments)
        self._write(f"$ curl {url} -H 'Content-Type: application/json' -d {shlex.quote(body)}\n")
        request = Request(url, body.encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(request) as answered:
                text = answered.read().decode()
        except HTTPError as refused:
            text = refused.read().decode()
        self._write(f"{text}\n")
        answer: dict[str, Any] = json.loads(text)
        return answer


# ------------------------------------------------------------------ the chapters


def as_a_person(stage: Stage) -> None:
    """Help with panels, results as tables, errors in words."""
    stage.heading("A person at a terminal")
    stage.remark("Help is Typer's own.")
    shown = stage.person("file-tools", "--help")
    stage.check("find-files" in shown and "╭" in shown, "help has its panels")
    stage.remark("A list of records is a table.")
    shown = stage.person("file-tools", "find-files", "*.py")
    stage.check("src/deep/table.py" in shown and "─" in shown, "the files stand in a table")
    stage.remark("What the tool warns of goes to stderr.")
    shown = stage.person("file-tools", "find-files", "*.py", "--max-depth", "2")
    stage.check("Warning: src has folders" in shown, "the warning is shown")
    stage.remark("An error says what would help.")
    shown = stage.person("file-tools", "find-files", "*.rs", code=10)
    stage.check("Try: file-tools find-files '*.py' --root ." in shown, "there is a way out")


def as_an_agent(stage: Stage) -> None:
    """The same command, into a pipe."""
    stage.heading("An agent, or any other program")
    stage.remark("Not at a terminal, the same command answers with one JSON document.")
    answer = stage.envelope("file-tools", "find-files", "*.py")
    stage.check(len(answer["result"]) == 3, "three files were found")
    stage.remark("At a terminal, --json does.")
    shown = stage.person("file-tools", "checksum", "old.log", "--algorithm", "md5", "--json")
    stage.check(json.loads(shown)["ok"], "the terminal gets the document, too")


def repairing(stage: Stage) -> None:
    """An error carries the command that would work; run it."""
    stage.heading("An error, and its repair")
    answer = stage.envelope("file-tools", "find-files", "*.rs", "--root", "src", code=10)
    repair = answer["error"]["suggestion"]["argv"]
    stage.remark("error.suggestion.argv is a command. It is run as it stands:")
    answer = stage.envelope(*repair)
    stage.check(answer["result"][0]["path"] == "src/main.py", "the repaired call finds files")


def everything_at_once(stage: Stage) -> None:
    """All that is wrong with the input, before anything runs."""
    stage.heading("All problems at once")
    stage.remark("A missing argument, a number out of range, a folder that is not there, a typo:")
    wrong = ("--max-depth", "0", "--root", "nowhere", "--include-hiden")
    answer = stage.envelope("file-tools", "find-files", *wrong, code=2)
    fields = {error.get("field") for error in answer["error"]["details"]["errors"]}
    expected = {"pattern", "max_depth", "root", "include_hiden"}
    stage.check(fields == expected, f"the problems are with {', '.join(sorted(expected))}")


def destroying(stage: Stage) -> None:
    """A destructive command is refused, planned, and then confirmed."""
    stage.heading("A destructive command")
    stage.remark("Where nobody can be asked, it is refused.")
    answer = stage.envelope("file-tools", "delete", "old.log", code=2)
    stage.check(answer["error"]["code"] == "E1010", "the code is E1010")
    stage.remark("--dry-run checks the call and runs nothing.")
    answer = stage.envelope("file-tools", "delete", "old.log", "--dry-run")
    stage.check(answer["meta"]["dry_run"], "it says that it was a dry run")
    stage.check((stage.folder / "old.log").exists(), "the file is still there")
    stage.remark("A person is asked, and says no.")
    stage.person("file-tools", "delete", "old.log", code=2, answer="n")
    stage.check((stage.folder / "old.log").exists(), "the file is still there")
    stage.remark("--yes is the confirmation.")
    stage.envelope("file-tools", "delete", "old.log", "--yes")
    stage.check(not (stage.folder / "old.log").exists(), "the file is gone")


def with_a_model(stage: Stage) -> None:
    """A pydantic model as a parameter: by dotted flags, and from a file."""
    stage.heading("A pydantic model as a parameter")
    stage.remark("Part by part, with dotted flags:")
    parts = ("--rule.match", "*.txt", "--rule.ending", ".md", "--rule.prefix", "draft-")
    stage.envelope("file-tools", "rename", *parts, "--root", "docs")
    stage.check((stage.folder / "docs/draft-plan.md").exists(), "plan.txt is draft-plan.md")
    stage.remark("The whole of it from a file:")
    stage.agent("cat", "rule.json")
    stage.envelope("file-tools", "rename", "--rule", "@rule.json", "--root", "docs")
    stage.check((stage.folder / "docs/plan.md").exists(), "draft-plan.md is plan.md")
    stage.remark("A part that does not fit is named:")
    answer = stage.envelope("file-tools", "rename", "--rule", '{"prefix": 1}', code=2)
    stage.check(answer["error"]["field"] == "rule.match", "the first field is rule.match")


def streaming(stage: Stage) -> None:
    """One JSON value per line, as they are found."""
    stage.heading("A stream")
    stage.remark("search is a generator. With --jsonl each match is a line, once it is found.")
    lines = stage.agent("file-tools", "search", "TODO", "--jsonl").splitlines()
    stage.check(len(list(map(json.loads, lines))) == 3, "there are three lines of JSON")


def describing(stage: Stage) -> None:
    """What an agent reads before it calls."""
    stage.heading("The contract")
    stage.remark("All commands in a few lines:")
    shown = stage.agent("file-tools", "--help-agent")
    stage.check("(destructive)" in shown, "the destructive command is marked")
    stage.remark("One command in detail:")
    stage.agent("file-tools", "find-files", "--help-agent")
    stage.remark("Its JSON Schema (also as: --schema mcp, openai, anthropic):")
    schema = json.loads(stage.agent("file-tools", "find-files", "--schema"))
    stage.check(schema["input_schema"]["required"] == ["pattern"], "pattern is required")


def from_python(stage: Stage) -> None:
    """The same tools, without a process."""
    stage.heading("From Python")
    stage.remark("The same checks; nothing is printed, nothing exits.")
    (stage.folder / "calls.py").write_text(PYTHON)
    stage.agent("cat", "calls.py")
    shown = stage.agent("python", "calls.py")
    stage.check("did you mean 'pattern'?" in shown, "the misspelled parameter is recognised")


def over_mcp(stage: Stage) -> None:
    """The same tools, served to an MCP client over stdin and stdout."""
    stage.heading("An MCP client")
    stage.remark("`file-tools mcp serve` talks to a client: here a call, and what comes back.")
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "demo", "version": "1"},
    }
    call = {"name": "find_files", "arguments": {"pattern": "main.*"}}
    wrong = {"name": "delete", "arguments": {"files": ["src/main.py"]}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": wrong},
    ]
    words = ("file-tools", "mcp", "serve")
    answers = {reply["id"]: reply["result"] for reply in stage.talk(words, lines)}
    found = answers[2]["structuredContent"]["result"]
    stage.check([file["path"] for file in found] == ["src/main.py"], "the file is found")
    stage.check(answers[3]["isError"], "a destructive call without a yes is refused")


def over_http(stage: Stage) -> None:
    """The same tools over HTTP."""
    stage.heading("HTTP")
    stage.remark(
        "`file-tools api serve` answers with the same envelopes, and has a page for people."
    )
    with stage.served("file-tools", "api", "serve", "--port", "0") as url:
        answer = stage.post(f"{url}/tools/find-files", {"pattern": "main.*"})
        stage.check(answer["result"][0]["path"] == "src/main.py", "the file is found")
        answer = stage.post(f"{url}/tools/find-files", {"patterns": "main.*"})
        stage.check(answer["error"]["code"] == "E1004", "a misspelled parameter is recognised")


def documented(stage: Stage) -> None:
    """What agents read, and where it is put for them."""
    stage.heading("Documents, and where agents look for them")
    stage.remark("A skill, made from the functions (its beginning):")
    skill = stage.agent("sh", "-c", "file-tools generate-skill | head -32")
    stage.check("name: file-tools" in skill, "it has a name")
    stage.remark("Installed where agents look, and checked as CI would do it:")
    stage.envelope("file-tools", "skills", "add", "--agents-md", "--json")
    stage.check((stage.folder / "AGENTS.md").exists(), "AGENTS.md is there")
    stage.envelope("file-tools", "docs", "check", ".agents", "AGENTS.md", "--json")
    stage.envelope("file-tools", "skills", "remove", "--json")
    stage.check(not (stage.folder / "AGENTS.md").exists(), "everything is gone again")


def exported(stage: Stage) -> None:
    """The same tools as code for an agent framework, and as rules for an agent."""
    stage.heading("Exports")
    stage.remark("Tools for the OpenAI Agents SDK (their beginning):")
    code = stage.agent("sh", "-c", "file-tools export --target openai | head -40")
    stage.check("from agents import" in code, "it is code for that SDK")
    stage.remark("What Claude Code may run without asking:")
    rules = json.loads(
        stage.agent("file-tools", "export", "--target", "permissions", "--host", "claude-code")
    )
    asked = rules["permissions"]["ask"]
    stage.check("Bash(file-tools delete *)" in asked, "delete has to be asked for")


def starting(stage: Stage) -> None:
    """How long a small command takes, next to the same written with argparse."""
    stage.heading("Start-up")
    env = stage.env | {"PYTHONPATH": str(BENCHMARKS)}
    line = ("hello", "bob", "--json")
    runs = {
        name: [sys.executable, "-c", f"import two_{name} as app; app.main()", *line]
        for name in ("tooli", "argparse")
    }
    took: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(16):
        for name, words in runs.items():
            seconds = _cpu_seconds(words, env)
            if turn:  # the first one writes the bytecode
                took[name].append(seconds)
    ours, theirs = (statistics.median(took[name]) * 1000 for name in ("tooli", "argparse"))
    stage.remark(
        f"`{' '.join(line)}`, median CPU time of 15 interleaved runs: tooli {ours:.0f} ms, "
        f"argparse {theirs:.0f} ms.\nThat is {ours / theirs:.2f} × argparse, here and now; "
        "`make bench` measures it with care."
    )


def _cpu_seconds(words: Sequence[str], env: dict[str, str]) -> float:
    child = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)
    used = os.wait4(child.pid, 0)[2]
    child.returncode = 0
    return used.ru_utime + used.ru_stime


CHAPTERS: tuple[Callable[[Stage], None], ...] = (
    as_a_person,
    as_an_agent,
    repairing,
    everything_at_once,
    destroying,
    with_a_model,
    streaming,
    describing,
    from_python,
    over_mcp,
    over_http,
    documented,
    exported,
    starting,
)


def main() -> int:
    """Play all chapters; 1 when something did not come out as it should."""
    with TemporaryDirectory() as home:
        stage = Stage(Path(home).resolve())
        for chapter in CHAPTERS:
            chapter(stage)
    if stage.failures:
        print(f"\n{len(stage.failures)} of the steps above did not come out as they should.")
        return 1
    print("\nEverything above came out as it should.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
