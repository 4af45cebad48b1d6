"""Bind an approval or a plan to one call: its exact arguments, the files that it uses, its folder.

    call ──▶ bind_call ──▶ CallBinding: one keyed digest for each part of the call
                │
                └─ reads each input once: the function gets the bytes that were digested

A binding is made when an approval is requested or a plan is made, and again before the call runs.
The call runs only if both are equal.
"""

from __future__ import annotations

import os
from hashlib import sha256  # a human can compare it with the output of `sha256sum`

from tooli.core import Record
from tooli.core.call_fingerprint import ValueEncoder, caller_arguments, frame, path_bytes
from tooli.core.caller_files import hold_caller_file
from tooli.core.event_loop import is_in_event_loop
from tooli.core.options import OPTIONS
from tooli.core.tool import ConversionError, check_path_size
from tooli.errors import ApprovalRequired, StateError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tooli.core.call import Call, Options
    from tooli.core.call_fingerprint import KeyedDigest
    from tooli.core.caller_files import CallerFile
    from tooli.core.options import Option
    from tooli.core.protocols import JsonObject
    from tooli.errors import ToolError

MAX_HELD_BYTES = 64 << 20
"""Maximum size of an input that is kept in memory between the check and the run."""
MAX_HASHED_BYTES = 1 << 30
"""Maximum size of a file whose content is compared. A larger file is compared by its metadata."""
MAX_EVENT_LOOP_BYTES = 16 << 20
"""The same on an event loop, where reading a file blocks all other calls."""
VERSION_PART = "the version of the command"
OPTIONS_PART, RUN_OPTIONS_PART = "the options", "the run options"
PARTS_WITHOUT_EFFECT_ON_PLANS = frozenset((VERSION_PART, RUN_OPTIONS_PART))
"""Parts that may differ between a dry run and the run of its plan.

The digest of the plan covers the version of the command.
"""
MAX_FOLDER_ENTRIES = 100_000
_BEGINNING_BYTES = 160
_CHUNK_BYTES = 1 << 20
_SPECIAL_FOLDERS = ("/dev/", "/proc/", "/sys/")


class FileState(Record):
    """What exists at a path."""

    path: str  # absolute, without links
    kind: str  # "file" | "folder" | "missing" | "unreadable" | "special"
    digest: str = ""  # of an "unreadable" path: why it cannot be read
    size: int | None = None
    beginning: str = ""

    def to_json(self, *, with_content: bool) -> JsonObject:
        """Return the state as it is shown to a human."""
        if self.kind != "file" or not with_content:
            return {"path": self.path, "is": self.kind}
        return {
            "path": self.path,
            "bytes": self.size,
            "sha256": self.digest,
            "begins": self.beginning,
        }


class UnreadableArgument(StateError):  # noqa: N818
    """An argument is the path of something that cannot be read, so that it cannot be compared."""


class CallBinding(Record):
    """Everything that an approval or a plan of a call is bound to."""

    parts: Mapping[str, str]  # a keyed digest for each part of the call
    contents: Mapping[str, str]  # a keyed digest of the files in each argument
    folder: str  # the working folder
    files: Mapping[str, tuple[FileState, ...]]  # by argument


def bind_call(call: Call, keyed_digest: KeyedDigest, *, must_be_stable: bool) -> CallBinding:
    """Return the binding of a call. An input that fits into memory is read, and kept for the run.

    Args:
        call: a bound call.
        keyed_digest: returns a digest that cannot be guessed without its key.
        must_be_stable: raise ApprovalRequired for an argument whose content is unknown or can
            change: a stream, stdin, a device, a URL, an object that cannot be compared.

    Raises UnreadableArgument, always, for a path at which something exists that cannot be read.
    """
    version = ValueEncoder().encode([call.tool.version, list(call.tool.behavior.labels())])
    parts = {
        "the command": keyed_digest(_identify_command(call)),
        VERSION_PART: keyed_digest(version),
    }
    encoded_arguments: list[bytes] = []
    contents: dict[str, str] = {}
    files: dict[str, tuple[FileState, ...]] = {}
    for name, value in sorted(caller_arguments(call).items()):
        encoder = _BindingEncoder(call, name, keyed_digest, must_be_stable)
        encoded_arguments.append(frame(name, encoder.encode(value)))
        if encoder.files:
            files[name] = tuple(encoder.files)
            states = [[state.path, state.kind, state.digest] for state in encoder.files]
            contents[f"the content of {name!r}"] = keyed_digest(ValueEncoder().encode(states))
    folder = current_folder()
    parts["the arguments"] = keyed_digest(b"".join(encoded_arguments))
    for part, options in bound_options(call).items():
        parts[part] = keyed_digest(ValueEncoder().encode(options))
    parts["the working folder"] = keyed_digest(os.fsencode(folder))
    return CallBinding(parts, contents, folder, files)


def bound_options(call: Call) -> dict[str, dict[str, Any]]:
    """Return the options that the function can read or that change what happens, by part.

    A function with a context can read all options of a call. For any other function, the options
    that change only the presentation of the result are left out. Values of settings are included,
    because the caller can set them with environment variables.
    """
    result_options = call.options.result_options
    has_default_sizes = result_options is not None and result_options.has_default_sizes
    can_read_options = any([param.kind == "injected" for param in call.tool.params])
    found: dict[str, dict[str, Any]] = {}
    for option in OPTIONS:
        value = _option_value(option, call.options)
        is_effective = bool(option.affects) and (
            option.affects != "records" or call.tool.is_streaming
        )
        if value is None or not (can_read_options or is_effective):
            continue
        is_default_size = has_default_sizes and option.group == "size"
        is_planned = option.affects in ("records", "input") and not is_default_size
        part = found.setdefault(OPTIONS_PART if is_planned else RUN_OPTIONS_PART, {})
        part[(option.flags or (f"--{option.name}",))[0]] = value
    return found


def _option_value(option: Option, options: Options) -> Any:
    """Return the value of an option in a call; None if it is not given, or off."""
    if option.target == "result_options":
        return getattr(options.result_options, option.target_field, None)
    if option.target != "options":
        return None
    extra = options.extra or {}
    return getattr(options, option.target_field, extra.get(option.name)) or None


def current_folder() -> str:
    """Return the working folder; "" if it was deleted."""
    try:
        return os.path.realpath(os.getcwd())
    except OSError:
        return ""


def changed_parts(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the names of the parts in which two bindings differ."""
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


def _identify_command(call: Call) -> bytes:
    """Return bytes that identify the tool and the function that implements it.

    Two apps of one user can have the same name. The file of the function distinguishes them.
    """
    tool = call.tool
    fn: Any = getattr(tool.fn, "func", tool.fn)
    code = getattr(fn, "__code__", None)
    file = "" if code is None else os.path.realpath(code.co_filename)
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    return ValueEncoder().encode([tool.id, file, name])


class _BindingEncoder(ValueEncoder):
    """Encodes one argument, and collects the state of the files in it."""

    def __init__(
        self,
        call: Call,
        argument: str,
        keyed_digest: KeyedDigest,
        must_be_stable: bool,
    ) -> None:
        super().__init__(keyed_digest)
        self.files: list[FileState] = []
        self._call = call
        self._argument = argument
        self._must_be_stable = must_be_stable

    def encode_secret(self, secret: Any, reveal: Callable[[], object]) -> bytes:
        """Encode a secret by a keyed digest of its whole value. It is read only once."""
        if getattr(secret, "is_stdin", False):
            self._require_stable("is read from stdin")
            return frame("secret", b"-")
        reveal()  # a secret that cannot be read is an error
        return super().encode_secret(secret, reveal)

    def encode_input(self, source: Any) -> bytes:
        """Encode an input by its location, and read the content of a file."""
        if source.is_stdin:
            self._require_stable("is read from stdin")
        elif source.is_url:
            self._require_stable("is a URL, and its content can change")
        else:
            limit = source.max_bytes  # a larger input fails when it is opened
            held_bytes = MAX_HELD_BYTES if limit is None else min(limit, MAX_HELD_BYTES)
            state, data = _read_input_state(source, held_bytes)
            self._add(state)
            if data is not None:
                source.cache_bytes(data)
        return super().encode_input(source)

    def encode_path(self, path: Any) -> bytes:
        """Encode a path by its text, and compare what exists there."""
        if not getattr(path, "is_stdout", False):
            self._add(read_file_state(os.fsdecode(path_bytes(path)), 0)[0])
        return super().encode_path(path)

    def encode_stream(self, stream: object) -> bytes:
        """Encode a stream, which cannot be compared."""
        self._require_stable("is a stream, which can be read only once")
        return super().encode_stream(stream)

    def encode_unstable(self, value: object, reason: str) -> bytes:
        """Encode a value that cannot be compared."""
        self._require_stable(f"contains a {type(value).__qualname__} that {reason}")
        return super().encode_unstable(value, reason)

    def _add(self, state: FileState) -> None:
        if state.kind == "special":
            self._require_stable(f"is {state.path}, which is not a file or folder")
        elif state.kind == "unreadable":
            raise _unreadable_argument_error(self._call, self._argument, state)
        self.files.append(state)

    def _require_stable(self, problem: str) -> None:
        if self._must_be_stable:
            raise _unstable_argument_error(self._call, self._argument, problem)


def _unstable_argument_error(call: Call, name: str, problem: str) -> ToolError:
    return ApprovalRequired(
        f"{call.tool.name} needs a human's approval, but {name!r} {problem}. "
        "It cannot be approved, because its content cannot be shown and compared.",
        field=name,
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Put the input into a file and pass the file, or let a human run the command "
            "at a terminal.",
        ),
    )


def _unreadable_argument_error(call: Call, name: str, state: FileState) -> UnreadableArgument:
    return UnreadableArgument(
        f"{name!r} of {call.tool.name} is {state.path!r}, which cannot be read: {state.digest}. "
        "The call can be neither approved nor planned, because the content cannot be compared.",
        field=name,
        suggestion=Suggestion(
            "retry_with_modified_input",
            "Make the file or folder readable, or pass a readable copy of it.",
        ),
    )


# ------------------------------------------------------------------ files


def _read_input_state(source: Any, max_held_bytes: int) -> tuple[FileState, bytes | None]:
    """Return the state of the file of an input. The input keeps the file open for the run."""
    path = source.source
    try:
        real_path = os.path.realpath(path)
        if not _is_special(os.path.abspath(path)) and not _is_special(real_path):
            file = source.hold()
            if file is not None:
                return _read_file(file, real_path, max_held_bytes)
    except (OSError, ValueError):
        pass  # the reason is part of the state
    return read_file_state(path, max_held_bytes)


def read_file_state(path: str, max_held_bytes: int) -> tuple[FileState, bytes | None]:
    """Return the state of a path, and the content of a file up to a size.

    A pipe, a device or a file of the kernel is never opened.
    """
    try:
        check_path_size(path)
        real_path = os.path.realpath(path)
        if _is_special(os.path.abspath(path)) or _is_special(real_path):
            return FileState(real_path, "special"), None
        mode = os.stat(real_path).st_mode & 0o170000
        if mode == 0o040000:
            return FileState(real_path, "folder", _digest_folder(real_path)), None
        if mode == 0o100000:
            _, file = hold_caller_file(real_path, None, None)
            if file is not None:
                return _read_file(file, real_path, max_held_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return FileState(os.path.realpath(path), "missing"), None
    except (OSError, ValueError, ConversionError) as failure:  # ValueError: a NUL in the path
        reason = getattr(failure, "strerror", None) or str(failure)
        return FileState(path, "unreadable", reason), None
    return FileState(real_path, "special"), None


def _is_special(path: str) -> bool:
    return path.startswith(_SPECIAL_FOLDERS) and not path.startswith("/dev/shm/")


def _digest_folder(path: str) -> str:
    """Return a digest of the names and kinds of the entries of a folder."""
    entries: list[tuple[str, bool]] = []
    with os.scandir(path) as found:
        for entry in found:
            entries.append((entry.name, entry.is_dir(follow_symlinks=False)))
            if len(entries) > MAX_FOLDER_ENTRIES:
                raise OSError(f"the folder has more than {MAX_FOLDER_ENTRIES} entries")
    return sha256(ValueEncoder().encode(sorted(entries))).hexdigest()


def _read_file(file: CallerFile, path: str, max_held_bytes: int) -> tuple[FileState, bytes | None]:
    info = file.info
    max_bytes = MAX_EVENT_LOOP_BYTES if is_in_event_loop() else MAX_HASHED_BYTES
    if info.st_size > max_bytes:
        times = f"modified {info.st_mtime_ns}, changed {info.st_ctime_ns}"
        metadata = f"not computed: inode {info.st_ino} of {info.st_dev}, {times}"
        return FileState(path, "file", metadata, info.st_size), None
    content_digest, size, beginning = sha256(), 0, b""
    chunks: list[bytes] | None = []
    with file.open() as reader:
        while chunk := reader.read(_CHUNK_BYTES):
            content_digest.update(chunk)
            size += len(chunk)
            beginning = beginning or chunk[:_BEGINNING_BYTES]
            if chunks is not None:
                chunks = [*chunks, chunk] if size <= max_held_bytes else None
    text = beginning.decode("utf-8", "backslashreplace")
    state = FileState(path, "file", content_digest.hexdigest(), size, text)
    return state, b"".join(chunks) if chunks is not None else None
