"""Run a command line in a test: in this process, or in a new one."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tooli.core import Record
from tooli.detect.markers import all_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from tooli.app import Tooli


# `tooli capabilities record` runs tests with this variable, which must reach the commands.
_KEPT_VARIABLES = ("TOOLI_RECORD_CAPABILITIES", "TOOLI_STATE_DIR")


class CommandResult(Record):
    """The exit code and the output of a command line."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    exception: BaseException | None = None  # the exception that the app did not catch

    @property
    def ok(self) -> bool:
        """True if the exit code is 0."""
        return self.exit_code == 0

    @property
    def envelope(self) -> dict[str, Any]:
        """The JSON document on stdout. Raises AssertionError if stdout has other output."""
        found = self._parse(self.stdout)
        assert isinstance(found, dict), f"stdout is JSON, but not an envelope{self._report()}"
        return found  # pyright: ignore[reportUnknownVariableType]

    @property
    def lines(self) -> list[Any]:
        """The JSON values on stdout, one per line, as `--jsonl` writes them."""
        return [self._parse(line) for line in self.stdout.split("\n") if line]

    @property
    def result(self) -> Any:
        """The result in the envelope, or None."""
        return self.envelope.get("result")

    @property
    def error(self) -> dict[str, Any] | None:
        """The error in the envelope, or None."""
        return self.envelope.get("error")

    def _parse(self, text: str) -> Any:
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except ValueError as failure:
            raise AssertionError(f"stdout is not JSON ({failure}){self._report()}") from None

    def _report(self) -> str:
        return (
            f"\n  argv: {list(self.argv)}\n  exit code: {self.exit_code}"
            f"\n  stdout: {self.stdout!r}\n  stderr: {self.stderr!r}"
        )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")


def invoke(
    app: Tooli,
    *args: str,
    input: str | bytes | None = None,
    env: Mapping[str, str | None] | None = None,
    mode: str | None = None,
) -> CommandResult:
    """Run a command line in this process: `invoke(app, "find-files", "*.py", "--root", "src")`.

    There is no terminal, and no caller is detected: the variables of agents, CI systems and tooli's
    settings are removed, so that a test gives the same result everywhere. Output that does not pass
    through sys.stdout (`os.write(1, …)`, child processes) is not captured. `run` captures it.

    Args:
        app: The app.
        args: The arguments of the command line.
        input: The content of stdin.
        env: Variables to set. The value None removes a variable.
        mode: The output mode.
    """
    program = app_name(app)
    return invoke_callable(
        lambda: app(list(args), prog_name=program),
        (program, *args),
        input=input,
        env=env,
        mode=mode,
    )


def app_name(app: Tooli) -> str:
    """Return the name of the app's program."""
    return app._state.name


def run(
    program: str | os.PathLike[str],
    *args: str,
    input: str | bytes | None = None,
    env: Mapping[str, str | None] | None = None,
    mode: str | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = 60.0,
) -> CommandResult:
    """Run a command line in a new process: `run("app.py", "find-files", "*.py")`.

    A `.py` file is run by this interpreter; anything else is a program. The exit code is negative
    if a signal ended the process, as in `subprocess`.
    """
    argv = [os.fspath(program), *args]
    if argv[0].endswith(".py"):
        argv.insert(0, sys.executable)
    done = subprocess.run(
        argv,
        input=_as_bytes(input),
        capture_output=True,
        env=build_environment(env, mode),
        cwd=cwd,
        timeout=timeout,
        check=False,
    )
    return CommandResult(tuple(argv), done.returncode, _as_text(done.stdout), _as_text(done.stderr))


def invoke_callable(
    start: Callable[[], object],
    argv: Sequence[str],
    *,
    input: str | bytes | None = None,
    env: Mapping[str, str | None] | None = None,
    mode: str | None = None,
) -> CommandResult:
    """Run a function as a program in this process: it reads sys.argv, writes stdout and exits."""
    exception: BaseException | None = None
    with _replaced_process_state(argv, _as_bytes(input), build_environment(env, mode)) as (
        out,
        err,
    ):
        try:
            start()
            code = 0
        except SystemExit as end:
            code = _exit_code(end)
        except Exception as failure:
            code, exception = 1, failure
            sys.excepthook(type(failure), failure, failure.__traceback__)
    stdout, stderr = _as_text(out.getvalue()), _as_text(err.getvalue())
    return CommandResult(tuple(argv), code, stdout, stderr, exception)


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    if sys.stderr is not None:
        sys.stderr.write(f"{end.code}\n")
    return 1


# ------------------------------------------------------------------ the environment of a process


def build_environment(added: Mapping[str, str | None] | None, mode: str | None) -> dict[str, str]:
    """Return the environment for a command in a test: that of this process with changes.

    Variables of agents, CI systems and settings are removed, except TOOLI_STATE_DIR. The width is
    80 columns, and the variables in `added` are set. Settings files of users and projects are
    ignored, unless `added` has `{"TOOLI_CONFIG": "on"}`.
    """
    caller_variables = all_variables()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT_VARIABLES
        or (name not in caller_variables and not name.startswith("TOOLI_"))
    }
    environment.update(COLUMNS="80", TOOLI_CONFIG="off")
    if mode is not None:
        environment["TOOLI_OUTPUT"] = mode
    for name, value in (added or {}).items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return environment


@contextmanager
def _replaced_process_state(
    argv: Sequence[str], stdin: bytes | None, env: Mapping[str, str]
) -> Generator[tuple[io.BytesIO, io.BytesIO]]:
    """Context manager that replaces argv, environment and streams, and restores them."""
    saved_streams = sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.excepthook
    saved_env = dict(os.environ)
    saved_handler = signal.getsignal(signal.SIGTERM)
    out, err = _UnclosableBytesIO(), _UnclosableBytesIO()
    try:
        sys.argv = list(argv)
        sys.stdin = io.TextIOWrapper(io.BytesIO(stdin or b""), "utf-8")
        sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
        sys.stderr = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
        sys.excepthook = sys.__excepthook__
        _set_environment(env)
        yield out, err
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr, sys.excepthook = saved_streams
        _set_environment(saved_env)
        if saved_handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, saved_handler)


class _UnclosableBytesIO(io.BytesIO):
    """A buffer that stays readable after it was closed."""

    def close(self) -> None:
        """Do nothing."""


def _set_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted)


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _as_bytes(data: str | bytes | None) -> bytes:
    return data.encode() if isinstance(data, str) else data or b""
