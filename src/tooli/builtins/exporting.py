"""export: the app's tools as code for agent frameworks, and as permission rules for agents."""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


def add_export(whole: Any, app: Any) -> None:
    """`export`."""
