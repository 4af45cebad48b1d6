"""StdinOr: input from a path, a URL, `-` (stdin) or a pipe.

argument ──▶ SourceShape.parse ──▶ Input: checked, not opened
                                     │ before the function runs
                                     ▼
             the Input itself (Path) │ text │ bytes │ parsed content │ an iterator
"""

from __future__ import annotations

import io
import os
import sys

from tooli.core.caller_files import (
    CAN_HOLD,
    check_named_file,
    current_file_rules,
    hold_caller_file,
    open_caller_file,
)
from tooli.core.tool import MISSING, Handle, quote
from tooli.errors import FormatError, InputError, StateError, Suggestion
from tooli.inputs.constraints import DEFAULT_INPUT_LIMITS, get_input_limits
from tooli.inputs.format_errors import build_format_error
from tooli.inputs.formats import content_schema, fill_with_content
from tooli.schema import ConversionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from io import BufferedReader
    from typing import IO, Annotated, Any, TypeVar

    from tooli.core.caller_files import CallerFile, FileRules
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param
    from tooli.inputs.constraints import InputLimits

    T = TypeVar("T")
    StdinOr = Annotated[T, "the content of a path, a URL or stdin"]
    """Input from a path, a URL, `-` or a pipe. `StdinOr[Path]` can be read like a file."""
else:

    class StdinOr:
        """Input from a path, a URL, `-` or a pipe.

        With `StdinOr[Path]` the function receives an object that can be read like a file. With
        `StdinOr[str]`, `[bytes]`, `[dict]` or `[list[Model]]` it receives the content. With
        `StdinOr[Iterator[str]]`, `[Iterator[dict]]` or `[Iterator[Model]]` it receives an iterator
        that reads the items one by one.
        """

        __class_getitem__ = classmethod(type(list[int]))

        @staticmethod
        def tooli_shape(annotation=MISSING):
            return SourceShape(annotation)


_CHUNK_BYTES = 1 << 16
MAX_WHOLE_BYTES, MAX_STREAMED_BYTES = 100 * 2**20, 2**30
"""Default size limits of a URL that is read as a whole, and of one that is read item by item.

They also apply to a file that the client of a server names: it could name `/dev/zero`.
"""
_SIZE_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


class SourceShape(Handle):
    """The shape of an input parameter; `annotation` is the type of its content."""

    expected_value = "a path, a URL, or data"
    expected_text = "a path, a URL, - for stdin, or data through a pipe"
    expected_json = "a path, a URL, or the content"
    metavar = "PATH|URL|-"

    def parse(self, value: object, param: Param, is_cli_text: bool) -> Any:
        """Return the input at a location. A value that is not text or a path is the content."""
        if isinstance(value, Input):
            value.apply_rules()
            return value
        limits = get_input_limits(param.constraints)
        if isinstance(value, str):
            return _input_from_text(value, param.name, limits)
        if isinstance(value, os.PathLike):
            return _input_from_path(os.fspath(value), param.name, limits)  # pyright: ignore[reportUnknownArgumentType]
        return fill_with_content(self.annotation, value, Input("content", param.name, limits))

    def default_when_missing(self, *, may_read_stdin: bool) -> Any:
        """Return stdin if data is piped into a command line; MISSING otherwise."""
        return Input("-") if may_read_stdin and is_piped() else MISSING

    def schema(self, describe: Callable[[Any], JsonObject] | None = None) -> JsonObject:
        """Return the JSON Schema of a location or of the content itself."""
        name_schema = {"type": "string", "description": "A path, or an http(s) URL."}
        inner_schema = content_schema(self.annotation, describe)
        definitions = inner_schema.pop("$defs", None)  # "$ref" paths start at the root
        schema: JsonObject = {"anyOf": [name_schema, inner_schema]}
        return {**schema, "$defs": definitions} if definitions else schema


def _input_from_text(text: str, field: str, limits: InputLimits) -> Input:
    if text == "-":
        return Input("-", field, limits)
    scheme, found, _ = text.partition("://")
    if found and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum():
        if not limits.urls:
            raise ConversionError("URLs are not allowed here: pass a path or -", code="E1033")
        from tooli.inputs.urls import check_url

        check_url(text, limits)
        return Input(text, field, limits, is_url=True)
    return _input_from_path(text, field, limits)


def _input_from_path(text: Any, field: str, limits: InputLimits) -> Input:
    path = os.fsdecode(text)
    try:
        check_named_file(path, field)
        mode = os.stat(path).st_mode & 0o170000
    except (OSError, ValueError) as failure:
        is_missing = isinstance(failure, FileNotFoundError) or not path
        reason = getattr(failure, "strerror", None) or failure
        problem = "does not exist" if is_missing else f"cannot be read: {reason}"
        raise ConversionError(f"{quote(path)} {problem}") from None
    if mode == 0o040000:
        raise ConversionError(f"{quote(path)} is a directory, not a file")
    if not os.access(path, os.R_OK):
        raise ConversionError(f"{quote(path)} is not readable")
    return Input(path, field, limits)


def is_piped() -> bool:
    """True if stdin is a pipe, a socket or a file."""
    stdin = sys.stdin
    if stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        return False
    try:
        kind = os.fstat(stdin.fileno()).st_mode & 0o170000
    except (OSError, ValueError, AttributeError):
        return _has_data(stdin)
    return kind in (0o010000, 0o100000, 0o140000)


def _has_data(stdin: Any) -> bool:
    """True if a stream without a file descriptor, as in tests, contains data."""
    try:
        buffer = getattr(stdin, "buffer", stdin)
        position = buffer.tell()
        found = bool(buffer.read(1))
        buffer.seek(position)
    except (OSError, ValueError, AttributeError):
        return False
    return found


def _ignore_warning(message: str) -> None:
    """Ignore a warning about an input that is not an argument of a call."""


class Input:
    """An input from any location, which can be read like a file."""

    __slots__ = (
        *("_cached_bytes", "_limits", "_open_files", "_rules", "content", "field", "format"),
        *("held_file", "is_remote", "is_streamed", "is_url", "nul", "real_path", "source", "warn"),
    )

    def __init__(
        self,
        source: str,
        field: str | None = None,
        limits: InputLimits = DEFAULT_INPUT_LIMITS,
        *,
        is_url: bool = False,
    ) -> None:
        self.source = source
        self.field = field
        self.is_url = is_url
        self.content: Any = MISSING  # set if the content was passed instead of a location
        self.format: str | None = None  # set if a server sent a content type
        self.nul = False  # records end with NUL
        self.is_streamed = False  # read item by item, possibly more than fits into memory
        self.is_remote = False  # the client of a server has named the file
        self.warn: Callable[[str], None] = _ignore_warning  # set for each call
        self._limits = limits
        self._cached_bytes: bytes | None = None
        self._rules: FileRules | None = None
        self.apply_rules()
        self.held_file: CallerFile | None = None  # set by `hold`
        self.real_path: str | None = None  # set by `hold`, if the call has rules
        self._open_files: list[Any] = []

    @property
    def is_stdin(self) -> bool:
        """True if the input is read from stdin."""
        return self.source == "-"

    @property
    def display_name(self) -> str:
        """Name for messages, without the query of a URL, which may contain a key."""
        if not self.is_url:
            return self.source
        from tooli.inputs.urls import display_url

        return display_url(self.source)

    @property
    def tooli_json(self) -> str:
        """The source, which represents the input in JSON."""
        return self.source

    @property
    def tooli_cli_text(self) -> str | None:
        """The source, as on a command line; None if the content was passed directly."""
        return self.source if self.content is MISSING else None

    @property
    def tooli_location(self) -> str | None:
        """The path or URL that location checks examine; None for stdin and for direct content."""
        return None if self.is_stdin or self.content is not MISSING else self.source

    def __repr__(self) -> str:
        return f"Input({self.display_name!r})"

    def open(
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open the input for text, or for bytes with `"rb"`. Stdin can be opened only once."""
        if mode not in ("r", "rt", "rb"):
            raise ValueError(f"the mode of an input must be 'r' or 'rb', not {mode!r}")
        file = self.open_bytes()
        if "b" in mode:
            return file
        text = io.TextIOWrapper(file, encoding or "utf-8-sig", errors, newline)
        self._open_files.append(text)
        return text

    def read_bytes(self) -> bytes:
        """Return the whole content as bytes."""
        if self._cached_bytes is not None:
            return self._cached_bytes
        with self.open_bytes(is_whole=True) as file:
            data: bytes = file.read()
        if self.is_stdin or self.is_url:  # unlike a file, these can be read only once
            self._cached_bytes = data
        return data

    def read_text(
        self, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> str:
        """Return the whole content as text. Raises FormatError if it cannot be decoded."""
        data = io.BytesIO(self.read_bytes())
        with io.TextIOWrapper(data, encoding or "utf-8-sig", errors, newline) as file:
            try:
                return file.read()
            except UnicodeDecodeError as failure:
                raise self.decode_error(failure) from None

    def __iter__(self) -> Iterator[str]:
        """Yield lines with their line ends, like a file."""
        with self.open() as file:
            try:
                yield from file
            except UnicodeDecodeError as failure:
                raise self.decode_error(failure) from None

    def decode_error(self, failure: UnicodeDecodeError) -> Exception:
        """Return the error for content that cannot be decoded."""
        return build_format_error(self, f"not valid {failure.encoding} text: {failure.reason}")

    @property
    def max_bytes(self) -> int | None:
        """Maximum size of a file or of stdin; None if there is none."""
        return _max_input_bytes(self._limits)

    def cache_bytes(self, data: bytes) -> None:
        """Keep the content, so that it can be read again."""
        self._cached_bytes = data

    def apply_rules(self) -> None:
        """Apply the rules of the current call, which say what files the caller may name."""
        self._rules = current_file_rules.get()

    @property
    def has_rules(self) -> bool:
        """True if the call has rules for the files that its caller may name."""
        return self._rules is not None

    def hold(self) -> CallerFile | None:
        """Open the file once. Everything that reads the input from now on reads this file.

        Return None if the input is not a regular file. Raises AuthError if the caller may not use
        the file, and OSError if it cannot be opened.
        """
        is_path = self.tooli_location is not None and not self.is_url
        if self.held_file is None and is_path and CAN_HOLD:
            path, self.held_file = hold_caller_file(self.source, self.field, self._rules)
            self.real_path = None if self._rules is None else path
        return self.held_file

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Return the state for another process, which has neither the open files nor the rules."""
        state = {name: getattr(self, name) for name in self.__slots__}
        return None, {**state, "held_file": None, "_rules": None, "_open_files": []}

    def close(self) -> None:
        """Close the files that were opened to read this input. A held file stays open."""
        for file in self._open_files:
            file.close()
        self._open_files.clear()

    def open_bytes(self, *, is_whole: bool = False) -> BufferedReader:
        """Open the input for reading bytes; `is_whole` if all of it is read into memory."""
        file = self._open_stream(is_whole)
        self._open_files.append(file)
        return file

    def open_path(self) -> BufferedReader:
        """Open the file at the path of this input."""
        if self.held_file is not None:
            return self.held_file.open()
        if self.real_path is not None:  # a pipe or a device that has been checked
            return io.BufferedReader(io.FileIO(self.real_path), _CHUNK_BYTES)
        return open_caller_file(self.source, self.field, self._rules).open()

    def _open_stream(self, is_whole: bool) -> BufferedReader:
        cached = self._cached_bytes if self._cached_bytes is not None else self.content
        if isinstance(cached, bytes):
            return io.BufferedReader(io.BytesIO(cached))  # type: ignore[arg-type]
        if self.is_stdin:
            return _open_stdin(self, self._limits)
        if self.is_url:
            return _open_url(self, self._limits)
        limit = _max_input_bytes(self._limits)
        if limit is None and self.is_remote:
            limit = MAX_WHOLE_BYTES if is_whole else MAX_STREAMED_BYTES
        return _open_file(self, limit)


# ------------------------------------------------------------------ streams of bytes


class _LimitedReader(io.RawIOBase):
    """Raw stream over a read function; raises an error when a size limit is exceeded."""

    def __init__(
        self,
        read_chunk: Callable[[int], bytes],
        source: Input,
        limit: int | None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._read_chunk = read_chunk
        self._source = source
        self._limit = limit
        self._on_close = on_close
        self._bytes_read = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read available bytes into a buffer and return their number; 0 at the end."""
        data = self._read_chunk(len(buffer))
        self._bytes_read += len(data)
        if self._limit is not None and self._bytes_read > self._limit:
            raise _input_too_large_error(self._source, self._limit)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream and its source, except stdin."""
        if self._on_close is not None:
            self._on_close()
        super().close()


def _input_too_large_error(source: Input, limit: int) -> Exception:
    """Return the error for an input that exceeds the size limit."""
    return FormatError(
        f"{source.display_name!r} is larger than the limit of {limit:,} bytes.",
        code="E1034",
        field=source.field,
        suggestion=Suggestion("ask_human", "Pass less data, or raise TOOLI_MAX_INPUT."),
        details={"source": source.display_name, "max_bytes": limit},
    )


def _max_input_bytes(limits: InputLimits) -> int | None:
    """Return the lower of the author's limit and TOOLI_MAX_INPUT; None if neither is set."""
    env_value = os.environ.get("TOOLI_MAX_INPUT", "")
    author_limit = limits.max_bytes
    env_limit = parse_size(env_value) if env_value else None
    if env_limit is None or author_limit is None:
        return author_limit if env_limit is None else env_limit
    return min(env_limit, author_limit)


def parse_size(text: str) -> int:
    """Return the number of bytes of a size such as `500000`, `100MB` or `2GiB`."""
    digits = text.strip().lower().removesuffix("b")
    number = digits.rstrip("kmgi")
    try:
        size = int(float(number) * _SIZE_UNITS[digits[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        size = -1
    if size < 0:
        raise InputError(f"TOOLI_MAX_INPUT must be a size such as 500MB, not {text!r}")
    return size


def _open_stdin(source: Input, limits: InputLimits) -> BufferedReader:
    """Open stdin. Closing the result does not close the process's stdin."""
    stdin: Any = sys.stdin
    if stdin is None:
        raise InputError("stdin is closed.", code="E1035", field=source.field)
    if getattr(stdin, "tooli_read", False):
        raise StateError("stdin was already read: it can be read only once.")
    try:
        stdin.tooli_read = True
    except AttributeError:  # stdin was replaced by an object with slots
        pass
    buffer: Any = getattr(stdin, "buffer", None)
    if buffer is not None:
        read_chunk = getattr(buffer, "read1", buffer.read)
    else:  # a text stream without a buffer, as in tests
        buffer = io.BytesIO(stdin.read().encode())
        read_chunk = buffer.read
    return io.BufferedReader(
        _LimitedReader(read_chunk, source, _max_input_bytes(limits)), _CHUNK_BYTES
    )


def _open_file(source: Input, limit: int | None) -> BufferedReader:
    """Open a file that has at most `limit` bytes."""
    file = source.open_path()
    if limit is None:
        return file
    return io.BufferedReader(_LimitedReader(file.read1, source, limit, file.close), _CHUNK_BYTES)


def _open_url(source: Input, limits: InputLimits) -> BufferedReader:
    """Open the response to a URL."""
    from tooli.inputs.urls import fetch

    body = fetch(source.source, limits, source.field)
    source.format = body.format
    limit = _max_input_bytes(limits)
    if limit is None:
        limit = MAX_STREAMED_BYTES if source.is_streamed else MAX_WHOLE_BYTES
    return io.BufferedReader(_LimitedReader(body.read, source, limit, body.close), _CHUNK_BYTES)
