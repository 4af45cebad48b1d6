"""An app with text that breaks careless formatting, in docstrings, names and values."""

from typing import Annotated

from tooli import Argument, Option, Tooli

app = Tooli(
    "text-layout", version="1", description="100 % \"quotes\", 'more' [bold]{x}[/bold] $HOME `id`"
)
LONG = "averylongword" * 30
WIDE = " ".join(["wörter"] * 80)


@app.command()
def percent(
    name: Annotated[str, Argument(help="100% of %s and %(name)s, {0}, [red]x[/red]")],
    rate: Annotated[str, Option(help="50 % \"quoted\" 'too' \\\\ back")] = "50%",
) -> dict:
    """Takes 100% of %(prog)s and %s: "quotes", 'more', {braces}, [brackets], $HOME, `ticks`."""
    return {"name": name, "rate": rate}


@app.command()
def hebrew(
    name: Annotated[str, Option(help="שלום \u202eabc\u202c")] = "שלום",
) -> dict:
    """שלום עולם, مرحبا, 日本語, \U0001f469\u200d\U0001f467, e\u0301."""
    return {name: "日本語 \U0001f680"}


@app.command()
def long(
    word: Annotated[str, Option(help=LONG + " " + WIDE)] = LONG,
    a_rather_long_parameter_name_that_goes_on_and_on_until_it_is_too_long: int = 1,
) -> list[dict]:
    return [{"word": word, "wide": WIDE, "n": i} for i in range(3)]


long.__doc__ = f"{LONG} {WIDE}\n\n{WIDE}\n\n    {LONG}\n"


@app.command()
def odd_value(value: str = "") -> dict:
    """Return the value."""
    return {"value": value, "list": [value, value]}


@app.command("caf\xe9-%s")
def cafe(naïve: int = 1, größe: str = "x") -> dict:
    """Names that are not ASCII."""
    return {"naïve": naïve, "größe": größe}


app()
