"""JSON that never fails: any value is written, and what had to be replaced is reported."""

from __future__ import annotations

import builtins
import json
import math
import pathlib

import pytest
from tests.shown import shown

from tooli.text.json_encoder import encode, make_json_encoder


class TestEncode:
    @pytest.mark.parametrize(
        "value",
        [None, True, 1, 1.5, "x", 'a"b\\c\n\x00', "ü ☃ 𝄞", [], {}, {"a": [1, {"b": None}]}, 2**200],
        ids=shown,
    )
    def test_reads_back(self, value) -> None:
        warnings: list[str] = []
        assert json.loads(encode(value, warnings)) == value
        assert not warnings

    def test_compact_and_utf8(self) -> None:
        assert encode({"ü": [1, 2]}, []) == '{"ü":[1,2]}'.encode()

    @pytest.mark.parametrize("value", ["\udcff", ["\udcff", "ü"], {"\udcff": math.nan}], ids=ascii)
    def test_half_a_surrogate_pair(self, value) -> None:
        written = encode(value, []).decode()
        assert "\\udcff" in written
        json.loads(written)

    def test_nan_is_null_with_a_warning(self) -> None:
        warnings: list[str] = []
        assert encode([math.nan, math.inf, 1], warnings) == b"[null,null,1]"
        assert warnings == ["NaN or infinity was written as null"]

    def test_what_contains_itself(self) -> None:
        around: list[object] = []
        around.append(around)
        warnings: list[str] = []
        assert encode(around, warnings) == b"[null]"
        assert warnings == ["a part that contains itself was left out"]

    def test_depth(self) -> None:
        deep: object = 1
        for _ in range(100_000):
            deep = [deep]
        warnings: list[str] = []
        json.loads(encode(deep, warnings))
        assert warnings

    def test_keys_and_values_of_other_kinds(self) -> None:
        warnings: list[str] = []
        value = {pathlib.PurePosixPath("a"): {1}, 2: b"x"}
        assert encode(value, warnings) == b'{"a":[1],"2":"x"}'
        assert not warnings

    def test_an_iterator_is_read_once_and_not_lost(self) -> None:
        assert encode({"a": map(str, [1, 2]), "b": math.nan}, []) == b'{"a":["1","2"],"b":null}'

    @pytest.mark.parametrize("kind", [RuntimeError, KeyError, OSError, MemoryError])
    def test_an_object_that_breaks(self, kind) -> None:
        class Broken:
            def __iter__(self):
                raise kind("no")

        warnings: list[str] = []
        assert encode([Broken()], warnings) == b"[null]"
        assert "could not be written" in warnings[0]

    def test_one_encoder_for_many(self) -> None:
        warnings: list[str] = []
        write = make_json_encoder(warnings)
        shared = [1]
        assert [write(shared), write([math.nan]), write(shared)] == ["[1]", "[null]", "[1]"]

    def test_an_interpreter_without_the_c_half(self, monkeypatch) -> None:
        real = builtins.__import__

        def without(name, *rest):
            if name == "_json":
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        warnings: list[str] = []
        found = encode({"a": {1}, "ü": math.nan}, warnings)
        assert found == '{"a":[1],"ü":null}'.encode()
