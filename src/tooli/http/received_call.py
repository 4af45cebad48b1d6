"""ReceivedCall: a call whose body was received, and the functions that run it."""

from __future__ import annotations

import asyncio

from tooli.http.http_request import HttpDisconnect
from tooli.http.stream_response import failure_headers

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from tooli.http.asgi import Headers
    from tooli.pipeline.prepared_call import PreparedCall
    from tooli.pipeline.present import Presented
    from tooli.serving import Receive


class ReceivedCall:
    """A call whose body was received. A large body is not parsed yet."""

    def __init__(
        self,
        prepare: Callable[[], PreparedCall],
        *,
        is_parsed: bool,
        receive: Receive | None = None,
    ) -> None:
        self.prepare = prepare
        self.is_parsed = is_parsed
        self.receive = receive  # of a call that ends when its client disconnects

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


async def run_on_loop(
    prepared: PreparedCall, receive: Receive | None = None
) -> tuple[int, bytes, Headers]:
    """Run the call of an async function on this event loop.

    Return the status, body and headers of its response. With `receive`, the call is cancelled if
    its client disconnects; then raise HttpDisconnect.
    """
    try:
        work = prepared.arun()
        presented = await (work if receive is None else _run_for_client(work, receive))
    except HttpDisconnect:
        raise
    except asyncio.CancelledError:
        raise
    except BaseException as exc:
        presented = prepared.fail(exc)
    return _response_parts(presented)


async def _run_for_client(work: Coroutine[Any, Any, Presented], receive: Receive) -> Presented:
    """Return the result of a coroutine. Cancel it, and wait until it ends, if nobody wants it."""
    job = asyncio.ensure_future(work)
    client = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({job, client}, return_when=asyncio.FIRST_COMPLETED)
        if not job.done():
            raise HttpDisconnect
        return job.result()
    finally:
        client.cancel()
        if not job.done():
            job.cancel()
            await asyncio.wait({job})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _response_parts(presented: Presented) -> tuple[int, bytes, Headers]:
    return presented.http_status, presented.envelope_json(), failure_headers(presented)
