"""The part of a generated module that runs a tool and always comes back with an envelope.

    mode          async frameworks                  the others
    subprocess    asyncio.create_subprocess_exec    subprocess.Popen
    import        app.acall, within a time          app.call in a thread, within a time

Arguments travel as one JSON document on stdin: no value of a model's can pass for an option.
"""

from __future__ import annotations

from string import Template

from tooli.core.record import Record
from tooli.export.export_spec import DEFAULT_TIMEOUT, flag_prefix
from tooli.export.python_source import string_literal, value_literal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.export.export_spec import ExportedTool, ExportSpec


class RunnerSource(Record):
    """What a module needs to run tools: imports of the standard library, constants, functions."""

    imports: tuple[str, ...]
    app: str | None  # the import of the app, where the tools run in this process
    constants: str
    functions: tuple[str, ...]


def build_runner(
    spec: ExportSpec, tools: list[ExportedTool], *, is_async: bool, other_code: str = ""
) -> RunnerSource:
    """The runner of a module.

    `waits` where its framework awaits tools; `more` is the module's other code, as far as it
    calls `failure` itself.
    """
    has_flags = any([entry.flags for entry in tools])
    fill = {
        "app": string_literal(spec.app_info.name),
        "flags": _SPLIT_FLAGS_CODE if has_flags else "",
        "more": ", flags: tuple[str, ...] = ()" if has_flags else "",
        "default": ", default=str" if spec.target == "python" else "",  # a Path is no JSON
    }
    mode_source = (
        _import_mode(spec, has_flags, is_async)
        if spec.is_in_process
        else _subprocess_mode(spec, has_flags, is_async)
    )
    parts = [
        Template(part).safe_substitute(mode_source.template_values)
        for part in mode_source.templates
    ]
    fill["prefix"] = flag_prefix([entry.tool for entry in tools])
    functions = [
        _wrap_signature(Template(part).safe_substitute(fill)) for part in (*parts, _FAILURE_CODE)
    ]
    used = "".join([*functions, other_code])
    fixes = {code: fix for code, fix in _FIXES.items() if f'failure("{code}"' in used}
    constants = (
        f"{mode_source.constants}CALLER = {value_literal(spec.caller)}\nTIMEOUT = {DEFAULT_TIMEOUT}  # seconds\n"
        f"FIXES = {value_literal(fixes)}"
    )
    return RunnerSource(mode_source.imports, mode_source.app, constants, tuple(functions))


class _ModeSource(Record):
    """What is different about a mode."""

    imports: tuple[str, ...]
    app: str | None
    constants: str
    templates: tuple[str, ...]
    template_values: dict[str, str]


def _subprocess_mode(spec: ExportSpec, has_flags: bool, is_async: bool) -> _ModeSource:
    fill = {
        "about": _FLAGS_DOC if has_flags else "",
        "said": _OPTION_FLAGS_CODE if has_flags else "",
        "words": ", *said" if has_flags else "",
        "process": "asyncio.subprocess.Process" if is_async else "subprocess.Popen[bytes]",
    }
    imports = ("asyncio" if is_async else "subprocess", "json", "os", "signal")
    parts = (
        _ASYNC_SUBPROCESS_CALL if is_async else _SUBPROCESS_CALL,
        _PARSE_ENVELOPE_CODE,
        _STOP_CODE,
    )
    return _ModeSource(
        imports, None, f"COMMAND = {value_literal(list(spec.command))}\n", parts, fill
    )


def _import_mode(spec: ExportSpec, has_flags: bool, is_async: bool) -> _ModeSource:
    fill = {
        "about": _OPTIONS_DOC if has_flags else "",
        "door": f"app.options(caller=CALLER{', **options' if has_flags else ''})",
    }
    imports = ("asyncio",) if is_async else ("queue", "threading")
    module, name = spec.app_location
    app = f"from {module} import {name}" + ("" if name == "app" else " as app")
    return _ModeSource(
        imports, app, "", (_ASYNC_IMPORT_CALL if is_async else _THREADED_IMPORT_CALL,), fill
    )


def _wrap_signature(code: str) -> str:
    """A function whose head has become too long for its line, with the head in three."""
    head, rest = code.strip("\n").split("\n", 1)
    if len(head) > 100:
        opening, _, after = head.partition("(")
        params, _, returns = after.rpartition(") ->")
        head = f"{opening}(\n    {params}\n) ->{returns}"
    return f"{head}\n{rest}"


_SPLIT_FLAGS_CODE = """\
    options = {flag: arguments[flag] for flag in flags if flag in arguments}
    arguments = {key: value for key, value in arguments.items() if key not in options}
    if not all(isinstance(value, bool) for value in options.values()):
        return failure("E1003", f"{', '.join(options)}: neither true nor false.")
"""
_FLAGS_DOC = """
    Those named in `flags` are meant for the program itself, and become options."""
_OPTIONS_DOC = """

    The arguments named in `flags` are meant for the framework: they become options.
    """
_OPTION_FLAGS_CODE = """\
    said = [f"$prefix{flag.replace('_', '-')}" for flag, value in options.items() if value]
"""

# ------------------------------------------------------------------ in a process of its own

_ASYNC_SUBPROCESS_CALL = '''
async def call(words: list[str], arguments: dict[str, Any], timeout: float$more) -> dict[str, Any]:
    """Run a command and return its envelope, whatever happens.

    The arguments go in as JSON on stdin: no value of theirs can pass for an option.$about
    """
$flags$said    try:
        process = await asyncio.create_subprocess_exec(
            *[*COMMAND, *words$words, "${prefix}json", "${prefix}input", "-"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "TOOLI_CALLER": CALLER},
            start_new_session=True,  # so that its own children can be stopped with it
        )
    except OSError as error:
        return failure("E4040", f"{COMMAND[0]} cannot be started: {error.strerror}.")
    try:
        payload = json.dumps(arguments$default).encode()
        out, err = await asyncio.wait_for(process.communicate(payload), timeout)
    except asyncio.TimeoutError:
        return failure("E4050", f"No answer within {timeout:g} seconds.")
    finally:
        if process.returncode is None:
            stop(process)
            await asyncio.wait([asyncio.create_task(process.wait())], timeout=5)
    return envelope_of(process.returncode, out, err)
'''

_SUBPROCESS_CALL = '''
def call(words: list[str], arguments: dict[str, Any], timeout: float$more) -> dict[str, Any]:
    """Run a command and return its envelope, whatever happens.

    The arguments go in as JSON on stdin: no value of theirs can pass for an option.$about
    """
$flags$said    try:
        process = subprocess.Popen(
            [*COMMAND, *words$words, "${prefix}json", "${prefix}input", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TOOLI_CALLER": CALLER},
            start_new_session=True,  # so that its own children can be stopped with it
        )
    except OSError as error:
        return failure("E4040", f"{COMMAND[0]} cannot be started: {error.strerror}.")
    with process:
        try:
            out, err = process.communicate(json.dumps(arguments$default).encode(), timeout)
        except subprocess.TimeoutExpired:
            return failure("E4050", f"No answer within {timeout:g} seconds.")
        finally:
            if process.poll() is None:
                stop(process)
    return envelope_of(process.returncode, out, err)
'''

_PARSE_ENVELOPE_CODE = '''
def envelope_of(code: int | None, out: bytes, err: bytes) -> dict[str, Any]:
    """What the program printed, if that is an envelope; otherwise one that says so."""
    try:
        envelope = json.loads(out)
        if isinstance(envelope["ok"], bool):
            return envelope
    except (ValueError, TypeError, KeyError):
        pass
    said = (err or out).decode(errors="replace").strip()[-1000:]
    return failure("E4040", f"{COMMAND[0]} ended with exit code {code}: {said}")
'''

_STOP_CODE = '''
def stop(process: $process) -> None:
    """End a program and what it has started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass
'''

# ------------------------------------------------------------------ in this process

_ASYNC_IMPORT_CALL = '''
async def call(target: str, arguments: dict[str, Any], timeout: float$more) -> dict[str, Any]:
    """Call a tool of the app and return its envelope, whatever happens.$about"""
$flags    try:
        answer = $door.acall(target, **arguments)
        return (await asyncio.wait_for(answer, timeout)).to_dict()
    except asyncio.TimeoutError:
        return failure("E4050", f"No answer within {timeout:g} seconds.")
'''

_THREADED_IMPORT_CALL = '''
def call(target: str, arguments: dict[str, Any], timeout: float$more) -> dict[str, Any]:
    """Call a tool of the app and return its envelope, whatever happens.$about"""
$flags    answers: queue.Queue[dict[str, Any]] = queue.Queue()

    def work() -> None:
        answers.put($door.call(target, **arguments).to_dict())

    threading.Thread(target=work, daemon=True).start()
    try:
        return answers.get(timeout=timeout)
    except queue.Empty:
        return failure("E4050", f"No answer within {timeout:g} seconds.")
'''

# ------------------------------------------------------------------ in any case

_FAILURE_CODE = '''
def failure(code: str, message: str) -> dict[str, Any]:
    """The envelope of a call that the app itself could not answer."""
    action = "ask_human" if code == "E4040" else "retry_with_modified_input"
    error = {
        "code": code,
        "category": "input" if code.startswith("E1") else "runtime",
        "message": message,
        "suggestion": {"action": action, "fix": FIXES[code]},
        "is_retryable": action != "ask_human",
    }
    return {"ok": False, "error": error, "meta": {"tool": $app}}
'''

_FIXES = {
    "E1003": "Say true or false.",
    "E1008": "Send one JSON object.",
    "E4040": "Ask the user to see whether the program is installed, and runs.",
    "E4050": "It may be half done: look first. Then ask for less at once.",
}
