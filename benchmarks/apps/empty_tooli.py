"""A command that returns an empty list, written with tooli."""

from tooli import Tooli

app = Tooli(name="demo", version="1.0.0")


@app.command()
def find(pattern: str) -> list[str]:
    """Find nothing."""
    return []


@app.command()
def ping() -> str:
    """Answer."""
    return "pong"


def main() -> None:
    """Run the command line."""
    app()
