"""ASCII aliases of parameters whose names model providers refuse.

Anthropic's API accepts only `[a-zA-Z0-9_.-]` in the name of a parameter. A parameter with another
name, such as `größe`, gets an alias in the schemas that models see: `grosse`. A call can use either
name.
"""

from __future__ import annotations

from unicodedata import normalize

from tooli.core._hot_tables import CALL_OPTIONS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.tool import Tool

_LETTERS = str.maketrans("øØłŁđĐðı", "oOlLdDdi") | str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th"}
)
"""Letters that Unicode does not decompose."""


def ascii_aliases(tool: Tool) -> dict[str, str]:
    """Return the names of parameters that need an alias, by their aliases."""
    names = [param.name for param in tool.public_params]
    used = {name for name in names if name.isascii()}
    if len(used) == len(names):
        return {}
    used.update(CALL_OPTIONS)  # `yes` is an option of tooli
    aliases: dict[str, str] = {}
    for position, name in enumerate(names, 1):
        if not name.isascii():
            alias = base = _to_ascii(name) or f"arg_{position}"
            count = 1
            while alias in used or alias in aliases:
                count += 1
                alias = f"{base}_{count}"
            aliases[alias] = name
    return aliases


def _to_ascii(name: str) -> str:
    """Return a name without accents; "" if letters of it have no ASCII form."""
    decomposed = normalize("NFKD", name.translate(_LETTERS))
    letters = [char for char in decomposed if not "\u0300" <= char <= "\u036f"]
    text = "".join(letters)
    return text if text.isascii() and text.isidentifier() else ""
