"""The approximate schema of a result agrees with the full schema, or is not used."""

from __future__ import annotations

import dataclasses
import enum
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pydantic
import pytest
from typing_extensions import TypedDict

from tooli.records.fields import RecordFields, allowed_values, json_types, parse_path
from tooli.schema.json_schema import result_schema
from tooli.schema.record_schema import _NeedsPydantic, approximate_schema


class Color(enum.Enum):
    RED = "red"


class Owner(TypedDict, total=False):
    name: str
    age: int | None


@dataclasses.dataclass
class Row:
    n: int
    path: Path
    day: date
    price: Decimal
    ratio: float
    done: bool
    color: Color
    kind: Literal["a", "b"] | None
    tags: list[str]
    owner: Owner
    owners: list[Owner]
    counts: dict[str, int]
    more: dict[str, Any]


class Tree(TypedDict):
    name: str
    inner: list[Tree]


class Model(pydantic.BaseModel):
    n: int


PATHS = [
    *("n", "path", "day", "price", "ratio", "done", "color", "kind", "tags", "tags[0]", "owner"),
    *("owner.name", "owner.age", "owners.age", "owners[0].name", "counts.x", "more.x.y"),
]


@pytest.mark.parametrize("path", PATHS)
def test_it_says_what_the_schema_says(path: str) -> None:
    drawn, text = (
        RecordFields(approximate_schema(list[Row])),
        RecordFields(result_schema(list[Row])),
    )
    mine, theirs = drawn.schemas_at(parse_path(path)), text.schemas_at(parse_path(path))
    assert json_types(mine) == json_types(theirs)
    assert allowed_values(mine) == allowed_values(theirs)


@pytest.mark.parametrize("annotation", [Iterator[Row], list[Owner], list[int], dict[str, int]])
def test_it_draws_what_is_plain(annotation: Any) -> None:
    assert approximate_schema(annotation) is not None


@pytest.mark.parametrize("annotation", [list[Tree], list[Model], list[int | str], Model])
def test_it_is_sure_or_gives_up(annotation: Any) -> None:
    with pytest.raises(_NeedsPydantic):
        approximate_schema(annotation)


def test_a_filter_of_plain_records_loads_no_pydantic(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(
        "import sys\n"
        "from typing import TypedDict\n"
        "from tooli import Tooli\n"
        "app = Tooli('app')\n"
        "class Row(TypedDict):\n    n: int\n"
        "@app.command()\n"
        "def rows() -> list[Row]:\n    return [Row(n=i) for i in range(3)]\n"
        "try:\n    app()\n"
        "finally:\n    print('pydantic' in sys.modules, 'json' in sys.modules, file=sys.stderr)\n"
    )
    words = [sys.executable, str(app), "--filter", "n > 1", "--select", "n", "--limit", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert '"result":[{"n":2}]' in done.stdout
    assert done.stderr == "False False\n"
    wrong = subprocess.run([*words, "--filter", "m > 1"], capture_output=True, text=True)
    assert "E1040" in wrong.stdout
