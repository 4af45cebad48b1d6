"""CallerCategory: the kinds of callers, as an enum.

It is a module of its own, because agents' calls load `tooli.detect`, and importing `enum` takes
longer than detecting them.
"""

from __future__ import annotations

from enum import Enum


class CallerCategory(str, Enum):
    """The kind of a caller. A member is equal to its value, such as "ai_agent"."""

    HUMAN = "human"
    AI_AGENT = "ai_agent"
    CI_CD = "ci_cd"
    CONTAINER = "container"
    UNKNOWN_AUTOMATION = "unknown_automation"
    PYTHON_API = "python_api"

    def __str__(self) -> str:
        return self.value
