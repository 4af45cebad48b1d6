"""Messages of prompts, and content blocks."""

from __future__ import annotations

from typing import Any

import pytest

from tooli import Image, Message
from tooli.serving.prompt_messages import (
    content_blocks,
    prompt_messages,
    replace_lone_surrogates,
    text_block,
)


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("hi", [("user", text_block("hi"))]),
        (["a", "b"], [("user", text_block("a")), ("user", text_block("b"))]),
        (Message("fine", "assistant"), [("assistant", text_block("fine"))]),
        ({"role": "assistant", "content": "fine"}, [("assistant", text_block("fine"))]),
        (
            {"role": "user", "content": {"type": "text", "text": "x"}},
            [("user", {"type": "text", "text": "x"})],
        ),
        ({"a": 1}, [("user", text_block("{'a': 1}"))]),
        ([], []),
    ],
)
def test_messages(value: object, messages: list[Any]) -> None:
    found = prompt_messages(value, str)
    assert [(message["role"], message["content"]) for message in found] == messages


def test_content_blocks() -> None:
    blocks = content_blocks(["text", Image(b"x"), 7], str)
    assert [block["type"] for block in blocks] == ["text", "image", "text"]


@pytest.mark.parametrize(
    ("text", "safe"), [("a\ud800", "a\ufffd"), ("\ud83d\ude00", "😀"), ("é", "é")]
)
def test_lone_surrogates_are_replaced(text: str, safe: str) -> None:
    assert replace_lone_surrogates(text) == safe
