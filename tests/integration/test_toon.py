"""Compare the TOON encoder with the reference implementation."""

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
    """The reference implementation, in a process that runs until the end of the tests."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, **request: Any) -> dict[str, Any]:
        """Return its encoding of `value`, and the value that it decodes from `text`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        # JavaScript has one number type, and writes large numbers as integers.
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


# Larger integers are not exact in JavaScript.
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
AMBIGUOUS_TEXTS = st.sampled_from(
    [*("", "true", "null", "-", "- x", "05", "1e5", "+1", "#", " x", "a,b", "a: b", "[1]: x")]
)
TEXTS = AMBIGUOUS_TEXTS | st.text(max_size=12) | st.text('ab1-.,:#[]{}" \\\n\t', max_size=6)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
# JavaScript moves numeric keys to the front. JSON.parse of V8 misreads some keys with escapes.
KEYS = (st.sampled_from("abc") | TEXTS).filter(
    lambda key: key.isprintable() and not key.isdigit() and {*'"\\'}.isdisjoint(key)
)


def uniform_objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return lists and objects whose items have the same keys, as in a table."""
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
        | uniform_objects(SCALARS)
        | uniform_objects(inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_encoding_matches_the_reference(reference: Reference, value: Any) -> None:
    text = encode(value)
    answer = reference.run(value=value, text=text)
    assert text == answer["written"]
    assert "failure" not in answer
    assert answer["read"] == value


@given(st.dictionaries(TEXTS, st.dictionaries(TEXTS, SCALARS, max_size=3), max_size=3))
def test_any_key_is_decoded(reference: Reference, value: Any) -> None:
    assert reference.run(text=encode(value))["read"] == value


@pytest.mark.parametrize("line", ["add 1 2", "noise child", "crash", "conflict", "nope", "add x"])
def test_envelopes_match_json(reference: Reference, line: str) -> None:
    """The reference decodes `-o toon` to the document of `--json`."""
    toon = run(OUTCOMES_APP, *line.split(), "-o", "toon")
    expected = run(OUTCOMES_APP, *line.split(), "--json")
    decoded = reference.run(text=toon.out.decode())["read"]
    document = json.loads(expected.out)
    for each in (decoded, document):
        each["meta"].pop("duration_ms")
        each.get("error", {}).get("details", {}).pop("traceback", None)
        for field in ("argv", "example"):  # the suggested line keeps the output mode of the call
            each.get("error", {}).get("suggestion", {}).pop(field, None)
    assert decoded == document
    assert toon.code == expected.code
