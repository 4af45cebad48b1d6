"""Reading YAML, TOML and .env files: values, lines and errors."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.config.file_reader import (
    ConfigSection,
    NeedsYamlLibrary,
    UnreadableConfig,
    read_config_file,
    read_plain_yaml,
    read_toml,
    read_with_pyyaml,
    read_yaml,
)
from tooli.config.setting_definitions import RawSetting


def by_name(section: ConfigSection) -> dict[str, Any]:
    """Return text, line and syntax of each value by name."""
    return {
        name: by_name(value)
        if isinstance(value, ConfigSection)
        else (value.text, value.line, value.syntax)
        for name, value in section.entries.items()
    }


def read_by_pyyaml(text: str) -> ConfigSection:
    """Read a text with PyYAML."""
    return read_with_pyyaml(text, 1)


NAMES = st.text("abcdefg_-.", min_size=1, max_size=6).filter(
    lambda name: name[0] not in "-." and any(letter.isalpha() for letter in name)
)
VALUES = st.sampled_from(
    [
        *("json", "off", "yes", "1", "010", "1_000", "-5", "~", "null", "1.5", "1:30", "a#b"),
        *("'quoted'", '"quoted"', "''", "a b", "2020-01-01", "0x1F", "x  # note", "", "é"),
    ]
)

TREES = st.recursive(VALUES, lambda inner: st.dictionaries(NAMES, inner, max_size=4))


class TestYaml:
    def test_plain_yaml_is_read_with_line_numbers(self) -> None:
        text = (
            "---\n# comment\noutput: json  # comment\n\n"
            "apps:\n  'my-app':\n    quiet: yes\nb.c: \"x\"\n"
        )
        assert by_name(read_plain_yaml(text)) == {
            "output": ("json", 3, "any"),
            "apps": {"my-app": {"quiet": ("yes", 7, "any")}},
            "b.c": ("x", 8, "text"),
        }

    @pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n"])
    def test_empty_file_has_no_settings(self, text: str) -> None:
        assert read_plain_yaml(text).entries == {}

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
    def test_other_syntax_needs_pyyaml(self, text: str, line: int) -> None:
        with pytest.raises(NeedsYamlLibrary) as more:
            read_plain_yaml(text)
        assert more.value.line == line

    def test_duplicate_names_are_rejected(self) -> None:
        with pytest.raises(UnreadableConfig, match="duplicate name 'a'") as failure:
            read_plain_yaml("a: 1\nb: 2\na: 3\n")
        assert failure.value.line == 3
        with pytest.raises(UnreadableConfig, match="duplicate name 'a'") as failure:
            read_by_pyyaml("a: 1\nb: 2\na: 3\n")
        assert failure.value.line == 3

    @given(TREES)
    def test_readers_agree_on_plain_yaml(self, tree: Any) -> None:
        if not isinstance(tree, dict):
            tree = {"a": tree}
        text = write_yaml(tree)
        assert by_name(read_plain_yaml(text)) == by_name(read_by_pyyaml(text))

    @given(st.text("ab: \n#'\"-[]{}&*!|>%@`,?=\\\t0é~", max_size=40))
    def test_readers_agree_on_any_text(self, text: str) -> None:
        try:
            found = by_name(read_plain_yaml(text))
        except (NeedsYamlLibrary, UnreadableConfig):
            return
        assert found == by_name(read_by_pyyaml(text))

    def test_pyyaml_reads_other_syntax(self, tmp_path: Path) -> None:
        file = tmp_path / ".tooli.yaml"
        file.write_text("apps: {shop: {output: &x json, color: never}}\n")
        assert by_name(read_config_file(str(file)))["apps"]["shop"]["output"] == ("json", 1, "any")

    @pytest.mark.parametrize(
        "text",
        [
            "a: [1]\n",
            "a: {\n",
            "[1, 2]\n",
            "? [a]\n: 1\n",
            "a: &x {b: *x}\n",
            "a: *undefined\n",
            "{" * 3000,
        ],
    )
    def test_invalid_yaml_has_line(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "config.yaml"
        file.write_text(text)
        with pytest.raises(UnreadableConfig) as failure:
            read_config_file(str(file))
        assert failure.value.line >= 1

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("base: &b {output: json}\nother: *b\n", {"other": {"output": ("json", 1, "any")}}),
            (
                "base: &b {output: json, quiet: yes}\nother:\n  <<: *b\n  quiet: no\n",
                {"other": {"output": ("json", 1, "any"), "quiet": ("no", 4, "any")}},
            ),
            (
                "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n",
                {"c": {"x": ("1", 1, "any"), "y": ("2", 2, "any")}},
            ),
            ("work_dir: >-\n  one\n  two\n", {"work_dir": ("one two", 1, "text")}),
            ("work_dir: one\n  two\n", {"work_dir": ("one two", 1, "any")}),
            ('output: "\\x6ason"\n', {"output": ("json", 1, "text")}),
            ("quiet: !!str off\n", {"quiet": ("off", 1, "text")}),
            ("? output\n: json\n", {"output": ("json", 2, "any")}),
            ("%YAML 1.1\n---\noutput: json\n...\n", {"output": ("json", 3, "any")}),
        ],
    )
    def test_full_yaml_syntax(self, text: str, expected: dict[str, Any]) -> None:
        found = by_name(read_yaml(text))
        assert {name: found[name] for name in expected} == expected

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("a: 1\nb: !!python/object/apply:os.system ['ls']\n", 2),
            ("a: !!python/name:os.system ''\n", 1),
            ("a: 1\nb: !custom {c: 1}\n", 2),
            ("a: !!int 5x\n", 1),
            ("!other a: 1\n", 1),
            ("a: !!binary aGk=\n", 1),
            ("a: {<<: 5}\n", 1),
        ],
    )
    def test_tags_are_rejected(self, text: str, line: int) -> None:
        with pytest.raises(UnreadableConfig) as failure:
            read_yaml(text)
        assert failure.value.line == line
        assert str(failure.value).isprintable()

    def test_deep_sections_are_rejected(self) -> None:
        for text in ("{a: " * 20 + "1" + "}" * 20, "".join(f"{' ' * i}a:\n" for i in range(20))):
            with pytest.raises(UnreadableConfig, match="deep"):
                read_yaml(text)

    def test_merge_bomb_is_rejected(self) -> None:
        text = "a: &a {x: 1}\n"
        for before, name in pairwise("abcdefgh"):
            text += f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 20)}]}}\n"
        with pytest.raises(UnreadableConfig, match="too many"):
            read_yaml(text)

    def test_alias_bomb_is_rejected(self, tmp_path: Path) -> None:
        names = "abcdefgh"
        text = "a: &a {x: 1, y: 2, z: 3}\n"
        for before, name in pairwise(names):
            inner = ", ".join(f"{letter}: *{before}" for letter in "qrstuvwxyz")
            text += f"{name}: &{name} {{{inner}}}\n"
        file = tmp_path / "config.yaml"
        file.write_text(text)
        with pytest.raises(UnreadableConfig, match="too many"):
            read_config_file(str(file))


def write_yaml(tree: dict[str, Any], indent: int = 0) -> str:
    """Write a tree as plain YAML."""
    lines = []
    for name, value in tree.items():
        pad = " " * indent
        if isinstance(value, dict) and value:
            lines.append(f"{pad}{name}:\n{write_yaml(value, indent + 2)}")
        else:
            lines.append(f"{pad}{name}: {value or ''}\n")
    return "".join(lines)


class TestFiles:
    def test_invalid_utf8(self, tmp_path: Path) -> None:
        file = tmp_path / ".tooli.yaml"
        file.write_bytes(b"output: json\ncolor: \xff\n")
        with pytest.raises(UnreadableConfig, match="UTF-8") as failure:
            read_config_file(str(file))
        assert failure.value.line == 2

    def test_byte_order_mark_and_windows_line_ends(self, tmp_path: Path) -> None:
        file = tmp_path / ".tooli.yaml"
        file.write_bytes(b"\xef\xbb\xbfoutput: json\r\nquiet: no\r\n")
        found = by_name(read_config_file(str(file)))
        assert found == {"output": ("json", 1, "any"), "quiet": ("no", 2, "any")}

    def test_large_file_is_rejected(self, tmp_path: Path) -> None:
        file = tmp_path / ".tooli.yaml"
        file.write_bytes(b"#" * (1 << 20) + b"\n")
        with pytest.raises(UnreadableConfig, match="megabyte"):
            read_config_file(str(file))

    def test_directory_is_rejected(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableConfig, match="cannot be read"):
            read_config_file(str(tmp_path))

    def test_only_tooli_variables_of_dotenv_are_read(self, tmp_path: Path) -> None:
        file = tmp_path / ".env"
        file.write_text(
            "SECRET=TOOLI_OUTPUT=x\nexport TOOLI_OUTPUT='json'\n# TOOLI_QUIET=1\n"
            "TOOLI_VERBOSE = 2 # two\nTOOLI_COLOR\n"
        )
        assert by_name(read_config_file(str(file))) == {
            "TOOLI_OUTPUT": ("json", 2, "any"),
            "TOOLI_VERBOSE": ("2", 4, "any"),
        }

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ('"json" # quoted', "json"),
            ("'json'# quoted", "json"),
            ('"a # b" # c', "a # b"),
            ('"it\'s"', "it's"),
            ('""', ""),
            ('"open', '"open'),
            ('"a" b # c', '"a" b'),
            ("a#b # c", "a#b"),
        ],
    )
    def test_dotenv_quotes_and_comments(self, tmp_path: Path, value: str, expected: str) -> None:
        file = tmp_path / ".env"
        file.write_text(f"TOOLI_OUTPUT={value}\n")
        assert by_name(read_config_file(str(file))) == {"TOOLI_OUTPUT": (expected, 1, "any")}


class TestToml:
    def test_toml_types_and_lines(self) -> None:
        text = (
            "[project]\nname = 'x'\n\n[tool.tooli]\noutput = 'json'\ntimeout = 2.5\n"
            'quiet = true\n[tool.tooli.apps."my-app"]\nverbose = 2\n[tool.other]\noutput = 1\n'
        )
        assert by_name(read_toml(text)) == {
            "output": ("json", 5, "text"),
            "timeout": ("2.5", 6, "number"),
            "quiet": ("true", 7, "boolean"),
            "apps": {"my-app": {"verbose": ("2", 9, "number")}},
        }

    @pytest.mark.parametrize(
        "text",
        [
            "tool.tooli.output = 'json'\n",
            "[tool]\ntooli = {output = 'json'}\n",
            "[ tool . 'tooli' ]\noutput = 'json'\n",
            "[tool.tooli] # settings\noutput = 'json' # format\n",
            "tool = {tooli = {output = 'json'}}\n",
            "[tool] # tools\ntooli.output = 'json'\n",
        ],
    )
    def test_toml_table_notations(self, tmp_path: Path, text: str) -> None:
        from tooli.config.config_files import mentions_tooli

        found = read_toml(text).entries["output"]
        assert isinstance(found, RawSetting)
        assert (found.text, found.line > 0) == ("json", True)
        file = tmp_path / "pyproject.toml"
        file.write_text(text)
        assert mentions_tooli(str(file))

    def test_full_toml_syntax(self) -> None:
        text = (
            '[tool]\n# [tool.tooli]\n[tool.tooli]\nwork_dir = """\n/srv"""\n'
            "callers = {ci = {verbose = 0x2}}\n[tool.tooli.apps]\nshop.quiet = true\n"
        )
        assert by_name(read_toml(text)) == {
            "work_dir": ("/srv", 4, "text"),
            "callers": {"ci": {"verbose": ("2", 6, "number")}},
            "apps": {"shop": {"quiet": ("true", 8, "boolean")}},
        }

    @pytest.mark.parametrize(
        "text", ["[tool.tooli" + ".a" * 20 + "]\nx = 1\n", "[tool.tooli]\nx = " + "[" * 5000]
    )
    def test_deep_tables_are_rejected(self, text: str) -> None:
        with pytest.raises(UnreadableConfig):
            read_toml(text)

    def test_toml_without_tooli_table_has_no_settings(self) -> None:
        assert read_toml("[tool.ruff]\nx = 1\n").entries == {}

    def test_invalid_toml(self) -> None:
        with pytest.raises(UnreadableConfig, match="invalid TOML") as failure:
            read_toml("[tool.tooli]\noutput = json\n")
        assert failure.value.line == 2

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("[tool.tooli]\noutput = 'json' x\n", 2),  # the message contains "newline"
            ('[tool.tooli]\n\noutput = "a\nb"\n', 3),
            ("[tool.tooli", 0),
        ],
    )
    def test_invalid_toml_has_line(self, text: str, line: int) -> None:
        with pytest.raises(UnreadableConfig, match="invalid TOML") as failure:
            read_toml(text)
        assert failure.value.line == line

    def test_invalid_toml_types(self) -> None:
        with pytest.raises(UnreadableConfig, match="table"):
            read_toml("[tool]\ntooli = 3\n")
        with pytest.raises(UnreadableConfig, match="must be text") as failure:
            read_toml("[tool.tooli]\noutput = ['json']\n")
        assert failure.value.line == 2
