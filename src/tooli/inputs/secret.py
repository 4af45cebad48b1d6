"""SecretInput: a value that is masked in text, JSON, logs and errors.

On a command line the caller passes the location of the secret, never its value: `@FILE`,
`env:NAME`, or `-` for stdin. On the other interfaces the caller passes the value itself.
"""

from __future__ import annotations

import os
from _operator import _compare_digest  # hmac.compare_digest without importing hmac

from tooli.core.call_secrets import ReceivedSecret, record_secret
from tooli.core.caller_files import check_named_file, current_file_rules, open_caller_file
from tooli.core.tool import MISSING, Handle, quote
from tooli.errors import InputError
from tooli.inputs.source import Input
from tooli.schema import ConversionError
from tooli.text.redact import REDACTED

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Generic, NoReturn, TypeVar

    from tooli.core.caller_files import FileRules
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param
    from tooli.text.secret_forms import SecretData

    T = TypeVar("T")

    class _SecretBase(Generic[T]):
        pass
else:
    T = object

    class _SecretBase:
        __slots__ = ()
        __class_getitem__ = classmethod(type(list[int]))


MAX_SECRET_BYTES = 1 << 20
"""Maximum size of a secret in a file or on stdin."""


class SecretInput(_SecretBase[T]):
    """A secret. `.reveal()` returns its value; text, JSON and `repr` are masked."""

    __slots__ = ("_annotation", "_rules", "_source", "_value", "field", "forms")

    def __init__(self, value: T) -> None:
        self._value: Any = value
        self._source: str | None = None
        self._annotation: Any = str
        self._rules: FileRules | None = None  # which files the caller may name
        self.field: str | None = None
        self.forms: SecretData | None = None  # a cache of text/secret_forms.py

    @staticmethod
    def tooli_shape(annotation: object = str) -> SecretShape:
        """Return the shape of a parameter with this annotation."""
        return SecretShape(annotation)

    def reveal(self) -> T:
        """Return the secret itself."""
        if self._value is MISSING:
            self.load()
        return self._value

    def load(self) -> None:
        """Read the secret from its location, once. Errors do not contain its value."""
        if self._value is not MISSING:
            return
        source = self._source or ""
        problem: str | None
        try:
            text = _read_source(source, self.field, self._rules)
            self._value, problem = convert_secret(self._annotation, text), None
        except ConversionError as error:
            problem = error.message
        except (OSError, ValueError) as failure:
            problem = (
                f"{source} cannot be read: {getattr(failure, 'strerror', None) or 'it is not text'}"
            )
        if problem is not None:
            raise InputError(f"{self.field!r}: {problem}", code="E1003", field=self.field)

    @property
    def is_loaded(self) -> bool:
        """True if the value is known: passed directly, or read from its location."""
        return self._value is not MISSING

    @property
    def has_rules(self) -> bool:
        """True if the call has rules for the files that its caller may name."""
        return self._rules is not None

    @property
    def is_stdin(self) -> bool:
        """True if the secret is read from stdin."""
        return self._source == "-"

    @property
    def tooli_location(self) -> str | None:
        """The path of the file that contains the secret; None if it is not in a file."""
        source = self._source or ""
        return source[1:] if source[:1] == "@" else None

    @property
    def tooli_json(self) -> str:
        """The mask that replaces the value in JSON."""
        return REDACTED

    @property
    def tooli_cli_text(self) -> str | None:
        """The location that was given on a command line; None if the value was passed directly."""
        return self._source

    def __repr__(self) -> str:
        return f"SecretInput({REDACTED!r})"

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, spec: str) -> str:
        return REDACTED

    def __bool__(self) -> bool:
        return bool(self.reveal())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecretInput):
            return NotImplemented
        secret: Any = other  # pyright: ignore[reportUnknownVariableType]
        if self._value is MISSING or secret._value is MISSING:  # comparing must not read a file
            return self is secret
        mine, theirs = repr(self._value), repr(secret._value)
        return _compare_digest(mine.encode("utf-8", "replace"), theirs.encode("utf-8", "replace"))

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> SecretInput[T]:
        return self

    def __deepcopy__(self, _: object) -> SecretInput[T]:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a SecretInput cannot be pickled: pass the result of reveal() if you must")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        """Return a pydantic schema that validates a secret and serializes it as the mask."""
        from pydantic_core import core_schema

        annotation = getattr(source, "__args__", (str,))[0]

        def check(value: object) -> Any:
            try:
                return record_secret(
                    value if isinstance(value, cls) else cls(convert_secret(annotation, value))
                )
            except ConversionError as error:
                problem = error.message
            raise ValueError(problem)

        return core_schema.no_info_plain_validator_function(
            check,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda _: REDACTED),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: object, handler: object) -> JsonObject:
        return {"type": "string", "format": "password", "writeOnly": True}


class SecretShape(Handle):
    """The shape of a secret parameter; `annotation` is the type of its value."""

    expected_value = "a secret"
    expected_text = "a secret: @FILE, env:NAME, or - for stdin"
    expected_json = "a secret: the value itself, as text"
    metavar = "@FILE|env:NAME|-"

    is_secret = True

    def parse(self, value: object, param: Param, is_cli_text: bool) -> Any:
        """Return the secret.

        Text from a command line is the location of the secret. Any other value is the secret.
        """
        if isinstance(value, SecretInput):
            return record_secret(value)  # pyright: ignore[reportUnknownArgumentType]
        secret: SecretInput[Any] = SecretInput(MISSING)
        secret.field, secret._annotation = param.name, self.annotation
        if is_cli_text:
            _check_source(str(value), param)
            secret._source, secret._rules = str(value), current_file_rules.get()
        else:
            secret._value = convert_secret(self.annotation, value)
        return record_secret(secret)

    def schema(self, describe: object = None) -> JsonObject:
        """Return the JSON Schema of a secret."""
        return {"type": "string", "format": "password", "writeOnly": True}


def _check_source(text: str, param: Param) -> None:
    if text == "-":
        return
    if text[:4] == "env:":
        if not os.environ.get(text[4:]):
            raise ConversionError(f"the environment variable {text[4:]} is not set")
        return
    if text[:1] != "@":
        raise ConversionError(
            "a secret must not be on a command line, where others can read it: "
            "pass @FILE, env:NAME, or - for stdin",
            code="E1032",
        )
    if "\0" not in text:
        check_named_file(text[1:], param.name)
    if not os.path.exists(text[1:]):
        raise ConversionError(f"{quote(text[1:])} does not exist")
    if os.path.isdir(text[1:]) or not os.access(text[1:], os.R_OK):
        raise ConversionError(f"{quote(text[1:])} is not a readable file")


def _read_source(source: str, field: str | None, rules: FileRules | None) -> str:
    """Return the text at a location, without the newline at the end of a file."""
    if source[:4] == "env:":
        return os.environ.get(source[4:], "")
    if source == "-":
        data = Input("-").read_bytes()
    else:
        data = open_caller_file(source[1:], field, rules).read(MAX_SECRET_BYTES + 1)
    if len(data) > MAX_SECRET_BYTES:
        raise ConversionError(f"{source} is larger than the limit of {MAX_SECRET_BYTES:,} bytes")
    text = data.decode("utf-8")
    return text.removesuffix("\n").removesuffix("\r")


def convert_secret(annotation: object, value: object) -> Any:
    """Convert a secret to its annotated type. Errors do not contain its value."""
    if value in ("", b""):
        raise ConversionError("the secret is empty")
    if annotation is str and isinstance(value, str):
        return value
    if annotation is bytes and isinstance(value, (str, bytes)):
        return value.encode() if isinstance(value, str) else value
    from tooli.schema.pydantic_bridge import validate

    try:
        return validate(annotation, value)
    except ConversionError:
        record_secret(ReceivedSecret(value))
    name = "text" if annotation is str else getattr(annotation, "__name__", "the declared type")
    raise ConversionError(f"the secret is not valid: it must be {name}")
