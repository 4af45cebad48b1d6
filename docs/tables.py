"""The generated parts of the documents: tables from the source, by the name in their marker.

    <!-- generated: error codes -->
    …
    <!-- end of generated part -->

`with_tables` replaces the text between such markers. The rest of a page is written by hand.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.agents.programs import PROGRAMS
from tests.integration.frameworks.constructs import CONSTRUCTS, MEASURED_CONSTRUCTS

from tooli import Context, Tooli, errors
from tooli.config.setting_definitions import SETTINGS
from tooli.core import protocols
from tooli.core.agent_hosts import AGENT_HOSTS, SERVER_HOSTS, SKILL_HOSTS
from tooli.core.agent_hosts import server_settings as agent_server_settings
from tooli.core.call import CALLER_PROFILES
from tooli.core.options import OPTIONS, Option
from tooli.core.output_limits import MEASURED_ON, OUTPUT_LIMITS, SERVER_OUTPUT_LIMITS
from tooli.core.output_modes import MODE_TABLE
from tooli.describe.openapi_shared import META_FIELDS
from tooli.detect import display_name
from tooli.detect.markers import CI_MARKERS, MEASURED_CONFIDENCE, STRONG_MARKERS, WEAK_MARKERS
from tooli.http.asgi import HttpSettings
from tooli.pipeline import STAGES, load_location
from tooli.policy.rules import RULES
from tooli.serving.dispatcher import MAX_CONCURRENT_CALLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MARKED = re.compile(
    r"(<!-- generated: ([a-z ]+) -->\n)(?:.*?\n)??(<!-- end of generated part -->)", re.DOTALL
)


def with_tables(page: str) -> str:
    """Return a page with the current table between each pair of markers."""
    return _MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", page)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _codes(texts: Iterable[str]) -> str:
    return ", ".join([_code(text) for text in texts])


# ------------------------------------------------------------------ errors.md


def error_classes() -> str:
    """Return the tree of error classes."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0]
    lines = [line[4:] for line in tree.splitlines()]
    return "\n".join(["```text", *lines, "```"])


def exit_codes() -> str:
    """Return the exit codes and their meanings."""
    return table(("exit code", "meaning"), [(str(c), m) for c, m in errors.EXIT_CODES.items()])


def error_codes() -> str:
    """Return the error codes of tooli."""
    return table(
        ("code", "class", "exit code", "HTTP status", "meaning"),
        [
            (code, f"`{class_of_code(code).__name__}`", str(exit_code), str(status), meaning)
            for code, (meaning, exit_code, status) in errors.ERROR_CODES.items()
        ],
    )


_CLASS_BY_CODE = {
    "E1034": errors.FormatError,
    **dict.fromkeys(("E2102", "E2103"), errors.ApprovalRequired),
    **dict.fromkeys(("E4029", "E4060", "E4061"), errors.TemporaryError),
    "E4143": errors.Interrupted,
}
"""The classes of the codes for which `class_of_code` cannot derive the class."""


def class_of_code(code: str) -> type[errors.ToolError]:
    """Return the class of the errors with a code."""
    if code in _CLASS_BY_CODE:
        return _CLASS_BY_CODE[code]
    classes: list[type[errors.ToolError]] = errors.ToolError.__subclasses__()
    for error_class in classes:
        classes.extend(error_class.__subclasses__())
    by_code = {error_class.code: error_class for error_class in reversed(classes)}
    return by_code.get(code) or by_code[f"{code[:2]}000"]


def suggestion_fields() -> str:
    """Return the fields of a suggestion."""
    return table(
        ("field", "content"),
        [
            ("`action`", f"what kind of step helps: {_codes(errors.SUGGESTION_ACTIONS)}"),
            ("`fix`", "the step in words"),
            ("`argv`", "command line: a call that works, as a list of words, if one is known"),
            ("`arguments`", "MCP, HTTP, Python: the arguments of that call, as a JSON object"),
            ("`query`", "HTTP: the options of that call, for the query of the request"),
            ("`options`", "MCP, Python: options that have the name of a parameter"),
            ("`command`", "MCP, HTTP, Python: the command, if it is another one"),
            ("`example`", "the same call as one line: for a shell, an HTTP request or Python code"),
            ("`applicability`", f"reliability of the fix: {_codes(errors.APPLICABILITY_LEVELS)}"),
        ],
    )


# ------------------------------------------------------------------ output modes and options


def output_modes() -> str:
    """Return the output modes."""
    return table(
        ("mode", "flag", "description"),
        [
            (_code(mode.name), _code(mode.flag if mode.renderer else ""), mode.summary)
            for mode in MODE_TABLE
        ],
    )


_INTERFACES = {"http": "HTTP", "mcp": "MCP", "python": "Python"}


def framework_options() -> str:
    """Return the framework options: flags, effect, and the other interfaces that accept them."""
    options = [_option_row(option) for option in OPTIONS if option.flags]
    return table(("flag", "effect", "guide", "also accepted by"), options)


def _option_row(option: Option) -> tuple[str, ...]:
    value = f" {option.value_name}" if option.value_name else ""
    spellings = [f"{flag}{value}" for flag in option.flags]
    spellings += [flag for flag, _ in option.shortcuts]
    interfaces = [_INTERFACES[name] for name in option.interfaces if name in _INTERFACES]
    guide = f"[{option.page[:-3]}]({option.page})" if option.page else ""
    effect = option.help.replace("|", "\\|")
    return _codes(spellings), effect, guide, ", ".join(interfaces)


# ------------------------------------------------------------------ safety.md


def policy_rules() -> str:
    """Return what each security policy does with a call."""
    return table(
        ("a call", "off", "standard", "strict"),
        [
            (rule.description, rule.off.summary, rule.standard.summary, rule.strict.summary)
            for rule in RULES.values()
        ],
    )


# ------------------------------------------------------------------ callers.md


def caller_profiles() -> str:
    """Return the defaults for each kind of caller."""
    fields: tuple[str, ...] = type(CALLER_PROFILES["human"]).__match_args__
    rows = [
        (_code(name), *[str(getattr(profile, field)).lower() for field in fields])
        for name, profile in CALLER_PROFILES.items()
    ]
    return table(("caller", *fields), rows)


def agent_markers() -> str:
    """Return the environment variables that identify an agent."""
    agents: dict[str, tuple[list[str], list[str]]] = {}
    for name, confidence, markers in STRONG_MARKERS:
        measured, documented = agents.setdefault(name, ([], []))
        (measured if confidence == MEASURED_CONFIDENCE else documented).extend(markers)
    rows = [
        (f"{display_name(name)} (`{name}`)", _codes(measured), _codes(documented))
        for name, (measured, documented) in agents.items()
    ]
    return table(
        ("agent", "observed in the agent", "documented by its vendor or in its code"), rows
    )


def output_limits() -> str:
    """Return how much of the output each agent passes on to its model."""
    rows = [
        (
            f"{display_name(name)} {limit.version}",
            limit.text + (f", {limit.max_lines} lines" if limit.max_lines else ""),
            limit.beyond,
        )
        for name, limit in OUTPUT_LIMITS.items()
    ]
    rows += [
        (f"{display_name(name)} {limit.version}, over MCP", limit.text, limit.beyond)
        for name, limit in SERVER_OUTPUT_LIMITS.items()
    ]
    return table(("agent", f"limit, measured in {MEASURED_ON}", "shown of longer output"), rows)


def ci_markers() -> str:
    """Return the environment variables that identify a CI system."""
    return table(("CI system", "variable"), [(name, _code(var)) for name, var in CI_MARKERS])


def weak_markers() -> str:
    """Return the signals that do not identify a caller."""
    rows = [(display_name(name), _codes(markers)) for name, markers in WEAK_MARKERS]
    return table(("agent", "signals"), rows)


# ------------------------------------------------------------------ installing.md

_FOLDERS = {
    "{home}": "~",
    "{claude}": "~/.claude",
    "{claude_state}": "~",
    "{cline}": "~/.cline/data",
    "{codex}": "~/.codex",
    "{config}": "~/.config",
    "{copilot}": "~/.copilot",
    "{gemini}": "~/.gemini",
    "{goose}": "~/.config/goose",
    "{kimi}": "~/.kimi-code",
    "{settings}": "SETTINGS",
}


def _path(pattern: str) -> str:
    for name, folder in _FOLDERS.items():
        pattern = pattern.replace(name, folder)
    return _code(pattern) or "none"


def skill_folders() -> str:
    """Return the folders of skills, each with the agents that read it."""
    agents: dict[tuple[str, str], list[str]] = {}
    for name in SKILL_HOSTS:
        folders = AGENT_HOSTS[name].skills
        if folders is not None:
            agents.setdefault(folders, []).append(name)
    rows = [
        (_codes(names), _path(project), _path(user)) for (project, user), names in agents.items()
    ]
    return table(("agent", "in a project", "for a user"), rows)


def server_files() -> str:
    """Return the settings files in which MCP servers are registered."""
    rows: list[tuple[str, ...]] = []
    for name in SERVER_HOSTS:
        host, settings = AGENT_HOSTS[name], agent_server_settings(name)
        files = _path(settings.project), _path(settings.user)
        default = "yes" if host.is_default else ""
        rows.append((f"`{name}` ({host.title})", *files, _code(settings.container), default))
    return table(("agent", "in a project", "for a user", "key", "default"), rows)


def tested_agents() -> str:
    """Return the agent programs that the tests run."""
    rows = [
        (AGENT_HOSTS[program.agent].title, _code(program.package), _code(program.caller))
        for program in PROGRAMS
    ]
    return table(("agent", "npm package", "caller that `detect-context` reports"), rows)


# ------------------------------------------------------------------ configuration.md


def settings() -> str:
    """Return the settings of configuration files."""
    return table(
        ("setting", "value", "variable", "flag", "meaning"),
        [
            (
                _code(name),
                setting.type.replace("|", ", "),
                _code(setting.variable),
                _code(setting.flag or ""),
                setting.description,
            )
            for name, setting in SETTINGS.items()
        ],
    )


def setting_trust() -> str:
    """Return who may set each setting."""
    rows = [
        (_codes([name for name, setting in SETTINGS.items() if setting.trust == trust]), text)
        for trust, text in _TRUST_CLASSES.items()
    ]
    return table(("settings", "who may set them"), rows)


_TRUST_CLASSES = {
    "presentation": "every layer",
    "tightening": "every layer; a project can only make them stricter",
    "trusted": "the environment, the user's file and the system's file; not a project",
}


# ------------------------------------------------------------------ stages.md


def stages() -> str:
    """Return the stages in order, with the first sentence of their docstrings."""
    rows = [(_code(name), _first_sentence(load_location(place))) for name, place, _, _ in STAGES]
    return table(("stage", "task"), rows)


def _first_sentence(function: object) -> str:
    return _first_paragraph(function).removesuffix(".").partition(". ")[0]


# ------------------------------------------------------------------ reference.md


def app_keywords() -> str:
    """Return the keywords of `Tooli(…)`, from its signature and its docstring."""
    described = dict(re.findall(r"^ *- `(\w+)`: (.+)$", Tooli.__doc__ or "", re.MULTILINE))
    parameters = inspect.signature(Tooli).parameters.values()
    rows = [
        (_code(param.name), _code(_default(param.default)), _sentence(described[param.name]))
        for param in parameters
        if param.name in (Tooli.__init__.__kwdefaults__ or ())
    ]
    return table(("keyword", "default", "meaning"), rows)


_INTERNAL_METHODS = {"tree", "builtins", "prepare", "stages_for"}
"""Methods of `Tooli` that only tooli itself calls."""


def app_methods() -> str:
    """Return the methods and attributes of `Tooli`, from their docstrings."""
    rows = [
        (
            _code(f"app.{name}" if isinstance(member, property) else f"app.{name}(…)"),
            _first_paragraph(member),
        )
        for name, member in vars(Tooli).items()
        if not name.startswith("_") and name not in _INTERNAL_METHODS and inspect.getdoc(member)
    ]
    return table(("member", "meaning"), rows)


def _first_paragraph(documented: object) -> str:
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def command_keywords() -> str:
    """Return the keywords of `@app.command(…)`, from the docstrings of `CommandOptions`."""
    fields = field_docstrings("CommandOptions")
    rows = [(_code(name), text.replace("|", "\\|")) for name, text in fields.items()]
    return table(("keyword", "meaning"), rows)


def field_docstrings(name: str) -> dict[str, str]:
    """Return the docstrings of the fields of a class in `tooli.core.protocols`.

    The classes exist for type checkers only, so they are read from the source.
    """
    tree = ast.parse(Path(protocols.__file__).read_text(encoding="utf-8"))
    body = next(
        node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name
    )
    fields: dict[str, str] = {}
    for field, docstring in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(docstring, ast.Expr):
            fields[ast.unparse(field.target)] = ast.literal_eval(docstring.value)
    return fields


def context_members() -> str:
    """Return the methods and attributes of `Context`, from their docstrings."""
    rows: list[tuple[str, ...]] = []
    for name, member in vars(Context).items():
        if not name.startswith("_") and inspect.getdoc(member):
            call = "" if isinstance(member, property) else _call_form(member)
            rows.append((_code(f"ctx.{name}{call}"), _first_paragraph(member)))
    return table(("member", "meaning"), rows)


def _call_form(function: Callable[..., object]) -> str:
    parameters = list(inspect.signature(function).parameters.values())[1:]
    names = [
        param.name if param.default is param.empty else f"{param.name}={_default(param.default)}"
        for param in parameters
    ]
    return f"({', '.join(names)})"


def _default(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def meta_fields() -> str:
    """Return the fields of `meta` in an envelope."""
    rows = [(_code(name), str(schema["description"])) for name, schema in META_FIELDS.items()]
    return table(("field", "meaning"), rows)


# ------------------------------------------------------------------ exports.md

_CLIENT_TITLES = {
    "adk": "Google ADK",
    "agent-framework": "Agent Framework",
    "agno": "Agno",
    "claude": "Claude Agent SDK",
    "claude-code": "Claude Code",
    "codex": "Codex",
    "copilot": "GitHub Copilot SDK",
    "copilot-cli": "Copilot CLI",
    "crewai": "CrewAI",
    "dspy": "DSPy",
    "gemini-cli": "Gemini CLI",
    "langchain": "LangChain",
    "llamaindex": "LlamaIndex",
    "mastra": "Mastra",
    "openai": "OpenAI Agents",
    "opencode": "OpenCode",
    "pydantic-ai": "Pydantic AI",
    "smolagents": "smolagents",
    "strands": "Strands",
    "vercel": "Vercel AI SDK",
}


def schema_constructs() -> str:
    """Return what each host and framework does with constructs of JSON Schema."""
    rows: list[tuple[str, ...]] = []
    unchanged: list[str] = []
    for client, ratings in json.loads(MEASURED_CONSTRUCTS.read_text(encoding="utf-8")).items():
        if not ratings:
            unchanged.append(_CLIENT_TITLES[client])
            continue
        found = [
            ", ".join([CONSTRUCTS[name][0] for name, rating in ratings.items() if rating == kind])
            for kind in ("refused", "changed")
        ]
        rows.append((_CLIENT_TITLES[client], *[text or "none" for text in found]))
    rows.append((", ".join(unchanged), "none", "none"))
    return table(("host or framework", "refuses", "changes or leaves out"), rows)


# ------------------------------------------------------------------ deploying.md


_SERVER_FLAGS = {
    "token": "`TOOLI_TOKEN`, `--token-file`, `--token`",
    "allowed_hosts": "`--allow-host`",
    "allowed_origins": "`--allow-origin`",
    "limit": "`--limit`",
    "root_path": "`--root-path`",
    "resource_url": "`--resource-url`",
    "token_issuer": "`--token-issuer`",
    "token_audience": "`--token-audience`",
    "mcp": "`--mcp/--no-mcp`",
    "orchestrate": "`--orchestrate/--no-orchestrate`",
    "stateless": "`--stateless`",
    "json_response": "`--json-response`",
    "expose_errors": "`--expose-errors`",
}
_MCP_SETTINGS = (
    ("mcp", "True", "serve MCP at /mcp, if the SDK is installed"),
    ("stateless", "False", "give MCP clients of handshake versions no sessions"),
    ("json_response", "False", "answer MCP requests with JSON instead of event streams"),
)


def server_settings_rows() -> list[tuple[str, str, str]]:
    """Return the keywords of `app.asgi`: the name, the default and the comment of each."""
    line = re.compile(r"    (\w+): .+? = (.+?)(?:  # (.+))?$")
    source = inspect.getsource(HttpSettings).splitlines()
    found = [match.groups() for text in source if (match := line.fullmatch(text))]
    rows = [(name, default, comment or "") for name, default, comment in found]
    return [*rows, *_MCP_SETTINGS]


def server_settings() -> str:
    """Return the settings of the HTTP server."""
    defaults = {"MAX_CONCURRENT_CALLS": str(MAX_CONCURRENT_CALLS), "4 << 20": "4194304"}
    return table(
        ("keyword", "default", "flag", "meaning"),
        [
            (
                f"`{name}=`",
                _code(defaults.get(default, default)),
                _SERVER_FLAGS.get(name, ""),
                comment,
            )
            for name, default, comment in server_settings_rows()
        ],
    )


TABLES: dict[str, Callable[[], str]] = {
    function.__name__.replace("_", " "): function
    for function in (
        *(error_classes, exit_codes, error_codes, suggestion_fields),
        *(output_modes, framework_options, policy_rules),
        *(caller_profiles, agent_markers, ci_markers, weak_markers, settings, output_limits),
        *(skill_folders, server_files, tested_agents),
        *(setting_trust, stages, schema_constructs),
        server_settings,
        *(app_keywords, app_methods, command_keywords, context_members, meta_fields),
    )
}
"""The tables, by the name in their marker."""
