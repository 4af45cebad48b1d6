"""The groups of similar words."""

from __future__ import annotations

import re

from tooli.providers.thesaurus import SIMILAR_WORDS

GROUPS = [group.strip() for group in re.split(r"[\n/]", SIMILAR_WORDS) if group.strip()]


def test_groups_are_well_formed() -> None:
    word = r"[a-z0-9]+(-[a-z0-9]+)*"
    for group in GROUPS:
        assert re.fullmatch(rf"{word}( {word})*( <( {word})+)?", group), group
        words = group.replace("<", " ").split()
        assert len(words) > 1, group
        assert len(words) == len(set(words)), group


def test_no_group_repeats_another() -> None:
    groups = [frozenset(group.split()) for group in GROUPS if "<" not in group]
    repeated = [set(group) for group in groups if any(group < other for other in groups)]
    assert repeated == []
    assert len(groups) == len(set(groups))
