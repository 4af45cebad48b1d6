"""Write a call as JSON events, one per line (`--stream`), and ask the caller for samples.

    tool ── ctx.report, ctx.log, ctx.artifact, items ──▶ LinePeer ──▶ stdout
    tool ── ctx.sample ──┬▶ sample_request on stdout, sample_response on stdin
                         └▶ POST to the URL of --sample-via

Events and items are written in the order in which the tool produces them, from any thread.
"""

from __future__ import annotations

import os
import select
import sys
from _thread import allocate_lock
from itertools import count
from json import loads

from tooli.core.call import Problem
from tooli.core.event_peer import item_event
from tooli.core.output_modes import find_mode
from tooli.core.peer import UNANSWERED_TEXT
from tooli.core.sampling import SamplingPeer, read_sample_response, sample_request
from tooli.errors import DependencyError, Interrupted, TimeoutExceeded
from tooli.inputs.constraints import InputLimits
from tooli.pipeline.present import ItemPresenter
from tooli.text.json_encoder import encode
from tooli.text.jsonable import is_list, is_set, sort_set

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from tooli.cli import CommandOutput
    from tooli.cli.line_buffer import LineBuffer
    from tooli.core.call import Call
    from tooli.core.peer import Sample

MAX_ANSWER_BYTES = 4_000_000
"""Maximum size of an answer to a sampling request."""


class EventLines:
    """One JSON event per line; the writer of mode `stream`."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def items(self, items: Iterator[object]) -> Iterator[bytes]:
        """Return the events of the items of a stream."""
        encode_item = ItemPresenter(self._call).encode
        return (item_event(encode_item(item)) for item in items)

    def value(self, value: object) -> Iterator[bytes]:
        """Return the events of the items of a whole list."""
        if is_set(value):
            value = sort_set(value)
        if is_list(value) and type(value) in (list, tuple):
            return self.items(iter(value))
        return self.items(iter(() if value is None else (value,)))


# ------------------------------------------------------------------ the caller


class LinePeer(SamplingPeer):
    """The caller of a command line, who reads events from stdout.

    `open_lines` passes it the buffer of the items. Then events are written between them.
    """

    def __init__(self, output: CommandOutput) -> None:
        self.cancelled = False
        self.receives_events = find_mode(output.invocation.mode).ends_with_envelope
        self._output = output
        self._buffer: LineBuffer | None = None
        self._lock = allocate_lock()
        self._is_closed = False
        self._failure: Exception | None = None

    def send_event(self, name: str, data: bytes) -> None:
        """Write an event. If stdout is closed, the function ends and the call is cancelled."""
        try:
            self.write(data)
        except (OSError, ValueError) as failure:
            self._failure = failure
            self.cancelled = True
            raise Interrupted("The reader of stdout has ended.") from failure

    def write(self, line: bytes) -> None:
        """Write a line to stdout. Nothing is written after `close`."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._is_closed:
                return
            if self._buffer is not None:
                self._buffer.write(line)
            elif self._output.guard is not None:
                self._output.guard.write(line + b"\n")

    def open_lines(self, buffer: LineBuffer) -> LinePeer:
        """Write events and items to the same buffer from now on."""
        self._buffer = buffer
        return self

    def close(self) -> None:
        """Write all lines. Threads that the function has left behind write nothing more."""
        with self._lock:
            self._is_closed = True
            buffer = self._buffer
        if self._failure is not None:
            raise self._failure
        if buffer is not None:
            buffer.close()

    def discard(self) -> None:
        """Write the lines after an exception, unless the reader keeps them waiting."""
        self._is_closed = True
        if self._buffer is not None:
            self._buffer.discard()


def make_peer(output: CommandOutput, call: Call) -> Call:
    """Return the call with its caller as a peer: for `--stream` and `--sample-via`."""
    line = output.invocation.line
    via: str | None = line.options.get("sample_via")
    peer = LinePeer(output)
    if via is None:
        return call.replace(peer=peer)
    problem = _check_sample_via(via, output)
    if problem is not None:
        return call.replace(peer=peer, problems=(*call.problems, problem))
    if via == "stdin":
        peer.sampler = StdinSampler(peer)
        return call.replace(peer=peer, options=call.options.replace(stdin_consumed=True))
    peer.sampler = UrlSampler(via, peer)
    return call.replace(peer=peer)


def _check_sample_via(via: str, output: CommandOutput) -> Problem | None:
    """Return what is wrong with the value of `--sample-via`, or None."""
    message = None
    if via == "stdin":
        if output.guard is None:
            message = "--sample-via stdin writes JSON lines to stdout: add --stream or --json"
    elif not via.startswith(("http://", "https://")):
        message = "--sample-via takes 'stdin', or a URL that starts with http:// or https://"
    return None if message is None else Problem("E1007", "sample_via", message)


# ------------------------------------------------------------------ samples from stdin


class StdinSampler:
    """Writes sampling requests to stdout, and reads the answers from stdin."""

    def __init__(self, peer: LinePeer) -> None:
        self._peer = peer
        self._lines = StdinLines()
        self._numbers = count(1)
        self._lock = allocate_lock()  # one request at a time

    def __call__(self, sample: Sample) -> object:
        """Return the content of the answer."""
        with self._lock:
            request_id = str(next(self._numbers))
            try:
                self._peer.write(encode_sample_request(request_id, sample))
            except (OSError, ValueError) as failure:
                raise DependencyError("The sampling request cannot be written.") from failure
            line = self._lines.read_line(self._peer.remaining_time())
        try:
            message: object = loads(line)
        except ValueError:
            raise DependencyError("The answer on stdin is not a line of JSON.") from None
        return read_sample_response(message, request_id)


def encode_sample_request(request_id: str, sample: Sample) -> bytes:
    """Return a sampling request as JSON. It is never cut: the model needs all of it."""
    return encode(sample_request(request_id, sample), [])


class StdinLines:
    """Reads lines from stdin, with a time limit and a maximum size."""

    def __init__(self) -> None:
        self._data = b""

    def read_line(self, timeout: float | None = None) -> bytes:
        """Return the next line that is not empty.

        Raises TimeoutExceeded after `timeout` seconds, and DependencyError at the end of stdin.
        """
        while not (line := self._read_line(timeout)).strip():
            pass
        return line

    def _read_line(self, timeout: float | None) -> bytes:
        stdin: TextIO | None = sys.stdin
        if (
            stdin is None or stdin is not sys.__stdin__ or os.name == "nt"
        ):  # a test, or no `select` for pipes
            text = "" if stdin is None else stdin.readline(MAX_ANSWER_BYTES)
            if not text:
                raise _end_of_input_error()
            return text.encode(errors="surrogatepass")
        while b"\n" not in self._data:
            if timeout is not None and not select.select((stdin,), (), (), timeout)[0]:
                raise TimeoutExceeded(UNANSWERED_TEXT)
            chunk = os.read(stdin.fileno(), 1 << 16)
            if not chunk:
                raise _end_of_input_error()
            self._data += chunk
            if len(self._data) > MAX_ANSWER_BYTES:
                raise DependencyError(f"A line on stdin has more than {MAX_ANSWER_BYTES} bytes.")
        line, _, self._data = self._data.partition(b"\n")
        return line


def _end_of_input_error() -> DependencyError:
    return DependencyError("stdin has ended before the question was answered.")


# ------------------------------------------------------------------ samples from a URL


class UrlSampler:
    """Sends sampling requests to a URL, under the rules for all URLs, and returns the answers."""

    def __init__(self, url: str, peer: LinePeer) -> None:
        self._url = url
        self._peer = peer
        self._numbers = count(1)

    def __call__(self, sample: Sample) -> object:
        """Return the content of the answer."""
        from tooli.inputs.urls import post_json  # imports the network libraries

        request_id = str(next(self._numbers))
        limits = InputLimits(timeout=self._peer.remaining_time())
        body = post_json(self._url, encode_sample_request(request_id, sample), limits)
        try:
            message: object = loads(body)
        except ValueError:
            raise DependencyError("The URL of --sample-via did not answer with JSON.") from None
        return read_sample_response(message, None)
