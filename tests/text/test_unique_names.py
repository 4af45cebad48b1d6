"""Names that are all different."""

from __future__ import annotations

from tooli.text.unique_names import UniqueNames


def test_repeated_names_get_numbers() -> None:
    names = UniqueNames(["b", "b-2"])
    assert [names.add("a", lambda n: f"a-{n}") for _ in range(3)] == ["a", "a-2", "a-3"]
    assert [names.add("b", lambda n: f"b-{n}") for _ in range(2)] == ["b-3", "b-4"]
    assert names.add("a-2", lambda n: f"a-2-{n}") == "a-2-2"
    assert "a-3" in names
    assert "c" not in names


def test_equal_names_take_linear_time() -> None:
    names, made = UniqueNames(), list[int]()

    def numbered(count: int) -> str:
        made.append(count)
        return f"a-{count}"

    for _ in range(100):
        names.add("a", numbered)
    assert made == list(range(2, 101))
