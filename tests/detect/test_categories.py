"""CallerCategory is an enum whose members are equal to their values."""

from __future__ import annotations

import enum
import json

import pytest

import tooli
from tooli import detect
from tooli.detect.categories import CallerCategory


def test_members_are_text() -> None:
    assert issubclass(CallerCategory, (str, enum.Enum))
    assert CallerCategory.AI_AGENT == "ai_agent"
    assert str(CallerCategory.AI_AGENT) == f"{CallerCategory.AI_AGENT}" == "ai_agent"
    assert json.dumps(CallerCategory.CI_CD) == '"ci_cd"'
    assert CallerCategory("human") is CallerCategory.HUMAN
    assert len(CallerCategory) == 6


def test_public_names() -> None:
    assert tooli.CallerCategory is detect.CallerCategory is CallerCategory


def test_detection_returns_members() -> None:
    context = detect.detect_execution_context({"CLAUDECODE": "1", "CI": "1"})
    assert context.category is CallerCategory.AI_AGENT
    assert [type(each.category) for each in context.candidates].count(CallerCategory) >= 2


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'CallerKind'"):
        _ = detect.CallerKind  # pyright: ignore[reportAttributeAccessIssue]
