"""StdinOr: input from a path, a URL, `-` or a pipe, as a file or as what is in it.

word ──▶ SourceShape.take ──▶ Input: checked, not opened
                                │ before the function runs
                                ▼
                 Input itself (Path) │ text │ bytes │ parsed │ an iterator
"""

from __future__ import annotations

import os

from tooli.contract.fit import Misfit
from tooli.contract.tool import MISSING, Handle
from tooli.inputs.marks import NO_LIMITS, limits_of

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from typing import IO, Annotated, Any, TypeVar

    from tooli.contract.tool import Param
    from tooli.inputs.marks import InputLimits

    T = TypeVar("T")
    StdinOr = Annotated[T, "what a path, a URL or stdin holds"]
    """Input from a path, a URL, `-` or a pipe. `StdinOr[Path]` reads like a file."""
else:

    class StdinOr:
        """Input from a path, a URL, `-` or a pipe: `StdinOr[Path]` reads like a file.

        `StdinOr[str]`, `[bytes]`, `[dict]`, `[list[Model]]` are what is in it;
        `StdinOr[Iterator[str]]`, `[Iterator[dict]]`, `[Iterator[Model]]` come item by item.
        """

        __class_getitem__ = classmethod(type(list[int]))

        @staticmethod
        def tooli_shape(wanted=MISSING):
            return SourceShape(wanted)


class SourceShape(Handle):
    """Input, and what is wanted of it (`annotation`)."""

    def take(self, value: Any, param: Param, typed: bool) -> Any:
        """The input that a text names; any other value is the content itself."""
        if isinstance(value, Input):
            return value
        limits = limits_of(param.marks)
        if isinstance(value, str):
            return _named(value, param.name, limits)
        if isinstance(value, os.PathLike):
            return _file(os.fspath(value), param.name, limits)  # pyright: ignore[reportUnknownArgumentType]
        from tooli.inputs.formats import given

        return given(self.annotation, value, Input("content", param.name, limits))

    def absent(self, surface: str) -> Any:
        """Where something is piped in, that is the input."""
        return Input("-") if surface == "cli" and is_piped() else MISSING

    def schema(self) -> dict[str, Any]:
        """A text that names the input, or the content itself."""
        from tooli.inputs.formats import content_schema

        named = {"type": "string", "description": "A path, or an http(s) URL."}
        inside = content_schema(self.annotation)
        kept = inside.pop("$defs", None)  # references to them start at the root
        schema: dict[str, Any] = {"anyOf": [named, inside]}
        return {**schema, "$defs": kept} if kept else schema

    @property
    def wants(self) -> str:
        """What is to be given, in words."""
        return "a path, a URL, - for stdin, or data through a pipe"

    @property
    def metavar(self) -> str:
        """The same, as help has it."""
        return "PATH|URL|-"


def _named(text: str, field: str, limits: InputLimits) -> Input:
    if text == "-":
        return Input("-", field, limits)
    scheme, found, _ = text.partition("://")
    if found and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum():
        if not limits.urls:
            raise Misfit("no URL is read here: give a path, or -", code="E1033")
        from tooli.inputs.urls import check_url

        check_url(text, limits)
        return Input(text, field, limits, is_url=True)
    return _file(text, field, limits)


def _file(text: Any, field: str, limits: InputLimits) -> Input:
    path = os.fsdecode(text)
    try:
        mode = os.stat(path).st_mode & 0o170000
    except (OSError, ValueError) as failure:
        known = isinstance(failure, FileNotFoundError) or not path
        reason = getattr(failure, "strerror", None) or failure
        said = "does not exist" if known else f"cannot be read: {reason}"
        raise Misfit(f"{path!r} {said}") from None
    if mode == 0o040000:
        raise Misfit(f"{path!r} is a directory, not a file")
    if not os.access(path, os.R_OK):
        raise Misfit(f"{path!r} is not readable")
    return Input(path, field, limits)


def is_piped() -> bool:
    """Whether stdin is a pipe, a socket or a file: not a terminal, not nothing."""
    import sys

    stdin = sys.stdin
    if stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        return False
    try:
        kind = os.fstat(stdin.fileno()).st_mode & 0o170000
    except (OSError, ValueError, AttributeError):
        return _holds_something(stdin)
    return kind in (0o010000, 0o100000, 0o140000)


def _holds_something(stdin: Any) -> bool:
    """The same of a stream that a test has put there: whether there is anything in it."""
    try:
        under = getattr(stdin, "buffer", stdin)
        at = under.tell()
        found = bool(under.read(1))
        under.seek(at)
    except (OSError, ValueError, AttributeError):
        return False
    return found


class Input:
    """An input that reads like a file, wherever it comes from."""

    __slots__ = (
        *("_kept", "_limits", "_opened", "content", "field", "is_url", "kind", "nul", "source"),
        "streamed",
    )

    def __init__(
        self,
        source: str,
        field: str | None = None,
        limits: InputLimits = NO_LIMITS,
        *,
        is_url: bool = False,
    ) -> None:
        self.source = source
        self.field = field
        self.is_url = is_url
        self.content: Any = MISSING  # the content itself, where that was given
        self.kind: str | None = None  # the format, where the server that sent it says so
        self.nul = False  # its lines end with NUL
        self.streamed = False  # read item by item: there may be more of it than fits into memory
        self._limits = limits
        self._kept: bytes | None = None
        self._opened: list[Any] = []

    @property
    def is_stdin(self) -> bool:
        """Whether it is read from stdin."""
        return self.source == "-"

    @property
    def shown(self) -> str:
        """Its name in messages; what stands behind the `?` of a URL may be somebody's key."""
        return self.source.partition("?")[0] if self.is_url else self.source

    @property
    def tooli_text(self) -> str:
        """What stands for it in JSON and on a command line."""
        return self.source

    @property
    def tooli_word(self) -> str | None:
        """What names it on a command line; nothing where it is the content itself."""
        return self.source if self.content is MISSING else None

    @property
    def tooli_place(self) -> str | None:
        """The path or URL that it is at, for those who look where that leads."""
        return None if self.is_stdin or self.content is not MISSING else self.source

    def __repr__(self) -> str:
        return f"Input({self.source!r})"

    def open(
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """A file to read it from: text, or bytes with `"rb"`. Stdin can be opened once."""
        if mode not in ("r", "rt", "rb"):
            raise ValueError(f"an input is opened with 'r' or 'rb', not with {mode!r}")
        file = self.open_bytes()
        if "b" in mode:
            return file
        import io

        text = io.TextIOWrapper(file, encoding or "utf-8-sig", errors, newline)
        self._opened.append(text)
        return text

    def read_bytes(self) -> bytes:
        """All of it."""
        if self._kept is not None:
            return self._kept
        with self.open("rb") as file:
            data: bytes = file.read()
        if self.is_stdin or self.is_url:  # a file can be read again, these cannot
            self._kept = data
        return data

    def read_text(
        self, encoding: str | None = None, errors: str | None = None, newline: str | None = None
    ) -> str:
        """All of it, as text; data that is none is a FormatError."""
        import io

        data = io.BytesIO(self.read_bytes())
        with io.TextIOWrapper(data, encoding or "utf-8-sig", errors, newline) as file:
            try:
                return file.read()
            except UnicodeDecodeError as failure:
                raise self.not_text(failure) from None

    def __iter__(self) -> Iterator[str]:
        """Its lines, with their ends, as a file gives them."""
        with self.open() as file:
            try:
                yield from file
            except UnicodeDecodeError as failure:
                raise self.not_text(failure) from None

    def not_text(self, failure: UnicodeDecodeError) -> Exception:
        """The error for data that is no text."""
        from tooli.inputs.formats import malformed

        return malformed(self, f"it is not text in {failure.encoding}: {failure.reason}")

    def keep(self, data: bytes) -> None:
        """Keep what was read, to be read again."""
        self._kept = data

    def close(self) -> None:
        """Close what was opened of it."""
        for file in self._opened:
            file.close()
        self._opened.clear()

    def open_bytes(self) -> BufferedReader:
        """A file to read its bytes from."""
        file = self._open()
        self._opened.append(file)
        return file

    def _open(self) -> BufferedReader:
        import io

        from tooli.inputs.opening import open_file, open_stdin, open_url

        kept = self._kept if self._kept is not None else self.content
        if isinstance(kept, bytes):
            return io.BufferedReader(io.BytesIO(kept))  # type: ignore[arg-type]
        if self.is_stdin:
            return open_stdin(self, self._limits)
        return (open_url if self.is_url else open_file)(self, self._limits)
