"""search-tools, detect-context, doctor, config show: tools, the caller, providers, settings."""

from __future__ import annotations

import os
from typing import Annotated

from tooli.builtins import lists_everything, runs_with_invalid_settings
from tooli.config.layers import resolve_settings
from tooli.config.setting_definitions import SETTINGS
from tooli.core.call import CALLER_PROFILES
from tooli.core.output_limits import MEASURED_ON, find_output_limit
from tooli.core.secret_fields import may_contain_secret
from tooli.detect import detect_execution_context
from tooli.providers.provider_mounts import iter_mounts
from tooli.providers.search import ToolIndex, format_signature
from tooli.schema.json_schema import input_schema
from tooli.schema.param_info import Argument, Option
from tooli.storage.idempotency_postgres import redact_url

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.config.app_settings import AppSettings
    from tooli.config.layers import Settings, SettingValue
    from tooli.core.protocols import App
    from tooli.detect import Candidate, ExecutionContext


def add_detection(builtin_app: App, app: App) -> None:
    """Add `detect-context`."""

    @builtin_app.command("detect-context")
    @lists_everything
    @runs_with_invalid_settings
    def detect_context(
        deep: Annotated[
            bool, Option("--deep", help="Also inspect parent processes and container files.")
        ] = False,
    ) -> dict[str, object]:
        """Show the detected caller, the signals that identify it, and the defaults that it gets."""
        context = detect_execution_context(deep=deep)
        return {
            **_describe_context(context),
            "behavior": _describe_caller_profile(context),
            "output_limit": _describe_output_limit(context, _resolved_settings(app)),
            **_configuration_summary(app),
        }


def add_doctor(builtin_app: App, app: App) -> None:
    """Add `doctor`."""

    @builtin_app.command("doctor")
    @lists_everything
    @runs_with_invalid_settings
    def doctor() -> dict[str, object]:
        """Check the app and its providers: which ones work, and what is wrong with the others."""
        mounts = list(iter_mounts(app._state))
        failures = [mount.check() for mount in mounts]
        catalog = app.catalog
        problems = [
            str(problem) for problem in (*catalog.problems.values(), *filter(None, failures))
        ]
        return {
            "app": app._state.name,
            "ok": not problems,
            "tools": len(list(catalog)),
            "problems": problems,
            "providers": [
                {
                    "name": mount.name,
                    "namespace": ".".join(mount.place),
                    "ok": not mount.problems and failure is None,
                    "tools": len(list(mount.content.walk())),
                }
                for mount, failure in zip(mounts, failures, strict=True)
            ],
        }


def add_config(group: App, app: App) -> None:
    """Add `config show`."""

    @group.command("show")
    @lists_everything
    @runs_with_invalid_settings
    def show(
        origin: Annotated[
            bool, Option("--origin", help="Show the value of every layer, with file and line.")
        ] = False,
    ) -> dict[str, object]:
        """Show the settings and where each comes from: flags, environment, files or defaults."""
        settings = _resolved_settings(app)
        values = {
            name: _setting_layers(settings, name)
            if origin
            else _public_value(name, settings.get(name))
            for name in _setting_names(settings)
        }
        own = _describe_app_settings(app._state.app_settings)
        return {**values, **own, **_problem_lines(settings)}


def add_search(builtin_app: App, app: App) -> None:
    """Add `search-tools`."""

    @builtin_app.command("search-tools")
    def search_tools(
        query: Annotated[str, Argument(help="What the command does, or part of its name.")],
        limit: Annotated[int, Option(min=1, max=100, help="Maximum number of results.")] = 10,
        schema: Annotated[bool, Option("--with-schema", help="Include input schemas.")] = False,
    ) -> list[dict[str, object]]:
        """Find commands that match a description, best match first."""
        found: list[dict[str, object]] = []
        for hit in ToolIndex(app.catalog).search(query, limit):
            row: dict[str, object] = {"name": hit.tool.key, "signature": format_signature(hit.tool)}
            if schema:
                row["input_schema"] = input_schema(hit.tool)
            found.append(row)
        return found


# ------------------------------------------------------------------ callers


def _describe_context(context: ExecutionContext) -> dict[str, object]:
    """Return the fields of the context as plain data."""
    fields = {name: getattr(context, name) for name in type(context).__match_args__}
    fields["category"] = str(context.category)
    fields["signals"] = list(context.signals)
    fields["candidates"] = [_describe_candidate(candidate) for candidate in context.candidates]
    return fields


def _describe_candidate(candidate: Candidate) -> dict[str, object]:
    return {
        "name": candidate.name,
        "category": str(candidate.category),
        "confidence": candidate.confidence,
        "decides": candidate.decides,
        "signals": list(candidate.signals),
    }


def _describe_caller_profile(context: ExecutionContext) -> dict[str, object]:
    caller_profile = CALLER_PROFILES[context.category]
    fields = {name: getattr(caller_profile, name) for name in type(caller_profile).__match_args__}
    return {name: value for name, value in fields.items() if value is not None}


def _describe_output_limit(context: ExecutionContext, settings: Settings) -> dict[str, object]:
    """Return the limit for the size of answers: of the settings, or of the caller."""
    configured = {name: settings.get(name) for name in ("max_bytes", "max_tokens")}
    configured = {name: value for name, value in configured.items() if value is not None}
    limit = find_output_limit(context.caller_id)
    if configured or limit is None:
        return {**configured, "by": "settings" if configured else "none"}
    details: dict[str, object] = {"version": limit.version, "measured": MEASURED_ON}
    if limit.max_lines is not None:
        details["max_lines"] = limit.max_lines
    return {f"max_{limit.unit}": limit.amount, "by": limit.agent, **details}


# ------------------------------------------------------------------ settings


def _resolved_settings(app: App) -> Settings:
    """Return the settings that the command line has read, or read them now."""
    settings = app._state.resolved_settings
    if settings is None:
        settings = resolve_settings(app._state.name)
    return settings


def _configuration_summary(app: App) -> dict[str, object]:
    settings = _resolved_settings(app)
    summary: dict[str, object] = {
        "configuration": {name: _setting_value(settings, name) for name in _setting_names(settings)}
    }
    if settings.files:
        summary["files"] = [_relative_path(config_file.path) for config_file in settings.files]
    return {**summary, **_problem_lines(settings)}


def _setting_names(settings: Settings) -> list[str]:
    return [name for name in SETTINGS if settings.effective(name) is not None]


def _setting_value(settings: Settings, name: str) -> dict[str, object]:
    layer_value = settings.effective(name)
    assert layer_value is not None
    return {
        "value": _public_value(name, layer_value.value),
        "origin": _relative_path(layer_value.origin),
    }


def _setting_layers(settings: Settings, name: str) -> dict[str, object]:
    """Return the effective value and its origin, and the values of the other layers.

    The key `merged` has the values that are merged into the effective value. The key `overruled`
    has the values without effect.
    """
    effective = settings.effective(name)
    assert effective is not None
    row = _describe_layer(name, effective)
    others = [
        _describe_layer(name, layer_value)
        for layer_value in settings.all_values[name]
        if layer_value is not effective
    ]
    if not others:
        return row
    if SETTINGS[name].is_merged:
        return {**row, "merged": others} if len(others) > 1 else row
    return {**row, "overruled": others}


def _describe_layer(name: str, layer_value: SettingValue) -> dict[str, object]:
    row: dict[str, object] = {
        "value": _public_value(name, layer_value.value),
        "layer": layer_value.layer,
    }
    return (
        row
        if layer_value.origin == layer_value.layer
        else {**row, "origin": _relative_path(layer_value.origin)}
    )


def _public_value(name: str, value: object) -> object:
    """Return the value of a setting. The password in the URL of `store` is redacted."""
    return redact_url(value) if name == "store" and isinstance(value, str) else value


def _describe_app_settings(settings: AppSettings | None) -> dict[str, object]:
    """Return the fields of the app's settings object that are set, and what sets them."""
    if settings is None:
        return {}
    texts, _ = settings.field_texts()
    rows = {
        param.name: {
            "value": "***" if may_contain_secret(param) else " ".join(text.raw.texts),
            "layer": text.layer,
            "origin": _relative_path(text.origin),
        }
        for param in settings.params
        if (text := texts.get(param.name)) is not None
    }
    return {"settings": rows}


def _problem_lines(settings: Settings) -> dict[str, list[str]]:
    """Return the invalid settings, and what is ignored and why."""
    lists = {"faults": settings.faults, "ignored": settings.ignored}
    return {
        name: [f"{_relative_path(fault.origin)}: {fault.message}" for fault in faults]
        for name, faults in lists.items()
        if faults
    }


def _relative_path(path: str) -> str:
    """Return a path relative to the current folder, if it is inside."""
    try:
        here = os.getcwd()
    except OSError:
        return path
    return path[len(here) + 1 :] if path.startswith(here + os.sep) else path
