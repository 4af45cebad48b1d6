"""JSON encoding of any value. Replacements are reported in warnings."""

from __future__ import annotations

import builtins
import json
import math
import pathlib

import pytest
from tests.stable_ids import stable_id

from tooli.text.json_encoder import encode, make_json_encoder


class TestEncode:
    @pytest.mark.parametrize(
        "value",
        [None, True, 1, 1.5, "x", 'a"b\\c\n\x00', "ü ☃ 𝄞", [], {}, {"a": [1, {"b": None}]}, 2**200],
        ids=stable_id,
    )
    def test_round_trip(self, value) -> None:
        warnings: list[str] = []
        assert json.loads(encode(value, warnings)) == value
        assert not warnings

    def test_output_is_compact_utf8(self) -> None:
        assert encode({"ü": [1, 2]}, []) == '{"ü":[1,2]}'.encode()

    @pytest.mark.parametrize("value", ["\udcff", ["\udcff", "ü"], {"\udcff": math.nan}], ids=ascii)
    def test_lone_surrogate_is_escaped(self, value) -> None:
        written = encode(value, []).decode()
        assert "\\udcff" in written
        json.loads(written)

    def test_nan_is_null(self) -> None:
        warnings: list[str] = []
        assert encode([math.nan, math.inf, 1], warnings) == b"[null,null,1]"
        assert warnings == ["NaN or infinity was written as null"]

    def test_circular_value_is_null_with_a_warning(self) -> None:
        circular: list[object] = []
        circular.append(circular)
        warnings: list[str] = []
        assert encode(circular, warnings) == b"[null]"
        assert warnings == ["a part that contains itself was left out"]

    def test_deep_nesting_is_cut_with_a_warning(self) -> None:
        deep: object = 1
        for _ in range(100_000):
            deep = [deep]
        warnings: list[str] = []
        json.loads(encode(deep, warnings))
        assert warnings

    def test_other_types_are_converted(self) -> None:
        warnings: list[str] = []
        value = {pathlib.PurePosixPath("a"): {1}, 2: b"x"}
        assert encode(value, warnings) == b'{"a":[1],"2":"x"}'
        assert not warnings

    def test_iterator_is_encoded_completely(self) -> None:
        assert encode({"a": map(str, [1, 2]), "b": math.nan}, []) == b'{"a":["1","2"],"b":null}'

    @pytest.mark.parametrize("kind", [RuntimeError, KeyError, OSError, MemoryError])
    def test_object_that_raises_is_null(self, kind) -> None:
        class Broken:
            def __iter__(self):
                raise kind("no")

        warnings: list[str] = []
        assert encode([Broken()], warnings) == b"[null]"
        assert "could not be written" in warnings[0]

    def test_encoder_is_reusable(self) -> None:
        warnings: list[str] = []
        write = make_json_encoder(warnings)
        shared = [1]
        assert [write(shared), write([math.nan]), write(shared)] == ["[1]", "[null]", "[1]"]

    def test_values_are_encoded_without_the_c_encoder(self, monkeypatch) -> None:
        real_import = builtins.__import__

        def import_without_json(name, *rest):
            if name == "_json":
                raise ImportError(name)
            return real_import(name, *rest)

        monkeypatch.setattr(builtins, "__import__", import_without_json)
        warnings: list[str] = []
        found = encode({"a": {1}, "ü": math.nan}, warnings)
        assert found == '{"a":[1],"ü":null}'.encode()
