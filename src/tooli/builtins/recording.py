"""capabilities record: runs an app's examples or tests, and says what each command touches.

tooli ──▶ a process for each example, or one for the tests
            └─ every call of the app writes a line: TOOLI_RECORD_CAPABILITIES
tooli ◀── lines ─▶ folders ─▶ the declaration to paste
"""

from __future__ import annotations

import json
import os
import sys
from tempfile import TemporaryDirectory, gettempdir

from tooli.contract.capabilities import is_below
from tooli.errors import NotFoundError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from tooli.contract.tool import Tool

VARIABLE = "TOOLI_RECORD_CAPABILITIES"
UNSEEN = "env:read and state:mutate cannot be seen; net:write looks like net:read"
_PATIENCE = 60.0  # seconds for one example
_START = (
    "import sys; from tooli.launcher import load; app = load(sys.argv.pop(1));"
    " app._house.policy = app._house.declared = 'standard'; app()"
)


def record(
    app: Any,
    which: str,
    tests: Sequence[str],
    examples: bool,
    everything: bool,
    roots: Sequence[str],
) -> dict[str, Any]:
    """What each command of an app touched, and the declaration that says so."""
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "record.jsonl")
        report = _run_examples(app, which, everything, path) if examples else {}
        if tests:
            report |= _run_tests(tests, path)
        seen = dict(_read(path, app._house.name))
    known = {tool.key: tool for tool in app.catalog}
    places = [os.path.realpath(root) for root in roots]
    commands = [_told(known[key], uses, places) for key, uses in seen.items() if key in known]
    if not commands and not report.get("not_run"):
        raise NotFoundError(
            f"No call of {app._house.name!r} was seen.",
            suggestion=Suggestion("fix", "Run tests that call it, or give its commands examples."),
            details=report,
        )
    return {"commands": commands, **report, "unseen": UNSEEN}


# ------------------------------------------------------------------ running


def _run_tests(words: Sequence[str], path: str) -> dict[str, Any]:
    """Run a command that calls the app; its output goes to stderr."""
    from subprocess import run

    try:
        done = run(list(words), env={**os.environ, VARIABLE: path}, stdout=2, check=False)
    except OSError as failure:
        message = f"{words[0]!r} cannot be run: {failure.strerror}"
        raise NotFoundError(message, field="tests") from None
    return {"exit_code": done.returncode}


def _run_examples(app: Any, which: str, everything: bool, path: str) -> dict[str, Any]:
    """Run the examples, each as a process; those that may change something only where that is
    wanted, and those that a human must approve never."""
    left: list[dict[str, str]] = []
    failed: list[dict[str, str]] = []
    for tool in app.catalog:
        reason = _reason_against(tool, everything)
        if reason is not None:
            left.append({"command": tool.key, "why": reason})
            continue
        for example in tool.guidance.examples:
            words = [str(word) for word in example.get("args", ())]
            problem = _run_example(tool, which, words, path)
            if problem is not None:
                failed.append({"command": " ".join([tool.key, *words]), "why": problem})
    found = {"not_run": left, "failed": failed}
    return {name: rows for name, rows in found.items() if rows}


def _reason_against(tool: Tool, everything: bool) -> str | None:
    if not tool.guidance.examples:
        return "it has no examples"
    if tool.guard.approval or tool.guard.human_in_the_loop:
        return "a human must approve it"
    if everything or tool.behavior.read_only:
        return None
    if tool.behavior.destructive:
        return "it is destructive: --all runs it, too"
    return "it is not declared ReadOnly, so it may change something: --all runs it, too"


def _run_example(tool: Tool, which: str, words: list[str], path: str) -> str | None:
    """What went wrong with an example, if anything did."""
    from subprocess import DEVNULL, TimeoutExpired, run

    at = words.index("--") if "--" in words else len(words)
    flags = ["--tooli-json", *(["--tooli-yes"] if tool.behavior.destructive else [])]
    line = [*tool.words, *words[:at], *flags, *words[at:]]
    try:
        done = run(
            [sys.executable, "-c", _START, which, *line],
            env={**os.environ, VARIABLE: path},
            stdin=DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except TimeoutExpired:
        return f"it took more than {_PATIENCE:g} s"
    if done.returncode == 0:
        return None
    try:
        return str(json.loads(done.stdout)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"exit code {done.returncode}"


# ------------------------------------------------------------------ telling


def _read(path: str, name: str) -> Iterator[tuple[str, set[tuple[str, str]]]]:
    """What each command of the app touched, over all its calls."""
    found: dict[str, set[tuple[str, str]]] = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                noted = json.loads(line)
                if noted["app"] == name:
                    uses = found.setdefault(noted["command"], set())
                    uses.update([(use[0], use[1]) for use in noted["uses"]])
    yield from found.items()


def _told(tool: Tool, uses: set[tuple[str, str]], places: Sequence[str]) -> dict[str, Any]:
    from tooli.contract.capabilities import beyond

    words = sorted(declarations(uses, places)) or ["none"]
    told: dict[str, Any] = {"command": tool.key, "used": words}
    declared = [word for word in tool.guard.capabilities if word != "none"]
    if tool.guard.capabilities:
        told["declared"] = list(tool.guard.capabilities)
        words = beyond(words, declared)
        if not words:  # it says all that it does
            return told
        told["undeclared"] = words
    said = ", ".join([json.dumps(word, ensure_ascii=False) for word in (*declared, *words)])
    return {**told, "paste": f"capabilities=[{said}]"}


def declarations(uses: Iterable[tuple[str, str]], places: Sequence[str]) -> set[str]:
    """Acts as the fewest capabilities that allow them: files as their folders, folders below
    one another as one, whatever is below one of the places as that place; what is elsewhere, and
    temporary, is the folder for that."""
    from tooli.enforce.watched import nearby

    folders: dict[str, set[str]] = {}
    words: set[str] = set()
    for capability, target in uses:
        if capability[:3] != "fs:":
            words.add(capability)
            continue
        folder = target if os.path.isdir(target) else os.path.dirname(target)
        folders.setdefault(capability, set()).add(_generalised(folder, places))
    for capability, found in folders.items():
        for folder in found:
            above = folder
            while above != (above := os.path.dirname(above)):
                if above in found:
                    break
            else:
                words.add(f"{capability}:{nearby(folder)}")
    return words


def _generalised(folder: str, places: Sequence[str]) -> str:
    for place in places:
        if is_below(folder, (place,)):
            return place
    temporary = os.path.realpath(gettempdir())
    passing = is_below(folder, (temporary,)) and not is_below(folder, (os.path.realpath("."),))
    return temporary if passing else folder
