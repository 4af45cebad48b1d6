"""HttpRequest: bodies, options and timeouts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.http.asgi_client import HOST, JSON, AsgiClient, send

from tooli import Tooli
from tooli.http.asgi import Api
from tooli.http.http_request import ClientTimeout, wait_with_timeout


def make_api(**settings: Any) -> Api:
    app = Tooli("echo")
    app.command("other")(lambda: 1)

    @app.command()
    def echo(value: object = None) -> object:
        """Return the value."""
        return value

    return app.asgi(mcp=False, **settings)


PATH = "/tools/echo"


@pytest.mark.parametrize(
    "body",
    [
        *(
            b"{",
            b"nul",
            b"[1]",
            b'"text"',
            b"3",
            b"null",
            b"\xff\xfe",
            b"{'a':1}",
            b'{"value":NaN}',
        ),
        *(b'{"value":Infinity}', b'{"value":-Infinity}', b'{"value":1,}', b"\xef\xbb\xbf{}"),
        *(b'{"value":"\x00"}', b'{"value":"a\nb"}', b'{"value":' + b"9" * 5000 + b"}", b"{}{}"),
        *('{"value":1}'.encode("utf-16"), b"\x00", b" ", b'{"value":"\xc3"}', b"a=1&b=2"),
        b'{"value":' + b"[" * 100_000,
        b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"value":' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"value":' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}",
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_invalid_body_is_rejected(body: bytes) -> None:
    client = await send(make_api(), "POST", PATH, body)
    assert (client.status, client.code) == (400, "E1008")
    assert len(client.body) < 1000


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"value":1,"value":2}', 2),
        (b'{"value":"\\ud800"}', "\ud800"),
        (
            '{"value":"😀 שלום \u202e"}'.encode(),
            "😀 שלום ",
        ),  # the result is sanitized: it has no bidi controls
        (b'  {"value" : [1,2] }\n', [1, 2]),
        (b'{"value":"' + b"[" * 500 + b'"}', "[" * 500),
        (b'{"value":' + b"[" * 100 + b"]" * 100 + b"}", None),
        (b'{"__proto__":1}', ...),
    ],
    ids=lambda part: repr(part)[:24],
)
async def test_unusual_json_is_accepted(body: bytes, value: object) -> None:
    client = await send(make_api(), "POST", PATH, body)
    if value is ...:
        assert (client.status, client.code) == (422, "E1004")
    else:
        assert client.status == 200
        assert value is None or client.json()["result"] == value


async def test_control_characters_are_rejected() -> None:
    client = await send(make_api(), "POST", PATH, b'{"value":"a\\u0000b"}')
    assert (client.status, client.code) == (422, "E1030")


@pytest.mark.parametrize(
    "content_type",
    [
        *(b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x"),
        *(b"", b"json", b"application/json; charset=utf-16", b"text/json", b"application/jsonx"),
        b"text/plain; application/json",
    ],
)
@pytest.mark.parametrize("body", [b"", b"{}"])
async def test_other_content_type_is_rejected(content_type: bytes, body: bytes) -> None:
    client = await send(make_api(), "POST", PATH, body, (b"content-type", content_type))
    assert (client.status, client.code) == (415, "E1415")


async def test_body_without_a_content_type_is_rejected() -> None:
    client = AsgiClient(make_api())
    client.send_body(b"{}")
    await client.start("POST", PATH, [HOST])
    assert (client.status, client.code) == (415, "E1415")


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/json",
        b"Application/JSON; charset=UTF-8",
        b'application/json; charset="utf-8"; x=y',
        b"application/vnd.api+json",
    ],
)
async def test_json_content_types_are_accepted(content_type: bytes) -> None:
    client = await send(make_api(), "POST", PATH, b'{"value":1}', (b"content-type", content_type))
    assert client.status == 200


# ------------------------------------------------------------------ size and time


async def test_content_length_above_the_limit_is_rejected() -> None:
    client = AsgiClient(make_api(max_body=10))
    await client.start("POST", PATH, [HOST, JSON, (b"content-length", b"11")])
    assert (client.status, client.code) == (413, "E1413")


@pytest.mark.parametrize("chunks", [[b'{"value":"aaaaaa"}'], [b"{"] + [b" "] * 20, [b" " * 11]])
async def test_body_above_the_limit_is_rejected(chunks: list[bytes]) -> None:
    client = AsgiClient(make_api(max_body=10))
    for chunk in chunks:
        client.send_body(chunk, more=True)
    await asyncio.wait_for(client.start("POST", PATH, [HOST, JSON]), 120)
    assert (client.status, client.code) == (413, "E1413")


async def test_body_of_exactly_the_limit_is_accepted() -> None:
    body = b'{"value":1}'
    client = await send(make_api(max_body=len(body)), "POST", PATH, body)
    assert client.status == 200


async def test_chunks_of_a_body_are_joined() -> None:
    client = AsgiClient(make_api())
    for chunk in (b'{"val', b"", b'ue":', b"3"):
        client.send_body(chunk, more=True)
    client.send_body(b"}")
    await client.start("POST", PATH, [HOST, JSON])
    assert client.json()["result"] == 3


@pytest.mark.parametrize("chunk_count", [0, 3])
async def test_incomplete_body_times_out(chunk_count: int) -> None:
    client = AsgiClient(make_api(chunk_timeout=0.01))
    for _ in range(chunk_count):
        client.send_body(b" ", more=True)
    await asyncio.wait_for(client.start("POST", PATH, [HOST, JSON]), 120)
    assert (client.status, client.code) == (408, "E1408")
    assert client.headers["connection"] == "close"


async def test_slow_body_times_out() -> None:
    client = AsgiClient(make_api(body_timeout=0.05))
    task = client.start("POST", PATH, [HOST, JSON])

    async def send_slowly() -> None:
        while not task.done():
            client.send_body(b" ", more=True)
            await asyncio.sleep(0.002)

    await asyncio.wait_for(asyncio.gather(task, send_slowly()), 120)
    assert (client.status, client.code) == (408, "E1408")


async def test_disconnected_client_gets_no_answer() -> None:
    client = AsgiClient(make_api())
    client.send_body(b"{", more=True)
    client.disconnect()
    await client.start("POST", PATH, [HOST, JSON])
    assert client.sent == []


async def test_cancellation_during_the_body_is_not_a_timeout() -> None:
    client = AsgiClient(make_api())
    task = client.start("POST", PATH, [HOST, JSON])
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (client.status, client.code) == (503, "E4143")


@pytest.mark.parametrize("length", [b"abc", b"-1", b"+1", b"1_0", b"1.0", b" 1", b"", b"0x1"])
@pytest.mark.parametrize("path", [PATH, "/inner"])
async def test_invalid_content_length_is_a_bad_request(length: bytes, path: str) -> None:
    async def inner(scope, receive, send) -> None:
        raise AssertionError("the mounted application was called")

    api = make_api(mounts={"/inner": inner})
    client = await send(api, "POST", path, b"{}", (b"content-length", length))
    assert (client.status, client.code) == (400, "E1400")
    assert client.headers["connection"] == "close"


async def test_content_length_with_thousands_of_digits_is_too_large() -> None:
    client = await send(make_api(), "POST", PATH, b"{}", (b"content-length", b"9" * 5000))
    assert (client.status, client.code) == (413, "E1413")


# ------------------------------------------------------------------ timeouts


async def test_timeout_ends_a_wait() -> None:
    with pytest.raises(ClientTimeout):
        await wait_with_timeout(0.001, asyncio.Event().wait())
    with pytest.raises(ClientTimeout):
        await wait_with_timeout(0.001, asyncio.get_running_loop().create_future())
    task = asyncio.current_task()
    assert task is not None
    assert getattr(task, "cancelling", int)() == 0


async def test_wait_with_timeout_returns_the_result() -> None:
    async def at_once() -> int:
        return 1

    async def after_suspension() -> int:
        await asyncio.sleep(0)
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except asyncio.TimeoutError:
            await asyncio.sleep(0)
        return 2

    async def failing() -> None:
        await asyncio.sleep(0)
        raise KeyError

    assert await wait_with_timeout(20, at_once()) == 1
    assert await wait_with_timeout(20, after_suspension()) == 2
    with pytest.raises(KeyError):
        await wait_with_timeout(20, failing())


async def test_wait_can_be_cancelled() -> None:
    task = asyncio.ensure_future(wait_with_timeout(20, asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
