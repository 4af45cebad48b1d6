"""Output: a file that a tool writes. All of it is there in the end, or the old one as it was.

open ─▶ a file beside the target ─┬─ the tool succeeded ─▶ synced, put in its place
                                  └─ it failed, was stopped ─▶ removed
"""

from __future__ import annotations

import io
import os
import sys

from tooli.contract.fit import Misfit
from tooli.contract.tool import Handle

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import IO, Any

    from tooli.contract.tool import Param


UNTOUCHED = b"\0nothing was written here\0"


class Output:
    """A file to write, or `-` for stdout: `out.write_text(…)`, `with out.open("w") as file`.

    The file takes its place when the tool has succeeded, and not before.
    """

    __slots__ = ("_opened", "_reserved", "_temporary", "field", "target")

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = os.fspath(target)
        self.field: str | None = None
        self._temporary: str | None = None
        self._reserved: str | None = None  # where another process writes it
        self._opened: list[Any] = []

    @staticmethod
    def tooli_shape() -> OutputShape:
        """How a parameter of this type is given."""
        return OutputShape()

    @property
    def is_stdout(self) -> bool:
        """Whether it is written to stdout."""
        return self.target == "-"

    @property
    def tooli_text(self) -> str:
        """What stands for it in JSON and on a command line."""
        return self.target

    @property
    def tooli_word(self) -> str:
        """What names it on a command line."""
        return self.target

    @property
    def tooli_place(self) -> str | None:
        """The path that it is at, for those who look where that leads."""
        return None if self.is_stdout else self.target

    def __repr__(self) -> str:
        return f"Output({self.target!r})"

    def open(
        self,
        mode: str = "w",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """A file to write to: text, or bytes with `"wb"`. To open it again is to start over."""
        if mode not in ("w", "wt", "wb"):
            raise ValueError(f"an output is opened with 'w' or 'wb', not with {mode!r}")
        binary = "b" in mode
        if self.is_stdout:
            return _Bytes() if binary else _Text()  # type: ignore[return-value]
        place = self._place()
        more: dict[str, Any] = {}
        if not binary:
            more = {"encoding": encoding or "utf-8", "errors": errors, "newline": newline}
        file = open(place, "wb" if binary else "w", buffering, **more)  # noqa: SIM115
        self._opened.append(file)
        return file

    def write_text(
        self,
        data: str,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> int:
        """Write all of it, as text."""
        with self.open("w", -1, encoding, errors, newline) as file:
            return file.write(data)

    def write_bytes(self, data: bytes) -> int:
        """Write all of it."""
        with self.open("wb") as file:
            return file.write(data)

    def tooli_unwritten(self, note: Callable[..., object]) -> Output:
        """The same output for a rehearsal: to write it is told, and leads nowhere."""
        return _Unwritten(self, note)

    # -------------------------------------------------------------- in the end

    def _place(self) -> str:
        """Where it is written to: beside the target, unless that is a device or a pipe."""
        target = os.path.realpath(self.target)
        if os.path.exists(target) and not os.path.isfile(target):
            return target
        if self._temporary is None:
            made = self._reserved or _beside(target)
            os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            self._temporary = made
            if os.path.exists(target):  # it keeps who may read it
                os.chmod(made, os.stat(target).st_mode & 0o7777)
        return self._temporary

    def prepare(self) -> str:
        """Make the file now, for a process that will not be able to: its path.

        It holds a mark until somebody opens it, so that one which nobody wanted is no output.
        """
        place = self._place()
        if place == self._temporary:
            with open(place, "wb") as file:
                file.write(UNTOUCHED)
        return place

    def reserve(self) -> None:
        """Choose where another process writes it, which may be killed before it can tell."""
        if not self.is_stdout:
            self._reserved = _beside(os.path.realpath(self.target))

    def reclaim(self) -> None:
        """Take over what that process has written, be it to keep or to remove it."""
        if self._reserved is not None and os.path.exists(self._reserved):
            self._temporary = self._reserved
            if _is_untouched(self._reserved):
                self.discard()
        self._reserved = None

    def close(self) -> None:
        """Let what was written be in its file."""
        for file in self._opened:
            file.close()

    def commit(self) -> None:
        """Put what was written in its place."""
        self.close()
        if self._temporary is not None:
            with open(self._temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(self._temporary, os.path.realpath(self.target))
            self._temporary = None

    def discard(self) -> None:
        """Leave no trace of what was written."""
        for file in self._opened:
            try:
                file.close()
            except OSError:  # the disk is full: what it has not written is not wanted
                pass
        if self._temporary is not None:
            try:
                os.unlink(self._temporary)
            except OSError:
                pass
            self._temporary = None


def _is_untouched(path: str) -> bool:
    """Whether nobody has opened a file that was prepared."""
    try:
        with open(path, "rb") as file:
            return file.read(len(UNTOUCHED) + 1) == UNTOUCHED
    except OSError:
        return False


def _beside(target: str) -> str:
    """A name for a file that will take another's place."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name[:80]}.{os.urandom(6).hex()}.tmp")


def outputs_in(arguments: Mapping[str, Any]) -> Iterator[Output]:
    """The outputs among some arguments."""
    for value in arguments.values():
        for item in value if type(value) in (list, tuple, set, frozenset) else (value,):
            if isinstance(item, Output):
                yield item


class _Unwritten(Output):
    """An output that is not written, and says that it would be."""

    __slots__ = ("_note",)

    def __init__(self, output: Output, note: Callable[..., object]) -> None:
        super().__init__(output.target)
        self.field = output.field
        self._note: Callable[..., object] | None = note

    def open(
        self,
        mode: str = "w",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        note, self._note = self._note, None
        if note is not None:
            note("write", self.target, None, None)
        file = Output(os.devnull).open(mode, buffering, encoding, errors, newline)
        self._opened.append(file)
        return file


class OutputShape(Handle):
    """A file to write."""

    def take(self, value: Any, param: Param, typed: bool) -> Any:
        """The output that a text or a path names."""
        if not isinstance(value, (str, os.PathLike, Output)):
            raise Misfit("give the path of a file to write")
        target: Any = value.target if isinstance(value, Output) else value  # pyright: ignore[reportUnknownVariableType]
        made = Output(target)
        made.field = param.name
        if not made.is_stdout:
            _check_target(made.target)
        return made

    def schema(self) -> dict[str, Any]:
        """A path."""
        return {"type": "string", "format": "path"}

    @property
    def wants(self) -> str:
        """What is to be given, in words."""
        return "the path of a file to write, or - for stdout"

    @property
    def metavar(self) -> str:
        """The same, as help has it."""
        return "FILE|-"


def _check_target(path: str) -> None:
    if not path or "\0" in path:
        raise Misfit(f"{path!r} is no path")
    target = os.path.realpath(path)
    if os.path.isdir(target) or path.endswith(("/", os.sep)):
        raise Misfit(f"{path!r} is a directory, not a file")
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise Misfit(f"there is no folder {os.path.dirname(path) or folder!r} to write it into")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise Misfit(f"{path!r} is not writable")
    if not os.path.exists(target) and not os.access(folder, os.W_OK):
        raise Misfit(f"nothing can be written into {os.path.dirname(path) or folder!r}")


class _Text(io.TextIOBase):
    """Stdout as a file that may be closed."""

    def writable(self) -> bool:
        return True

    def write(self, s: str, /) -> int:
        return sys.stdout.write(s)

    def close(self) -> None:
        if not self.closed:
            sys.stdout.flush()
        super().close()


class _Bytes(io.RawIOBase):
    """The same for bytes."""

    def writable(self) -> bool:
        return True

    def write(self, b: Any, /) -> int:
        sys.stdout.flush()
        sys.stdout.buffer.write(b)
        return len(b)

    def close(self) -> None:
        if not self.closed:
            sys.stdout.buffer.flush()
        super().close()
