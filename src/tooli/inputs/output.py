"""Output: a file that a tool writes, completely or not at all.

`output_target.py` writes a temporary file and puts it in place.
"""

from __future__ import annotations

import io
import os
import sys
from stat import S_ISREG

from tooli.core.safe_files import find_foreign_link, resolve_links
from tooli.core.tool import Handle, check_path_size, quote
from tooli.inputs.output_target import OutputTarget
from tooli.schema import ConversionError
from tooli.text.jsonable import iter_items

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import IO, Any

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param
    from tooli.inputs.output_target import OutputFolder


class Output:
    """A file to write, or `-` for stdout: `out.write_text(…)`, `with out.open("w") as file`.

    The target is replaced after the tool has succeeded.
    """

    __slots__ = ("_file", "_links", "_open_files", "_real_path", "field", "target")

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = os.fspath(target)
        self.field: str | None = None
        self._real_path: str | None = None  # known after the argument was parsed
        self._links: tuple[str, ...] = ()  # on the way to the real path
        self._file: OutputTarget | None = None  # while the tool runs
        self._open_files: list[IO[Any]] = []

    @staticmethod
    def tooli_shape() -> OutputShape:
        """Return the shape of a parameter with this annotation."""
        return OutputShape()

    @property
    def is_stdout(self) -> bool:
        """True if the output goes to stdout."""
        return self.target == "-"

    @property
    def tooli_json(self) -> str:
        """The target, which represents the output in JSON."""
        return self.target

    @property
    def tooli_cli_text(self) -> str:
        """The target, as it is written on a command line."""
        return self.target

    @property
    def tooli_location(self) -> str | None:
        """The path that location checks examine; None for stdout."""
        return None if self.is_stdout else self.target

    @property
    def tooli_real_path(self) -> str | None:
        """The path that will be written, with links resolved; None for stdout.

        It is resolved once. The checks and the run therefore use the same path.
        """
        if self._real_path is None and not self.is_stdout:
            self._real_path, self._links = _resolve(self.target)
        return self._real_path

    @property
    def tooli_links(self) -> tuple[str, ...]:
        """The paths of the links that lead to `tooli_real_path`."""
        return self._links

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
        """Open the output for text, or for bytes with `"wb"`. Opening it again truncates it."""
        if mode not in ("w", "wt", "wb"):
            raise ValueError(f"the mode of an output must be 'w' or 'wb', not {mode!r}")
        file = self._open_file("wb" if "b" in mode else "w", buffering, encoding, errors, newline)
        self._open_files.append(file)
        return file

    def _open_file(
        self,
        mode: str,
        buffering: int,
        encoding: str | None,
        errors: str | None,
        newline: str | None,
    ) -> IO[Any]:
        if self.is_stdout:
            return _StdoutBytes() if mode == "wb" else _StdoutText()  # type: ignore[return-value]
        path, opener = self._prepare_writing()
        if mode == "wb":
            return open(path, "wb", buffering, opener=opener)
        return open(path, "w", buffering, encoding or "utf-8", errors, newline, opener=opener)

    def _prepare_writing(self) -> tuple[str, Callable[[str, int], int]]:
        """Return the path to write and a function that opens it.

        A device or a pipe is written directly.
        """
        if self._file is None:
            self.prepare({})
        if self._file is None:
            return self.tooli_real_path or os.devnull, _open_device
        self._file.create_temporary_file()
        return self._file.temporary_path or os.devnull, self._file.open_temporary_file

    def write_text(
        self,
        data: str,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> int:
        """Write the whole content as text."""
        with self.open("w", -1, encoding, errors, newline) as file:
            return file.write(data)

    def write_bytes(self, data: bytes) -> int:
        """Write the whole content as bytes."""
        with self.open("wb") as file:
            return file.write(data)

    def tooli_dry_run(self, record_action: Callable[..., object]) -> Output:
        """Return an output for a dry run: it records the action and writes nothing."""
        return _DryRunOutput(self, record_action)

    # -------------------------------------------------------------- commit and discard

    def prepare(self, folders: dict[str, OutputFolder]) -> None:
        """Open the folder of the target, before the tool runs.

        Args:
            folders: the open folders of the call by path; a new one is added.
        """
        path = self.tooli_real_path
        if path is not None and not _is_device(path):
            self._file = OutputTarget(path, self.target, folders)

    def create_marked_file(self) -> None:
        """Create the temporary file for a worker process.

        This process then knows the file even if the worker is killed, and the sandbox can give
        access to it.
        """
        if self._file is not None:
            self._file.create_marked_file()

    @property
    def worker_path(self) -> str:
        """The path that a worker process writes."""
        path = self.tooli_real_path if self._file is None else self._file.temporary_path
        return path or os.devnull

    def discard_if_unwritten(self) -> None:
        """Remove the temporary file if the worker process has not opened it."""
        if self._file is not None:
            self._file.discard_if_unwritten()

    def close(self) -> None:
        """Close all open files, so that buffered content is written."""
        for file in self._open_files:
            file.close()

    def verify(self) -> None:
        """Close all files; raise ConflictError if the target was replaced during the run."""
        self.close()
        if self._file is not None:
            self._file.verify()

    def commit(self) -> None:
        """Replace the target with the temporary file. Call `verify` first."""
        if self._file is not None:
            self._file.commit()

    def discard(self) -> None:
        """Close all files and the folder, and remove the temporary file."""
        for file in self._open_files:
            try:
                file.close()
            except OSError:  # the disk is full, and the content is discarded anyway
                pass
        self._open_files = []
        target, self._file = self._file, None
        if target is not None:
            target.discard()


def _resolve(target: str) -> tuple[str, tuple[str, ...]]:
    """Return the real path of a target, and the links that lead to it."""
    path, links = resolve_links(target)
    if not os.path.lexists(path) and os.path.exists(target):
        return os.path.abspath(target), links  # /dev/fd/3 of a pipe has no real path
    return path, links


def _is_device(path: str) -> bool:
    """True if something that is not a regular file exists at a path: a device, a pipe."""
    try:
        return not S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _open_device(path: str, flags: int) -> int:
    """Open a device or a pipe; an `opener` for `open()`. A regular file is not changed."""
    fd = os.open(path, flags & ~os.O_CREAT & ~os.O_TRUNC)
    if S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileExistsError(17, "The device or pipe was replaced by a file", path)
    return fd


def find_outputs(arguments: Mapping[str, Any]) -> Iterator[Output]:
    """Yield the outputs among the arguments of a call, by parameter."""
    for value in arguments.values():
        for item in iter_items(value):
            if isinstance(item, Output):
                yield item


class _DryRunOutput(Output):
    """An output of a dry run, which records the action and writes nothing."""

    __slots__ = ("_record_action",)

    def __init__(self, output: Output, record_action: Callable[..., object]) -> None:
        super().__init__(output.target)
        self.field = output.field
        self._record_action: Callable[..., object] | None = record_action

    def _prepare_writing(self) -> tuple[str, Callable[[str, int], int]]:
        record_action, self._record_action = self._record_action, None
        if record_action is not None:
            record_action("write", self.target, None, None)
        return os.devnull, os.open

    def prepare(self, folders: dict[str, OutputFolder]) -> None:
        """Do nothing, because nothing is written."""


class OutputShape(Handle):
    """The shape of an output parameter."""

    expected_value = "the path of a file to write"
    expected_text = "the path of a file to write, or - for stdout"
    expected_json = "the path of a file to write"
    metavar = "FILE|-"

    def parse(self, value: object, param: Param, is_cli_text: bool) -> Any:
        """Return the output at a path."""
        if not isinstance(value, (str, os.PathLike, Output)):
            raise ConversionError("pass the path of a file to write")
        target: Any = value.target if isinstance(value, Output) else value  # pyright: ignore[reportUnknownVariableType]
        output = Output(target)
        output.field = param.name
        if not output.is_stdout:
            _check_target(output)
        return output

    def schema(self, describe: object = None) -> JsonObject:
        """Return the JSON Schema of a path."""
        return {"type": "string", "format": "path"}


def _check_target(output: Output) -> None:
    path = output.target
    if not path or "\0" in path:
        raise ConversionError(f"{quote(path)} is not a path")
    check_path_size(path)
    target = output.tooli_real_path or ""
    foreign_link = find_foreign_link(output.tooli_links)
    if foreign_link is not None:
        raise ConversionError(f"{quote(foreign_link)} is a link that another user made")
    if os.path.isdir(target) or path.endswith(("/", os.sep)):
        raise ConversionError(f"{quote(path)} is a directory, not a file")
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise ConversionError(f"the folder {os.path.dirname(path) or folder!r} does not exist")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise ConversionError(f"{quote(path)} is not writable")
    if not os.path.exists(target) and not os.access(folder, os.W_OK):
        raise ConversionError(f"the folder {os.path.dirname(path) or folder!r} is not writable")


class _StdoutText(io.TextIOBase):
    """Text file on stdout; closing it does not close stdout."""

    def writable(self) -> bool:
        return True

    def write(self, s: str, /) -> int:
        return sys.stdout.write(s)

    def close(self) -> None:
        if not self.closed:
            sys.stdout.flush()
        super().close()


class _StdoutBytes(io.RawIOBase):
    """Binary file on stdout; closing it does not close stdout."""

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
