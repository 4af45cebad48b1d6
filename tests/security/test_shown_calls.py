"""Attacks on what a human and the audit log see of a call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, SecretStr
from tests.security.approval_calls import error_of, request_approval, run_call

from tooli import SecretInput, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive
from tooli.core.call import Ok, Options
from tooli.policy.call_display import format_lines
from tooli.storage.approval_store import ApprovalStore

KEY = "mallory-account\n9000000\nEVIL CONTENT\ndelete the archive\n"


pytestmark = pytest.mark.usefixtures("folder")


def audit_lines(tmp_path: Path) -> list[Any]:
    log = tmp_path / "state" / "audit" / "bank.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()]


# ------------------------------------------------------------------ secrets that repeat arguments


@pytest.fixture
def bank() -> Tooli:
    app = Tooli("bank", version="1.0")

    @app.command(requires_approval=True)
    @dry_run_support
    def transfer(to: Any, key: SecretInput[str], file: Path | None = None) -> None:
        record_dry_action("transfer", "target")

    @app.command(requires_approval=True)
    @dry_run_support
    def clean(key: SecretStr) -> None:
        record_dry_action("delete the archive", "target")

    @app.command(annotations=Destructive)
    def wipe(target: str, key: SecretInput[str]) -> None:
        return None

    return app


@pytest.mark.parametrize(
    "to",
    [
        "mallory-account",
        "to mallory-account.",
        ["x", {"mallory-account": 1}],
        {"n": [9000000]},
        b"mallory-account",
        KEY,
        KEY.upper().strip(),
        KEY.encode().hex(),
    ],
)
@pytest.mark.parametrize("person", [False, True])
def test_argument_that_repeats_a_secret_is_refused(
    bank: Tooli, tmp_path: Path, to: Any, person: bool
) -> None:
    key = "9000000" if to == {"n": [9000000]} else KEY
    error = error_of(bank, "transfer", person=person, to=to, key=key)
    assert (error.code, error.field) == ("E1037", "to")
    assert ApprovalStore().list_pending() == []
    assert audit_lines(tmp_path)[-1]["code"] == "E1037"


def test_confirmation_shows_the_whole_call_or_nothing(bank: Tooli) -> None:
    error = error_of(bank, "wipe", person=True, target="/srv/production", key="/srv/production")
    assert error.code == "E1037"
    assert error.approval_text is None
    error = error_of(bank, "wipe", person=True, target="/srv/production", key="hunter22")
    assert '  target: "/srv/production"\n  key: "***"' in error.approval_text


@pytest.mark.parametrize("content", ["EVIL CONTENT", "x EVIL CONTENT x" * 99])
def test_file_that_repeats_a_secret_is_refused(bank: Tooli, folder: Path, content: str) -> None:
    (folder / "a.txt").write_text(content)
    error = error_of(bank, "transfer", to="ann", key=KEY, file=Path("a.txt"))
    assert (error.code, error.field) == ("E1037", "file")


def test_beginning_of_a_file_with_a_long_secret_is_refused(bank: Tooli, folder: Path) -> None:
    (folder / "a.txt").write_text("key: " + "0123456789abcdef" * 30)
    error = error_of(bank, "transfer", to="x", key="0123456789abcdef" * 30, file=Path("a.txt"))
    assert error.code == "E1037"


def test_plan_that_repeats_a_secret_is_refused(bank: Tooli) -> None:
    error = error_of(bank, "clean", key=KEY)
    assert error.code == "E1037"
    assert "the plan" in error.message


def test_names_digests_and_paths_are_not_searched_for_secrets(bank: Tooli, folder: Path) -> None:
    """The folder, a path and a size are never masked, and a weak secret does not refuse them."""
    (folder / "a.txt").write_text("x" * 1234)
    for secret in ("1234", "file", "sha256", folder.name, str(folder)):
        shown = request_approval(bank, "transfer", to="ann", key=secret, file=Path("a.txt"))
        assert shown.folder == str(folder)
        assert shown.files["file"][0]["path"] == str(folder / "a.txt")
        assert shown.files["file"][0]["bytes"] == 1234


def test_argument_does_not_reveal_the_beginning_of_a_secret(bank: Tooli) -> None:
    """The refusal of `abcd...` would let a caller guess a stored secret letter by letter."""
    shown = request_approval(bank, "transfer", to="hunt...", key="hunter22")
    assert shown.arguments["to"] == "hunt..."


def test_masked_argument_has_a_digest_in_the_audit_log(bank: Tooli, tmp_path: Path) -> None:
    for target in ("/srv/production", "/srv/production", "/srv/test-data"):
        key = f"{target}\nends\ndestructive_run\n"
        assert isinstance(
            run_call(bank, "wipe", options=Options(yes=True), target=target, key=key), Ok
        )
    begins = [line for line in audit_lines(tmp_path) if line.get("phase") == "begins"]
    assert [line["arguments"]["target"] for line in begins] == ["***"] * 3
    first, second, third = [line["masked"]["target"] for line in begins]
    assert first == second != third
    assert isinstance(
        run_call(bank, "wipe", options=Options(yes=True), target="a", key="hunter22"), Ok
    )
    assert "masked" not in audit_lines(tmp_path)[-1]


def test_secret_does_not_mask_fields_of_the_audit_log(bank: Tooli, tmp_path: Path) -> None:
    for secret in ("begins", "ends", "E1010", "approved"):
        run_call(bank, "wipe", options=Options(yes=secret != "E1010"), target="a", key=secret)
    assert "***" not in (tmp_path / "state" / "audit" / "bank.jsonl").read_text()


# ------------------------------------------------------------------ parts that JSON leaves out


class Leaf(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str
    force: bool = Field(False, exclude=True)


@dataclass
class Box:
    leaf: Leaf


class Leaves(RootModel[list[Leaf]]):
    pass


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)
    amount: int = Field(serialization_alias="total")


LEAF = Leaf(name="a", force=True)
SHOWN_LEAF = {"name": "a", "force": True}


@pytest.fixture
def viewer() -> Tooli:
    app = Tooli("bank", version="1.0")

    @app.command(requires_approval=True)
    @dry_run_support
    def show(value: Any, other: Any = None) -> None:
        record_dry_action("wipe", "prod.db")

    return app


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (LEAF, SHOWN_LEAF),
        ({1: LEAF}, [{"key": 1, "value": SHOWN_LEAF}]),
        (frozenset([LEAF]), [SHOWN_LEAF]),
        (Box(LEAF), {"leaf": SHOWN_LEAF}),
        (Leaves([LEAF]), [SHOWN_LEAF]),
        (
            Open.model_validate({"amount": 5000000, "total": 5}),
            {"attributes": {"amount": 5000000}, "extra fields": {"total": 5}},
        ),
        (
            {float("nan"): 9999999, float("NaN"): 1},
            [{"key": "nan", "value": 9999999}, {"key": "nan", "value": 1}],
        ),
        ({1: 2, "1": 3}, [{"key": 1, "value": 2}, {"key": "1", "value": 3}]),
        (
            {"bob\u200b": 9999999, "bob\\u200b": 1},
            [
                {"key": "bob\u200b", "value": 9999999},
                {"key": "bob\\u200b", "value": 1},
            ],
        ),
        (SecretStr("hunter22"), "***"),
        ([b"\xff"], ["bytes b'\\xff'"]),
        ({"n": float("nan")}, {"n": "nan"}),
        (float("-inf"), "-inf"),
        (None, None),
    ],
)
def test_every_part_of_an_argument_is_shown(viewer: Tooli, value: Any, shown: Any) -> None:
    assert request_approval(viewer, "show", value=value).arguments["value"] == shown


def test_line_break_is_escaped_once(viewer: Tooli) -> None:
    shown = request_approval(viewer, "show", value="a\nb")
    assert '  value: "a\\nb"' in format_lines(shown.arguments, shown.plan, folder=shown.folder)


# ------------------------------------------------------------------ large calls


@pytest.mark.parametrize(
    "value", ["x" * 66_000, ["y" * 50] * 5000, {str(i): i for i in range(9999)}]
)
def test_large_argument_hides_no_other_part(viewer: Tooli, value: Any) -> None:
    shown = request_approval(viewer, "show", value=value, other="visible")
    assert shown.arguments["other"] == "visible"
    assert "SHA-256" in str(shown.arguments["value"])
    text = "\n".join(format_lines(shown.arguments, shown.plan, 400, folder=shown.folder))
    assert 'other: "visible"' in text
    assert "prod.db" in text
    question = error_of(viewer, "show", person=True, value=value, other="visible").approval_text
    assert 'other: "visible"' in question
    assert "prod.db" in question
    assert len(question.splitlines()) < 60


def test_cut_values_with_equal_ends_are_shown_differently(viewer: Tooli) -> None:
    first, second = ["x" * 5000 + char + "x" * 5000 for char in "ab"]
    shown = [
        request_approval(viewer, "show", value=value).arguments["value"]
        for value in (first, second)
    ]
    assert shown[0] != shown[1]


def test_call_that_cannot_be_shown_cannot_be_granted(viewer: Tooli) -> None:
    error = error_of(viewer, "show", value=[["x" * 500] * 200] * 200)
    assert error.code == "E1034"
    assert ApprovalStore().list_pending() == []
