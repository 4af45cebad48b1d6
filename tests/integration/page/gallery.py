"""An app with commands for everything that the page can show.

python tests/integration/page/gallery.py api serve     serves it at http://127.0.0.1:8000/
"""

from __future__ import annotations

import struct
import time
import zlib
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from tooli import Audio, Context, Embedded, Image, Link, Option, SecretInput, Tooli
from tooli.annotations import Destructive, Idempotent, ReadOnly
from tooli.errors import InputError, Suggestion

HOSTILE_MARKDOWN = """# Report <img src=x onerror="window.hacked=1">

<script>window.hacked = 1</script>

[a link](javascript:window.hacked=1) and [another](data:text/html,<script>window.hacked=1</script>)
and [a good one](https://example.org/a?b=1&c=2), **bold**, *italic*, `code <b>`, ~~gone~~.

![a picture](https://example.org/x.png) <https://example.org/auto>

| item | left |
| :--- | ---: |
| tea <svg onload=window.hacked=1> | 3 |
| rice | 12 |

- one
  - one and a half
- two
1. first
2. second

> a quotation

```python
print("<b>not bold</b>")
```

---
"""

app = Tooli(
    "bakery",
    description="Orders, recipes and deliveries of a small bakery.",
    version="2.1.0",
)
orders = Tooli(help="Take, change and cancel orders.")
kitchen = Tooli(help="Recipes, and what is in the oven.")
app.add_typer(orders, name="orders")
app.add_typer(kitchen, name="kitchen")


class Size(Enum):
    """Size of a cake."""

    small = "small"
    medium = "medium"
    large = "large"


@dataclass
class Line:
    """One line of an order."""

    item: str
    count: int = 1


def png(width: int, height: int) -> bytes:
    """Return a PNG image with a colour gradient."""
    rows = b"".join(
        b"\0"
        + bytes(
            c for x in range(width) for c in (90 + x * 150 // width, 120, 60 + y * 160 // height)
        )
        for y in range(height)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + packed


def wav(samples: int = 800) -> bytes:
    """Return a WAV file with silence."""
    data = bytes([128]) * samples
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    body = b"WAVE" + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


@orders.command(
    annotations=ReadOnly,
    paginated=True,
    examples=[{"args": ["--city", "Bern"], "description": "All orders from Bern"}],
)
def list_orders(
    city: Annotated[str, Option(help="Only orders of this city.")] = "",
) -> list[dict[str, Any]]:
    """List the orders, newest first.

    Each order has its customer and its lines.
    """
    cities = ["Bern", "Basel", "Genève", "Zürich"]
    return [
        {
            "order": 4210 - n,
            "customer": ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Mary Seacole"][n % 4],
            "city": cities[n % 4],
            "total": round(17.5 + n * 13.7 % 90, 2),
            "paid": n % 3 != 0,
            "note": None if n % 5 else "Ring twice",
            "lines": [{"item": "rye bread", "count": n % 3 + 1}, {"item": "croissant", "count": 4}],
        }
        for n in range(120)
        if not city or cities[n % 4] == city
    ]


@orders.command(
    error_codes={"E3020": "the bakery is closed on that day"},
    examples=[
        {
            "args": ["--customer", "Ada", "--size", "large", "--day", "2026-12-24"],
            "description": "A large cake",
        }
    ],
)
def create(
    customer: Annotated[str, Option(help="Name of the customer.")],
    size: Annotated[Size, Option(help="How many people eat it.")] = Size.medium,
    day: Annotated[date | None, Option(help="Day of the delivery.")] = None,
    lines: Annotated[list[Line] | None, Option(help="What to bake besides the cake.")] = None,
    tags: Annotated[list[str] | None, Option(help="Words to find the order by.")] = None,
    picture: Annotated[bytes | None, Option(help="A picture to print on the cake.")] = None,
    gift: Annotated[bool, Option(help="Wrap it as a present.")] = False,
    discount: Annotated[int, Option(min=0, max=50, help="Discount in percent.")] = 0,
    api_key: Annotated[SecretInput[str] | None, Option(help="Key of the payment service.")] = None,
) -> dict[str, Any]:
    """Take an order for a cake."""
    if customer == "fail":
        raise InputError(
            "There is no customer 'fail'.",
            field="customer",
            suggestion=Suggestion("retry_with_modified_input", "Did you mean 'Ada'?"),
        )
    return {
        "order": 4211,
        "customer": customer,
        "size": size.value,
        "day": day,
        "gift": gift,
        "discount": discount,
        "picture_bytes": len(picture or b""),
        "has_key": api_key is not None,
        "tags": tags or [],
        "lines": [{"item": line.item, "count": line.count} for line in lines or []],
        "address": {"street": "Kramgasse 49", "city": "Bern", "geo": {"lat": 46.948, "lon": 7.447}},
    }


@orders.command(annotations=Destructive)
def cancel(order: int) -> dict[str, Any]:
    """Cancel an order and refund it."""
    return {"order": order, "refunded": True}


@orders.command(requires_approval=True, danger_level="high")
def refund_all(reason: str) -> int:
    """Refund every order of today."""
    return len(reason)


@kitchen.command()
def bake(ctx: Context, loaves: int = 8, pause: float = 0.4) -> dict[str, int]:
    """Bake loaves, one after the other, and report the progress."""
    for n in range(loaves):
        ctx.report(n, loaves, f"loaf {n + 1} is in the oven")
        ctx.log(f"loaf {n + 1}: 230 °C")
        time.sleep(pause)
    ctx.log("the oven is off", level="warning")
    ctx.report(loaves, loaves, "done")
    return {"loaves": loaves}


@kitchen.command(annotations=ReadOnly)
def photo() -> Image:
    """Take a photo of the oven."""
    return Image(png(320, 200))


@kitchen.command(annotations=ReadOnly)
def media() -> list[Any]:
    """Return a caption, a photo, a sound, two documents and a link."""
    return [
        "The oven at noon",
        Image(png(160, 100)),
        Audio(wav()),
        Embedded("recipe://bread", "# Bread\n\n- flour\n- water", "text/markdown"),
        Embedded("file:///bread.pdf", b"%PDF-1.4 small", "application/pdf"),
        Link("https://example.org/bread", "Bread on the web", "More about it"),
    ]


@kitchen.command(annotations=ReadOnly | Idempotent)
def report() -> str:
    """Write a report in Markdown."""
    return HOSTILE_MARKDOWN


@kitchen.command(annotations=ReadOnly)
def repeat(part: str, times: int) -> str:
    """Return Markdown that repeats a part."""
    return "# Start\n\n" + part * times


@kitchen.command(annotations=ReadOnly)
def follow(ctx: Context, events: int = 5) -> Any:
    """Follow the oven; each event comes at once."""
    for n in range(events):
        ctx.log(f"event {n}")
        ctx.report(n, events)
        yield {"second": n, "temperature": 200 + n}


@kitchen.command()
def hostile() -> list[Any]:
    """Return values that attack the page."""
    return [
        {
            "type": "image",
            "mimeType": "text/html",
            "data": "PHNjcmlwdD53aW5kb3cuaGFja2VkPTE8L3NjcmlwdD4=",
        },
        {
            "type": "image",
            "mimeType": "image/svg+xml",
            "data": "PHN2ZyBvbmxvYWQ9IndpbmRvdy5oYWNrZWQ9MSIvPg==",
        },
        {"type": "resource_link", "uri": "javascript:window.hacked=1", "name": "<b>click</b>"},
        {
            "type": "resource",
            "resource": {"uri": "x:<b>", "text": "<img src=x onerror=window.hacked=1>"},
        },
        {"__proto__": 1, "constructor": "=cmd|' /C calc'!A0"},
    ]


@app.command()
def hello(name: str = "world") -> str:
    """Greet somebody."""
    return f"Hello {name}!"


@app.command()
def save(path: Path, text: str = "") -> int:
    """Count the characters for a file."""
    del path
    return len(text)


@dataclass
class Oven:
    """State of the oven."""

    temperature: int = 230
    trays: list[str] = field(default_factory=lambda: ["left", "right"])


@app.resource("bakery://oven", mime_type="application/json")
def oven() -> dict[str, Any]:
    """State of the oven."""
    return {"temperature": 230, "trays": ["left", "right"]}


@app.resource("bakery://recipes/{name}", mime_type="text/markdown")
def recipe(name: str) -> str:
    """A recipe."""
    return f"# {name}\n\n1. Knead.\n2. Bake.\n\n<script>window.hacked=1</script>"


@app.prompt()
def restock(item: str, count: str = "10") -> str:
    """Ask for an order of ingredients."""
    return f"Write a short order for {count} kg of {item}."


if __name__ == "__main__":
    app()
