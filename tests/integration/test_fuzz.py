"""Random hostile command lines, in this process and in real processes."""

from __future__ import annotations

import importlib.util
import io
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.example_count import example_count
from tests.integration.app_process import (
    APPS,
    DOCUMENTED_EXIT_CODES,
    ProcessResult,
    check_envelope,
    environment,
    parse_json,
    run,
)
from tests.integration.random_command_lines import command_lines

from tooli.cli import CommandOutput, read_invocation, run_and_exit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BATCHES = 8
IN_PROCESS_COUNT, PROCESS_COUNT = example_count(10_000), example_count(300)
"""Number of command lines that run in this process, and of those that start a process."""
MAX_ARGUMENT_BYTES = 100_000
"""Operating systems accept little more."""


@pytest.fixture(scope="module")
def app() -> Iterator[Any]:
    sys.path.insert(0, str(APPS))
    spec = importlib.util.spec_from_file_location("demo", APPS / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo"] = module
    spec.loader.exec_module(module)
    yield module.app
    sys.path.remove(str(APPS))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_command_lines_return_valid_envelopes(
    app: Any, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {**environment(), "TOOLI_OUTPUT": "json"})
    monkeypatch.setattr(sys, "argv", ["demo"])
    problems: list[str] = []
    with time_limit(600):
        for argv in command_lines(batch, IN_PROCESS_COUNT // BATCHES, tmp_path):
            problem = find_problem(app, argv, monkeypatch)
            if problem:
                problems.append(problem)
    assert not problems, f"{len(problems)} lines:\n" + "\n".join(problems[:20])


def find_problem(app: Any, argv: list[str], monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Run a command line; return the problem with its output, or None."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"word":"x","a":1}'))
    os.environ.pop("NO_COLOR", None)
    code: Any = None
    mode = "none"
    try:
        invocation = read_invocation(app, argv)
        mode = invocation.mode
        run_and_exit(CommandOutput(invocation))
    except SystemExit as end:
        code = end.code or 0
    except BaseException as crash:
        if mode != "text" or "failed at" not in str(crash):
            return f"{shorten(argv)} raised {type(crash).__name__}: {str(crash)[:300]}"
        code = 70
    try:
        if sys.stdout is not out:
            raise AssertionError("stdout was not restored")
        raw = bool(invocation.line.options.get("schema"))
        check_output(mode, code, out.getvalue(), err.getvalue(), raw)
    except Exception as wrong:
        shown = f"{code} {out.getvalue()[:300]!r} {err.getvalue()[:300]!r}"
        return f"{mode} {shorten(argv)}: {type(wrong).__name__} {str(wrong)[:200]} in {shown}"
    return None


def check_output(mode: str, code: Any, out: str, err: str, raw: bool) -> None:
    """Check exit code and output; raise an AssertionError."""
    assert code in DOCUMENTED_EXIT_CODES, code
    assert "Traceback (most recent" not in err
    if mode == "json":
        assert out.endswith("\n")
        assert out.count("\n") == 1
        found = parse_json(out)
        if raw and "ok" not in found:
            assert code == 0
        else:
            assert check_envelope(found)["ok"] is (code == 0)
            assert code != 70 or "failed at" in found["error"]["message"]
    elif mode == "jsonl":
        found = [parse_json(line) for line in out.split("\n")[:-1]]
        if code:
            assert check_envelope(found[-1])["ok"] is False
            assert code != 70 or "failed at" in found[-1]["error"]["message"]
    elif code and code != 70:
        assert err.strip()


def shorten(argv: list[str]) -> str:
    text = repr(argv)
    return text if len(text) < 400 else f"{text[:300]}… ({len(argv)} words, {len(text)} characters)"


class time_limit:
    """Stop a block after these seconds, with a traceback that shows where it hangs."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def stop(*_: object) -> None:
            raise TimeoutError("a command line hangs")

        self.before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self.before)


@pytest.mark.parametrize("batch", range(2))
def test_random_command_lines_in_new_processes_return_valid_envelopes(
    batch: int, tmp_path: Path
) -> None:
    chosen = [
        line
        for line in command_lines(1000 + batch, PROCESS_COUNT // 2, tmp_path)
        if "\0" not in "".join(line)
    ]
    env = environment(TOOLI_OUTPUT="json")

    def run_demo(argv: list[str]) -> ProcessResult:
        arguments = [word.encode("utf-8", "surrogateescape")[:MAX_ARGUMENT_BYTES] for word in argv]
        return run(APPS / "demo.py", *arguments, stdin=b'{"word":"x","a":1}', env=env)

    problems: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        for argv, done in zip(chosen, pool.map(run_demo, chosen), strict=True):
            problem = find_process_problem(argv, done)
            if problem:
                problems.append(f"{shorten(argv)}: {problem}")
    assert len(chosen) == PROCESS_COUNT // 2
    assert not problems, f"{len(problems)} lines:\n" + "\n".join(problems[:20])


def find_process_problem(argv: list[str], done: ProcessResult) -> str | None:
    """Return the problem with the output of a process, or None. The mode is inferred from it."""
    out, err = done.out.decode("utf-8", "replace"), done.err.decode("utf-8", "replace")
    asked = " ".join(argv)
    switches = any(word in asked for word in ("--text", "--plain", "jsonl", "text", "plain"))
    mode = "json" if out.startswith('{"ok"') or not switches else "other"
    raw = "--schema" in asked or "--tooli-schema" in asked
    if "failed at" in err:
        return None  # text modes show a crash like Typer
    try:
        check_output(mode, done.code, out, err, raw)
        assert 'File "' not in err
    except Exception as wrong:
        shown = f"{done.code} {out[:300]!r} {err[:500]!r}"
        return f"{type(wrong).__name__} {str(wrong)[:200]} in {shown}"
    return None


def test_huge_value_of_a_counting_option_is_handled(
    app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", {**environment(), "TOOLI_OUTPUT": "json"})
    for count in (10**30, 10**6):
        argv = ["short", "--input", f'{{"verbose": {count}}}']
        assert find_problem(app, argv, monkeypatch) is None
        assert len(sys.stdout.getvalue()) < 100_000


def test_arguments_that_are_not_utf_8_return_an_envelope() -> None:
    done = run(APPS / "demo.py", "plain", b"\xff\xfe", b"--path=\x80", "--json")
    found = check_envelope(parse_json(done.out))
    assert done.code == 0 or found["error"]["code"] == "E1003"
    assert done.err == b""
