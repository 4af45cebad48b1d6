"""Uploaded files as arguments: what a parameter receives in place of a path, a URL or bytes.

    upload ─▶ bytes              the content
           ─▶ UploadedPath       a Path to a temporary file; its `upload_name` is the client's name
           ─▶ UploadedInput      an input; its `source` is the client's name

The name that a client gives is never a path. The caller did not choose the path of the temporary
file, so rules about the paths of callers do not apply to it.
"""

from __future__ import annotations

import re
from pathlib import Path

from tooli.core import Record
from tooli.core.tool import ListOf, ParsedText, PathShape, unwrap_optional
from tooli.inputs.constraints import Within, get_input_limits
from tooli.inputs.source import Input, SourceShape
from tooli.schema import has_pydantic_metadata
from tooli.text.jsonable import iter_items

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool

MAX_NAME_CHARS = 200
_SUFFIXES = re.compile(r"(?:\.[A-Za-z0-9]{1,10}){1,2}$")


class Upload(Record):
    """One file that a client has sent: the temporary file, and what identifies it."""

    path: str
    name: str
    digest: str  # SHA-256 of the content, in hexadecimal digits


def clean_file_name(name: str) -> str:
    """Return the last part of a client's file name, without characters that act on terminals."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join([char for char in last if char.isprintable()]).strip()
    return printable[:MAX_NAME_CHARS] if printable.strip(".-") else "upload"


def safe_suffix(name: str) -> str:
    """Return the extension of a name, such as `.tar.gz`, if it is a plain one."""
    found = _SUFFIXES.search(name)
    return found.group() if found is not None else ""


# ------------------------------------------------------------------ parameters


def accepts_upload(param: Param, tool: Tool) -> bool:
    """True if a client can upload files for a parameter: bytes, inputs, and paths that are read.

    A path is read if it must exist and be readable, or if the command declares that it only reads:
    with `ReadOnly`, or with capabilities that read files and do not write any.
    """
    kwargs = param.option_kwargs
    if tool.schema is not None or kwargs.keys() & {"parser", "click_type", "callback"}:
        return False
    if any([isinstance(constraint, Within) for constraint in param.constraints]):
        return False  # the author wants files of one folder
    shape = _item(param)
    if isinstance(shape, SourceShape):
        return True
    if isinstance(shape, ParsedText):
        return shape.annotation is bytes
    if not isinstance(shape, PathShape) or has_pydantic_metadata(param):
        return False
    if not kwargs.get("file_okay", True) or kwargs.get("writable"):
        return False
    kinds = {":".join(capability.split(":")[:2]) for capability in tool.guard.capabilities}
    reads = "fs:read" in kinds or tool.behavior.read_only
    may_write = not kinds.isdisjoint(("fs:write", "fs:delete"))
    return bool(kwargs.get("exists")) or (reads and not may_write)


def upload_parameters(tool: Tool) -> list[Param]:
    """Return the parameters of a tool for which a client can upload files."""
    return [param for param in tool.public_params if accepts_upload(param, tool)]


def takes_several(param: Param) -> bool:
    """True if several files can be uploaded for a parameter."""
    return isinstance(unwrap_optional(param.shape), ListOf)


def _item(param: Param) -> Shape:
    shape = unwrap_optional(param.shape)
    return shape.item if isinstance(shape, ListOf) else shape


def is_read_into_memory(param: Param) -> bool:
    """True if the argument is the content of the file."""
    return isinstance(_item(param), ParsedText)


def to_argument(param: Param, upload: Upload) -> object:
    """Return the argument for an uploaded file."""
    shape = _item(param)
    if isinstance(shape, SourceShape):
        return UploadedInput(upload, param)
    if isinstance(shape, PathShape):
        path = UploadedPath(upload.path)
        path.upload_name, path.tooli_digest = upload.name, upload.digest
        return path
    return Path(upload.path).read_bytes()


# ------------------------------------------------------------------ values


class UploadedPath(type(Path())):  # type: ignore[misc]  the class for this system
    """The path of an uploaded file."""

    upload_name: str | None = None
    tooli_digest: str | None = None  # identifies the file in place of its path
    tooli_location = None  # the caller did not name the path

    @property
    def tooli_json(self) -> str:
        """The name that the client gave, which represents the file in JSON."""
        return str(self) if self.upload_name is None else self.upload_name


class UploadedInput(Input):
    """An input that is an uploaded file."""

    __slots__ = ("tooli_digest",)

    def __init__(self, upload: Upload, param: Param) -> None:
        super().__init__(upload.name, param.name, get_input_limits(param.constraints))
        self.tooli_digest = upload.digest
        self.real_path = upload.path

    @property
    def is_stdin(self) -> bool:
        """False: a client may name a file `-`."""
        return False

    @property
    def tooli_location(self) -> str | None:
        """None: the caller did not name the path."""
        return None

    @property
    def tooli_cli_text(self) -> str | None:
        """None: no command line can name the file."""
        return None

    def hold(self) -> None:
        """Keep the temporary file, which nothing replaces."""

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Return the state for another process."""
        nothing, state = super().__getstate__()
        inherited = {name: getattr(self, name) for name in Input.__slots__}
        not_kept: dict[str, Any] = {"held_file": None, "_rules": None, "_open_files": []}
        return nothing, {**inherited, **state, **not_kept}


def find_upload_paths(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the temporary files in the arguments of a call."""
    return tuple(_iterate_paths(arguments))


def _iterate_paths(arguments: Mapping[str, Any]) -> Iterator[str]:
    for value in arguments.values():
        for item in iter_items(value):
            if isinstance(item, UploadedPath):
                yield str(item)  # pyright: ignore[reportUnknownArgumentType]
            elif isinstance(item, UploadedInput) and item.real_path is not None:
                yield item.real_path
