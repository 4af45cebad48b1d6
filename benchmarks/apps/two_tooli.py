"""The two-command app, written with tooli."""

from tooli import Tooli

app = Tooli(name="demo", version="1.0.0")


@app.command()
def hello(name: str, count: int = 1) -> str:
    """Greet somebody."""
    return " ".join(["hello", name] * count)


@app.command()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def main() -> None:
    """Run the command line."""
    app()
