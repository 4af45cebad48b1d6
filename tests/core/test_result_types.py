"""Pictures, sounds, documents and links, as MCP writes them."""

from __future__ import annotations

from tooli import Audio, Embedded, Image, Link
from tooli.core.result_types import Content, is_content
from tooli.text.jsonable import to_jsonable


def test_blocks() -> None:
    assert Image(b"x").to_content_block() == {
        "type": "image",
        "data": "eA==",
        "mimeType": "image/png",
    }
    assert Audio(b"x", "audio/ogg").to_content_block()["mimeType"] == "audio/ogg"
    assert Embedded("n://1", "milk").to_content_block() == {
        "type": "resource",
        "resource": {"uri": "n://1", "text": "milk"},
    }
    assert Embedded("n://1", b"x", "text/x").to_content_block()["resource"] == {
        "uri": "n://1",
        "mimeType": "text/x",
        "blob": "eA==",
    }
    assert Link("n://1", "one", mime_type="text/plain").to_content_block() == {
        "type": "resource_link",
        "uri": "n://1",
        "name": "one",
        "mimeType": "text/plain",
    }


def test_what_is_content() -> None:
    assert is_content(Image(b""))
    assert is_content(["text", Image(b"")])
    assert not is_content(["text"])
    assert not is_content("text")


def test_other_interfaces_write_the_block() -> None:
    assert to_jsonable([Image(b"x")], []) == [Image(b"x").to_content_block()]


def test_every_kind_says_how_it_is_written() -> None:
    for kind in Content.__subclasses__():
        assert kind.to_content_block is not Content.to_content_block
