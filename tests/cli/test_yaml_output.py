"""Mode `yaml`: PyYAML reads back exactly the document that `--json` writes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tooli.cli.yaml_output import encode

yaml = pytest.importorskip("yaml")

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = (
    *("", "no", "No", "YES", "on", "OFF", "y", "N", "null", "Null", "~", "true", "nan", ".inf"),
    *("1", "1e3", "1.0", "0x1f", "0o17", "017", "1_000", "1:30", "12:30:45", "+1", "-1", "1."),
    *("2026-01-01", "2026-01-01T00:00:00Z", "<<", "=", "-", "- a", "a: b", "a:", "a #b", "#b"),
    *("&x", "*x", "!t", "|", ">", "%d", "@a", "`a", "[a", "{a}", "a,b", "? a", ": a", "'q'", '"q"'),
    *(
        "back\\slash",
        "tab\tx",
        " a",
        "a ",
        "a  b",
        "---",
        "...",
        "--- a",
        "plain text",
        "a.b/c_d-e",
    ),
    *("a\nb", "a\nb\n", "a\n\nb", "\n", "\n\n", "a\n", " a\nb", "a \nb", "a\n b", "a\n  \nb"),
    *("a\nb\n\n", "a\n---\nb", "x: y\nz", "# c\nd", "\r", "a\r\nb", "a\tb\nc", "null\nx"),
    *("\x00", "\x1b[31m", "\x7f", "\x85", "\xa0", "\u2028", "\ufeff", "\ufeffa\nb", "\u200b"),
    *("café", "日本語", "😀", "a😀\nb", "\U000e0001", "caf\udce9", "k" * 2000, "é" * 2000),
)
NUMBERS = (0, -1, 10**30, 1e16, 1e-7, 1.5, -0.0, 1e300, 5e-324, 1.0, True, False, None)
SCALARS = st.one_of(
    st.sampled_from(TEXTS), st.text(), st.sampled_from(NUMBERS), st.integers(), st.floats(0, 1)
)
KEYS = st.one_of(st.sampled_from(TEXTS), st.text())
VALUES = st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(KEYS, v), max_leaves=12)

APP = """
import json, sys
from tooli import NotFoundError, Tooli

app = Tooli("desk", version="1.0")


@app.command()
def value(number: int):
    return json.load(open(sys.argv[0] + ".json"))[number]


@app.command()
def flow(count: int):
    yield from json.load(open(sys.argv[0] + ".json"))[:count]


@app.command()
def gone(number: int) -> None:
    found = json.load(open(sys.argv[0] + ".json"))[number]
    raise NotFoundError("No such ticket: no\\nor yes", field="no", details={"found": found})


if __name__ == "__main__":
    app()
"""
VALUES_IN_PROCESS: list[Any] = [
    list(TEXTS),
    {text: text for text in TEXTS},
    {"deep": [[list(TEXTS)], {"a": {text: [text] for text in TEXTS}}]},
    list(NUMBERS),
    {"empty": [{}, [], "", None]},
    "a\nb\n",
]


def read_back(text: str) -> Any:
    return yaml.safe_load(text)


def is_same(left: Any, right: Any) -> bool:
    """True if values, types and key order are equal: 1 is neither 1.0 nor true."""
    return repr(left) == repr(right)


@pytest.mark.parametrize("value", [*TEXTS, *NUMBERS], ids=repr)
def test_scalar_round_trip(value: Any) -> None:
    for shape in (value, [value], {"a": value}, [[value]], {"a": [value, {"b": value}], "c": 1}):
        assert is_same(read_back(encode(shape) + "\n"), shape)
    if isinstance(value, str):
        assert is_same(read_back(encode({value: {value: 1}}) + "\n"), {value: {value: 1}})


@settings(deadline=None)
@given(VALUES)
def test_value_round_trip(value: Any) -> None:
    assert is_same(read_back(encode(value) + "\n"), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"ok": True, "result": ["a", "no"]}, 'ok: true\nresult:\n  - a\n  - "no"'),
        ([{"a": 1, "b": []}, {}], "- a: 1\n  b: []\n- {}"),
        ({"text": "one\ntwo\n"}, "text: |\n  one\n  two"),
        ({"text": "one\ntwo"}, "text: |-\n  one\n  two"),
        ([["a"], 1e16], "- - a\n- 1.0e+16"),
    ],
)
def test_exact_layout_of_lists_records_and_text(value: Any, text: str) -> None:
    assert encode(value) == text


# ------------------------------------------------------------------ real processes


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("yaml") / "desk.py"
    file.write_text(APP)
    file.with_name("desk.py.json").write_text(json.dumps(VALUES_IN_PROCESS))
    return file


def run_mode(app: Path, mode: str, *argv: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, str(app), *argv, "-o", mode], capture_output=True, timeout=60, check=False
    )
    assert done.stderr == b""
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        *[(["value", str(number)], 0) for number in range(len(VALUES_IN_PROCESS))],
        *[(["gone", str(number)], 10) for number in range(len(VALUES_IN_PROCESS))],
        (["flow", "6"], 0),
        (["flow", "0"], 0),
        (["value", "x"], 2),
        (["valeu"], 2),
        (["value", "99"], 70),
        (["--version"], 0),
        (["--help"], 0),
    ],
    ids=str,
)
def test_document_equals_json(app: Path, argv: list[str], code: int) -> None:
    ended, text = run_mode(app, "yaml", *argv)
    expected_code, expected_text = run_mode(app, "json", *argv)
    found, expected = read_back(text), json.loads(expected_text)
    assert ended == expected_code == code
    for document in (found, expected):
        document["meta"].pop("duration_ms")
    suggestion = expected.get("error", {}).get("suggestion", {})
    if "argv" in suggestion:  # the suggested line keeps the output mode
        line = [
            {"json": "yaml", "--json": "--output"}.get(word, word) for word in suggestion["argv"]
        ]
        expected = json.loads(json.dumps(expected).replace("--json", "--output yaml"))
        expected["error"]["suggestion"]["argv"] = [
            part for word in line for part in ([word, "yaml"] if word == "--output" else [word])
        ]
    assert is_same(found, json.loads(json.dumps(expected).replace("-o json", "-o yaml")))
