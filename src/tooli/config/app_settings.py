"""The settings object of an app: `Tooli(settings=Settings)`.

    --database     ─┐
    SHOP_DATABASE  ─┼─▶ text ─▶ value of the field ─▶ Settings(database=…)
    config.yaml    ─┘

The highest layer that sets a field wins: a flag, then the environment, then the section
`apps: {shop: {settings: …}}` in the file of the user, then in that of the system. The files of a
project are not trusted, so they cannot set anything. The object belongs to the process: it is made
once, and callers of a server cannot change it.
"""

from __future__ import annotations

import os

from tooli.config.config_files import find_config_files
from tooli.core import Record
from tooli.core._hot_tables import FLAGS
from tooli.core.depends import settings_classes
from tooli.core.tool import (
    MISSING,
    ConversionError,
    Handle,
    ListOf,
    PathShape,
    is_structured,
    item_shape,
    unwrap_optional,
)
from tooli.errors import DefinitionError, InputError
from tooli.schema import RawText
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from tooli.config.layers import SettingFault
    from tooli.core import AppState
    from tooli.core.tool import Param

SECTION = "settings"
"""The section of an app, in a settings file, that sets the fields of its settings object."""


class FieldText(Record):
    """The text that sets a field, and its origin: a flag, a variable, or file and line."""

    raw: RawText
    layer: str
    origin: str


class AppSettings:
    """The settings object of one app, and what fills it."""

    def __init__(self, cls: type, app: str) -> None:
        is_model = hasattr(cls, "model_fields") or hasattr(cls, "__dataclass_fields__")
        if not (isinstance(cls, type) and is_model):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DefinitionError(f"settings={cls!r}: must be a dataclass or a pydantic model")
        settings_classes.add(cls)
        self.cls = cls
        self._app = app
        self._params: tuple[Param, ...] | None = None
        self._flag_texts: Mapping[str, RawText] = {}
        self._value: Any = MISSING

    # -------------------------------------------------------------- fields

    @property
    def params(self) -> tuple[Param, ...]:
        """The fields, as options of a command line."""
        if self._params is None:
            self._params = tuple(self._read_fields())
        return self._params

    @property
    def flags(self) -> dict[str, tuple[Param, bool]]:
        """The flags, each with its field, and False if it sets the field to False."""
        found = {flag: (param, True) for param in self.params for flag in param.flags}
        return found | {flag: (param, False) for param in self.params for flag in param.negations}

    @property
    def shown_params(self) -> list[Param]:
        """The fields that help and documents show."""
        return [param for param in self.params if not param.hidden]

    @property
    def help_texts(self) -> dict[str, str]:
        """What the fields mean, by name: their help, or their part of the docstring."""
        from tooli.core.docstring import read_docstring

        documented = read_docstring(self.cls.__doc__).params
        found = {param.name: param.help or documented.get(param.name) for param in self.params}
        return {name: text for name, text in found.items() if text}

    @property
    def variables(self) -> list[str]:
        """The environment variables, one for each field."""
        return [self.variable(param) for param in self.params]

    def variable(self, param: Param) -> str:
        """Return the environment variable of a field."""
        return self._variables(param)[0]

    def _variables(self, param: Param) -> Sequence[str]:
        declared = param.option_kwargs.get("envvar")
        if declared:
            return [declared] if isinstance(declared, str) else list(declared)
        words = f"{self._app}_{param.name}"
        return ["".join([char if char.isalnum() else "_" for char in words]).upper()]

    def _read_fields(self) -> Iterator[Param]:
        from tooli.schema.param_info import ParamInfo
        from tooli.schema.tool_reader import read_param

        for name, annotation, default in _fields_of(self.cls):
            param = read_param(name, annotation, default)
            if param.kind == "argument":  # it is required
                info = ParamInfo("option", ..., (), {})
                param = read_param(name, _annotated(annotation, info), default)
            self._check_field(param)
            yield param

    def _check_field(self, param: Param) -> None:
        place = f"{self.cls.__name__}.{param.name}"
        shape = item_shape(param.shape)
        is_input = isinstance(shape, Handle) and not shape.is_secret
        if param.kind == "injected" or not param.is_fast_path or is_input:
            raise DefinitionError(f"{place}: settings cannot have this type")
        used = [flag for flag in (*param.flags, *param.negations) if flag in FLAGS]
        if used:
            raise DefinitionError(
                f"{place}: every command has a flag {used[0]} already; "
                f"name another one with Option('--{self._app}-{used[0][2:]}')"
            )

    # -------------------------------------------------------------- value

    def set_flags(self, texts: Mapping[str, RawText]) -> list[tuple[str, str]]:
        """Set the flags of a command line; return the field and message of each invalid one."""
        self._value = MISSING
        self._flag_texts = texts
        problems: list[tuple[str, str]] = []
        for param in self.params if texts else ():
            if param.name in texts:
                try:
                    _convert(param, texts[param.name])
                except ConversionError as error:
                    problems.append((param.name, f"{param.flags[0]}: {error.message}"))
        return problems

    def replace(self, value: object) -> None:
        """Use another object, for example in a test."""
        self._value = value

    def value(self) -> Any:
        """Return the object. Raises InputError (E1011) with all fields that are wrong."""
        if self._value is MISSING:
            self._value = self._make()
        return self._value

    def prepare(self) -> None:
        """Make the object, if it can be made: a process in a sandbox may not read its sources."""
        try:
            self.value()
        except InputError:
            pass  # it is raised when the object is used

    def secrets(self) -> list[Any]:
        """Return the secrets in the object."""
        from tooli.core.call_secrets import iter_secrets

        self.prepare()
        return [] if self._value is MISSING else list(iter_secrets(self._value, set()))

    @property
    def may_have_secrets(self) -> bool:
        """True if a field may be a secret."""
        from tooli.schema.tool_reader import may_have_secrets

        return may_have_secrets(self.params)

    def field_texts(self) -> tuple[dict[str, FieldText], list[SettingFault]]:
        """Return the text of each field that is set, and what is wrong with the files."""
        from_files, faults = self._read_files()
        found: dict[str, FieldText] = {}
        for param in self.params:
            if param.name in self._flag_texts:
                flag = (param.flags or param.negations)[0]
                found[param.name] = FieldText(self._flag_texts[param.name], "flag", flag)
                continue
            for variable in self._variables(param):
                text = os.environ.get(variable)
                if text:
                    raw = _raw_text(param, text)
                    found[param.name] = FieldText(raw, "environment", variable)
                    break
            else:
                if param.name in from_files:
                    found[param.name] = from_files[param.name]
        return found, faults

    def _read_files(self) -> tuple[dict[str, FieldText], list[SettingFault]]:
        if not find_config_files(os.environ):
            return {}, []
        from tooli.config.layers import SettingFault, resolve_settings

        found: dict[str, FieldText] = {}
        faults: list[SettingFault] = []
        params = {param.name: param for param in self.params}
        for name, values in resolve_settings(self._app).of_app.items():
            value = values[0]
            if name in params:
                raw = _raw_text(params[name], value.value)
                found[name] = FieldText(raw, value.layer, value.origin)
            else:
                hint = did_you_mean(name[:60], list(params))
                message = f"unknown setting {name[:60]!r} of {self._app}{hint}"
                faults.append(SettingFault(value.origin, message))
        return found, faults

    def _make(self) -> Any:
        from tooli.config.layers import SettingFault, make_settings_error

        texts, faults = self.field_texts()
        values: dict[str, Any] = {}
        for param in self.params:
            text = texts.get(param.name)
            if text is None:
                if param.required:
                    faults.append(self._missing(param))
                continue
            try:
                values[param.name] = _convert(param, text.raw)
            except ConversionError as error:
                message = f"{param.name}: {error.message}"
                faults.append(SettingFault(text.origin, message, param.name))
        if not faults:
            try:
                return self.cls(**values)
            except (ValueError, TypeError) as error:
                by_name = {param.name: param for param in self.params}
                for field, message, is_missing in _describe(error):
                    if is_missing and field in by_name and field not in texts:
                        faults.append(self._missing(by_name[field]))
                        continue
                    origin = texts[field].origin if field in texts else self.cls.__name__
                    faults.append(SettingFault(origin, message, field))
        raise make_settings_error(faults)

    def _missing(self, param: Param) -> SettingFault:
        from tooli.config.layers import SettingFault

        message = f"{param.name} is required: set this variable, or pass {param.flags[0]}"
        return SettingFault(self.variable(param), message, param.name)


def find_app_settings(state: AppState) -> list[AppSettings]:
    """Return the settings objects of an app and of the apps that were added to it."""
    found = [] if state.app_settings is None else [state.app_settings]
    for app, _ in state.groups:
        inner: AppState | None = vars(app).get("_state")
        if inner is not None:
            found += [item for item in find_app_settings(inner) if item not in found]
    return found


# ------------------------------------------------------------------ fields and values


def _fields_of(cls: Any) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over the fields of a class: name, annotation and default."""
    if hasattr(cls, "model_fields"):
        for name, field in cls.model_fields.items():
            extras = tuple(field.metadata)
            if field.description:
                extras = _with_help(extras, field.description)
            default = (
                MISSING if field.is_required() else field.get_default(call_default_factory=True)
            )
            yield name, _annotated(field.annotation, *extras), default
        return
    from dataclasses import MISSING as NO_DEFAULT
    from dataclasses import fields
    from typing import get_type_hints

    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):
        if field.init:
            default = field.default
            if field.default_factory is not NO_DEFAULT:
                default = field.default_factory()
            yield field.name, hints[field.name], MISSING if default is NO_DEFAULT else default


def _with_help(extras: tuple[Any, ...], text: str) -> tuple[Any, ...]:
    from tooli.schema.param_info import ParamInfo, to_param_info

    if any([to_param_info(extra) is not None for extra in extras]):
        return extras
    return (*extras, ParamInfo("option", ..., (), {"help": text}))


def _annotated(annotation: Any, *extras: Any) -> Any:
    from typing import Annotated

    annotated: Any = Annotated
    return annotated[(annotation, *extras)] if extras else annotation


def _raw_text(param: Param, text: str) -> RawText:
    """Return the text of a variable or a file. A list has its items separated by spaces."""
    if not param.is_multiple or is_structured(param.shape):
        return RawText([text], is_cli_text=False)
    shape = unwrap_optional(param.shape)
    is_paths = isinstance(shape, ListOf) and isinstance(shape.item, PathShape)
    return RawText(text.split(os.pathsep if is_paths else None), is_cli_text=False)


def _convert(param: Param, raw: RawText) -> Any:
    from tooli.schema.convert_values import convert_argument

    value: Any = convert_argument(param, raw)
    if hasattr(value, "reveal") and hasattr(value, "load"):  # a secret at a location
        try:
            value.load()
        except InputError as error:
            raise ConversionError(error.message) from None
    return value


def _describe(error: Exception) -> list[tuple[str | None, str, bool]]:
    """Return each error of the class: its field, its message, and whether the field is missing.

    The messages of pydantic do not contain the values.
    """
    list_errors: Any = getattr(error, "errors", None)
    if list_errors is None:
        return [(None, str(error), False)]
    return [
        (str(item["loc"][0]) if item["loc"] else None, item["msg"], item["type"] == "missing")
        for item in list_errors(include_url=False, include_context=False, include_input=False)
    ]
