"""Record: a frozen value with named fields, as a dataclass would be."""

from __future__ import annotations

import copy
import pickle

import pytest

from tooli.core.record import Record


class Point(Record):
    x: int
    y: int = 0


class Dot(Point):
    colour: str = "red"


class Nothing(Record):
    pass


MANY = 30
"""More than it takes until a record class writes an `__init__` of its own."""


@pytest.fixture(params=["seldom", "often"], ids=str)
def point(request: pytest.FixtureRequest) -> type[Record]:
    """A record class of two fields, fresh, or used so often that it has compiled itself."""

    class Place(Record):
        x: int
        y: int = 0

    if request.param == "often":
        for _ in range(MANY):
            Place(1)
    return Place


class TestMaking:
    @pytest.mark.parametrize(
        ("args", "fields"), [((1, 2), {}), ((1,), {"y": 2}), ((), {"y": 2, "x": 1})]
    )
    def test_by_position_and_by_name(self, point, args, fields) -> None:
        made = point(*args, **fields)
        assert (made.x, made.y) == (1, 2)

    def test_defaults(self, point) -> None:
        assert point(5).y == 0

    @pytest.mark.parametrize(
        ("args", "fields", "word"),
        [
            ((), {}, "x"),
            ((), {"y": 1}, "x"),
            ((1,), {"z": 1}, "z"),
            ((1,), {"x": 1}, "x"),
            ((1, 2, 3), {}, "3|4"),
        ],
        ids=["nothing", "missing", "unknown", "twice", "too many"],
    )
    def test_wrong_fields_fail(self, point, args, fields, word) -> None:
        with pytest.raises(TypeError, match=word):
            point(*args, **fields)

    def test_a_class_used_often_compiles_itself_and_means_the_same(self) -> None:
        class Pair(Record):
            a: int
            b: str = "b"

        first = Pair(1)
        slow = Pair.__init__
        later = [Pair(1) for _ in range(MANY)]
        assert Pair.__init__ is not slow
        assert later == [first] * MANY

    def test_no_fields(self) -> None:
        assert [Nothing() for _ in range(MANY)] == [Nothing()] * MANY
        with pytest.raises(TypeError):
            Nothing(1)


class TestBeingFrozen:
    def test_no_field_changes(self) -> None:
        with pytest.raises(AttributeError, match=r"Point is frozen; use replace\(x=…\)"):
            Point(1).x = 2

    def test_no_field_goes(self) -> None:
        with pytest.raises(AttributeError, match="frozen"):
            del Point(1).x

    def test_no_field_comes(self) -> None:
        assert not hasattr(Point(1), "__dict__")
        with pytest.raises(AttributeError):
            object.__setattr__(Point(1), "z", 1)

    def test_replace_gives_another(self) -> None:
        one = Point(1, 2)
        assert one.replace(y=3) == Point(1, 3)
        assert one == Point(1, 2)

    def test_replace_knows_its_fields(self) -> None:
        with pytest.raises(TypeError, match="z"):
            Point(1).replace(z=3)


class TestInheriting:
    def test_fields_of_the_base_come_first(self) -> None:
        assert Dot.__match_args__ == ("x", "y", "colour")
        assert Dot(1, 2, "blue").colour == "blue"
        assert Dot(1) == Dot(1, 0, "red")

    def test_a_subclass_may_change_a_default(self) -> None:
        class High(Point):
            z: int = 1

        assert (Point(1).y, High(1, z=4).z) == (0, 4)

    def test_match(self) -> None:
        match Dot(1, 2):
            case Dot(x, y, colour="red"):
                assert (x, y) == (1, 2)
            case _:
                pytest.fail("did not match")


class TestComparing:
    def test_equal_by_value_and_class(self) -> None:
        assert Point(1, 2) == Point(1, 2)
        assert Point(1, 2) != Point(1, 3)
        assert Point(1, 0) != Dot(1, 0)
        assert Point(1) != (1, 0)

    def test_hash_goes_with_equality(self) -> None:
        assert hash(Point(1, 2)) == hash(Point(1, 2))
        assert len({Point(1), Point(1, 0), Dot(1)}) == 2

    def test_a_record_of_lists_has_no_hash(self) -> None:
        with pytest.raises(TypeError, match="unhashable"):
            hash(Point([]))


class TestTravelling:
    @pytest.mark.parametrize(
        "travel", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
    )
    def test_copies_are_equal(self, travel) -> None:
        assert travel(Dot(1, 2, "blue")) == Dot(1, 2, "blue")

    def test_repr_names_the_fields(self) -> None:
        assert repr(Dot(1)) == "Dot(x=1, y=0, colour='red')"
