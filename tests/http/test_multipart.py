"""The multipart parser gives the same parts for every division into chunks, and has limits."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.http.multipart import (
    MAX_HEADER_BYTES,
    MAX_PREAMBLE,
    MultipartError,
    MultipartParser,
    parse_part_head,
    read_boundary,
)


class Parts:
    """Keeps the parts that a parser finds."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str | None, bytes]] = []

    def start_part(self, head: Any) -> None:
        self.found.append((head.name, head.file_name, b""))

    def write(self, data: bytes) -> None:
        name, file_name, before = self.found[-1]
        self.found[-1] = (name, file_name, before + data)

    def end_part(self) -> None:
        pass


BODY = (
    b"ignored\r\n--XX \t\r\n"
    b'Content-Disposition: form-data; name="a"\r\n\r\none\r\n--X\r\n'
    b'\r\n--XX\r\ncontent-disposition: form-data; name=b; filename="x;y.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\n\r\n--XX\r\n"
    b'Content-Disposition: form-data; name="c"; filename=""\r\n\r\n\r\n\r\n--XX--\r\nepilogue'
)
EXPECTED = [("a", None, b"one\r\n--X\r\n"), ("b", "x;y.txt", b""), ("c", "", b"\r\n")]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_every_division_into_chunks_gives_the_same_parts(size: int) -> None:
    parts = Parts()
    parser = MultipartParser(b"XX", parts)
    for start in range(0, len(BODY), size):
        parser.feed(BODY[start : start + size])
    parser.close()
    assert parts.found == EXPECTED


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "ends before its last boundary"),
        (BODY[:100], "ends before its last boundary"),
        (b"x" * (MAX_PREAMBLE + 1), "does not begin with its boundary"),
        (b"--XXmore\r\n", "has text after a boundary"),
        (b"--XX" + b" " * 300, "has text after a boundary"),
        (b"--XX\r\nA: " + b"x" * MAX_HEADER_BYTES, "headers of more than"),
        (b"--XX\r\n\r\ndata\r\n--XX--", "without a name"),
    ],
)
def test_invalid_bodies(body: bytes, problem: str) -> None:
    parser = MultipartParser(b"XX", Parts())
    with pytest.raises(MultipartError, match=problem):
        parser.feed(body)
        parser.close()


@pytest.mark.parametrize(
    "head",
    [
        b"no colon",
        b"Content Disposition: x",
        b"Content-Disposition: attachment; name=a",
        b'Content-Disposition: form-data; filename="a"',
        b'Content-Disposition: form-data; name="\x01"',
        b'Content-Disposition: form-data; name="' + b"n" * 201 + b'"',
        b'Content-Disposition: form-data; name="a"; name="b"',
        b'Content-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"',
        b'Content-Disposition: form-data; name="\xff"',
        b'Content-Disposition: form-data; name="a"\r\nContent-Type: multipart/mixed; boundary=Y',
        b'Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64',
    ],
)
def test_invalid_headers_of_a_part(head: bytes) -> None:
    with pytest.raises(MultipartError):
        parse_part_head(head)


def test_headers_of_a_part() -> None:
    head = parse_part_head(
        b'\r\nContent-Disposition: form-data; name="n\xc3\xa4me"; filename="a\\"b\\\\c.txt"\r\n'
        b"Content-Type: Text/CSV; charset=utf-8"
    )
    assert (head.name, head.file_name, head.content_type) == ("näme", 'a"b\\c.txt', "text/csv")


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        (b"multipart/form-data; boundary=abc", b"abc"),
        (b'multipart/form-data; charset=utf-8; Boundary="a b:c"', b"a b:c"),
        (b"multipart/form-data", None),
        (b"multipart/form-data; boundary=", None),
        (b"multipart/form-data; boundary=" + b"x" * 71, None),
        (b'multipart/form-data; boundary="a\x01"', None),
        (b"multipart/form-data; boundary=a; boundary=b", None),
    ],
)
def test_boundary(content_type: bytes, boundary: bytes | None) -> None:
    if boundary is None:
        with pytest.raises(MultipartError):
            read_boundary(content_type)
    else:
        assert read_boundary(content_type) == boundary
