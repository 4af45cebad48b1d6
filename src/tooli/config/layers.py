"""Merge the seven layers of settings into one value per setting, with its origin."""

from __future__ import annotations

import os

from tooli.config.config_files import (
    USER_ONLY_VALUE,
    find_config_files,
    ignored_home_variables,
    user_config_path,
)
from tooli.config.file_reader import ConfigSection, UnreadableConfig, read_config_file
from tooli.config.file_trust import PROJECT_LAYERS, SpecialFile, UntrustedFile
from tooli.config.setting_definitions import (
    BOOLEAN_VALUES,
    SECTION_NAMES,
    SETTINGS,
    VARIABLES,
    InvalidSetting,
    RawSetting,
    merge_security_values,
)
from tooli.core import Record
from tooli.errors import InputError, Suggestion
from tooli.similar_names import closest_match, did_you_mean
from tooli.text.escapes import escape_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from tooli.config.config_files import ConfigFile
    from tooli.config.setting_definitions import SettingDefinition
    from tooli.errors import ToolError

    KnownSettings = list[tuple[SettingDefinition, RawSetting]]

LAYERS = ("flag", "environment", ".env", "project", "user", "system", "default")
"""The layers, highest first."""


_MAX_HINTS = 20
"""Number of faults after which no similar names are searched for."""


class SettingValue(Record):
    """The value of a setting in one layer, and its origin: a flag, a variable, or file and line."""

    value: Any
    layer: str
    origin: str


class SettingFault(Record):
    """A problem with a setting, and the origin of the setting."""

    origin: str
    message: str
    key: str | None = None
    stops_servers: bool = True  # only for ignored settings: no other layer sets it instead

    def __str__(self) -> str:
        return f"{self.origin}: {self.message}"


def make_settings_error(faults: Sequence[SettingFault]) -> ToolError:
    """Return one error (E1011) for all problems with the settings."""
    first = faults[0]
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    fix = f"Correct {first.origin}, or remove the setting."
    if " is required" in first.message:
        fix = f"Set {first.origin}."
    return InputError(
        f"{first}{more}",
        code="E1011",
        field=first.key,
        suggestion=Suggestion("fix", fix),
        details={"errors": _list_faults(faults)},
        is_retryable=False,
    )


def _list_faults(faults: Sequence[SettingFault]) -> list[dict[str, str]]:
    """Return the first problems. A file of a project may have thousands."""
    return [{"where": fault.origin, "message": fault.message} for fault in faults[:_MAX_HINTS]]


def make_ignored_error(ignored: Sequence[SettingFault]) -> ToolError:
    """Return the error (E1011) of a server whose settings would be ignored.

    The operator may rely on them. So the server does not start.
    """
    first = ignored[0]
    return InputError(
        f"The server does not start with settings that are ignored. {first}.",
        code="E1011",
        field=first.key,
        suggestion=Suggestion(
            "fix",
            f"Change {first.origin} as described, or set TOOLI_CONFIG=user, which disables the "
            "settings files of the project.",
        ),
        details={"errors": _list_faults(ignored)},
        is_retryable=False,
    )


class report_exceptions:  # noqa: N801  used as contextlib's functions are
    """Context manager that turns an exception into a fault of the settings.

    What cannot be read may have been a restriction. So nothing runs until it is corrected. The
    text of the exception is omitted, because it may contain a secret value.
    """

    def __init__(self, settings: Settings, origin: str) -> None:
        self._settings = settings
        self._origin = origin

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, *_: object) -> bool:
        if not isinstance(error, Exception):
            return False
        self._settings.faults.append(make_exception_fault(self._origin, error))
        return True


def make_exception_fault(origin: str, error: Exception) -> SettingFault:
    """Return the fault for settings whose reader has raised an exception."""
    return SettingFault(origin, f"the settings cannot be read ({type(error).__name__})")


class Settings:
    """The settings of a run: the values of all layers, and the problems that were found."""

    def __init__(self) -> None:
        self.all_values: dict[str, list[SettingValue]] = {}
        self.faults: list[SettingFault] = []
        self.ignored: list[SettingFault] = []  # files and settings that are not used, and why
        self.files: list[ConfigFile] = []
        self.of_other_apps: dict[str, dict[str, Any]] = {}  # by app: its strictest settings
        self.of_app: dict[str, list[SettingValue]] = {}  # texts for the app's settings object

    def get(self, name: str) -> Any:
        """Return the effective value of a setting, or None."""
        value = self.effective(name)
        return value.value if value is not None else None

    def effective(self, name: str) -> SettingValue | None:
        """Return the effective value of a setting with its origin, or None.

        It is the value of the highest layer. For a security setting, `merge_rule` decides: it is
        the value of the lowest layer, the strictest value, or the merged values of all layers.
        """
        values = self.all_values.get(name)
        if not values:
            return None
        definition = SETTINGS[name]
        if definition.merge_rule == "limit":
            return _select_limit(values)
        if not definition.is_security:
            return values[0]
        if definition.merge_rule == "lowest":  # the system decides, not the caller
            lowest = values[-1].layer
            return next(candidate for candidate in values if candidate.layer == lowest)
        value = merge_security_values(definition, [candidate.value for candidate in values])
        if definition.is_merged:
            return SettingValue(
                value, values[0].layer, ", ".join([candidate.origin for candidate in values])
            )
        return next(candidate for candidate in values if candidate.value == value)

    def non_default(self) -> dict[str, SettingValue]:
        """Return the effective values that are not defaults, by name."""
        effective = {
            name: value for name in self.all_values if (value := self.effective(name)) is not None
        }
        return {name: value for name, value in effective.items() if value.layer != "default"}

    def add(self, name: str, value: SettingValue) -> None:
        """Add a value. Values must be added from the highest layer to the lowest."""
        self.all_values.setdefault(name, []).append(value)


def _select_limit(values: list[SettingValue]) -> SettingValue:
    """Return the value of the highest layer, but not one that a project has raised.

    A project cannot raise a limit of the user or the system. It can replace a default.
    """
    limit = next((value.value for value in values if value.layer in ("user", "system")), None)
    for value in values:
        if limit is None or value.layer not in PROJECT_LAYERS or value.value <= limit:
            return value
    return values[-1]


def resolve_settings(
    app: str,
    *,
    flags: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    folder: str | None = None,
    callers: Callable[[], Sequence[str]] = tuple,
    defaults: Mapping[str, SettingValue] | None = None,
) -> Settings:
    """Return the settings of a run of an app. Problems are collected in `Settings.faults`.

    Args:
        app: name of the app.
        flags: settings from the command line, by name.
        env: environment variables; by default those of the process.
        folder: folder whose project is read; by default the current folder.
        callers: returns the name and category of the caller. Called only if a file needs them.
        defaults: default values that replace those of the table.
    """
    environ = os.environ if env is None else env
    settings = Settings()
    for name, value in (flags or {}).items():
        if name in SETTINGS:
            settings.add(name, SettingValue(value, "flag", SETTINGS[name].flag or name))
    with report_exceptions(settings, "the environment variables"):
        _add_environment(settings, environ)
    if environ.get("TOOLI_CONFIG", "").lower() not in ("", USER_ONLY_VALUE, *BOOLEAN_VALUES):
        settings.faults.append(SettingFault("TOOLI_CONFIG", "must be on, off or user"))
    for variable in ignored_home_variables(environ):
        message = "the folder is ignored, because its path depends on the current folder"
        settings.ignored.append(SettingFault(variable, f"{message}; use an absolute path"))
    project_paths = _add_files(settings, app, environ, folder, callers)
    if len(project_paths) > 1:
        other = escape_text(os.path.basename(project_paths[0]))
        message = f"{other} also has settings; keep only one of the two files"
        settings.faults.append(SettingFault(escape_text(project_paths[1]), message))
    for name, definition in SETTINGS.items():
        default = (defaults or {}).get(name) or SettingValue(
            definition.default, "default", "default"
        )
        if default.value is not None:
            settings.add(name, default)
    return settings


# ------------------------------------------------------------------ variables


def _add_environment(settings: Settings, env: Mapping[str, str]) -> None:
    for name, definition in SETTINGS.items():
        text = env.get(definition.variable)
        if text:
            _add_value(settings, definition, RawSetting(text), "environment", definition.variable)
            continue
        for variable, value in definition.shared_variables:
            if env.get(variable):
                settings.add(name, SettingValue(value, "environment", variable))
                break


def _add_value(
    settings: Settings, definition: SettingDefinition, raw: RawSetting, layer: str, origin: str
) -> None:
    try:
        settings.add(definition.name, SettingValue(definition.convert(raw), layer, origin))
    except InvalidSetting as failure:
        settings.faults.append(SettingFault(origin, str(failure), definition.name))


# ------------------------------------------------------------------ files


def _add_files(
    settings: Settings,
    app: str,
    env: Mapping[str, str],
    folder: str | None,
    callers: Callable[[], Sequence[str]],
) -> list[str]:
    """Add the settings of all files; return the files of the project that have settings.

    The files of the system and the user are read first, because they name the folders whose owners
    are not checked (`trusted_dirs`).
    """
    settings.files = find_config_files(env, folder)
    files = [_FileSettings(settings, file, app, env, callers) for file in settings.files]
    trusted_dirs: tuple[str, ...] = settings.get("trusted_dirs") or ()
    for file in reversed(files):
        with report_exceptions(settings, escape_text(file.file.path)):
            trusted_dirs += file.read(trusted_dirs)
    for file in files:
        with report_exceptions(settings, escape_text(file.file.path)):
            file.add_all()
    for i, fault in enumerate(settings.ignored):
        values = settings.all_values.get(fault.key or "", ())
        if any([value.layer not in PROJECT_LAYERS for value in values]):
            settings.ignored[i] = fault.replace(stops_servers=False)
    return [file.file.path for file in files if file.has_settings and file.file.layer == "project"]


class _FileSettings:
    """Adds the settings and the faults of one file to the settings of a run."""

    def __init__(
        self,
        settings: Settings,
        file: ConfigFile,
        app: str,
        env: Mapping[str, str],
        callers: Callable[[], Sequence[str]],
    ) -> None:
        self.settings = settings
        self.file = file
        self.app = app
        self.env = env
        self.callers = callers
        self.has_settings = False
        self._content = ConfigSection({})

    def read(self, trusted_dirs: tuple[str, ...]) -> tuple[str, ...]:
        """Read the file. Return its `trusted_dirs`, which the files of a project cannot set."""
        try:
            self._content = read_config_file(self.file.path, self.file.layer, trusted_dirs)
            self.has_settings = bool(self._content.entries)
        except UnreadableConfig as failure:
            self._add_fault(failure.line, str(failure))
            self.has_settings = True
        except SpecialFile as reason:
            message = f"the file is ignored, because {reason}"
            path = escape_text(self.file.path)
            self.settings.ignored.append(SettingFault(path, message, stops_servers=False))
        except UntrustedFile as reason:
            self._refuse_file(str(reason))
        if self.file.layer in PROJECT_LAYERS:
            return ()
        raw = self._content.entries.get("trusted_dirs")
        try:
            return SETTINGS["trusted_dirs"].convert(raw) if isinstance(raw, RawSetting) else ()
        except InvalidSetting:
            return ()  # `add_all` reports it

    def add_all(self) -> None:
        """Add all settings that apply."""
        if self.file.layer == ".env":
            self._add_dotenv(self._content)
        else:
            self._add_sections(self._content)

    def _refuse_file(self, reason: str) -> None:
        """Report a file that another user may have written.

        The system's file may contain restrictions, so nothing runs until it is corrected.
        """
        path, reason = escape_text(self.file.path), escape_text(reason)
        if self.file.layer == "system":
            self._add_fault(0, f"the file is not safe to read: {reason}")
            return
        user_path = user_config_path(self.env) if self.file.layer != "user" else None
        place = f"trusted_dirs in {escape_text(user_path)}, or to " if user_path is not None else ""
        message = (
            f"the file is ignored, because {reason}. If you trust the folder, add "
            f"{os.path.dirname(path)} to {place}TOOLI_TRUSTED_DIRS"
        )
        self.settings.ignored.append(SettingFault(path, message))

    def _ignore_setting(self, name: str, line: int, key: str | None, variable: str) -> None:
        """Report a setting that a project cannot set. Its value may be secret, so it is omitted."""
        user_path = user_config_path(self.env) if key is not None else None
        place = f"in {escape_text(user_path)}, or with the" if user_path is not None else "with the"
        message = (
            f"{name} is ignored, because the files of a project cannot set it. "
            f"Set it {place} environment variable {variable}"
        )
        self.settings.ignored.append(SettingFault(self._locate(line), message, key))

    def _locate(self, line: int) -> str:
        path = escape_text(self.file.path)
        return f"{path}:{line}" if line else path

    def _add_fault(self, line: int, message: str, key: str | None = None) -> None:
        self.settings.faults.append(SettingFault(self._locate(line), escape_text(message), key))

    def _add_setting(self, definition: SettingDefinition, raw: RawSetting) -> None:
        if definition.trust == "trusted" and self.file.layer in PROJECT_LAYERS:
            name, variable = definition.name, definition.variable
            shown = variable if self.file.layer == ".env" else name
            self._ignore_setting(shown, raw.line, name, variable)
            return
        _add_value(self.settings, definition, raw, self.file.layer, self._locate(raw.line))

    def _add_sections(self, content: ConfigSection) -> None:
        by_setting: dict[str, KnownSettings] = {}
        for section in self._applicable_sections(content):
            for definition, raw in section:
                by_setting.setdefault(definition.name, []).append((definition, raw))
        for candidates in by_setting.values():
            for definition, raw in candidates if candidates[0][0].is_security else candidates[:1]:
                self._add_setting(definition, raw)

    def _applicable_sections(self, content: ConfigSection) -> list[KnownSettings]:
        """Return the settings of the sections that apply to this run, most specific first."""
        found: list[KnownSettings] = []
        inner = {name: self._named_sections(content, name) for name in SECTION_NAMES}
        names = list(self.callers()) if inner["callers"] else []
        for name, section in inner["callers"].items():
            settings_here = self._caller_settings(section)
            if name in names:
                found.insert(0 if name == names[0] else len(found), settings_here)
        for name, section in inner["apps"].items():
            if name == self.app:
                found.append(self._known_settings(section, ("settings",)))
                self._add_own_settings(section.entries.get("settings"))
            else:
                self._add_settings_of_other_app(name, section)
        found.append(self._known_settings(content, SECTION_NAMES))
        return found

    def _add_own_settings(self, section: RawSetting | ConfigSection | None) -> None:
        """Add the texts for the settings object of the app. A project cannot set them."""
        if isinstance(section, RawSetting):
            self._add_fault(section.line, "settings must be a section of names and values")
            return
        for name, raw in () if section is None else section.entries.items():
            where = self._locate(raw.line)
            if not isinstance(raw, RawSetting):
                self._add_fault(raw.line, f"settings: {name} must be text; write an object as JSON")
            elif self.file.layer in PROJECT_LAYERS:
                message = f"{name} is ignored, because the files of a project cannot set it"
                self.settings.ignored.append(SettingFault(where, message))
            else:
                value = SettingValue(raw.text, self.file.layer, where)
                self.settings.of_app.setdefault(name, []).append(value)

    def _add_settings_of_other_app(self, app: str, section: ConfigSection) -> None:
        """Add the settings that also apply where another app contains this one.

        An invalid value may have been a restriction, so it counts as the strictest one.
        """
        for name in ("security_policy", "human_in_the_loop", "isolation"):
            definition, raw = SETTINGS[name], section.entries.get(name)
            if not isinstance(raw, RawSetting):
                continue
            known = self.settings.of_other_apps.setdefault(app, {})
            try:
                value = definition.convert(raw)
            except InvalidSetting:
                value = definition.choices[-1] if definition.choices else True
            known[name] = merge_security_values(definition, [value, known.get(name, value)])

    def _caller_settings(self, section: ConfigSection) -> KnownSettings:
        """Return the valid settings of a caller's section, and report the invalid ones.

        Sections of other callers are checked as well. Security settings are not allowed here,
        because callers identify themselves.
        """
        found: KnownSettings = []
        for definition, raw in self._known_settings(section):
            name = definition.name
            if definition.is_security:
                message = f"{name} is a security setting, which cannot depend on the caller"
                self._add_fault(raw.line, message, name)
                continue
            try:
                definition.convert(raw)
                found.append((definition, raw))
            except InvalidSetting as failure:
                self._add_fault(raw.line, str(failure), name)
        return found

    def _named_sections(self, content: ConfigSection, name: str) -> dict[str, ConfigSection]:
        section = content.entries.get(name)
        if section is None:
            return {}
        if isinstance(section, RawSetting):
            message = f"{name} must be a section of names, each with settings"
            self._add_fault(section.line, message)
            return {}
        found: dict[str, ConfigSection] = {}
        for inner, value in section.entries.items():
            if isinstance(value, ConfigSection):
                found[inner] = value
            else:
                self._add_fault(value.line, f"{name}: {inner} must be a section of settings")
        return found

    def _known_settings(
        self, section: ConfigSection, other_names: tuple[str, ...] = ()
    ) -> KnownSettings:
        """Return the settings of a section; report unknown names and inner sections."""
        found: KnownSettings = []
        for name, value in section.entries.items():
            definition = SETTINGS.get(name)
            if definition is not None and isinstance(value, RawSetting):
                found.append((definition, value))
            elif definition is not None:
                message = f"{name} must be {definition.type}, not a section"
                self._add_fault(value.line, message, name)
            elif name not in other_names:
                hint = ""
                if len(self.settings.faults) < _MAX_HINTS:
                    hint = did_you_mean(name[:60], (*SETTINGS, *other_names))
                if not hint and not self.settings.faults:  # once: the list is long
                    hint = f"; the settings are {', '.join(SETTINGS)}"
                self._add_fault(value.line, f"unknown setting {name[:60]!r}{hint}")
        return found

    def _add_dotenv(self, content: ConfigSection) -> None:
        """Add the variables of a `.env` file.

        Other programs use the file as well, so an unknown name is reported only if it resembles a
        setting. An ignored variable is not reported if such a program has exported it.
        """
        by_variable = {definition.variable: definition for definition in SETTINGS.values()}
        for name, raw in content.entries.items():
            assert isinstance(raw, RawSetting)
            definition = by_variable.get(name)
            is_trusted = name in VARIABLES and VARIABLES[name].is_security
            if not raw.text or (is_trusted and self.env.get(name)):
                continue
            if definition is not None:
                self._add_setting(definition, raw)
            elif is_trusted:
                self._ignore_setting(name, raw.line, None, name)
            elif name not in VARIABLES and len(self.settings.faults) < _MAX_HINTS:
                closest = closest_match(name[6:], list(SETTINGS))
                if closest is not None:
                    message = f"unknown variable {name}; did you mean {SETTINGS[closest].variable}?"
                    self._add_fault(raw.line, message)
