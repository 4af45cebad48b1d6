"""TOON held against the reference implementation: the same text, and read back the same value."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integration.app_process import OUTCOMES_APP, run
from tests.integration.node import TOON, install, node

from tooli.cli.toon import encode

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = """
import { decode, encode } from '@toon-format/toon'
import { createInterface } from 'node:readline'
for await (const line of createInterface({ input: process.stdin })) {
  const { value, text } = JSON.parse(line)
  let read, failure
  try { read = decode(text) } catch (thrown) { failure = String(thrown) }
  const written = value === undefined ? undefined : encode(value)
  console.log(JSON.stringify({ written, read, failure }))
}
"""


class Reference:
    """The reference implementation, in a process that stays."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, **question: Any) -> dict[str, Any]:
        """What it writes for a value, and what it reads from a text."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        # JavaScript has but one kind of number, and writes large ones as integers.
        return json.loads(self._process.stdout.readline(), parse_int=float)


@pytest.fixture(scope="module")
def reference() -> Iterator[Reference]:
    with subprocess.Popen(
        [node(), "--input-type=module", "-e", SCRIPT],
        cwd=install(TOON),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        yield Reference(process)
        assert process.stdin is not None
        process.stdin.close()


# JavaScript counts no further, and puts keys that are numbers first.
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
TRAPS = st.sampled_from(
    [*("", "true", "null", "-", "- x", "05", "1e5", "+1", "#", " x", "a,b", "a: b", "[1]: x")]
)
TEXTS = TRAPS | st.text(max_size=12) | st.text('ab1-.,:#[]{}" \\\n\t', max_size=6)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
# Keys with escapes in them are not always read rightly by the JSON.parse of V8.
KEYS = (st.sampled_from("abc") | TEXTS).filter(
    lambda key: key.isprintable() and not key.isdigit() and {*'"\\'}.isdisjoint(key)
)


def of_like_objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and objects whose objects have the same keys: tables, or nearly."""
    keys = st.lists(KEYS, min_size=1, max_size=3, unique=True)
    records = keys.flatmap(lambda names: st.fixed_dictionaries(dict.fromkeys(names, values)))
    rows = keys.flatmap(
        lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, values)), max_size=4)
    )
    return rows | st.dictionaries(KEYS, records, max_size=3)


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | of_like_objects(SCALARS)
        | of_like_objects(inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_it_is_written_and_read_as_the_reference_does(reference: Reference, value: Any) -> None:
    text = encode(value)
    told = reference.ask(value=value, text=text)
    assert text == told["written"]
    assert "failure" not in told
    assert told["read"] == value


@given(st.dictionaries(TEXTS, st.dictionaries(TEXTS, SCALARS, max_size=3), max_size=3))
def test_any_key_is_read_back(reference: Reference, value: Any) -> None:
    assert reference.ask(text=encode(value))["read"] == value


@pytest.mark.parametrize("line", ["add 1 2", "noise child", "crash", "conflict", "nope", "add x"])
def test_real_answers_can_be_read(reference: Reference, line: str) -> None:
    """A strict reader of TOON finds the document that `--json` gives."""
    mine = run(OUTCOMES_APP, *line.split(), "-o", "toon")
    theirs = run(OUTCOMES_APP, *line.split(), "--json")
    told = reference.ask(text=mine.out.decode())["read"]
    wanted = json.loads(theirs.out)
    for document in (told, wanted):
        document["meta"].pop("duration_ms")
        document.get("error", {}).get("details", {}).pop("traceback", None)
    assert told == wanted
    assert mine.code == theirs.code
