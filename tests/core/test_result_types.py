"""Images, audio, embedded documents and links as MCP content blocks."""

from __future__ import annotations

from tooli import Audio, Embedded, Image, Link
from tooli.core.result_types import Content, is_content
from tooli.text.jsonable import to_jsonable


def test_content_blocks_have_the_fields_of_mcp() -> None:
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


def test_list_with_one_content_item_is_content() -> None:
    assert is_content(Image(b""))
    assert is_content(["text", Image(b"")])
    assert not is_content(["text"])
    assert not is_content("text")


def test_content_as_json_is_its_block() -> None:
    assert to_jsonable([Image(b"x")], []) == [Image(b"x").to_content_block()]


def test_every_content_class_has_a_content_block() -> None:
    for kind in Content.__subclasses__():
        assert kind.to_content_block is not Content.to_content_block
