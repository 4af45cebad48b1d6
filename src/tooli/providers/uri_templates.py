"""URI templates: `notes://{id}` and `files://{path*}`, read once, matched often.

`{name}` is one piece of a URI, without a slash; `{name*}` is the rest of a path. What is
found is percent-decoded. A piece that would climb out of a folder (`..`) matches nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class UriTemplate:
    """A URI with places in it; one without any is the URI of a single document."""

    __slots__ = ("_parts", "_pattern", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = tuple(_parse_template(text))
        self._pattern: Any = None
        self.names = tuple([part[1] for part in self._parts if part[0]])
        self._check()

    @property
    def is_static(self) -> bool:
        """Whether it is one URI, not many."""
        return not self.names

    @property
    def specificity(self) -> tuple[int, int, int]:
        """How much of a URI it says itself: of two that match, the more precise one is meant."""
        written = sum([len(part[1]) for part in self._parts if not part[0]])
        return written, -len(self.names), -len([part for part in self._parts if part[0] == "*"])

    def match(self, uri: str) -> dict[str, str] | None:
        """What stands in the template's places; None where the URI is another one."""
        if not self.names:
            return {} if uri == self.text else None
        if self._pattern is None:
            self._pattern = _compile_pattern(self._parts)
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        from urllib.parse import unquote

        try:
            values = [unquote(value, errors="strict") for value in found.groups()]
        except UnicodeDecodeError:
            return None
        if any([_escapes_folder(value) for value in values]):
            return None
        return dict(zip(self.names, values, strict=True))

    def _check(self) -> None:
        from tooli.errors import DefinitionError

        scheme, found, rest = self.text.partition(":")
        if not found or not rest or not scheme.replace("+", "a").replace("-", "a").isalnum():
            raise DefinitionError(f"resource({self.text!r}): a URI begins with its scheme: 'x://…'")
        if len(set(self.names)) != len(self.names):
            raise DefinitionError(f"resource({self.text!r}): a name stands there twice")
        for one, other in zip(self._parts, self._parts[1:], strict=False):
            if one[0] and other[0]:
                raise DefinitionError(
                    f"resource({self.text!r}): nobody can tell {{{one[1]}}} from {{{other[1]}}}; "
                    "put something between them"
                )


def _parse_template(text: str) -> Iterator[tuple[str, str]]:
    """The pieces of a template: ("", written) or ("=" one piece | "*" the rest, name)."""
    from tooli.errors import DefinitionError

    rest = text
    while rest:
        written, opened, after = rest.partition("{")
        if "}" in written:
            raise DefinitionError(f"resource({text!r}): a '}}' without its '{{'")
        if written:
            yield "", written
        if not opened:
            return
        inside, closed, rest = after.partition("}")
        many = inside[-1:] == "*" or inside[:1] == "+"
        name = inside.removesuffix("*").removeprefix("+")
        if not closed or not name.isidentifier():
            raise DefinitionError(
                f"resource({text!r}): {{{inside}}} is no place; say {{name}}, "
                "or {name*} for the rest of a path"
            )
        yield "*" if many else "=", name


def _compile_pattern(parts: tuple[tuple[str, str], ...]) -> Any:
    import re

    kinds = {"=": "([^/?#]+)", "*": "(.+)"}
    return re.compile("".join([kinds[kind] if kind else re.escape(text) for kind, text in parts]))


def _escapes_folder(value: str) -> bool:
    return "\0" in value or ".." in value.replace("\\", "/").split("/")
