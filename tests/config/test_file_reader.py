"""Files of settings: what they hold, by line; what they must not."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.config.file_reader import (
    ConfigSection,
    UnreadableConfig,
    UnsupportedSyntax,
    read_config_file,
    read_yaml,
)
from tooli.config.setting_definitions import SETTINGS, InvalidSetting, RawSetting
from tooli.config.toml_reader import read_simple_toml, read_toml, read_with_tomllib


def plainly(block: ConfigSection) -> dict[str, Any]:
    """Texts and lines, for comparing."""
    return {
        name: plainly(value)
        if isinstance(value, ConfigSection)
        else (value.text, value.line, value.kind)
        for name, value in block.entries.items()
    }


def without_lines(block: ConfigSection) -> Any:
    """Names, texts and kinds."""
    return {
        name: without_lines(value) if isinstance(value, ConfigSection) else (value.text, value.kind)
        for name, value in block.entries.items()
    }


def with_library(text: str) -> ConfigSection:
    """The same text, read by PyYAML."""
    from tooli.config import file_reader

    return file_reader._read_with_pyyaml(text, UnsupportedSyntax(1, "all of it"))


NAMES = st.text("abcdefg_-.", min_size=1, max_size=6).filter(
    lambda name: name[0] not in "-." and any(letter.isalpha() for letter in name)
)
WORDS = st.sampled_from(
    [
        *("json", "off", "yes", "1", "010", "1_000", "-5", "~", "null", "1.5", "1:30", "a#b"),
        *("'quoted'", '"quoted"', "''", "a b", "2020-01-01", "0x1F", "x  # note", "", "é"),
    ]
)

TREES = st.recursive(WORDS, lambda inner: st.dictionaries(NAMES, inner, max_size=4))


class TestYaml:
    def test_names_values_sections_comments(self) -> None:
        text = (
            "---\n# ours\noutput: json  # as ever\n\n"
            "apps:\n  'my-app':\n    quiet: yes\nb.c: \"x\"\n"
        )
        assert plainly(read_yaml(text)) == {
            "output": ("json", 3, "any"),
            "apps": {"my-app": {"quiet": ("yes", 7, "any")}},
            "b.c": ("x", 8, "text"),
        }

    @pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n"])
    def test_nothing(self, text: str) -> None:
        assert read_yaml(text).entries == {}

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("a: 1\nb: [1, 2]\n", 2),
            ("a: {b: 1}\n", 1),
            ("a: &x 1\n", 1),
            ("a: |\n  text\n", 1),
            ("a: 1\n  b: 2\n", 2),
            ("a:\n    b: 1\n  c: 2\n", 3),
            ("- 1\n", 1),
            ("a: b: c\n", 1),
            ("a:\tb\n", 1),
            ("a\n", 1),
            ("a:b\n", 1),
            ("? a\n", 1),
            ('a: "\\n"\n', 1),
            ("a: 'it''s'\n", 1),
            ("a: 1\n---\nb: 2\n", 2),
        ],
    )
    def test_what_is_beyond_the_small_reader(self, text: str, line: int) -> None:
        with pytest.raises(UnsupportedSyntax) as more:
            read_yaml(text)
        assert more.value.line == line

    def test_a_name_that_is_there_twice(self) -> None:
        with pytest.raises(UnreadableConfig, match="'a' is there twice") as failure:
            read_yaml("a: 1\nb: 2\na: 3\n")
        assert failure.value.line == 3
        pytest.importorskip("yaml")
        with pytest.raises(UnreadableConfig, match="'a' is there twice") as failure:
            with_library("a: 1\nb: 2\na: 3\n")
        assert failure.value.line == 3

    @given(TREES)
    def test_both_readers_say_the_same(self, tree: Any) -> None:
        pytest.importorskip("yaml")
        if not isinstance(tree, dict):
            tree = {"a": tree}
        text = written(tree)
        assert plainly(read_yaml(text)) == plainly(with_library(text))

    @given(st.text("ab: \n#'\"-[]{}&*!|>%@`,?=\\\t0é~", max_size=40))
    def test_any_text_is_read_alike_or_left_to_the_library(self, text: str) -> None:
        pytest.importorskip("yaml")
        try:
            found = plainly(read_yaml(text))
        except (UnsupportedSyntax, UnreadableConfig):
            return
        assert found == plainly(with_library(text))

    def test_the_library_takes_the_rest(self, tmp_path: Path) -> None:
        pytest.importorskip("yaml")
        file = tmp_path / ".tooli.yaml"
        file.write_text("apps: {shop: {output: &x json, color: never}}\n")
        assert plainly(read_config_file(str(file)))["apps"]["shop"]["output"] == ("json", 1, "any")

    def test_without_the_library_the_line_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "yaml", None)
        file = tmp_path / ".tooli.yaml"
        file.write_text("# x\noutput: [json]\n")
        with pytest.raises(UnreadableConfig, match=r"pip install 'tooli\[yaml\]'") as failure:
            read_config_file(str(file))
        assert failure.value.line == 2

    @pytest.mark.parametrize(
        "text",
        [
            "a: [1]\n",
            "a: {\n",
            "[1, 2]\n",
            "? [a]\n: 1\n",
            "a: &x {b: *x}\n",
            "a: *nobody\n",
            "{" * 3000,
        ],
    )
    def test_what_the_library_refuses_is_refused_with_a_line(
        self, tmp_path: Path, text: str
    ) -> None:
        pytest.importorskip("yaml")
        file = tmp_path / "config.yaml"
        file.write_text(text)
        with pytest.raises(UnreadableConfig) as failure:
            read_config_file(str(file))
        assert failure.value.line >= 1

    def test_a_bomb_of_aliases(self, tmp_path: Path) -> None:
        pytest.importorskip("yaml")
        names = "abcdefgh"
        text = "a: &a {x: 1, y: 2, z: 3}\n"
        for before, name in pairwise(names):
            inner = ", ".join(f"{letter}: *{before}" for letter in "qrstuvwxyz")
            text += f"{name}: &{name} {{{inner}}}\n"
        file = tmp_path / "config.yaml"
        file.write_text(text)
        with pytest.raises(UnreadableConfig, match="too many"):
            read_config_file(str(file))


def written(tree: dict[str, Any], indent: int = 0) -> str:
    """A tree as a file has it."""
    lines = []
    for name, value in tree.items():
        pad = " " * indent
        if isinstance(value, dict) and value:
            lines.append(f"{pad}{name}:\n{written(value, indent + 2)}")
        else:
            lines.append(f"{pad}{name}: {value or ''}\n")
    return "".join(lines)


class TestFiles:
    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        file = tmp_path / ".tooli.yaml"
        file.write_bytes(b"output: json\ncolor: \xff\n")
        with pytest.raises(UnreadableConfig, match="UTF-8") as failure:
            read_config_file(str(file))
        assert failure.value.line == 2

    def test_a_mark_in_front_and_windows_lines(self, tmp_path: Path) -> None:
        file = tmp_path / ".tooli.yaml"
        file.write_bytes(b"\xef\xbb\xbfoutput: json\r\nquiet: no\r\n")
        found = plainly(read_config_file(str(file)))
        assert found == {"output": ("json", 1, "any"), "quiet": ("no", 2, "any")}

    def test_too_large(self, tmp_path: Path) -> None:
        file = tmp_path / ".tooli.yaml"
        file.write_bytes(b"#" * (1 << 20) + b"\n")
        with pytest.raises(UnreadableConfig, match="megabyte"):
            read_config_file(str(file))

    def test_a_folder_of_that_name(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableConfig, match="cannot be read"):
            read_config_file(str(tmp_path))

    def test_dotenv(self, tmp_path: Path) -> None:
        file = tmp_path / ".env"
        file.write_text(
            "SECRET=TOOLI_OUTPUT=x\nexport TOOLI_OUTPUT='json'\n# TOOLI_QUIET=1\n"
            "TOOLI_VERBOSE = 2 # two\nTOOLI_COLOR\n"
        )
        assert plainly(read_config_file(str(file))) == {
            "TOOLI_OUTPUT": ("json", 2, "any"),
            "TOOLI_VERBOSE": ("2", 4, "any"),
        }


@pytest.mark.skipif(sys.version_info < (3, 11), reason="TOML's reader came with 3.11")
class TestToml:
    def test_types_and_lines(self) -> None:
        text = (
            "[project]\nname = 'x'\n\n[tool.tooli]\noutput = 'json'\ntimeout = 2.5\n"
            'quiet = true\n[tool.tooli.apps."my-app"]\nverbose = 2\n[tool.other]\noutput = 1\n'
        )
        assert plainly(read_toml(text)) == {
            "output": ("json", 5, "text"),
            "timeout": ("2.5", 6, "number"),
            "quiet": ("true", 7, "truth"),
            "apps": {"my-app": {"verbose": ("2", 9, "number")}},
        }

    VALUES = st.sampled_from(
        [
            *("'json'", '"json"', "true", "1", "2.50", "0", "-1", "1_0", "1e3", '"a\\tb"', "[1]"),
            *("'x' # note", "010", "{a = 1}", "nan", "''", '"""x"""', "2020-01-01", "", "+1"),
        ]
    )
    LINES = st.one_of(
        st.builds(
            "{} = {}".format, st.sampled_from(["output", "a-b", "'q'", "a.b", "tooli"]), VALUES
        ),
        st.sampled_from(
            [
                *("[tool.tooli]", "[tool.tooli.apps.shop]", "[tool.tooli.apps]", "[tool]"),
                *("[project]", "[ tool.tooli ]", "[tool.'tooli']", "[[tool.tooli]]", "# note"),
                *("", "tool.tooli.output = 1", "tooli = {output = 1}", "[tool.toolish]"),
                *("[tool.tooli.output]", "['tool.tooli']", "x = [", "]", "  ['tool.tooli'],"),
                *('[tool.tooli.callers."a b"]', "[tool.tooli] # ours", "\t[tool.tooli]"),
                *("tooli = 1", "tooli = {a = 1}"),
            ]
        ),
    )

    @given(st.lists(LINES, max_size=8).map("\n".join))
    def test_both_readers_say_the_same(self, text: str) -> None:
        """Where the library reads a file, our own reader says the same or steps aside."""
        import tomllib

        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return
        try:
            found = read_simple_toml(text)
        except UnsupportedSyntax:
            return
        assert without_lines(found) == without_lines(read_with_tomllib(text))

    @pytest.mark.parametrize(
        "text",
        [
            "tool.tooli.output = 'json'\n",
            "[tool]\ntooli = {output = 'json'}\n",
            "[ tool . 'tooli' ]\noutput = 'json'\n",
            "tool = {tooli = {output = 'json'}}\n",
        ],
    )
    def test_other_ways_to_write_it(self, tmp_path: Path, text: str) -> None:
        from tooli.config.config_files import mentions_tooli

        found = read_toml(text).entries["output"]
        assert isinstance(found, RawSetting)
        assert (found.text, found.line > 0) == ("json", True)
        file = tmp_path / "pyproject.toml"
        file.write_text(text)
        assert mentions_tooli(str(file))

    def test_no_table(self) -> None:
        assert read_toml("[tool.ruff]\nx = 1\n").entries == {}

    def test_broken(self) -> None:
        with pytest.raises(UnreadableConfig, match="no TOML") as failure:
            read_toml("[tool.tooli]\noutput = json\n")
        assert failure.value.line == 2

    def test_what_is_no_table(self) -> None:
        with pytest.raises(UnreadableConfig, match="table"):
            read_toml("[tool]\ntooli = 3\n")
        with pytest.raises(UnreadableConfig, match="neither") as failure:
            read_toml("[tool.tooli]\noutput = ['json']\n")
        assert failure.value.line == 2


def test_toml_without_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tomllib", "tomli"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnreadableConfig, match="pip install tomli") as failure:
        read_toml("x = 1\n[tool.tooli]\noutput = ['json']\n")
    assert failure.value.line == 2
    assert plainly(read_toml("[tool.tooli]\noutput = 'json'\n")) == {"output": ("json", 2, "text")}


class TestFitting:
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
    def test_fits(self, key: str, text: str, value: object) -> None:
        found = SETTINGS[key].convert(RawSetting(text))
        assert (found, type(found)) == (value, type(value))

    @pytest.mark.parametrize(
        ("key", "scalar"),
        [
            ("output", RawSetting("jsn")),
            ("output", RawSetting("")),
            ("output", RawSetting("true", 1, "truth")),
            ("quiet", RawSetting("true", 1, "text")),
            ("quiet", RawSetting("1", 1, "number")),
            ("verbose", RawSetting("-1")),
            ("max_items", RawSetting("7", 1, "text")),
            ("max_items", RawSetting("010")),
            ("max_items", RawSetting("1_000")),
            ("max_items", RawSetting("true", 1, "truth")),
            ("max_items", RawSetting("٣")),
            ("max_items", RawSetting("9" * 30)),
            ("timeout", RawSetting("0")),
            ("timeout", RawSetting("nan")),
            ("timeout", RawSetting("1e3")),
            ("timeout", RawSetting("30s")),
        ],
        ids=str,
    )
    def test_does_not_fit(self, key: str, scalar: RawSetting) -> None:
        with pytest.raises(InvalidSetting, match=f"^{key} is "):
            SETTINGS[key].convert(scalar)

    def test_a_wrong_value_is_quoted_shortly_and_on_one_line(self) -> None:
        with pytest.raises(InvalidSetting) as failure:
            SETTINGS["output"].convert(RawSetting("a\x1b[31m\n" + "b" * 500))
        assert str(failure.value).isprintable()
        assert len(str(failure.value)) < 120
