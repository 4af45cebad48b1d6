"""Read a program: run the reader in the program's interpreter, and keep the description.

    cached description, if no file of the program has changed
    ─▶ otherwise: reader in the sandbox ─▶ JSON ─▶ parse_program ─▶ cache

Reading runs code of the program. On Linux it runs in the sandbox: it reads only code, writes only a
temporary folder, and has no network. On other systems it is a separate process with a temporary
home folder and without the variables of this process.
"""

from __future__ import annotations

import glob
import json
import os
from hashlib import sha256

from tooli.core import Record
from tooli.errors import AuthError, DependencyError, Suggestion
from tooli.execution.interpreter import isolated_argv
from tooli.execution.sandbox.sandbox_runner import (
    FRAMEWORK_SECRET_VARS,
    KEPT_ENV_PREFIXES,
    KEPT_ENV_VARS,
    detect_sandbox_support,
    isolation_error,
)
from tooli.execution.sandbox.temp_dirs import make_temp_folder
from tooli.providers.programs.program_commands import InvalidDescription, parse_program
from tooli.providers.programs.program_process import run_process
from tooli.providers.programs.sandboxed_reader import HOME_VARS, NO_SANDBOX, TIMED_OUT
from tooli.schema.described import clean_text
from tooli.storage.state_files import (
    UnusableFile,
    check_private_folder,
    get_state_dir,
    make_private_folder,
    read_regular_file,
    remove_file,
    write_private_file,
)
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.providers.programs.program_commands import Program
    from tooli.providers.programs.program_process import FinishedProcess
    from tooli.providers.programs.program_targets import ProgramTarget

READ_SECONDS = 30.0
"""How long reading a program may take."""
MAX_HELP_CHARS = 4_000
"""How much of a help text describes a program without a parser."""
MAX_CACHE_BYTES = 64 << 20
MAX_CACHE_FILES = 200
_FORMAT = 1
_READER_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reader")
_BOOT = (
    "import sys, types; sys.path[:1] = []; package = types.ModuleType('tooli_program_reader'); "
    f"package.__path__ = [{_READER_FOLDER!r}]; sys.modules['tooli_program_reader'] = package; "
    "from tooli_program_reader.capture import main; main()"
)
_PREFIX_FOLDERS = ("bin", "lib", "lib64", "Lib", "share", "include", "pyvenv.cfg")
_USER_FILES = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/usr/share")


class ReadOptions(Record):
    """How a program is read."""

    env: Mapping[str, str]  # further variables
    sandbox: bool | str  # True: where the system has one; "required"; False: never
    seconds: float = READ_SECONDS
    raw: bool = False  # if there is no parser, describe the program by its help text


def read_program(target: ProgramTarget, options: ReadOptions) -> Program:
    """Return the description of a program, from the cache if it is up to date.

    Raises:
        DependencyError: the program has no parser that can be read.
        AuthError: the sandbox is required, and not available.
    """
    path = _cache_path(target, options)
    cached = None if path is None else _load_cached(path)
    if cached is not None:
        return cached
    data = _read(target, options)
    reason = data.get("error")
    if reason is not None and options.raw:
        data = _describe_by_help(target, options, str(reason))
        reason = data.get("error")
    if reason is not None:
        raise _unreadable(target, clean_text(str(reason), 500), options)
    try:
        program = parse_program(data)
    except InvalidDescription as problem:
        raise _unreadable(target, f"its description is not valid: {problem}", options) from None
    if not program.commands:
        raise _unreadable(target, "it has no commands", options)
    if path is not None:
        _save(path, data, target, program)
    return program


def _read(target: ProgramTarget, options: ReadOptions) -> Any:
    """Return the description of a program by the reader, or {"error": …}."""
    if target.request["kind"] == "other":
        return {"error": "it is not in Python"}
    data: Any = {}
    for arguments in ([], ["--help"]):  # some programs parse nothing without an argument
        data = _run_reader(target, options, arguments)
        if "error" not in data or data.get("is_final"):
            break
    return data


def _describe_by_help(target: ProgramTarget, options: ReadOptions, reason: str) -> Any:
    """Return a description with the help text of a program, or {"error": …}.

    It has one command, which takes the words of a command line.
    """
    finished = _run_confined([*target.argv, "--help"], target, options)
    shown = (finished.stdout or finished.stderr).decode("utf-8", "replace")
    text = clean_text(shown, MAX_HELP_CHARS).strip()
    is_help = finished.exit_code == 0 or "usage" in text.lower()
    if not is_help or not text or finished.timed_out or "Traceback (most" in text:
        return {"error": f"{reason.rstrip('.')}; and it shows no help text with --help"}
    words = {
        "name": "arguments",
        "action": "value",
        "nargs": "*",
        "schema": {"type": "string"},
        "help": "The words of the command line after the name of the program.",
    }
    return {
        "kind": "words",
        "prog": target.prog,
        "help": text.partition("\n")[0],
        "levels": [{"style": "words", "params": [words]}],
        "commands": [{"levels": [0], "help": f"Run {target.prog}.\n\n{text}"}],
    }


def _unreadable(target: ProgramTarget, reason: str, options: ReadOptions) -> DependencyError:
    hints = "It has to use Click, Typer, argparse, optparse, getopt or cyclopts"
    if options.sandbox:
        hints += "; if it needs files or the network to start, and you trust it, use sandbox=False "
        hints += "(--no-sandbox)"
    return DependencyError(
        f"The program {target.label!r} cannot be read: {reason.rstrip('.')}. {hints}.",
        suggestion=Suggestion("ask_human", "Run the program by hand to see what it needs."),
    )


# ------------------------------------------------------------------ run the reader


def _run_reader(target: ProgramTarget, options: ReadOptions, arguments: list[str]) -> Any:
    """Run the reader and return the description, or {"error": …}."""
    request = json.dumps({**target.request, "arguments": arguments})
    argv = [target.python, *target.options, "-c", _BOOT, request]
    return _check(_run_confined(argv, target, options), options)


def _run_confined(argv: list[str], target: ProgramTarget, options: ReadOptions) -> FinishedProcess:
    """Run a command of a program as `options.sandbox` says."""
    support = detect_sandbox_support()
    if options.sandbox == "required" and support.missing and not support.is_nested:
        raise isolation_error(target.prog, support.missing)
    if not options.sandbox:
        return _run_plain(argv, options, None)
    if support.level == "none" or support.is_nested or support.missing:
        home = make_temp_folder("tooli-reader-")
        try:
            return _run_plain(argv, options, home.path)
        finally:
            home.remove()
    finished = _run_sandboxed(argv, target, options)
    if finished.exit_code == NO_SANDBOX:
        reason = clean_text(finished.stderr.decode("utf-8", "replace"), 300).strip()
        raise AuthError(
            f"{target.prog} was not read, because its sandbox could not be set up: {reason}",
            code="E2006",
            suggestion=Suggestion(
                "ask_human", "If you trust the program, use sandbox=False (--no-sandbox)."
            ),
        )
    return finished


def _run_plain(argv: list[str], options: ReadOptions, home: str | None) -> FinishedProcess:
    """Run the reader without a sandbox. With `home`, it gets neither files nor variables."""
    env = dict(os.environ)
    if home is not None:
        kept = {n: v for n, v in env.items() if n in KEPT_ENV_VARS or _is_kept(n)}
        system = {n: v for n, v in env.items() if n.upper() in ("SYSTEMROOT", "PATHEXT", "COMSPEC")}
        temporary = dict.fromkeys((*HOME_VARS, "TMPDIR", "TEMP", "TMP"), home)
        env = {**kept, **system, **temporary}
    env = {n: v for n, v in env.items() if n not in FRAMEWORK_SECRET_VARS}
    return run_process(argv, env={**env, **options.env}, cwd=home, timeout=options.seconds)


def _is_kept(name: str) -> bool:
    return name.startswith(KEPT_ENV_PREFIXES)


def _run_sandboxed(argv: list[str], target: ProgramTarget, options: ReadOptions) -> FinishedProcess:
    reads = [*_USER_FILES, *target.files]
    reads += _interpreter_paths(target.python) if target.python else ()
    env = {**options.env, "PYTHONDONTWRITEBYTECODE": "1"}
    user_base = os.path.expanduser(os.path.join("~", ".local"))
    if os.path.isdir(user_base):  # HOME is another folder there
        reads += glob.glob(os.path.join(user_base, "lib", "python*"))
        env.setdefault("PYTHONUSERBASE", user_base)
    payload = {
        "argv": argv,
        "env": env,
        "reads": sorted({os.path.realpath(path) for path in reads if os.path.exists(path)}),
        "lists": [os.path.realpath(f) for f in target.folders if os.path.isdir(f)],
        "programs": [os.path.realpath(argv[0])],
        "seconds": options.seconds,
    }
    code = "from tooli.providers.programs.sandboxed_reader import main; main()"
    command = [*isolated_argv(code), json.dumps(payload)]
    # The process ends itself; the longer time limit is for one that does not.
    limit = options.seconds + 10
    return run_process(command, env=os.environ, cwd=None, timeout=limit, holds_stdin=True)


def _interpreter_paths(python: str) -> Iterator[str]:
    """Yield the files that an interpreter needs: its environment, and packages elsewhere."""
    prefixes = [os.path.dirname(os.path.dirname(os.path.abspath(python)))]
    path = os.path.abspath(python)
    for _ in range(20):  # a virtual environment may have the interpreter of another one
        if not os.path.islink(path):
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        prefixes.append(os.path.dirname(os.path.dirname(path)))
        yield path
    for prefix in dict.fromkeys(prefixes):
        if prefix not in ("/", "/usr"):  # the sandbox knows these
            yield from [os.path.join(prefix, name) for name in _PREFIX_FOLDERS]
        for site in glob.glob(os.path.join(prefix, "lib*", "python*", "*-packages")):
            yield from _linked_folders(site)


def _linked_folders(site: str) -> Iterator[str]:
    """Yield the folders that packages in development are in."""
    for name in glob.glob(os.path.join(site, "*.pth")):
        for line in _read_text(name).splitlines():
            if os.path.isabs(line.strip()):
                yield line.strip()
    for name in glob.glob(os.path.join(site, "*.dist-info", "direct_url.json")):
        try:
            found = json.loads(_read_text(name))
        except ValueError:
            continue
        url = found.get("url") if is_object(found) else None
        if isinstance(url, str) and url.startswith("file:///"):
            yield url[len("file://") :]


def _read_text(path: str) -> str:
    try:
        return read_regular_file(path, 1 << 20)[0].decode("utf-8", "replace")
    except (OSError, UnusableFile):
        return ""


def _check(finished: FinishedProcess, options: ReadOptions) -> Any:
    """Return the description that the reader has written, or {"error": …}."""
    wrote = clean_text(finished.stderr.decode("utf-8", "replace"), 100_000).strip()
    written = f" It wrote: {wrote[-300:]}" if wrote else ""
    if finished.timed_out or finished.exit_code == TIMED_OUT:
        limit = f"{options.seconds:g} s"
        error = f"it did not read its command line within {limit}.{written}"
        return {"error": error, "is_final": True}
    try:
        data = json.loads(finished.stdout)
    except (ValueError, RecursionError):
        data = None
    if not is_object(data):
        code = finished.exit_code
        return {"error": f"it ended (exit code {code}) without a description.{written}"}
    error = data.get("error")
    if error is not None:
        return {"error": f"{str(error).rstrip('.')}.{written}"}
    home = data.get("home")
    if isinstance(home, str) and "tooli-" in home:
        return _replace_home(data, home)
    return data


def _replace_home(value: Any, home: str) -> Any:
    """Return a description in which the temporary home folder is `~`."""
    if isinstance(value, str):
        return value.replace(home, "~")
    if is_list(value):
        return [_replace_home(item, home) for item in value]
    if is_object(value):
        return {key: _replace_home(item, home) for key, item in value.items()}
    return value


# ------------------------------------------------------------------ cache


def _cache_path(target: ProgramTarget, options: ReadOptions) -> str | None:
    """Return the file for the description of a program; None if there can be none."""
    key = [
        *(_FORMAT, target.argv, target.python, target.request),
        *(
            sorted(options.env.items()),
            options.sandbox,
            options.raw,
            _stamps([_READER_FOLDER, *_reader_files()]),
        ),
    ]
    digest = sha256(json.dumps(key).encode("utf-8", "surrogatepass")).hexdigest()[:40]
    try:
        return os.path.join(get_state_dir(), "programs", f"{digest}.json")
    except Exception:  # the state folder is not usable
        return None


def _reader_files() -> list[str]:
    return sorted(glob.glob(os.path.join(_READER_FOLDER, "*.py")))


def _stamps(paths: list[str]) -> list[list[object]]:
    """Return the time of the last change, and the size, of files and folders."""
    found: list[list[object]] = []
    for path in paths:
        try:
            info = os.stat(path)
            found.append([path, info.st_mtime_ns, info.st_size])
        except OSError:
            found.append([path, 0, 0])
    return found


def _load_cached(path: str) -> Program | None:
    """Return the program of a cached description whose files have not changed."""
    try:
        check_private_folder(os.path.dirname(path))
        data = json.loads(read_regular_file(path, MAX_CACHE_BYTES)[0])
        if _stamps([stamp[0] for stamp in data["stamps"]]) != data["stamps"]:
            return None
        return parse_program(data["description"])
    except (OSError, UnusableFile, ValueError, KeyError, TypeError, InvalidDescription):
        return None


def _save(path: str, data: Any, target: ProgramTarget, program: Program) -> None:
    """Write a description to the cache. If that fails, the program is read again next time."""
    # A folder of packages changes when a plugin is installed. Other folders change too often.
    folders = [folder for folder in program.folders if folder.endswith("-packages")]
    files = [target.python, *target.files, *program.files, *folders]
    content = json.dumps({"stamps": _stamps(list(dict.fromkeys(files))), "description": data})
    folder = os.path.dirname(path)
    temporary = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        make_private_folder(folder)
        check_private_folder(folder)
        write_private_file(temporary, content.encode("utf-8", "surrogatepass"))
        os.replace(temporary, path)
        _prune(folder)
    except OSError:
        remove_file(temporary)


def _prune(folder: str) -> None:
    """Delete the oldest descriptions, if there are too many."""
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    if len(paths) > MAX_CACHE_FILES:
        for path in sorted(paths, key=os.path.getmtime)[:-MAX_CACHE_FILES]:
            remove_file(path)
