"""Parse docstrings of each style, and any other text."""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooli.core import docstring
from tooli.core.docstring import (
    Doc,
    cleandoc,
    read_docstring,
    remove_parameters,
    sanitize_doc_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FRAGMENTS = st.sampled_from(
    # Texts that start, shape or end a section, so that most generated docstrings have sections.
    ["Args:", "Parameters", "-----", "Returns:", "Returns", "Raises:", "Examples:", "For example:"]
    + ["x: y", "x : int", "x (int): y", "x (: y", "*a: b", "- a: b", ":class:`A`: b", "..", "text"]
    + [":param x: y", ":param: y", ":raises E:", ":returns:", ":", "::", "(", ")", ",", ".", "É"]
    + ["```", "~~~", "\f", "\b", "\t", "  ", "    ", "        ", "\xa0", "\u2028", "\u202eabc"]
    + ["\n", "\n", "\n", "\n\n", "\n    ", "\n    ", "\r\n", "\r"]
)
DOCSTRINGS = st.lists(FRAGMENTS, max_size=40).map("".join)


def fields(doc: Doc) -> dict[str, object]:
    return {name: getattr(doc, name) for name in Doc.__slots__}


EMPTY: dict[str, object] = {
    "summary": "",
    "description": "",
    "params": {},
    "returns": "",
    "raises": {},
    "examples": "",
}


class TestProse:
    @pytest.mark.parametrize("text", [None, "", " ", "\n \t\n", "\f", "\b", "\\b", "\r\n\r\n"])
    def test_empty_docstring(self, text: str | None) -> None:
        assert fields(read_docstring(text)) == EMPTY

    def test_one_line(self) -> None:
        assert fields(read_docstring("Copy a file.")) == {**EMPTY, "summary": "Copy a file."}

    def test_summary_is_the_first_paragraph_on_one_line(self) -> None:
        doc = read_docstring("""
            Copy a file
            to another place.

            First.
            Second.

                code

            - a
              b
            """)
        assert doc.summary == "Copy a file to another place."
        assert doc.description == "First.\nSecond.\n\n    code\n\n- a\n  b"

    def test_results_do_not_share_an_empty_params_dict(self) -> None:
        assert read_docstring(None).params is not read_docstring(None).params

    def test_unknown_attributes_cannot_be_set(self) -> None:
        with pytest.raises(AttributeError):
            read_docstring("x").other = 1  # type: ignore[attr-defined]

    def test_blank_lines_inside_code_are_kept(self) -> None:
        doc = read_docstring(
            "A.\n\n    def f():\n        ...\n   \n\n    def g():\n        ...\n\nB."
        )
        assert doc.description == "    def f():\n        ...\n\n\n    def g():\n        ...\n\nB."

    def test_lines_of_spaces_separate_paragraphs(self) -> None:
        doc = read_docstring("\n      \n    A.\n       \n    B.\n")
        assert (doc.summary, doc.description) == ("A.", "B.")

    def test_underline_of_a_title_is_removed(self) -> None:
        doc = read_docstring("Copy\n====\n\nMore.")
        assert (doc.summary, doc.description) == ("Copy", "More.")

    @pytest.mark.parametrize(
        "line",
        [
            "For example:",
            "Note:",
            "Warning:",
            "Attributes:",
            "It takes these args:",
            "args:",
            "example:",
            "Args",
            "Returns: a number",
            "Args: x",
            ":meta private:",
            ":param: no name",
            ":param x no colon",
            ":raises:",
            ":returns no colon",
            ":type x",
            ":param 1 2: no name",
            ":class:`A` does it",
            ".. note::",
        ],
    )
    def test_text_that_is_not_a_section_is_kept(self, line: str) -> None:
        doc = read_docstring(f"Sum.\n\n{line}\n    x: y\n\nEnd.")
        assert fields(doc) == {
            **EMPTY,
            "summary": "Sum.",
            "description": f"{line}\n    x: y\n\nEnd.",
        }

    def test_heading_without_a_body_is_prose(self) -> None:
        doc = read_docstring("Sum.\n\nExample:\nThis is prose.\n\nArgs:\n\n- x: y\n")
        assert doc.description == "Example:\nThis is prose.\n\nArgs:\n\n- x: y"
        assert (doc.params, doc.examples) == ({}, "")

    def test_unknown_sections_are_prose(self) -> None:
        doc = read_docstring("""Sum.

            Text.
            Args:
                x: One.

            Note:
                Careful.

                Args:
                    y: not ours
            Returns:
                Two.
            End.
            """)
        assert doc.description == (
            "Text.\n\nNote:\n    Careful.\n\n    Args:\n        y: not ours\n\nEnd."
        )
        assert (doc.params, doc.returns) == ({"x": "One."}, "Two.")

    def test_prose_after_a_leading_section_is_the_summary(self) -> None:
        doc = read_docstring("\n    Args:\n        x: One.\n\n    Sum.\n\n    More.\n")
        assert (doc.summary, doc.description, doc.params) == ("Sum.", "More.", {"x": "One."})

    @pytest.mark.parametrize("fence", ["```", "~~~"])
    def test_fenced_block_has_no_sections(self, fence: str) -> None:
        block = f"{fence}python\nArgs:\n    x: no\n:param y: no\n{fence}"
        doc = read_docstring(f"Sum.\n\n{block}\n\nArgs:\n    z: yes\n")
        assert (doc.description, doc.params) == (block, {"z": "yes"})

    def test_inline_code_is_not_a_fence(self) -> None:
        doc = read_docstring("```a``` is it.\n\nArgs:\n    z: yes\n")
        assert (doc.summary, doc.params) == ("```a``` is it.", {"z": "yes"})


class TestMarkers:
    @pytest.mark.parametrize("marker", ["\b", "\\b"])
    def test_no_rewrap_markers_are_removed(self, marker: str) -> None:
        doc = read_docstring(f"Sum.\n\n    {marker}\n    a\n    b\n\n    c\n{marker}\n    d \b e\n")
        assert (doc.summary, doc.description) == ("Sum.", "a\nb\n\nc\nd \b e")

    @pytest.mark.parametrize(
        "feed", ["\n    \f\n    ", "\n\f\n    ", "\n    \f", "\n    \f ", "\n\f    ", "\f", " \f "]
    )
    def test_sections_after_a_form_feed_are_read_and_prose_is_not(self, feed: str) -> None:
        doc = read_docstring(
            f"Sum.\n\n      deep\n\n    Shown.{feed}Args:\n        x: One.\n\n    Secret.\n\n"
            "    \f\n"
            "    :param y: Two.\n    \fReturns:\n        Three.\n"
        )
        assert (doc.summary, doc.description.rstrip()) == ("Sum.", "  deep\n\nShown.")
        assert (doc.params, doc.returns) == ({"x": "One.", "y": "Two."}, "Three.")

    def test_form_feed_at_the_start_hides_all_prose(self) -> None:
        doc = read_docstring("\fSum.\n\nArgs:\n    x: One.")
        assert fields(doc) == {**EMPTY, "params": {"x": "One."}}

    def test_form_feed_after_the_summary(self) -> None:
        doc = read_docstring("Sum.\fArgs:\n    x: One.\n")
        assert fields(doc) == {**EMPTY, "summary": "Sum.", "params": {"x": "One."}}

    def test_form_feed_at_the_end_hides_nothing(self) -> None:
        assert fields(read_docstring("Sum.\n\nMore.\n\f\n")) == {
            **EMPTY,
            "summary": "Sum.",
            "description": "More.",
        }

    def test_section_may_continue_after_a_form_feed(self) -> None:
        doc = read_docstring("Sum.\n\nArgs:\n    x: One.\n    \f\n    y: Two.\n")
        assert doc.params == {"x": "One.", "y": "Two."}

    @pytest.mark.parametrize("name", ["Returns", "Examples"])
    def test_text_section_ends_at_a_form_feed(self, name: str) -> None:
        doc = read_docstring(f"Sum.\n\n{name}\n-------\nOne.\n\f\nSecret.\n")
        assert (doc.returns or doc.examples, doc.description) == ("One.", "")

    def test_open_fence_ends_at_a_form_feed(self) -> None:
        doc = read_docstring("Sum.\n\n```\ncode\n\f\nArgs:\n    x: One.\n")
        assert (doc.description, doc.params) == ("```\ncode", {"x": "One."})

    def test_carriage_returns_are_line_ends(self) -> None:
        text = "Sum\n    of it.\n\n    More.\n\n    Args:\n        x: One\n            and more.\n"
        expected = fields(read_docstring(text))
        assert expected["params"] == {"x": "One and more."}
        assert fields(read_docstring(text.replace("\n", "\r\n"))) == expected
        assert fields(read_docstring(text.replace("\n", "\r"))) == expected

    def test_tabs_are_indentation(self) -> None:
        doc = read_docstring("Sum.\n\n\tArgs:\n\t\tx: One\n\t\t\tand more.\n")
        assert doc.params == {"x": "One and more."}


class TestGoogle:
    @pytest.mark.parametrize(
        "heading",
        [
            "Args:",
            "Arguments:",
            "Parameters:",
            "Params:",
            "Keyword Args:",
            "Keyword Arguments:",
            "Other Parameters:",
            "ARGS:",
            "Args::",
            "Args:  ",
        ],
    )
    def test_headings(self, heading: str) -> None:
        doc = read_docstring(f"Sum.\n\n{heading}\n    x: One.\n")
        assert fields(doc) == {**EMPTY, "summary": "Sum.", "params": {"x": "One."}}

    def test_entries(self) -> None:
        doc = read_docstring("""Sum.
            Args:
                a: One: a colon, 100% "quoted".
                b (int, optional): Two
                    on two lines.

                c (Callable[[int], str]) : Three.
                d(dict(str, int)): Four:
                    - one: of
                    - two: of

                    More of four.
                e:Five.
                *args: Six.
                **kwargs (Any): Seven.
                x, y: Both.
                `z`: Marked.
                empty:
            """)
        assert doc.params == {
            "a": 'One: a colon, 100% "quoted".',
            "b": "Two on two lines.",
            "c": "Three.",
            "d": "Four: - one: of - two: of More of four.",
            "e": "Five.",
            "args": "Six.",
            "kwargs": "Seven.",
            "x": "Both.",
            "y": "Both.",
            "z": "Marked.",
            "empty": "",
        }

    @pytest.mark.parametrize(
        "line",
        [
            "and so on: that",
            "- one: of",
            "https://example.org",
            "std::vector",
            "C:\\temp",
            "word",
            "word (note) of: text",
            "word (open: text",
            "(note): text",
        ],
    )
    def test_line_that_is_not_an_entry_continues_the_last_one(self, line: str) -> None:
        doc = read_docstring(f"Sum.\n\nArgs:\n    x: One\n    {line}\n    y: Two.\n")
        assert doc.params == {"x": f"One {line}", "y": "Two."}

    @pytest.mark.parametrize("bullet", ["-", "*", "+", "•"])
    def test_bulleted_entries(self, bullet: str) -> None:
        doc = read_docstring(
            f"Sum.\n\nArgs:\n\n    {bullet} x (int): One\n      and more.\n    {bullet} `y`: Two.\n"
        )
        assert doc.params == {"x": "One and more.", "y": "Two."}

    def test_text_before_the_first_entry_is_dropped(self) -> None:
        assert read_docstring("Sum.\n\nArgs:\n    None.\n\nEnd.").params == {}

    def test_first_text_of_a_name_is_used(self) -> None:
        doc = read_docstring("Sum.\n\nArgs:\n    x:\n    x: One.\n\n:param x: Two.\n")
        assert doc.params == {"x": "One."}

    def test_empty_sections_are_removed(self) -> None:
        doc = read_docstring("Sum.\n\nArgs:\n\nReturns:\n:param x: One.\n\nRaises:\n")
        assert fields(doc) == {**EMPTY, "summary": "Sum.", "params": {"x": "One."}}

    @pytest.mark.parametrize(
        "text",
        [
            "Args:\n    x: One\n        and more.\n    y: Two.",
            "Args:\n        x: One\n            and more.\n        y: Two.\n    ",
            "\n    Args:\n        x: One\n            and more.\n        y: Two.\n    ",
            "Args:\n\n    x: One\n        and more.\n\n    y: Two.",
        ],
    )
    def test_section_without_prose(self, text: str) -> None:
        doc = read_docstring(text)
        assert fields(doc) == {**EMPTY, "params": {"x": "One and more.", "y": "Two."}}

    def test_several_sections_without_prose(self) -> None:
        doc = read_docstring("Args:\n        x: One.\n\n    Returns:\n        Two.\n    ")
        assert fields(doc) == {**EMPTY, "params": {"x": "One."}, "returns": "Two."}

    def test_unindented_body_ends_at_the_next_section(self) -> None:
        doc = read_docstring("Args:\nx: One.\n:returns: Two.\n")
        assert fields(doc) == {**EMPTY, "params": {"x": "One."}, "returns": "Two."}

    def test_raises(self) -> None:
        doc = read_docstring("""Sum.

            Raises:
                ValueError: If bad
                    or worse.
                OSError, a.b.Error: On failure.
                ValueError: If late.
                :class:`~a.C`: Role.
                :exc:`KeyError`:
                    Role below.
                json.JSONDecodeError
                never
            """)
        assert doc.raises == {
            "ValueError": "If bad or worse. If late.",
            "OSError": "On failure.",
            "a.b.Error": "On failure.",
            "a.C": "Role.",
            "KeyError": "Role below.",
            "json.JSONDecodeError": "never",
        }

    @pytest.mark.parametrize(
        ("text", "returns"),
        [
            ("The count\n    of it: all.", "The count of it: all."),
            ("int: The count.", "The count."),
            ("int:\n        The count.", "The count."),
            ("dict[str, int | None]: The counts.", "The counts."),
            ("int | None: The count.", "The count."),
            ("np.ndarray: The counts.", "The counts."),
            ("Success: always.", "Success: always."),
            ("True: if so.", "True: if so."),
            ("A pair [a, b]: both.", "A pair [a, b]: both."),
            ("a.b,c: both.", "a.b,c: both."),
            ("End.: all.", "End.: all."),
            ("int", "int"),
            ("One\n        deeper.\n\n    - two: of", "One deeper. - two: of"),
        ],
    )
    @pytest.mark.parametrize("heading", ["Returns", "Return", "Yields", "Yield"])
    def test_returns(self, heading: str, text: str, returns: str) -> None:
        doc = read_docstring(f"Sum.\n\n{heading}:\n    {text}\n")
        assert fields(doc) == {**EMPTY, "summary": "Sum.", "returns": returns}

    def test_examples_are_unchanged(self) -> None:
        doc = read_docstring("""Sum.

            Example:
                One::

                    $ a  --b

            Examples:
                >>> f(1)
                2

            End.
            """)
        assert doc.examples == "One::\n\n    $ a  --b\n\n>>> f(1)\n2"
        assert doc.description == "End."


class TestNumpy:
    def test_every_section(self) -> None:
        doc = read_docstring("""Sum.

            More.

            Parameters
            ----------
            x, y : int, optional
                One
                and more.

                - a : b
            *args, **kwargs
                Two.

            mode : {'a', 'b'}, default: 'a'
            not a name here
            z:
                Three.
            Other Parameters
            ================
            \\*rest : tuple
                Four.

            Returns
            -------
            int
                The count.
            name : str
                The name.

            Raises
            ------
            ValueError, a.B
                If bad.
            OSError : If worse.

            KeyError:
                If missing.

            Notes
            -----
            Kept.

            Examples
            --------
            >>> f(1)

            Then this:

            2
            """)
        assert fields(doc) == {
            "summary": "Sum.",
            "description": "More.\n\nNotes\n-----\nKept.",
            "params": {
                "x": "One and more. - a : b",
                "y": "One and more. - a : b",
                "args": "Two.",
                "kwargs": "Two.",
                "mode": "not a name here",
                "z": "Three.",
                "rest": "Four.",
            },
            "returns": "The count. The name.",
            "raises": {
                "ValueError": "If bad.",
                "a.B": "If bad.",
                "OSError": "If worse.",
                "KeyError": "If missing.",
            },
            "examples": ">>> f(1)\n\nThen this:\n\n2",
        }

    @pytest.mark.parametrize(
        "after", ["This is prose.", "Note:\n    Careful.", ".. note::\n    Careful.", "End."]
    )
    @pytest.mark.parametrize(
        "section", ["Parameters\n----------\nx : int\n    One.", "Returns\n-------\nint\n    One."]
    )
    def test_prose_after_a_blank_line_ends_a_section(self, section: str, after: str) -> None:
        doc = read_docstring(f"Sum.\n\n{section}\n\n{after}")
        assert doc.description == after
        assert doc.params.get("x", doc.returns) == "One."

    def test_blank_line_between_returned_values(self) -> None:
        doc = read_docstring("Sum.\n\nYields\n------\n\nint\n    One.\n\nstr\n    Two.\n")
        assert (doc.returns, doc.description) == ("One. Two.", "")

    def test_returned_prose(self) -> None:
        doc = read_docstring("Sum.\n\nReturns\n-------\nOne of:\n    - a\n    - b\nor none.\n")
        assert doc.returns == "One of: - a - b or none."

    def test_another_style_ends_a_section(self) -> None:
        doc = read_docstring(
            "Sum.\n\nParameters:\n----------\nx : int\n    One.\nReturns:\n    Two.\n"
            "Raises\n------\n:param y: Three.\n"
        )
        assert (doc.params, doc.returns) == ({"x": "One.", "y": "Three."}, "Two.")

    def test_section_may_start_on_the_first_line(self) -> None:
        doc = read_docstring("Parameters\n    ----------\n    x : int\n        One.\n    ")
        assert fields(doc) == {**EMPTY, "params": {"x": "One."}}

    @pytest.mark.parametrize("text", ["Parameters\n-----", "Returns\n-------", "Examples\n---"])
    def test_section_without_a_body_is_empty(self, text: str) -> None:
        assert fields(read_docstring(text)) == EMPTY


class TestSphinx:
    def test_every_field(self) -> None:
        doc = read_docstring("""Sum.

            More.

            :param a: One: a colon
                and more.
            :type a: int
            :param int b: Two.
            :param dict[str, int] c: Three.
            :param :class:`~m.A` d: Four.
            :param e, f: Both.
            :param \\*args: Five.
            :keyword  g : Six
            unindented.

                - bullet
            :param h:
                Seven.
            :param i:Eight.
            :raises ValueError: If bad.
            :raises :exc:`OSError`: If worse.
            :raises KeyError, a.B: If missing.
            :raises a.B: If again.
            :meta private:
            :rtype: int
            :returns: The count.

            End.

            :yields int: And more.
            """)
        assert fields(doc) == {
            **EMPTY,
            "summary": "Sum.",
            "description": "More.\n\n:meta private:\n\nEnd.",
            "params": {
                "a": "One: a colon and more.",
                "b": "Two.",
                "c": "Three.",
                "d": "Four.",
                "e": "Both.",
                "f": "Both.",
                "args": "Five.",
                "g": "Six unindented. - bullet",
                "h": "Seven.",
                "i": "Eight.",
            },
            "raises": {
                "ValueError": "If bad.",
                "OSError": "If worse.",
                "KeyError": "If missing.",
                "a.B": "If missing. If again.",
            },
            "returns": "The count. And more.",
        }

    def test_fields_without_prose(self) -> None:
        doc = read_docstring(":param x: One\n        and more.\n    :return: Two.\n    ")
        assert fields(doc) == {**EMPTY, "params": {"x": "One and more."}, "returns": "Two."}

    @pytest.mark.parametrize("after", [".. note::\n    Careful.", "Title\n-----\nKept."])
    def test_line_that_ends_a_field_without_a_blank_line(self, after: str) -> None:
        doc = read_docstring(f"Sum.\n\n:param x: One.\n{after}")
        assert (doc.params, doc.description) == ({"x": "One."}, after)


class TestAnyText:
    def test_text_in_several_scripts(self) -> None:
        summary = "\u0646\u0633\u062e \u0645\u0644\u0641."
        text = "100 % „gut“ \u200f\u0645\u0631\u062d\u0628\u0627\u200f."
        doc = read_docstring(f"{summary}\n\nArgs:\n    größe (int): {text}\n    名前: 値：はい\n")
        assert (doc.summary, doc.params) == (summary, {"größe": text, "名前": "値：はい"})

    def test_very_long_line(self) -> None:
        text = "word: " * 50_000
        doc = read_docstring(f"{text}\n\nArgs:\n    x: {text}\n")
        assert (doc.summary, doc.params) == (text.strip(), {"x": text.strip()})

    @given(st.text() | DOCSTRINGS)
    def test_any_text_is_parsed(self, text: str) -> None:
        doc = read_docstring(text)
        for line in (doc.summary, doc.returns, *doc.params.values(), *doc.raises.values()):
            assert "\n" not in line
            assert line == line.strip()
        assert not doc.description.startswith("\n")
        assert not doc.description.endswith("\n")
        assert all(name and not name.startswith("*") for name in [*doc.params, *doc.raises])

    @given(DOCSTRINGS)
    def test_prose_after_a_form_feed_is_never_shown(self, text: str) -> None:
        doc = read_docstring(text.replace("\f", "") + "\n\n\f\n\nSECRET\n")
        assert "SECRET" not in doc.summary + doc.description + doc.returns + doc.examples

    @given(st.lists(st.text("ab .,\n", max_size=20), max_size=8).map("\n".join))
    def test_prose_is_kept_word_for_word(self, text: str) -> None:
        doc = read_docstring(text)
        assert f"{doc.summary} {doc.description}".split() == text.split()

    @pytest.mark.parametrize(
        "piece",
        [
            "Args:\n",
            "Args:\n\n\n\n\n",
            "\n",
            "Args:\n    x: y\n",
            "Returns\n---\n",
            "Raises\n---\n\n",
            ":param x: y\n",
            ":raises X: y\n\n",
            ":param x y z",
            "(",
            "x (",
            "a,",
            "a: ",
            "\f",
            "\n\f",
            "\b\n",
            "\t",
            "```\n",
            "- ",
            "x\n\n",
        ],
    )
    @pytest.mark.parametrize("start", ["", "Args:\n    ", "Parameters\n---\n", ":raises "])
    def test_parsing_takes_linear_time(self, start: str, piece: str) -> None:
        little, much = (start + piece * (size // len(piece)) for size in (4_000, 16_000))
        # Four times the text: a quadratic step would be sixteen times the work.
        assert (
            count_steps(lambda: read_docstring(much))
            < 6 * count_steps(lambda: read_docstring(little)) + 99
        )


def count_steps(work: Callable[[], object]) -> int:
    """Return the number of executed lines and calls, which does not depend on the load."""
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


class TestCleandoc:
    @given(st.text("ab:é\u202e\t \n\n", max_size=60))
    def test_result_equals_inspect_cleandoc(self, text: str) -> None:
        assert cleandoc(text) == inspect.cleandoc(text)

    # From 3.13 on, inspect takes spaces alone for indentation and not every white character.
    @pytest.mark.skipif(sys.version_info >= (3, 13), reason="inspect.cleandoc changed")
    @given(st.text() | DOCSTRINGS)
    def test_result_equals_inspect_cleandoc_for_any_text(self, text: str) -> None:
        assert cleandoc(text) == inspect.cleandoc(text)

    def test_cleaned_text_has_the_same_doc(self) -> None:
        text = "Sum.\n\n    More.\n\n    Args:\n        x: One\n            and more.\n    "
        assert fields(read_docstring(inspect.cleandoc(text))) == fields(read_docstring(text))


def test_only_small_modules_are_imported() -> None:
    tree = ast.parse(Path(docstring.__file__).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imports] == [
        "from __future__ import annotations",
        "from tooli.core import Record",
        "from tooli.text.markup import remove_markup",
    ]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("two\nlines", "two\nlines"),
        ("a\x1b[31mred\x1b[0m\r\nb\rc", "ared\nb\nc"),
        ("x\u202ey", "xy"),
    ],
)
def test_invisible_characters_are_removed(text: str, clean: str) -> None:
    assert sanitize_doc_text(text) == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [("a \ud800 b", "a \ufffd b"), ("\udfffx\n", "\ufffdx\n"), ("\ud83d\ude00", "\U0001f600")],
)
def test_lone_surrogates_become_replacement_characters(text: str, clean: str) -> None:
    assert sanitize_doc_text(text) == clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Do it.", "Do it."),
        ("Do it.\n\n    Args:\n        x: a number\n    ", "Do it."),
        (
            "Do it.\n\n\b\n  a\n  b\n\nArgs:\n    x: one\n    y: two\n\nReturns:\n    It.\n",
            "Do it.\n\n\b\n  a\n  b\n\nReturns:\n    It.",
        ),
        ("Do it.\n\n:param x: a number\n:type x: int\n:returns: it", "Do it.\n\n:returns: it"),
        ("Do it.\n\nParameters\n----------\nx : int\n    One.\n\nNotes\n-----\nLong.", None),
        ("Do it.\n\n```\nArgs:\n    x: code\n```", "Do it.\n\n```\nArgs:\n    x: code\n```"),
    ],
)
def test_parameters_are_removed_and_all_other_text_stays(text: str, expected: str | None) -> None:
    assert remove_parameters(text) == (expected or "Do it.\n\nNotes\n-----\nLong.")
