"""Limits of two figures of `metrics.py`, and the list of modules with lazy imports.

An import inside a function saves time only where a start is measured: an ordinary call,
`--help-agent`, `--schema`, a usage error, `mcp serve`. `LAZY` lists the modules of those starts,
and those that load an optional part of themselves on demand. All other modules import at the top.
"""

from __future__ import annotations

import ast

import pytest
from tests.architecture import metrics

LIMITS = {
    "imports inside functions per 1,000 lines of code": 7.5,
    "Any per 1,000 lines of code": 30,
}
LAZY = {
    "the start of every command line": (
        *("tooli", "app", "core", "core.tool", "providers", "schema", "schema.tool_reader"),
        *("cli", "cli.argv", "cli.process", "cli.open_files"),
        *("pipeline", "pipeline.drivers", "pipeline.present"),
        "schema.detail_fields",  # loaded by `from tooli import Detail`
    ),
    "the call of an agent, of a person or of a session": (
        *("cli.caller_defaults", "cli.event_lines", "cli.outcome_writer", "cli.tables"),
        *("config", "detect"),
        "config.applied_settings",
        *("config.setting_definitions", "stages.repeated_failures", "text.json_encoder"),
        *(
            "text.redact",
            "pipeline.argv_builder",
            "pipeline.context",
            "python_api",
            "schema.shapes",
        ),
        *("pipeline.prepared_call", "pipeline.stdout_capture", "stages.record_selection"),
        "pipeline.question_routing",
        "pipeline.dry_run_recorder",
        "storage.state_files",
    ),
    "help, schemas and usage errors": (
        *("cli.info_options", "describe.agent_help", "describe.schema_formats", "errors"),
        *(
            "pipeline.corrected_calls",
            "pipeline.failure",
            "pipeline.input_errors",
            "schema.json_schema",
            "core.docstring",
            "core.definitions",
        ),
        "pipeline.value_descriptions",
    ),
    "lines that Typer parses, in which little of tooli runs": (
        *("cli.typer_lookup", "cli.typer_params", "cli.typer_register", "cli.typer_runner"),
        *("providers.command_routes", "schema.convert_values"),
    ),
    "the start of a server": (
        *("builtins.agent_commands", "launcher", "http.asgi", "http.http_server", "mcp"),
        *("mcp.protocol", "mcp.service", "mcp.stdio_server"),
        *("mcp.stdio_transport", "serving.dispatcher", "serving.uvicorn_server"),
        *("serving.server_request", "sources.loader", "sources.parameters"),
    ),
    "the start of an app with providers or a settings object": (
        "config.app_settings",
        "providers.sql.sql_provider",
        "providers.programs.cli_provider",
    ),
    "calls with a timeout, an approval, a token or a handle": (
        *("execution.monitor.monitored_runner", "execution.process_runner", "execution.worker"),
        *("policy.token_verifier", "stages.approval", "stages.auth", "stages.timeout"),
        *("inputs.formats", "inputs.secret", "inputs.source"),
        *("storage.idempotency_sqlite", "storage.outcome_codec", "packaging"),
    ),
}


@pytest.fixture(scope="module")
def figures() -> dict[str, object]:
    return metrics.measure()


@pytest.mark.parametrize("name", LIMITS)
def test_metric_is_within_its_limit(figures: dict[str, object], name: str) -> None:
    value = figures[name]
    assert isinstance(value, (int, float))
    assert value <= LIMITS[name]


def imports_own_modules(module: metrics.Module) -> bool:
    """True if a function of the module imports another module of the package."""
    for node in metrics.find_function_imports(module):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(name.split(".")[0] == "tooli" for name in names):
            return True
    return False


def test_only_listed_modules_import_lazily() -> None:
    listed = {name for names in LAZY.values() for name in names}
    found = {
        name.removeprefix("tooli.")
        for name, module in metrics.load_modules().items()
        if imports_own_modules(module)
    }
    assert not found - listed, "import at the top, or list the module with its reason"
    assert not listed - found, "these modules import nothing lazily: remove them from LAZY"
