"""Completions of the values of resources and prompts."""

from __future__ import annotations

import enum
from typing import Literal

from tooli import Tooli
from tooli.providers.completions import completion_candidates, filter_matches
from tooli.providers.resources import collect_prompts


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


def test_completion_candidates_come_from_the_parameter_type() -> None:
    app = Tooli("app")

    @app.prompt()
    def p(color: Color, many: list[Color], kind: Literal["a", "b"], flag: bool, text: str) -> str:
        return ""

    tool = collect_prompts(app)["p"].tool(app._state)

    def complete(name: str) -> list[str]:
        return filter_matches(completion_candidates(tool.param(name), None, "", {}), "")

    assert complete("color") == complete("many") == ["red", "green"]
    assert complete("kind") == ["a", "b"]
    assert complete("flag") == ["true", "false"]
    assert complete("text") == []
    assert completion_candidates(None, None, "", {}) == ()


def test_completion_candidates_of_the_author_are_filtered() -> None:
    assert completion_candidates(None, ["x"], "", {}) == ["x"]
    assert completion_candidates(None, lambda text: [text * 2], "ab", {}) == ["abab"]
    assert completion_candidates(None, lambda text, given: [given["a"]], "", {"a": "1"}) == ["1"]
    words = ["Paris", "Park", "Rome", "Upper Park", "Park"]
    assert filter_matches(words, "par") == ["Paris", "Park", "Upper Park"]
    assert filter_matches([1, 12, 21], "1") == ["1", "12", "21"]
