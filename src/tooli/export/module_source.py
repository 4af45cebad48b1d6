"""Render an exported module and its tests.

The module contains code that runs a tool and always returns an envelope:

    mode          async frameworks                  other frameworks
    subprocess    asyncio.create_subprocess_exec    subprocess.Popen
    import        app.acall with a timeout          app.call in a thread with a timeout

A subprocess reads the arguments as one JSON document from stdin, so that no value is read as an
option. The tests call the tools as the framework does, without a model.
"""

from __future__ import annotations

from string import Template

from tooli.core import Record
from tooli.describe.schema_text import parse_example
from tooli.export.export_spec import DEFAULT_TIMEOUT, exported_tools, flag_prefix
from tooli.export.framework_spec import alias_values, with_aliases
from tooli.export.python_source import (
    SourceText,
    call_source,
    docstring,
    function_signature,
    string_literal,
    value_literal,
    wrap_text,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tooli.core.protocols import JsonObject
    from tooli.export.export_spec import ExportedTool, ExportSpec
    from tooli.export.framework_spec import Framework

_ENVELOPE_NOTE = """\
A tool returns an envelope as JSON: {"ok": true, "result": ...}, or {"ok": false, "error": \
{"code": ..., "message": ..., "suggestion": ...}}. An error never ends the agent's run."""

_MAKE_TOOL_TEMPLATE = '''
def make_tool(
    name: str,
    $command: $command_type,
    *,
    description: str,
    schema: dict[str, Any],$required_parameters
    timeout: float = TIMEOUT,$flags_parameter$aliases_parameter{parameters}
) -> {returns}:
    """{summary}"""

{body}
'''


def render_framework(spec: ExportSpec, framework: Framework) -> dict[str, str]:
    """Return the files of an export to an agent framework, by their paths."""
    tools = _adapted_tools(spec, framework)
    path = module_path(spec, framework)
    values = {
        "stem": spec.module_stem,
        "module": path.removesuffix(".py").replace("/", "."),
        "package": path.partition("/")[0],
        "required_parameters": "",
        **command_values(spec, tools),
        **alias_values(tools),
        **(framework.template_values(tools) if framework.template_values else {}),
    }
    runner = build_runner(
        spec,
        tools,
        framework.caller,
        is_async=framework.is_async,
        other_code=framework.functions + framework.body + framework.definition,
    )
    definition = framework.definition or _MAKE_TOOL_TEMPLATE.format(
        parameters=framework.parameters,
        returns=framework.returns,
        summary=framework.summary,
        body=framework.body.strip("\n"),
    )
    tail = framework.tail(spec, tools) if framework.tail else ""
    text = render_module(
        module_docstring(
            spec, framework.subject, fill_template(framework.usage, values), _ENVELOPE_NOTE
        ),
        standard_imports(
            runner, *(("json",) if framework.encodes_json else ()), *framework.standard_imports
        ),
        framework.imports,
        runner.app,
        "\n".join([*filter(None, (runner.constants, framework.constants))]),
        [
            *runner.functions,
            *filter(None, [fill_template(framework.functions, values)]),
            fill_template(definition, values),
        ],
        [
            *[_tool_assignment(spec, framework, entry) for entry in tools],
            "\n".join([*filter(None, (_tools_list(tools, framework.tool_type), tail))]),
        ],
    )
    more = framework.more_files(spec, tools) if framework.more_files else {}
    return {path: text, **more}


def _adapted_tools(spec: ExportSpec, framework: Framework) -> list[ExportedTool]:
    """Return the tools of the app with the names that the framework allows."""
    tools = exported_tools(spec, framework.imported_names)
    return [with_aliases(entry, framework.reserved_parameters) for entry in tools]


def module_path(spec: ExportSpec, framework: Framework) -> str:
    """Return the path of the module with the tools."""
    suffix = framework.target.replace("-", "_")
    return fill_template(framework.path, {"stem": spec.module_stem, "suffix": suffix})


def render_module(
    head: str,
    standard: Iterable[str],
    others: Iterable[str],
    app_import: str | None,
    constants: str,
    functions: Iterable[str],
    values: Iterable[str],
) -> str:
    """Return the source of a module.

    `standard` has names of standard library modules, and `from … import …` lines. `others` has the
    import lines of other packages.
    """
    plain = sorted([f"import {name}" for name in standard if " " not in name])
    named = sorted([name for name in standard if " " in name])
    blocks = ["from __future__ import annotations", "\n".join([*plain, *named])]
    blocks += ["\n".join(sorted(others))] if others else []
    blocks += [app_import] if app_import else []
    first = "\n\n".join([docstring(head), *[block for block in (*blocks, constants) if block]])
    return "\n\n\n".join([*filter(None, [first, *functions, "\n\n".join(values)])]) + "\n"


def module_docstring(spec: ExportSpec, subject: str, usage: str, note: str) -> str:
    """Return the docstring of a module: subject, example, note, how to regenerate it."""
    return "\n\n".join(
        [
            f"{spec.title} {subject}.",
            usage.strip("\n"),
            wrap_text(note),
            f"Generated by tooli. To regenerate it:\n\n    {spec.regenerate_command}",
        ]
    )


def standard_imports(runner: RunnerSource, *extra: str) -> list[str]:
    """Return the standard library imports of a module with this runner."""
    return [*dict.fromkeys([*runner.imports, *extra]), "from typing import Any"]


def call_target(spec: ExportSpec, entry: ExportedTool) -> str | list[str]:
    """Return the first argument of `call`: the tool's key, or its command as a list of names."""
    return entry.tool.key if spec.is_in_process else list(entry.tool.cli_path)


def command_values(spec: ExportSpec, entries: Iterable[ExportedTool]) -> dict[str, str]:
    """Return the template values for the parameters that depend on the mode and the tools."""
    flags = any([entry.flags for entry in entries])
    return {
        "command": "command" if spec.is_in_process else "command_path",
        "command_type": "str" if spec.is_in_process else "list[str]",
        "flags_parameter": "\n    flags: tuple[str, ...] = ()," if flags else "",
        "flags_argument": ", flags" if flags else "",
    }


def fill_template(template: str, values: Mapping[str, str]) -> str:
    """Substitute `$name` placeholders. Unknown placeholders stay unchanged."""
    return Template(template.strip("\n")).safe_substitute(values)


_PRINTS_COMMENT = "# This tool prints its output: it goes to stdout, not to the model.\n"


def _tool_assignment(spec: ExportSpec, framework: Framework, entry: ExportedTool) -> str:
    """Return the statement that creates one tool."""
    keywords: JsonObject = {}
    if framework.adapt_tool is not None:
        entry, keywords = framework.adapt_tool(entry)
    if entry.timeout is not None:
        keywords["timeout"] = entry.timeout
    if entry.flags:
        keywords["flags"] = entry.flags
    if entry.aliases:
        keywords["aliases"] = entry.aliases
    value = call_source(
        framework.constructor,
        entry.name,
        call_target(spec, entry),
        columns_before=len(entry.variable) + 3,
        description=entry.description,
        schema=entry.schema,
        **keywords,
    )
    only_prints = spec.is_in_process and entry.tool.returns_printed_text
    return f"{_PRINTS_COMMENT if only_prints else ''}{entry.variable} = {value}"


def _tools_list(entries: Iterable[ExportedTool], tool_type: str) -> str:
    names = [SourceText(entry.variable) for entry in entries]
    return f"TOOLS: list[{tool_type}] = {value_literal(names, columns_before=len(tool_type) + 17)}"


# ------------------------------------------------------------------ tests


def render_tests(spec: ExportSpec, framework: Framework | None) -> dict[str, str]:
    """Return the test file of an export. Without a framework, it tests the Python functions."""
    path = module_path(spec, framework) if framework else f"{spec.module_stem}_api.py"
    module = path.removesuffix(".py").replace("/", ".")
    file = module.partition(".")[0]
    tools = exported_tools(spec, framework.imported_names if framework else ())
    tests = _tool_tests(spec, framework, tools) if framework else _function_tests(spec, tools)
    if not spec.is_in_process:
        call = "export.call([], {}, timeout)"
        call = f"asyncio.run({call})" if framework and framework.is_async else call
        tests.append(fill_template(_BROKEN_PROGRAM_TEST, {"call": call}))
    if spec.target == "adk":
        tests.append(fill_template(_AGENT_YAML_TEST, {"package": file}))
    others = framework.test_imports if framework else ()
    header = _file_header(spec, module, others, "\n".join(tests))
    return {f"test_{file}.py": "\n\n\n".join([header, *tests]) + "\n"}


def _file_header(
    spec: ExportSpec, module: str, framework_imports: tuple[str, ...], test_source: str
) -> str:
    summary = f"Tests of {module}.\n\nThey need pytest and {spec.title}, but no model."
    standard = [
        f"import {name}" for name in ("asyncio", "json", "sys") if f"{name}." in test_source
    ]
    standard += ["from pathlib import Path"] if "Path(" in test_source else []
    standard += ["from types import SimpleNamespace"] if "SimpleNamespace(" in test_source else []
    standard += ["from typing import Any"] if "Any" in test_source else []
    others = ["import pytest", *framework_imports]
    own = f"import {module} as export"
    blocks = ["from __future__ import annotations", "\n".join(standard), "\n".join(others), own]
    return "\n\n".join([docstring(summary), *filter(None, blocks)])


# ------------------------------------------------------------------ tools of a framework


def _tool_tests(spec: ExportSpec, framework: Framework, tools: list[ExportedTool]) -> list[str]:
    invalid_argument_test = _INVALID_ARGUMENT_TEST.replace("$test_id", framework.test_id)
    tests = [_ANSWER_HEAD + framework.test_body.rstrip(), invalid_argument_test]
    cases = _example_cases(tools)
    if cases:
        decorator = call_source("@pytest.mark.parametrize", ("tool", "arguments"), cases)
        prefix = string_literal(f"{spec.app_info.name}.")
        tests.append(f"{decorator}\n{fill_template(_EXAMPLE_TEST, {'prefix': prefix})}")
    return [test.strip("\n") for test in tests]


def _example_cases(tools: list[ExportedTool]) -> list[tuple[SourceText, JsonObject]]:
    """Return the examples of read-only tools as pairs of tool and arguments."""
    return [
        (SourceText(f"export.{entry.variable}"), arguments)
        for entry in tools
        for example in entry.tool.guidance.examples
        if entry.tool.behavior.read_only
        and entry.tool.effects.read_only
        and (arguments := parse_example(entry.tool, example.get("args", ()))) is not None
    ]


_ANSWER_HEAD = '''
def answer(tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the envelope that the model gets."""'''

_INVALID_ARGUMENT_TEST = """
@pytest.mark.parametrize("tool", export.TOOLS, ids=lambda tool: $test_id)
def test_rejects_unknown_argument(tool: Any) -> None:
    envelope = answer(tool, {"no_such_argument": 1})
    assert envelope["ok"] is False
    assert envelope["error"]["code"] == "E1004"
"""

_EXAMPLE_TEST = """
def test_example_reaches_the_app(tool: Any, arguments: dict[str, Any]) -> None:
    assert answer(tool, arguments)["meta"]["tool"].startswith($prefix)
"""

_AGENT_YAML_TEST = """
def test_agent_loads() -> None:
    agent = from_config(str(Path(__file__).parent / "$package" / "root_agent.yaml"))
    assert agent.name.isidentifier()
"""

_BROKEN_PROGRAM_TEST = """
@pytest.mark.parametrize(
    ("program", "timeout", "code"),
    [
        (["no-such-program"], 60.0, "E4040"),
        ([sys.executable, "-c", "print('no JSON')"], 60.0, "E4040"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], 0.5, "E4050"),
    ],
)
def test_broken_program_returns_a_failure(
    program: list[str], timeout: float, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "COMMAND", program)
    envelope = $call
    assert envelope["error"]["code"] == code
"""

# ------------------------------------------------------------------ Python functions


def _function_tests(spec: ExportSpec, tools: list[ExportedTool]) -> list[str]:
    names = [entry.variable for entry in tools]
    targets = [call_target(spec, entry) for entry in tools]
    parameter = "command" if spec.is_in_process else "command_path"
    test = _IN_PROCESS_ARGUMENT_TEST if spec.is_in_process else _SUBPROCESS_ARGUMENT_TEST
    return [
        f"{call_source('@pytest.mark.parametrize', 'name', names)}\n{_FUNCTION_TEST.strip()}",
        f"{call_source('@pytest.mark.parametrize', parameter, targets)}\n{test.strip()}",
    ]


_FUNCTION_TEST = """
def test_function_exists(name: str) -> None:
    assert callable(getattr(export, name))
"""

_IN_PROCESS_ARGUMENT_TEST = """
def test_rejects_unknown_argument(command: str) -> None:
    error = export.app.call(command, no_such_argument=1).error
    assert error is not None
    assert error.code == "E1004"
"""

_SUBPROCESS_ARGUMENT_TEST = """
def test_rejects_unknown_argument(command_path: list[str]) -> None:
    with pytest.raises(export.CommandError) as caught:
        export.run(command_path, {"no_such_argument": 1})
    assert caught.value.code == "E1004"
"""

# ------------------------------------------------------------------ code that runs a tool


class RunnerSource(Record):
    """The code that runs tools: standard library imports, constants and functions."""

    imports: tuple[str, ...]
    app: str | None  # the line that imports the app, if tools run in this process
    constants: str
    functions: tuple[str, ...]


def build_runner(
    spec: ExportSpec,
    tools: list[ExportedTool],
    caller: str,
    *,
    is_async: bool,
    other_code: str = "",
) -> RunnerSource:
    """Return the code that runs the tools of a module.

    `caller` is the caller ID that the code reports. `is_async` is True if the framework awaits
    tools. `other_code` is the rest of the module's code. It is searched for calls of `failure`,
    because FIXES contains only the error codes that the module uses.
    """
    has_flags = any([entry.flags for entry in tools])
    prefix = flag_prefix([entry.tool for entry in tools])
    source, values = (
        _import_mode(spec, has_flags, is_async)
        if spec.is_in_process
        else _subprocess_mode(spec, has_flags, is_async, prefix)
    )
    values |= {
        "app": string_literal(spec.app_info.name),
        "split_flags": _SPLIT_FLAGS_CODE if has_flags else "",
        "signature": _call_signature(spec, has_flags, is_async),
        "default": ", default=str" if spec.target == "python" else "",  # for pathlib.Path values
    }
    functions = [
        fill_template(part, values).strip("\n") for part in (*source.functions, _FAILURE_CODE)
    ]
    used = "".join([*functions, other_code])
    fixes = {code: fix for code, fix in _FIXES.items() if f'failure("{code}"' in used}
    constants = (
        f"{source.constants}CALLER = {value_literal(caller)}\n"
        f"TIMEOUT = {DEFAULT_TIMEOUT}  # seconds\n"
        f"FIXES = {value_literal(fixes)}"
    )
    return source.replace(constants=constants, functions=tuple(functions))


def _subprocess_mode(
    spec: ExportSpec, has_flags: bool, is_async: bool, prefix: str
) -> tuple[RunnerSource, dict[str, str]]:
    """Return the code for mode "subprocess", with templates as functions, and their values."""
    library = "asyncio.subprocess" if is_async else "subprocess"
    values = {
        "flags_doc": _FLAGS_DOC if has_flags else "",
        "option_flags": _OPTION_FLAGS_CODE.replace("$prefix", prefix) if has_flags else "",
        "more_argv": ", *option_flags" if has_flags else "",
        "prefix": prefix,
        "library": library,
        "create": "await asyncio.create_subprocess_exec" if is_async else "subprocess.Popen",
        "star": "*" if is_async else "",
        "process": f"{library}.Process" if is_async else f"{library}.Popen[bytes]",
    }
    imports = ("asyncio" if is_async else "subprocess", "json", "os", "signal")
    call = _START_CODE + (_ASYNC_WAIT_CODE if is_async else _WAIT_CODE)
    constants = f"COMMAND = {value_literal(list(spec.program))}\n"
    templates = (call, _PARSE_ENVELOPE_CODE, _STOP_CODE)
    return RunnerSource(imports, None, constants, templates), values


def _import_mode(
    spec: ExportSpec, has_flags: bool, is_async: bool
) -> tuple[RunnerSource, dict[str, str]]:
    """Return the code for mode "import", with templates as functions, and their values."""
    values = {
        "flags_doc": _OPTIONS_DOC if has_flags else "",
        "api": f"app.options(caller=CALLER{', **options' if has_flags else ''})",
    }
    imports = ("asyncio",) if is_async else ("queue", "threading")
    module, name = spec.app_location
    app = f"from {module} import {name}" + ("" if name == "app" else " as app")
    call = _ASYNC_IMPORT_CALL if is_async else _THREADED_IMPORT_CALL
    return RunnerSource(imports, app, "", (call,)), values


def _call_signature(spec: ExportSpec, has_flags: bool, is_async: bool) -> str:
    command = "command: str" if spec.is_in_process else "command_path: list[str]"
    parameters = [command, "arguments: dict[str, Any]", "timeout: float"]
    parameters += ["flags: tuple[str, ...] = ()"] if has_flags else []
    return function_signature("call", parameters, "dict[str, Any]", is_async=is_async)


_SPLIT_FLAGS_CODE = """\
    options = {flag: arguments[flag] for flag in flags if arguments.get(flag) is not None}
    arguments = {key: value for key, value in arguments.items() if key not in flags}
    for flag in [flag for flag in ("yes", "dry_run") if flag in options]:
        if str(options[flag]).lower() not in ("true", "false"):
            return failure("E1003", f"{flag}: expected true or false.")
        options[flag] = str(options[flag]).lower() == "true"
"""
_FLAGS_DOC = """
    The arguments named in `flags` become options of the program."""
_OPTIONS_DOC = """

    The arguments named in `flags` become call options.
    """
_OPTION_FLAGS_CODE = """\
    option_flags = [
        f"$prefix{flag.replace('_', '-')}" + ("" if value is True else f"={value}")
        for flag, value in options.items()
        if value is not False
    ]
"""

# ------------------------------------------------------------------ subprocess mode

_START_CODE = '''
$signature
    """Run a command and return its envelope. Failures are returned as envelopes, too.

    The arguments are passed as JSON on stdin, so that no value is read as an option.$flags_doc
    """
$split_flags$option_flags    try:
        process = $create(
            $star[*COMMAND, *command_path$more_argv, "${prefix}json", "${prefix}input", "-"],
            stdin=$library.PIPE,
            stdout=$library.PIPE,
            stderr=$library.PIPE,
            env={**os.environ, "TOOLI_CALLER": CALLER},
            start_new_session=True,  # its child processes can be killed with it
        )
    except OSError as error:
        return failure("E4040", f"Cannot start {COMMAND[0]}: {error.strerror}.")
'''

_ASYNC_WAIT_CODE = """\
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
"""

_WAIT_CODE = """\
    with process:
        try:
            out, err = process.communicate(json.dumps(arguments$default).encode(), timeout)
        except subprocess.TimeoutExpired:
            return failure("E4050", f"Timed out after {timeout:g} seconds.")
        finally:
            if process.poll() is None:
                stop(process)
    return parse_envelope(process.returncode, out, err)
"""

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
