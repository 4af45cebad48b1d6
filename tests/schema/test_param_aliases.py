"""ASCII aliases of parameters."""

from __future__ import annotations

from tooli import Tooli
from tooli.schema.param_aliases import ascii_aliases


def test_parameters_with_ascii_names_have_no_alias() -> None:
    app = Tooli("t")

    @app.command()
    def f(size: int, word: str = "x") -> None: ...

    (tool,) = app.catalog
    assert ascii_aliases(tool) == {}


def test_aliases_are_unique_identifiers() -> None:
    app = Tooli("t")

    @app.command()
    def f(
        größe: int,
        straße: str,
        名前: str,
        naïve: str,
        naive: str,
        yés: bool,
        łódź: str,
        имя: str,
    ) -> None: ...

    (tool,) = app.catalog
    aliases = ascii_aliases(tool)
    assert aliases == {
        "grosse": "größe",
        "strasse": "straße",
        "arg_3": "名前",
        "naive_2": "naïve",  # `naive` is another parameter
        "yes_2": "yés",  # `yes` is an option of tooli
        "lodz": "łódź",
        "arg_8": "имя",
    }
    assert all(alias.isascii() and alias.isidentifier() for alias in aliases)
