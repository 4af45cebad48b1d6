"""Search texts with the patterns of JSON Schemas, in a limited time.

    has_match(pattern, text) ─┬─ pydantic's engine, whose time is linear: most patterns
                              ├─ Python's `re`, if it certainly needs few steps
                              └─ Python's `re` in another process, which can be stopped: the others

A schema may come from an external source, and a text from any caller. `^(a+)+$` keeps `re` busy for
hours with a text of 40 characters, and no other thread of the process runs meanwhile.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from functools import lru_cache
from importlib import import_module
from math import inf

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_STEPS = 1_000_000
"""Maximum number of steps for which `re` is used in this process: about 0.05 s."""
MAX_SECONDS = 1.0
"""Maximum time of a search in another process."""
_PARSER = "re._parser" if sys.version_info >= (3, 11) else "sre_parse"
_SET_OPERATORS = re.compile(r"\[[^\]]*(?:\[|&&|--|~~)")
"""Classes that mean something else in pydantic's engine than in JSON Schema."""
_CACHED_PATTERNS = 512
_SEARCH = "import json,re,sys; p,t=json.load(sys.stdin); sys.exit(0 if re.search(p,t) else 3)"
"""The program of the other process. Its standard input has the pattern and the text."""


class PatternTimeout(Exception):  # noqa: N818
    """A text cannot be compared with a pattern in the time that it may take."""


def has_match(pattern: str, text: str, *, can_wait: bool = True) -> bool:
    """True if a text contains a match of a pattern.

    Raises `re.error` for a pattern that is not valid, and PatternTimeout: with `can_wait=False`
    instead of a search in another process.
    """
    return _searcher(pattern)(text, can_wait)


def count_steps(pattern: str, size: int) -> float:
    """Return at most how many steps `re` needs for a text of this size; `inf` if very many.

    Raises `re.error` for a pattern that is not valid.
    """
    paths, steps = _count_sequence(_compile(pattern)[1], max(size, 1))
    return max(paths, steps) * max(size, 1)  # a match can begin anywhere


@lru_cache(_CACHED_PATTERNS)
def _searcher(pattern: str) -> Callable[[str, bool], bool]:
    """Return the function that searches a text with a pattern."""
    return _linear_searcher(pattern) or _bounded_searcher(pattern)


def _linear_searcher(pattern: str) -> Callable[[str, bool], bool] | None:
    """Return a search with pydantic's engine; None if it does not support the pattern."""
    from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

    if _SET_OPERATORS.search(pattern):
        return None
    try:
        validator = SchemaValidator(
            core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
        )
    except (SchemaError, ValueError):
        return None

    def search(text: str, _: bool) -> bool:
        try:
            validator.validate_python(text)
        except ValidationError:
            return False
        return True

    return search


def _bounded_searcher(pattern: str) -> Callable[[str, bool], bool]:
    compiled, _ = _compile(pattern)

    def search(text: str, can_wait: bool) -> bool:
        if count_steps(pattern, len(text)) <= MAX_STEPS:
            return compiled.search(text) is not None
        if not can_wait:
            raise PatternTimeout(pattern)
        return _search_in_process(pattern, text)

    return search


@lru_cache(_CACHED_PATTERNS)
def _compile(pattern: str) -> tuple[re.Pattern[str], Sequence[tuple[object, Any]]]:
    """Return a compiled pattern and its parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of classes such as `[[a]`
        return re.compile(pattern), import_module(_PARSER).parse(pattern)


def _search_in_process(pattern: str, text: str) -> bool:
    try:
        finished = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _SEARCH],
            input=json.dumps([pattern, text]).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=MAX_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        raise PatternTimeout(pattern) from None
    if finished.returncode not in (0, 3):
        raise PatternTimeout(pattern)
    return finished.returncode == 0


# ------------------------------------------------------------------ steps


def _count_sequence(nodes: Sequence[tuple[object, Any]], size: int) -> tuple[float, float]:
    """Return in how many ways a sequence can match, and how many steps it takes to try them."""
    paths, steps = 1.0, 1.0
    for kind, detail in nodes:
        ways, cost = _count_node(str(kind), detail, size)
        steps = min(steps + paths * cost, inf)
        paths = min(paths * ways, inf)
    return paths, steps


def _count_node(kind: str, detail: Any, size: int) -> tuple[float, float]:
    match kind:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, part = int(detail[0]), int(detail[1]), detail[2]
            ways, cost = _count_sequence(part, size)
            count = min(high, size)
            if ways > 1 and high > 1:
                total = ways**count if count < 32 and ways < MAX_STEPS else inf
                return total, total * cost
            return ways * (count - min(low, size) + 1), max(count, low, 1) * cost
        case "BRANCH":
            found = [_count_sequence(part, size) for part in detail[1]]
            return sum([ways for ways, _ in found]), sum([cost for _, cost in found])
        case "SUBPATTERN":
            return _count_sequence(detail[3], size)
        case "ATOMIC_GROUP":
            return 1, max(_count_sequence(detail, size))
        case "ASSERT" | "ASSERT_NOT":
            return 1, max(_count_sequence(detail[1], size))
        case "GROUPREF":
            return 1, size
        case "GROUPREF_EXISTS":
            parts = [_count_sequence(part, size) for part in detail[1:] if part is not None]
            return sum([ways for ways, _ in parts]), sum([cost for _, cost in parts])
        case _:
            return 1, 1
