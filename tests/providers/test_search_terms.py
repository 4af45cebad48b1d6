"""Words, stems and phrases for the search over tools."""

from __future__ import annotations

import pytest

from tooli.providers.search_terms import (
    STOP_WORDS,
    asks_to_read,
    compounds_in,
    extract_terms,
    find_phrases,
    load_similar_terms,
    normalize_name,
    split_words,
    stem,
)


@pytest.mark.parametrize(
    "forms",
    [
        "delete deletes deleted deleting deletion",
        "organize organizes organized organise organised organising",
        "optimization optimisation",
        "copy copies",
        "send sent sends sending",
        "write wrote written writes writing",
        "buy bought",
        "index indices",
        "stop stops stopped stopping",
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("left", "right"), [("list", "listen"), ("ship", "shop"), ("user", "usage"), ("as", "a")]
)
def test_different_words_have_different_stems(left: str, right: str) -> None:
    assert stem(left) != stem(right)


def test_words_of_identifiers() -> None:
    assert split_words("findFiles") == ["find", "files", "findfiles"]
    assert split_words("sha256 HTTPServer") == ["sha", "256", "sha256", "http", "server"] + [
        "httpserver"
    ]
    assert normalize_name("find-files") == normalize_name("findFiles") == "findfiles"


def test_terms_of_a_chunk_are_cached() -> None:
    known: dict[str, list[str]] = {}
    assert extract_terms("Delete files", known) == ["delet", "fil"]
    known["files"] = ["cached"]
    assert extract_terms("Delete files", known) == ["delet", "cached"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get rid of it", [((0, 1, 2), "get-rid-of")]),
        ("turn the new lights off", [((0, 4), "turn-off")]),
        ("turn a b c d off", []),
        ("log in here", [((0, 1), "log-in")]),
        ("log lines in files", []),
        ("", []),
    ],
)
def test_phrases(text: str, expected: list[tuple[tuple[int, ...], str]]) -> None:
    assert list(find_phrases(list(map(stem, text.split())))) == expected


def test_compounds_skip_stop_words() -> None:
    assert list(compounds_in(["log", "in", "the", "shop"])) == ["login"]
    assert list(compounds_in(["extraordinarily", "long"])) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who is it", True),
        ("list files", True),
        ("delete files", False),
        ("files", None),
        ("", None),
    ],
)
def test_intent(text: str, expected: bool | None) -> None:
    assert asks_to_read(text.split()) is expected


def test_similar_terms_are_parsed_once() -> None:
    assert load_similar_terms() is load_similar_terms()


def test_arrow_has_one_direction() -> None:
    similar = load_similar_terms().similar
    assert stem("delete") in similar[stem("dispose")]
    assert stem("dispose") not in similar[stem("delete")]
    assert stem("image") in similar[stem("picture")]
    assert stem("picture") in similar[stem("image")]


def test_no_term_is_similar_to_itself() -> None:
    for term, others in load_similar_terms().similar.items():
        assert term not in others
        assert len(others) == len(set(others))


def test_stop_words_are_lower_case_words() -> None:
    assert all(word.isalpha() and word.islower() for word in STOP_WORDS)
