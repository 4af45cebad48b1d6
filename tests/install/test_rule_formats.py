"""Values that are added to settings files and removed; test_rule_files.py tests whole files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tooli.install.jsonc import MalformedFileError
from tooli.install.rule_formats import JsonRules, TomlRules, missing_values, prune, subtract

WANTED = {"permissions": {"allow": ["a", "b"], "deny": ["c"]}, "mode": "x"}


def test_missing_values_leave_out_what_is_set() -> None:
    content = {"permissions": {"allow": ["b", "mine"]}, "mode": "other"}
    assert missing_values(content, WANTED) == {"permissions": {"allow": ["a"], "deny": ["c"]}}
    assert missing_values({}, WANTED) == WANTED
    assert missing_values(WANTED, WANTED) == {}


@pytest.mark.parametrize("content", [{"permissions": "all"}, {"permissions": {"allow": "all"}}])
def test_value_of_another_type_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(MalformedFileError):
        missing_values(content, WANTED)


def test_subtract_keeps_what_differs() -> None:
    content = {"permissions": {"allow": ["a", "mine"], "deny": ["c"]}, "mode": "mine"}
    assert subtract(content, WANTED) == {"permissions": {"allow": ["mine"]}, "mode": "mine"}


def test_prune_removes_empty_containers() -> None:
    assert prune({"a": {"b": []}, "c": {}, "d": {"e": 0}}) == {"d": {"e": 0}}


patterns = st.text("ab *", min_size=1, max_size=4)
lists = st.lists(patterns, unique=True, max_size=4)
rule_sets = st.fixed_dictionaries(
    {}, optional={"p": st.fixed_dictionaries({}, optional={"allow": lists, "deny": lists})}
)


@given(rule_sets, rule_sets, st.sampled_from([None, 2, "\t"]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_insert_and_remove_change_nothing_else(
    content: Any, wanted: Any, indent: Any, uses_toml: bool
) -> None:
    rule_format = TomlRules() if uses_toml else JsonRules()
    text = json.dumps(content, indent=indent)
    if uses_toml:
        text = "".join(
            [
                f"[{key}]\n"
                + "".join([f"{name} = {json.dumps(value)}\n" for name, value in table.items()])
                for key, table in content.items()
            ]
        )
    missing = missing_values(content, wanted)
    after, texts = rule_format.insert(text, missing)
    found = rule_format.load(after)
    assert missing_values(found, wanted) == {}
    assert prune(subtract(found, missing)) == prune(content)
    for part in reversed(texts):
        assert after.count(part) >= 1
    assert prune(rule_format.load(rule_format.remove(after, missing))) == prune(content)
