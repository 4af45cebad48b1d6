"""Write the code of a generated module that runs a tool and always returns an envelope.

    mode          async frameworks                  other frameworks
    subprocess    asyncio.create_subprocess_exec    subprocess.Popen
    import        app.acall with a timeout          app.call in a thread with a timeout

Arguments are passed as one JSON document on stdin, so that no value is read as an option.
"""

from __future__ import annotations

from string import Template

from tooli.core.record import Record
from tooli.export.export_spec import DEFAULT_TIMEOUT, flag_prefix
from tooli.export.python_source import function_signature, string_literal, value_literal

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.export.export_spec import ExportedTool, ExportSpec


class RunnerSource(Record):
    """The code that runs tools: standard library imports, constants and functions."""

    imports: tuple[str, ...]
    app: str | None  # the line that imports the app, if tools run in this process
    constants: str
    functions: tuple[str, ...]


def build_runner(
    spec: ExportSpec, tools: list[ExportedTool], *, is_async: bool, other_code: str = ""
) -> RunnerSource:
    """Return the code that runs the tools of a module.

    `is_async` is True if the framework awaits tools. `other_code` is other code of the module that
    calls `failure`. FIXES gets the error codes that the module uses.
    """
    has_flags = any([entry.flags for entry in tools])
    fill = {
        "app": string_literal(spec.app_info.name),
        "split_flags": _SPLIT_FLAGS_CODE if has_flags else "",
        "signature": _call_signature(spec, has_flags, is_async),
        "default": ", default=str" if spec.target == "python" else "",  # for pathlib.Path values
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
        Template(part).safe_substitute(fill).strip("\n") for part in (*parts, _FAILURE_CODE)
    ]
    used = "".join([*functions, other_code])
    fixes = {code: fix for code, fix in _FIXES.items() if f'failure("{code}"' in used}
    constants = (
        f"{mode_source.constants}CALLER = {value_literal(spec.caller)}\n"
        f"TIMEOUT = {DEFAULT_TIMEOUT}  # seconds\n"
        f"FIXES = {value_literal(fixes)}"
    )
    return RunnerSource(mode_source.imports, mode_source.app, constants, tuple(functions))


class _ModeSource(Record):
    """The parts of the runner that differ between the modes."""

    imports: tuple[str, ...]
    app: str | None
    constants: str
    templates: tuple[str, ...]
    template_values: dict[str, str]


def _subprocess_mode(spec: ExportSpec, has_flags: bool, is_async: bool) -> _ModeSource:
    fill = {
        "flags_doc": _FLAGS_DOC if has_flags else "",
        "option_flags": _OPTION_FLAGS_CODE if has_flags else "",
        "more_argv": ", *option_flags" if has_flags else "",
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
        "flags_doc": _OPTIONS_DOC if has_flags else "",
        "api": f"app.options(caller=CALLER{', **options' if has_flags else ''})",
    }
    imports = ("asyncio",) if is_async else ("queue", "threading")
    module, name = spec.app_location
    app = f"from {module} import {name}" + ("" if name == "app" else " as app")
    return _ModeSource(
        imports, app, "", (_ASYNC_IMPORT_CALL if is_async else _THREADED_IMPORT_CALL,), fill
    )


def _call_signature(spec: ExportSpec, has_flags: bool, is_async: bool) -> str:
    command = "command: str" if spec.is_in_process else "command_path: list[str]"
    parameters = [command, "arguments: dict[str, Any]", "timeout: float"]
    parameters += ["flags: tuple[str, ...] = ()"] if has_flags else []
    return function_signature("call", parameters, "dict[str, Any]", is_async=is_async)


_SPLIT_FLAGS_CODE = """\
    options = {flag: arguments[flag] for flag in flags if flag in arguments}
    arguments = {key: value for key, value in arguments.items() if key not in options}
    if not all(isinstance(value, bool) for value in options.values()):
        return failure("E1003", f"{', '.join(options)}: expected true or false.")
"""
_FLAGS_DOC = """
    The arguments named in `flags` become options of the program."""
_OPTIONS_DOC = """

    The arguments named in `flags` become call options.
    """
_OPTION_FLAGS_CODE = """\
    option_flags = [f"$prefix{flag.replace('_', '-')}" for flag, value in options.items() if value]
"""

# ------------------------------------------------------------------ subprocess mode

_ASYNC_SUBPROCESS_CALL = '''
$signature
    """Run a command and return its envelope. Failures are returned as envelopes, too.

    The arguments are passed as JSON on stdin, so that no value is read as an option.$flags_doc
    """
$split_flags$option_flags    try:
        process = await asyncio.create_subprocess_exec(
            *[*COMMAND, *command_path$more_argv, "${prefix}json", "${prefix}input", "-"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "TOOLI_CALLER": CALLER},
            start_new_session=True,  # its child processes can be killed with it
        )
    except OSError as error:
        return failure("E4040", f"Cannot start {COMMAND[0]}: {error.strerror}.")
    try:
        payload = json.dumps(arguments$default).encode()
        out, err = await asyncio.wait_for(process.communicate(payload), timeout)
    except asyncio.TimeoutError:
        return failure("E4050", f"Timed out after {timeout:g} seconds.")
    finally:
        if process.returncode is None:
            stop(process)
            await asyncio.wait([asyncio.create_task(process.wait())], timeout=5)
    return parse_envelope(process.returncode, out, err)
'''

_SUBPROCESS_CALL = '''
$signature
    """Run a command and return its envelope. Failures are returned as envelopes, too.

    The arguments are passed as JSON on stdin, so that no value is read as an option.$flags_doc
    """
$split_flags$option_flags    try:
        process = subprocess.Popen(
            [*COMMAND, *command_path$more_argv, "${prefix}json", "${prefix}input", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TOOLI_CALLER": CALLER},
            start_new_session=True,  # its child processes can be killed with it
        )
    except OSError as error:
        return failure("E4040", f"Cannot start {COMMAND[0]}: {error.strerror}.")
    with process:
        try:
            out, err = process.communicate(json.dumps(arguments$default).encode(), timeout)
        except subprocess.TimeoutExpired:
            return failure("E4050", f"Timed out after {timeout:g} seconds.")
        finally:
            if process.poll() is None:
                stop(process)
    return parse_envelope(process.returncode, out, err)
'''

_PARSE_ENVELOPE_CODE = '''
def parse_envelope(code: int | None, out: bytes, err: bytes) -> dict[str, Any]:
    """Return the envelope on stdout, or a failure if there is none."""
    try:
        envelope = json.loads(out)
        if isinstance(envelope["ok"], bool):
            return envelope
    except (ValueError, TypeError, KeyError):
        pass
    output = (err or out).decode(errors="replace").strip()[-1000:]
    return failure("E4040", f"{COMMAND[0]} ended with exit code {code}: {output}")
'''

_STOP_CODE = '''
def stop(process: $process) -> None:
    """Kill the process and its child processes."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass
'''

# ------------------------------------------------------------------ import mode

_ASYNC_IMPORT_CALL = '''
$signature
    """Call a tool and return its envelope. Failures are returned as envelopes, too.$flags_doc"""
$split_flags    try:
        outcome = $api.acall(command, **arguments)
        return (await asyncio.wait_for(outcome, timeout)).to_dict()
    except asyncio.TimeoutError:
        return failure("E4050", f"Timed out after {timeout:g} seconds.")
'''

_THREADED_IMPORT_CALL = '''
$signature
    """Call a tool and return its envelope. Failures are returned as envelopes, too.$flags_doc"""
$split_flags    envelopes: queue.Queue[dict[str, Any]] = queue.Queue()

    def run_tool() -> None:
        envelopes.put($api.call(command, **arguments).to_dict())

    threading.Thread(target=run_tool, daemon=True).start()
    try:
        return envelopes.get(timeout=timeout)
    except queue.Empty:
        return failure("E4050", f"Timed out after {timeout:g} seconds.")
'''

# ------------------------------------------------------------------ both modes

_FAILURE_CODE = '''
def failure(code: str, message: str) -> dict[str, Any]:
    """Return the envelope of a call that did not reach the app or did not finish."""
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
    "E1003": "Pass true or false.",
    "E1008": "Send one JSON object.",
    "E4040": "Ask the user to check that the program is installed and starts.",
    "E4050": "The command may have run partially. Check its effects, then request less.",
}
