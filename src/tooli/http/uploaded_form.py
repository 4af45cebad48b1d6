"""UploadedForm: the arguments of a call as `multipart/form-data`, with files.

    body ─▶ MultipartParser ─┬▶ file: a temporary file in a private folder
                             └▶ field: text
    call ─▶ arguments        end of the request ─▶ the folder is removed

Reading starts after the checks of the token, the scopes and the rate limit, as for JSON.
"""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from json import loads
from threading import Lock

from tooli.core.secret_fields import may_contain_secret
from tooli.core.tool import PathShape, Scalar, item_shape
from tooli.errors import InputError, Suggestion, TemporaryError
from tooli.execution.sandbox.temp_dirs import make_temp_folder
from tooli.http.http_request import (
    CONNECTION_CLOSE,
    ClientTimeout,
    HttpDisconnect,
    HttpError,
    body_timeout_error,
    wait_with_timeout,
)
from tooli.http.multipart import MultipartError, MultipartParser, read_boundary
from tooli.inputs.query import can_be_in_query, parse_query_values
from tooli.inputs.uploads import (
    Upload,
    clean_file_name,
    is_read_into_memory,
    safe_suffix,
    takes_several,
    to_argument,
    upload_parameters,
)
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import is_list

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import IO

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param, Tool
    from tooli.execution.sandbox.temp_dirs import TempFolder, UnsweptTempFolder
    from tooli.http.asgi import HttpSettings
    from tooli.http.http_request import HttpRequest
    from tooli.http.multipart import PartHead

MAX_PARTS = 1_000
"""Maximum number of files and fields of a form."""

MAX_TOTAL_UPLOADS = 16
"""The uploads of all open requests may have this many times the size of the largest one."""

_BLOCK_BYTES = 1 << 18
_PREFIX = "tooli-upload-"
_MULTIPART = b"multipart/form-data"
_ENDS_CONNECTION = (CONNECTION_CLOSE,)


class UploadSpace:
    """Counts the bytes that the uploads of a server occupy on the disk."""

    def __init__(self, settings: HttpSettings) -> None:
        self._limit = settings.max_upload * MAX_TOTAL_UPLOADS
        self._used = 0
        self._lock = Lock()

    def take(self, size: int) -> None:
        """Count more bytes; raise an HttpError if there are too many."""
        with self._lock:
            if self._used + size > self._limit:
                raise _no_space_error()
            self._used += size

    def free(self, size: int) -> None:
        """Count bytes less."""
        with self._lock:
            self._used -= size


def is_form(request: HttpRequest, tool: Tool) -> bool:
    """True if a request has the content type of a form, and the tool takes files."""
    content_type = request.headers.get(b"content-type", b"")
    is_multipart = content_type.partition(b";")[0].strip().lower() == _MULTIPART
    return is_multipart and bool(upload_parameters(tool))


class UploadedForm:
    """The form of one request. `remove` removes its files."""

    def __init__(
        self, request: HttpRequest, tool: Tool, settings: HttpSettings, space: UploadSpace
    ) -> None:
        self.memory_bytes = 0  # of the files whose content is an argument
        self._request = request
        self._settings = settings
        self._space = space
        self._params = {param.name: param for param in tool.public_params}
        self._upload_names = {param.name for param in upload_parameters(tool)}
        self._fields: dict[str, list[tuple[str, str]]] = {}  # content type and text
        self._files: dict[str, list[Upload]] = {}
        self._folder: TempFolder | UnsweptTempFolder | None = None
        self._lock = Lock()  # a thread may still write while the request ends
        self._is_removed = False
        self._file_bytes = self._text_bytes = self._parts = 0
        self._head: PartHead | None = None
        self._file: IO[bytes] | None = None
        self._path = ""
        self._text = bytearray()
        self._digest = sha256()
        self._written = 0

    # -------------------------------------------------------------- reading

    async def read(self) -> None:
        """Read the whole form. Raises an HttpError if it is invalid, too large or too slow."""
        settings, request = self._settings, self._request
        length = request.headers.get(b"content-length")
        size = int(length[:20]) if length is not None and length.isdigit() else 0
        if size > settings.max_upload + settings.max_body:
            raise self._too_large_error()
        content_type = request.headers.get(b"content-type", b"")
        if content_type.partition(b";")[0].strip().lower() != _MULTIPART:
            raise _form_error("E1415", "The body must be multipart/form-data.")
        try:
            boundary = read_boundary(content_type)
            await self._read_blocks(MultipartParser(boundary, self))
        except MultipartError as failure:
            raise _form_error("E1008", f"The body {failure}.") from None
        except ClientTimeout:
            raise body_timeout_error() from None
        except OSError as failure:
            raise _no_space_error() from failure

    async def _read_blocks(self, parser: MultipartParser) -> None:
        settings, now = self._settings, asyncio.get_running_loop().time
        deadline = now() + settings.upload_timeout
        block, size, more = bytearray(), 0, True
        while more:
            timeout = min(settings.chunk_timeout, deadline - now())
            message = await wait_with_timeout(timeout, self._request.receive())
            if message["type"] == "http.disconnect":
                raise HttpDisconnect
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > settings.max_upload + settings.max_body:
                raise self._too_large_error()
            block += chunk
            more = message.get("more_body", False)
            if len(block) >= _BLOCK_BYTES or (block and not more):
                await asyncio.to_thread(self._parse, parser, bytes(block))
                block.clear()
        parser.close()

    def _parse(self, parser: MultipartParser, data: bytes) -> None:
        with self._lock:
            if not self._is_removed:
                parser.feed(data)

    # -------------------------------------------------------------- parts, in a thread

    def start_part(self, head: PartHead) -> None:
        """Start a part: a file, or a field with text."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _form_error("E1413", f"The form has more than {MAX_PARTS} parts.")
        self._head = head
        if not self._is_file(head):
            return
        if head.name not in self._upload_names:
            names = ", ".join(sorted(self._upload_names))
            message = f"{head.name!r} does not take a file. Files can be sent for: {names}."
            raise _form_error("E1003", message, head.name)
        if self._folder is None:
            self._folder = _make_folder()
        suffix = safe_suffix(clean_file_name(head.file_name or ""))
        self._path = os.path.join(self._folder.path, f"{self._parts}{suffix}")
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file, self._digest, self._written = os.fdopen(descriptor, "wb", 0), sha256(), 0

    def _is_file(self, head: PartHead) -> bool:
        """True for a file. A part without a file name is one if only its content type says so."""
        if head.file_name is not None:
            return True
        is_text = head.content_type.startswith("text/") or head.content_type == "application/json"
        return head.name in self._upload_names and bool(head.content_type) and not is_text

    def write(self, data: bytes) -> None:
        """Add data to the part."""
        if self._file is None:
            self._text_bytes += len(data)
            if self._text_bytes > self._settings.max_body:
                message = f"The fields of the form have more than {self._settings.max_body} bytes."
                raise _form_error("E1413", message)
            self._text += data
            return
        if self._file_bytes + len(data) > self._settings.max_upload:
            raise self._too_large_error()
        self._space.take(len(data))
        self._file_bytes += len(data)
        self._written += len(data)
        self._digest.update(data)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def end_part(self) -> None:
        """End the part."""
        head = self._head
        assert head is not None
        if self._file is None:
            try:
                text = self._text.decode("utf-8")
            except UnicodeDecodeError:
                raise MultipartError(f"has a field {head.name!r} that is not UTF-8") from None
            self._fields.setdefault(head.name, []).append((head.content_type, text))
            self._text = bytearray()
            return
        self._file.close()
        self._file = None
        if not head.file_name and not self._written:
            return  # an empty field for files of a web page
        upload = Upload(self._path, clean_file_name(head.file_name or ""), self._digest.hexdigest())
        self._files.setdefault(head.name, []).append(upload)
        if is_read_into_memory(self._params[head.name]):
            self.memory_bytes += self._written

    # -------------------------------------------------------------- arguments

    def arguments(self) -> JsonObject:
        """Return the arguments of the call. Reads files, so call it in a thread."""
        arguments: JsonObject = {
            name: self._field_argument(name, texts) for name, texts in self._fields.items()
        }
        for name, uploads in self._files.items():
            param = self._params[name]
            several = takes_several(param)
            if name in arguments or (len(uploads) > 1 and not several):
                raise _form_error("E1003", f"{name!r} takes one value. Send one file.", name)
            values = [to_argument(param, upload) for upload in uploads]
            arguments[name] = values if several else values[0]
        return arguments

    def _field_argument(self, name: str, fields: list[tuple[str, str]]) -> object:
        param = self._params.get(name)
        texts = [text for _, text in fields]
        if param is None:  # binding reports the unknown name, with the closest one
            return texts[-1]
        if len(texts) > 1 and not takes_several(param):
            raise _form_error("E1003", f"{name!r} is in the form {len(texts)} times.", name)
        if all([content_type == "application/json" for content_type, _ in fields]):
            values = [_parse_json(text, name) for text in texts]
        elif can_be_in_query(param):
            return parse_query_values(param, texts)
        elif _is_plain_text(param) or name in self._upload_names:
            values: list[object] = [*texts]
        else:
            values = [_parse_json(text, name) for text in texts]
        if not takes_several(param) or (len(values) == 1 and is_list(values[0])):
            return values[0]
        return values

    # -------------------------------------------------------------- the end

    def remove(self) -> None:
        """Remove the files."""
        with self._lock:
            self._is_removed = True
            if self._file is not None:
                self._file.close()
            if self._folder is not None:
                self._folder.remove()
                self._folder = None
            self._space.free(self._file_bytes)
            self._file_bytes = 0

    def _too_large_error(self) -> HttpError:
        size = self._settings.max_upload
        return _form_error("E1413", f"The files of the form have more than {size} bytes.")


def _make_folder() -> TempFolder | UnsweptTempFolder:
    """Return a private folder for the files of a form."""
    try:
        return make_temp_folder(_PREFIX)
    except (TemporaryError, OSError):
        raise _no_space_error() from None


def _is_plain_text(param: Param) -> bool:
    return may_contain_secret(param) or isinstance(item_shape(param.shape), (Scalar, PathShape))


def _parse_json(text: str, name: str) -> object:
    try:
        check_json_limits(text.encode("utf-8"))
        return loads(text)
    except JsonLimitError as failure:
        raise _form_error("E1008", f"{name!r} {failure}.", name) from None
    except (ValueError, RecursionError):
        message = f"{name!r} is not valid JSON. Objects are JSON text in a form."
        raise _form_error("E1008", message, name) from None


def _form_error(code: str, message: str, field: str | None = None) -> HttpError:
    advice = {"E1413": "Send smaller or fewer files.", "E1008": "Send valid multipart/form-data."}
    fix = advice.get(code, "Correct the form.")
    suggestion = Suggestion("retry_with_modified_input", fix)
    error = InputError(message, code=code, field=field, suggestion=suggestion)
    return HttpError(error, *_ENDS_CONNECTION)


def _no_space_error() -> HttpError:
    suggestion = Suggestion("retry_later", "Send the files again later.")
    message = "The server has no space for the uploaded files at the moment."
    error = TemporaryError(message, suggestion=suggestion, details={"retry_after": 5})
    return HttpError(error, (b"retry-after", b"5"), CONNECTION_CLOSE)
