"""`suggest_corrected_call`: what it keeps, what it corrects, and when it is certain."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

from tooli import Argument, Option, Tooli
from tooli.annotations import Destructive
from tooli.testing import invoke
from tooli.testing.app_interfaces import Case, interfaces


class Order(BaseModel):
    sku: str
    amount: int = 1


def make_app() -> Tooli:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def add(
        name: str,
        count: Annotated[int, Argument()] = 1,
        kind: Annotated[Literal["small", "large"], Option()] = "small",
        labels: Annotated[list[str] | None, Option()] = None,
        gift: Annotated[bool, Option()] = True,
        order: Annotated[Order | None, Option()] = None,
    ) -> str:
        return f"{name} {count} {kind} {labels} {gift} {order}"

    @app.command()
    def taken(dry_run: Annotated[bool, Option()] = False) -> bool:
        return dry_run

    @app.command()
    def pack(targets: list[str]) -> list[str]:
        return targets

    return app


def suggestion_of(*words: str) -> dict[str, Any]:
    return invoke(make_app(), *words, mode="json").envelope["error"]["suggestion"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add desk -kind large", "add desk --kind large"),
        ("add desk -limit 3", "add desk --limit 3"),
        ("add desk -dry-run", "add desk --dry-run"),
        ("add desk -tooli-limit=3", "add desk --limit 3"),
        ("add desk --lables a --labels b", "add desk --labels a --labels b"),
        ("add desk --labels a --lables b", "add desk --labels a --labels b"),
        ("add --nmae desk 3", "add desk 3"),
        ("add desk --dry-run=true", "add desk --dry-run"),
        ("add desk --ordr.sku a --order.amount 3", "add desk --order.sku a --order.amount 3"),
        ("taken --dry-run=on --tooli-dry-run", "taken --dry-run --tooli-dry-run"),
        ("add desk --no-gfit", "add desk --no-gift"),
    ],
)
def test_certain_correction(line: str, expected: str) -> None:
    suggestion = suggestion_of(*line.split())
    assert suggestion["example"] == f"shop {expected}"
    assert suggestion["applicability"] == "machine_applicable"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add desk --dry-run=maybe", "add desk --dry-run"),
        ("add desk --yes=true", "add desk --yes"),
        ("add desk --yes=maybe", "add desk"),
        ("add desk --limti x", "add desk"),
        ("add desk --limti 3 --limit 4", "add desk --limit 4"),
        ("add desk --limit x", "add desk"),
        ("add desk --filtr size>3", "add desk --filter size>3"),
        ("add desk --orrder.sku=a --order.amout x", "add desk --order.sku a --order.amount x"),
    ],
)
def test_uncertain_correction(line: str, expected: str) -> None:
    suggestion = suggestion_of(*line.split())
    assert suggestion["example"].replace("'", "") == f"shop {expected}"
    assert suggestion["applicability"] == "maybe_incorrect"


@pytest.mark.parametrize("line", ["pack a --zzz b", "pack a -z b", "pack a -zzz b"])
def test_word_after_an_unknown_option_is_not_made_an_argument(line: str) -> None:
    """It may be the value of the option: a line with it as an argument may do something else."""
    suggestion = suggestion_of(*line.split())
    assert "argv" not in suggestion
    assert suggestion["applicability"] != "machine_applicable"


def test_missing_list_is_a_list_of_placeholders() -> None:
    interface = next(i for i in interfaces(make_app()) if i.name == "mcp")
    error = interface.send_case(Case("pack")).envelope["error"]
    assert error["suggestion"]["arguments"] == {"targets": ["<targets>"]}


def test_placeholder_of_an_option_is_not_its_value() -> None:
    error = invoke(make_app(), "add", "x", "--idempotency-key", "<idempotency_key>").envelope
    assert error["error"]["code"] == "E1007"


def test_empty_field_of_an_object() -> None:
    suggestion = suggestion_of("add", "desk", "--order..sku=x")
    assert suggestion["applicability"] == "has_placeholders"
    assert "UnknownField" not in suggestion["example"]


# ------------------------------------------------------------------ flags with other names


def make_flags_app() -> Tooli:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def add(
        json: Annotated[float, Option("--output", "-x")] = 0.0,
        x_y: Annotated[float, Option("--json")] = 0.0,
        limit: Annotated[str, Option("--most")] = "",
        number: Annotated[int, Option("-n", max=5)] = 0,
        kind: Annotated[Literal["small", "large"], Option()] = "small",
        name: Annotated[str, Option()] = "",
        names: Annotated[str, Option()] = "",
        count: Annotated[int, Option("-c", count=True)] = 0,
        gift: Annotated[bool, Option(envvar="SHOP_GIFT")] = False,
        key: Annotated[str, Option(envvar="SHOP_KEY")] = "",
    ) -> str:
        """Add."""
        return ""

    @app.command()
    def other() -> None:
        """Do nothing."""

    return app


def answer_of(app: Tooli, line: str) -> tuple[str | None, str]:
    """Return the suggested line and its applicability."""
    suggestion = invoke(app, *line.split(), mode="json").envelope["error"]["suggestion"]
    example = suggestion.get("example")
    return example and example.removeprefix("shop "), suggestion["applicability"]


@pytest.mark.parametrize(
    ("line", "expected", "applicability"),
    [
        # A flag may have the name of another parameter, and a parameter that of an option.
        ("add --jsonn=2", "add --json 2", "maybe_incorrect"),  # or --jsonl
        ("add --outputt 2", "add --output 2", "machine_applicable"),
        ("add -output 2", "add --output 2", "machine_applicable"),
        ("add --limitt 3", "add --limit 3", "machine_applicable"),
        ("add --most x --kind larg", "add --most x --kind large", "machine_applicable"),
        # Names that differ in one letter.
        ("add --nmaes x", "add --names x", "maybe_incorrect"),
        # Typer reads `-n=-5` as the text "=-5".
        ("add -n -5 --kind larg", "add -n -5 --kind large", "machine_applicable"),
        # The letters of a word are no flags.
        ("add -c -c -cind=large", "add -c -c", "maybe_incorrect"),
        # The next flag is not the value of an option.
        ("add --limit --dry-run", "add --dry-run", "maybe_incorrect"),
        ("add --limit --kind large", "add --kind large", "maybe_incorrect"),
        ("add --kind --dry-run", None, "maybe_incorrect"),
    ],
)
def test_flags(line: str, expected: str | None, applicability: str) -> None:
    assert answer_of(make_flags_app(), line) == (expected, applicability)


def test_message_names_a_flag_that_can_be_typed() -> None:
    error = invoke(make_flags_app(), "add", "--outputs", "2", mode="json").envelope["error"]
    assert error["message"] == "There is no parameter 'outputs'; did you mean 'output'?"
    assert error["suggestion"]["fix"] == "Use 'output' instead of 'outputs'."


def test_values_of_variables_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_GIFT", "true")
    monkeypatch.setenv("SHOP_KEY", "k")
    app = make_flags_app()
    assert answer_of(app, "add --kind larg")[0] == "add --kind large"
    assert answer_of(app, "add --no-gift --kind larg")[0] == "add --kind large --no-gift"


def test_names_in_json_come_before_flags() -> None:
    app = make_flags_app()
    error = app.call("add", jsn=2.0, limitt=3).to_dict()["error"]
    assert [each["message"].rpartition("; ")[2] for each in error["details"]["errors"]] == [
        "did you mean 'json'?",
        "did you mean 'limit'?",
    ]


# ------------------------------------------------------------------ lines that only Typer can read


def make_typer_app() -> Tooli:
    app = Tooli("shop")

    @app.command(annotations=Destructive)
    def add(
        name: str,
        flags: Annotated[list[bool], Option("--flag")] = [True],  # noqa: B006
        pair: Annotated[tuple[int, int], Option()] = (1, 2),
        count: Annotated[int, Option(max=5)] = 1,
    ) -> str:
        """Add."""
        return ""

    @app.command(annotations=Destructive)
    def other(flags: list[bool]) -> str:
        """Take another list."""
        return ""

    return app


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add x --tmeout 5 --dry-run", "add --dry-run --timeout 5 x"),
        ("add x --tmeout=5 --flag false", "add --timeout 5 x --flag false"),
        ("add x --coutn=2 --flag false", "add x --count=2 --flag false"),
        ("add x -count 2 --flag false", "add x --count 2 --flag false"),
        ("add x --count=9 --flag false", "add x --count=5 --flag false"),
        ("add x --count 9 --flag false", "add x --count 5 --flag false"),
        ("add x --flag true --flag", "add x --flag true --flag '<flags>'"),
        ("add x --pair 1 y", "add x --pair 1 '<pair>'"),
        ("add --flag true", "add --flag true '<name>'"),
        ("add x y --flag true", None),
        ("add x --zzzzzz y", None),
        ("add x --zzzzzz=y", "add x"),
        ("add x -lamp", None),
        ("other", "other '<flags>'"),
        ("other true maybe", "other '<flags>'"),
    ],
)
def test_line_that_only_typer_can_read(line: str, expected: str | None) -> None:
    found, applicability = answer_of(make_typer_app(), line)
    assert found == expected
    assert applicability != "machine_applicable"
