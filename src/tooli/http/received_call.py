"""ReceivedCall: a call whose body was received, and the functions that run it."""

from __future__ import annotations

import asyncio

from tooli.http.stream_response import failure_headers

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from tooli.http.asgi import Headers
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented


class ReceivedCall:
    """A call whose body was received. A large body is not parsed yet."""

    def __init__(self, prepare: Callable[[], PreparedCall], *, is_parsed: bool) -> None:
        self.prepare = prepare
        self.is_parsed = is_parsed

    def run(self) -> tuple[int, bytes, Headers]:
        """Parse the body and run the call in this thread."""
        return run_in_thread(self.prepare())


def run_in_thread(prepared: PreparedCall) -> tuple[int, bytes, Headers]:
    """Run a call in this thread; return the status, body and headers of its response.

    Every exception is a failure of the call: a KeyboardInterrupt in a tool does not end the server.
    """
    try:
        presented = prepared.run()
    except BaseException as exc:
        presented = prepared.fail(exc)
    return _response_parts(presented)


async def run_on_loop(prepared: PreparedCall) -> tuple[int, bytes, Headers]:
    """Run the call of an async function on this event loop.

    Return the status, body and headers of its response.
    """
    try:
        presented = await prepared.arun()
    except asyncio.CancelledError:
        raise
    except BaseException as exc:
        presented = prepared.fail(exc)
    return _response_parts(presented)


def _response_parts(presented: Presented) -> tuple[int, bytes, Headers]:
    return presented.http_status, presented.envelope_json(), failure_headers(presented)
