"""Conversion of values of settings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tooli
from tooli.config.setting_definitions import SETTINGS, VARIABLES, InvalidSetting, RawSetting

SOURCE = Path(tooli.__file__).parent


class TestVariables:
    def test_table_has_every_variable_in_the_source(self) -> None:
        texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
        used = {name for text in texts for name in re.findall(r"\bTOOLI_[A-Z_]*[A-Z]\b", text)}
        used.discard("TOOLI_KEY")  # a constant, not a variable
        assert used - {*VARIABLES} == set()

    def test_table_has_only_variables_in_the_source(self) -> None:
        texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
        others = {*VARIABLES} - {setting.variable for setting in SETTINGS.values()}
        assert [name for name in others if sum(name in text for text in texts) < 2] == []


class TestConvert:
    @pytest.mark.parametrize(
        ("key", "text", "value"),
        [
            ("output", "json", "json"),
            ("security_policy", "off", "off"),
            ("quiet", "off", False),
            ("quiet", "Yes", True),
            ("verbose", "2", 2),
            ("verbose", "true", 1),
            ("timeout", "2.5", 2.5),
            ("timeout", "30", 30.0),
            ("max_items", "7", 7),
            ("max_items", "0", 0),
        ],
    )
    def test_valid_values(self, key: str, text: str, value: object) -> None:
        found = SETTINGS[key].convert(RawSetting(text))
        assert (found, type(found)) == (value, type(value))

    @pytest.mark.parametrize(
        ("key", "raw"),
        [
            ("output", RawSetting("jsn")),
            ("output", RawSetting("")),
            ("output", RawSetting("true", 1, "boolean")),
            ("quiet", RawSetting("true", 1, "text")),
            ("quiet", RawSetting("1", 1, "number")),
            ("verbose", RawSetting("-1")),
            ("max_items", RawSetting("7", 1, "text")),
            ("max_items", RawSetting("010")),
            ("max_items", RawSetting("1_000")),
            ("max_items", RawSetting("true", 1, "boolean")),
            ("max_items", RawSetting("٣")),
            ("max_items", RawSetting("9" * 30)),
            ("timeout", RawSetting("0")),
            ("timeout", RawSetting("nan")),
            ("timeout", RawSetting("1e3")),
            ("timeout", RawSetting("30s")),
        ],
        ids=str,
    )
    def test_invalid_values(self, key: str, raw: RawSetting) -> None:
        with pytest.raises(InvalidSetting, match=f"^{key} must be "):
            SETTINGS[key].convert(raw)

    def test_invalid_value_is_shortened(self) -> None:
        with pytest.raises(InvalidSetting) as failure:
            SETTINGS["output"].convert(RawSetting("a\x1b[31m\n" + "b" * 500))
        assert str(failure.value).isprintable()
        assert len(str(failure.value)) < 120


@pytest.mark.parametrize(
    "text",
    [
        "host=127.0.0.1 user=u password=hunter2secret",
        "postgresql://u:hunter2secret\x01@h/db",
        "hunter2secret",
        "sqlite:///hunter2secret",
    ],
)
def test_store_must_be_a_url_and_is_never_quoted(text: str) -> None:
    with pytest.raises(InvalidSetting) as failure:
        SETTINGS["store"].convert(RawSetting(text))
    assert str(failure.value) == "store must be a postgresql:// URL"


@pytest.mark.parametrize("key", [key for key, one in SETTINGS.items() if one.trust == "trusted"])
def test_invalid_value_of_a_trusted_setting_is_not_shown(key: str) -> None:
    with pytest.raises(InvalidSetting) as failure:
        SETTINGS[key].convert(RawSetting("hunter2\x01"))
    assert "hunter2" not in str(failure.value)


def test_store_accepts_both_schemes() -> None:
    for url in ("postgresql://h/db", "postgres://u:p@h/db"):
        assert SETTINGS["store"].convert(RawSetting(url)) == url


def test_output_accepts_every_mode() -> None:
    from tooli.core.output_modes import OUTPUT_MODES

    assert SETTINGS["output"].choices == OUTPUT_MODES
