"""Edits of settings files: entries are inserted and removed, everything else stays."""

from __future__ import annotations

import json
import sys
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tooli.install.jsonc import MalformedFileError, parse_jsonc
from tooli.install.server_formats import (
    JsonServers,
    TomlServers,
    YamlServers,
)

ENTRY: dict[str, Any] = {"command": "shop", "args": ["mcp", "serve"]}
JSON, TOML = JsonServers("mcpServers"), TomlServers("mcp_servers")

JSON_FILES = [
    "",
    "\n",
    "\ufeff",
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    '{\n  "mcpServers": {}\n}\n',
    '{\n  "mcpServers": {\n  }\n}\n',
    '{"mcpServers":{}}',
    '{"mcpServers":{"a":{"command":"a"}}}',
    '{"a": 1,}',
    '{\n\t"theme": "dark",\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "a"\n\t\t}\n\t}\n}',
    '{\r\n    "a": [1, {"b": null}],\r\n    "mcpServers": {\r\n        "a": {}\r\n    }\r\n}\r\n',
    '\ufeff{\n  "mcpServers": {\n    "a": {}\n  }\n}\n',
    '// mine\n{\n  // x\n  "mcpServers": { // all\n    "a": {}, // the first\n  }, /* end */\n}\n',
    '{\n  "mcpServers": {\n    "a": {} // no comma\n  }\n}\n',
    '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    '{\n  /* one\n     two */ "x": "// no comment, /* either",\n  "y": "\\"{"\n}\n',
    '{"x": {"mcpServers": {"shop": 1}}}\n',
    '{\n  "mcpServers": {\n    "a": {},\n  },\n}\n',
]
TOML_FILES = [
    "",
    "\n",
    "\ufeff",
    "# only a comment",
    'model = "x"\n',
    'model = "x"',
    'model = "x"\r\n\r\n[tools] # note\r\nweb = true\r\n',
    '[mcp_servers.other]\ncommand = "x"\n\n# about the next\n[tools]\nlist = [\n  "[no]", # "\n]\n',
    "text = \"\"\"\n[mcp_servers.shop]\n\"\"\"\nraw = '''\n[x]\\'''\n",
    "[mcp_servers]\n\n[mcp_servers.'a b']\ncommand = 'x'\n[[list]]\nx = {a = 1}\n",
    '\ufeff[a]\nb = "c"\n',
]


class TestJson:
    @pytest.mark.parametrize("text", JSON_FILES)
    def test_insert_adds_only_the_inserted_text(self, text: str) -> None:
        after, inserted = JSON.insert_entry(text, "shop", ENTRY)
        assert JSON.get_entry(after, "shop") == ENTRY
        assert JSON.other_entries(after, "shop") == JSON.other_entries(text, "shop")
        assert after.replace(inserted, "", 1) == text
        assert after.count("\r\n") == after.count("\n") or "\r" not in text

    @pytest.mark.parametrize("text", JSON_FILES)
    def test_remove_keeps_other_entries_and_comments(self, text: str) -> None:
        after, _ = JSON.insert_entry(text, "shop", ENTRY)
        rest = JSON.remove_entry(after, "shop", container=False)
        assert JSON.get_entry(rest, "shop") is None
        assert JSON.other_entries(rest, "shop") == JSON.other_entries(text, "shop")
        for comment in ("// mine", "// the first", "/* end */", "// no comma", "// none yet"):
            assert (comment in text) == (comment in rest)

    @pytest.mark.parametrize("text", JSON_FILES)
    def test_replace_changes_only_the_entry(self, text: str) -> None:
        after, inserted = JSON.insert_entry(text, "shop", ENTRY)
        other = {"command": "elsewhere", "args": []}
        replaced, inserted = JSON.replace_entry(after, "shop", other, inserted)
        assert JSON.get_entry(replaced, "shop") == other
        assert replaced.replace(inserted, "", 1) == text

    @pytest.mark.parametrize("text", JSON_FILES)
    def test_two_entries_can_be_removed_in_any_order(self, text: str) -> None:
        both, _ = JSON.insert_entry(JSON.insert_entry(text, "one", ENTRY)[0], "two", ENTRY)
        for first, second in (("one", "two"), ("two", "one")):
            rest = JSON.remove_entry(both, first, container=True)
            assert JSON.get_entry(rest, second) == ENTRY
            assert JSON.other_entries(
                JSON.remove_entry(rest, second, container=True), ""
            ) == JSON.other_entries(text, "")

    def test_insert_uses_the_indentation_of_the_file(self) -> None:
        after, _ = JSON.insert_entry(
            '{\n    "mcpServers": {\n        "a": {}\n    }\n}\n', "shop", ENTRY
        )
        assert after == (
            '{\n    "mcpServers": {\n        "a": {},\n        "shop": {\n'
            '            "command": "shop",\n            "args": [\n                "mcp",\n'
            '                "serve"\n            ]\n        }\n    }\n}\n'
        )

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("[]", 1),
            ("{", 1),
            ('{\n"a": 1\n"b": 2}', 3),
            ('{"a": yes}', 1),
            ('{\n\n"a": "x\n"}', 3),
            ('{"mcpServers": []}', 1),
            ("{} {}", 1),
            ("{a: 1}", 1),
            ("/* open", 1),
            ('{"a": 01}', 1),
            ("[" * 5000, 1),
        ],
    )
    def test_malformed_file_error_has_the_line(self, text: str, line: int) -> None:
        with pytest.raises(MalformedFileError) as raised:
            JSON.insert_entry(text, "shop", ENTRY)
        assert raised.value.line == line

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=12,
        ).map(lambda value: {"x": value}),
        st.sampled_from([None, 1, 2, "\t"]),
    )
    @settings(max_examples=60, deadline=None)
    def test_insert_into_random_json_changes_nothing_else(self, value: Any, indent: Any) -> None:
        text = json.dumps(value, indent=indent)
        root = parse_jsonc(text)
        assert root is not None and root.value == value
        after, inserted = JSON.insert_entry(text, "shop", ENTRY)
        assert json.loads(after) == {**value, "mcpServers": {"shop": ENTRY}}
        assert after.replace(inserted, "", 1) == text

    def test_insert_and_remove_in_random_layouts_keep_the_rest(self) -> None:
        random = Random(7)
        for _ in range(400):
            text = layout(random)
            rest = JSON.other_entries(text, "shop")
            after, inserted = JSON.insert_entry(text, "shop", ENTRY)
            assert (
                JSON.get_entry(after, "shop") == ENTRY and JSON.other_entries(after, "shop") == rest
            )
            assert inserted in after and len(after) == len(text) + len(inserted)
            back = JSON.remove_entry(after, "shop", container=random.random() < 0.5)
            assert JSON.get_entry(back, "shop") is None and JSON.other_entries(back, "shop") == rest
            assert back.count("/* , } */") == text.count("/* , } */")
            assert back.count("// c") == text.count("// c")


def layout(random: Random) -> str:
    """Return a settings file with comments and line ends at random places."""
    newline = random.choice(["\n", "\r\n"])

    def space() -> str:
        kinds = ["", " ", newline, "\t", "/* , } */", f'// c " {{{newline}', f"{newline}  "]
        return "".join(random.choices(kinds, k=random.randint(0, 3)))

    def value(depth: int) -> str:
        kind = random.random()
        if not depth or kind < 0.4:
            return random.choice(["1", "true", "null", '"a,b}"', '"\\""', "-1.5e3"])
        if kind < 0.7:
            return record(depth - 1, [f"k{i}" for i in range(random.randint(0, 3))])
        items = [space() + value(depth - 1) + space() for _ in range(random.randint(0, 3))]
        return f"[{space() if not items else ''}{','.join(items)}]"

    def member_value(depth: int, key: str) -> str:
        if key != "mcpServers":
            return value(depth)
        return record(depth - 1, ["a"] if random.random() < 0.5 else [])

    def record(depth: int, keys: list[str]) -> str:
        inside = [
            f'{space()}"{key}"{space()}:{space()}{member_value(depth, key)}{space()}'
            for key in keys
        ]
        comma = "," if inside and random.random() < 0.3 else ""
        return "{" + ",".join(inside) + comma + space() + "}"

    keys = [f"k{i}" for i in range(random.randint(0, 3))]
    if random.random() < 0.6:
        keys.insert(random.randint(0, len(keys)), "mcpServers")
    return random.choice(["", "\ufeff"]) + space() + record(3, keys) + space()


class TestToml:
    @pytest.mark.parametrize("text", TOML_FILES)
    def test_insert_adds_only_the_inserted_text(self, text: str) -> None:
        after, inserted = TOML.insert_entry(text, "shop", ENTRY)
        assert TOML.get_entry(after, "shop") == ENTRY
        assert TOML.other_entries(after, "shop") == TOML.other_entries(text, "shop")
        assert after.replace(inserted, "", 1) == text
        assert after.count("\r\n") == after.count("\n") or "\r" not in text

    @pytest.mark.parametrize("text", TOML_FILES)
    def test_remove_keeps_text_before_and_after(self, text: str) -> None:
        after, _ = TOML.insert_entry(text, "shop", ENTRY)
        after += '\n# theirs\n[later]\nx = "y"\n'
        rest = TOML.remove_entry(after, "shop", container=False)
        assert TOML.get_entry(rest, "shop") is None
        assert rest.endswith('\n# theirs\n[later]\nx = "y"\n') and rest.startswith(text)

    @pytest.mark.parametrize("text", TOML_FILES)
    def test_replace_changes_only_the_entry(self, text: str) -> None:
        after, inserted = TOML.insert_entry(text, "shop", ENTRY)
        replaced, inserted = TOML.replace_entry(after, "shop", {"command": "x"}, inserted)
        assert TOML.get_entry(replaced, "shop") == {"command": "x"}
        assert replaced.replace(inserted, "", 1) == text

    def test_subtables_belong_to_the_entry(self) -> None:
        text = '[mcp_servers.shop]\ncommand = "x"\n[mcp_servers.shop.env]\nA = "b"\n[z]\na = 1\n'
        assert TOML.get_entry(text, "shop") == {"command": "x", "env": {"A": "b"}}
        assert TOML.remove_entry(text, "shop", container=False) == "[z]\na = 1\n"
        assert TOML.replace_entry(text, "shop", ENTRY, "")[0].count("[mcp_servers.shop") == 1

    def test_separate_tables_of_one_entry_are_removed(self) -> None:
        text = (
            '# first\n[mcp_servers.shop]\ncommand = "x"\n# about z\n[z]\na = 1\n\n'
            '[mcp_servers.shop.env]\nA = "b"\n\n# about y\n[y]\nb = 2\n'
        )
        rest = "# first\n# about z\n[z]\na = 1\n\n\n# about y\n[y]\nb = 2\n"
        assert TOML.remove_entry(text, "shop", container=False) == rest
        replaced, _ = TOML.replace_entry(text, "shop", ENTRY, "")
        assert TOML.get_entry(replaced, "shop") == ENTRY and replaced.startswith(rest)

    @pytest.mark.parametrize(
        "text",
        [
            'mcp_servers = {shop = {command = "x"}, b = {}}  # mine\na = 1\n',
            '# mine\n[mcp_servers]\nshop = {command = "x"}\nb = {}\n',
            '\ufeffmcp_servers = {shop = {command = "x"}}\r\na = 1\r\n',
        ],
    )
    def test_inline_tables_can_be_edited(self, text: str) -> None:
        rest = TOML.other_entries(text, "shop")
        removed = TOML.remove_entry(text, "shop", container=False)
        replaced, _ = TOML.replace_entry(text, "shop", ENTRY, "")
        inserted_text, inserted = TOML.insert_entry(text, "new", ENTRY)
        assert TOML.get_entry(removed, "shop") is None
        assert TOML.get_entry(replaced, "shop") == ENTRY
        assert TOML.get_entry(inserted_text, "new") == ENTRY
        assert inserted_text.replace(inserted, "", 1) == text
        assert TOML.other_entries(removed, "shop") == TOML.other_entries(replaced, "shop") == rest
        for edited in (removed, replaced, inserted_text):
            assert ("# mine" in text) == ("# mine" in edited)
            assert edited.startswith("\ufeff") == text.startswith("\ufeff")

    def test_dotted_keys_can_be_edited(self) -> None:
        text = 'mcp_servers.other.command = "x"\nmodel = "y"\n'
        after, _ = TOML.insert_entry(text, "shop", ENTRY)
        assert after.startswith(text) and TOML.get_entry(after, "shop") == ENTRY
        assert TOML.get_entry(after, "other") == {"command": "x"}
        assert TOML.remove_entry(text, "other", container=False) == 'model = "y"\n'

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            *(("a = \n", 1), ('x = 1\ny = "open\n', 2), ("\n\nz = [1\n", 3), ("=", 1)),
            *(("a = 1\na = 2\n", 2), ("mcp_servers = 1\n", 1)),
        ],
    )
    def test_malformed_file_error_has_the_line(self, text: str, line: int) -> None:
        with pytest.raises(MalformedFileError) as raised:
            TOML.insert_entry(text, "shop", ENTRY)
        assert raised.value.line >= line

    def test_insert_works_without_tomllib(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Python 3.10 has no tomllib."""
        monkeypatch.setitem(sys.modules, "tomllib", None)
        for text in TOML_FILES:
            after, inserted = TOML.insert_entry(text, "shop", ENTRY)
            assert TOML.get_entry(after, "shop") == ENTRY
            assert after.replace(inserted, "", 1) == text
        with pytest.raises(MalformedFileError):
            TOML.insert_entry('x = "open\n', "shop", ENTRY)

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="no tomllib")
    @given(st.text(), st.lists(st.text()))
    @settings(max_examples=60, deadline=None)
    def test_inserted_random_text_is_valid_toml(self, command: str, args: list[str]) -> None:
        import tomllib

        entry = {"command": command, "args": args}
        after, _ = TOML.insert_entry("", "a b", entry)
        assert tomllib.loads(after) == {"mcp_servers": {"a b": entry}}


class TestYaml:
    ENTRY = {"cmd": "shop", "args": ["mcp", "serve"]}

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "# only a comment\n",
            "model: x",
            "model: x\n",
            "model: x\r\nextensions:\r\n    a: 1\r\n",
            "extensions:\n\n  # mine\n  a:\n    b: 1\nlast: 2\n",
            "extensions: # mine\n  a: {b: 1}",
            "extensions:\nmodel: x\n",
            "extensions:",
            "---\nextensions:\n  shopping: {}\n",
        ],
    )
    def test_inserted_text_is_the_only_change(self, text: str) -> None:
        servers = YamlServers("extensions")
        after, inserted = servers.insert_entry(text, "shop", self.ENTRY)
        assert after.replace(inserted, "", 1) == text
        assert servers.get_entry(after, "shop") == self.ENTRY
        assert servers.other_entries(after, "shop") == servers.other_entries(text, "shop")
        changed, _ = servers.replace_entry(after, "shop", {"cmd": "x"}, inserted)
        assert servers.get_entry(changed, "shop") == {"cmd": "x"}
        removed = servers.remove_entry(changed, "shop", container="extensions" not in text)
        assert yaml.safe_load(removed) == yaml.safe_load(text)

    @pytest.mark.parametrize(
        "text",
        ["extensions: {}\n", "extensions: {a: 1}\n", "extensions: [1]\n", "- 1\n", "a: [\n"],
    )
    def test_file_that_cannot_be_extended_by_a_line_is_refused(self, text: str) -> None:
        with pytest.raises(MalformedFileError):
            YamlServers("extensions").insert_entry(text, "shop", self.ENTRY)

    def test_entry_of_several_lines_is_refused(self) -> None:
        text = "extensions:\n  shop:\n    cmd: mine\n"
        for operation in (
            lambda servers: servers.replace_entry(text, "shop", self.ENTRY, ""),
            lambda servers: servers.remove_entry(text, "shop", container=False),
        ):
            with pytest.raises(MalformedFileError, match="not on one line"):
                operation(YamlServers("extensions"))
