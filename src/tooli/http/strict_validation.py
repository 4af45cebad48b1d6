"""`Prefer: handling=strict` (RFC 7240): validate a body against the tool's published schema.

body ─▶ validator of the tool's schema ─▶ problems ─▶ error of the call

Without this header, values are converted if the conversion is unambiguous: "7" to 7, a list with
duplicates to a set. Contract tests and client tests need an error instead. The first request that
asks for strict handling imports this module and jsonschema.
"""

from __future__ import annotations

from tooli.core.call import Problem
from tooli.schema.json_schema import input_schema
from tooli.schema.json_validation import build_validator, find_problems

TYPE_CHECKING = False

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Tool


class StrictValidator:
    """Validates arguments against the schemas of tools; keeps one validator per tool."""

    def __init__(self) -> None:
        self._validators: dict[int, tuple[Tool, Validator]] = {}

    def problems(self, tool: Tool, arguments: JsonObject) -> tuple[Problem, ...]:
        """Return the first problems of a body. May be slow: call it in a thread."""
        found = find_problems(self._validator_for(tool), arguments)
        return tuple([Problem(*problem) for problem in found])

    def _validator_for(self, tool: Tool) -> Validator:
        cached = self._validators.get(id(tool))
        if cached is None:  # the tool is kept, so that its id stays unique
            cached = self._validators[id(tool)] = (tool, build_validator(input_schema(tool)))
        return cached[1]
