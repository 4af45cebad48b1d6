"""Stages that authors add with `app.use(stage, before=…)`."""

from __future__ import annotations

from tooli.core import Record
from tooli.errors import DefinitionError
from tooli.pipeline import STAGES
from tooli.similar_names import closest_match

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core import AppState
    from tooli.core.call import Stage

_CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x80, 0x200  # flags of a code object


class CustomStage(Record):
    """A stage that the author of an app adds, before or after a stage of the table."""

    stage: Stage
    anchor: str
    is_after: bool


def add_custom_stage(
    state: AppState, stage: Stage, before: str | None = None, after: str | None = None
) -> None:
    """Add a stage to an app.

    Raises DefinitionError if it is not a valid stage, or if `before` or `after` is unknown.
    """
    if before is not None and after is not None:
        raise DefinitionError("use(…): give `before` or `after`, not both")
    _check_stage(stage)
    anchor = before or after or "bind"
    names = [row[0] for row in STAGES]
    if anchor not in names:
        raise DefinitionError(_unknown_anchor_message(anchor, names))
    state.own_stages.append(CustomStage(stage, anchor, after is not None))
    state.invalidate()


def _check_stage(stage: object) -> None:
    if not callable(stage):
        raise DefinitionError(f"use(…): a stage is a generator function, not {stage!r}")
    code = getattr(stage, "__code__", None)
    if code is not None and code.co_flags & (_CO_COROUTINE | _CO_ASYNC_GENERATOR):
        raise DefinitionError(
            f"use({code.co_name}): a stage is a plain generator function, not an async one. "
            "It runs around async commands as well."
        )


def _unknown_anchor_message(anchor: str, names: list[str]) -> str:
    closest = closest_match(anchor, names)
    hint = f" Did you mean {closest!r}?" if closest else ""
    return f"use(…): there is no stage {anchor!r}.{hint} The stages are {', '.join(names)}."
