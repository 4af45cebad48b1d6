"""Kinds of documents: the MIME type that a URI's ending or a result's type stands for.

Our own small table, and not the platform's: a client gets the same answer from every machine.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

TEXT_MIME, BYTES_MIME, JSON_MIME = "text/plain", "application/octet-stream", "application/json"

_MIME_BY_EXTENSION = {
    **dict.fromkeys(("md", "markdown"), "text/markdown"),
    **dict.fromkeys(("txt", "log"), TEXT_MIME),
    **dict.fromkeys(("htm", "html"), "text/html"),
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
    **dict.fromkeys(("jpg", "jpeg"), "image/jpeg"),
    **{ending: f"text/{ending}" for ending in ("csv", "css", "xml")},
    **{ending: f"image/{ending}" for ending in ("png", "gif", "webp")},
    **{ending: f"application/{ending}" for ending in ("json", "pdf", "toml", "zip")},
    "py": "text/x-python",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "mp4": "video/mp4",
}


def guess_mime_type(uri: str) -> str | None:
    """The kind that the end of a URI stands for."""
    last = uri.partition("?")[0].rpartition("/")[2]
    return _MIME_BY_EXTENSION.get(last.rpartition(".")[2].lower()) if "." in last else None


def mime_type_of_annotation(annotation: Any) -> str | None:
    """The kind of what a function returns; None where its annotation does not tell."""
    if annotation is str:
        return TEXT_MIME
    if annotation is bytes:
        return BYTES_MIME
    outer = getattr(annotation, "__origin__", annotation)
    is_data = outer in (dict, list, tuple, set, int, float, bool)
    return JSON_MIME if is_data or hasattr(outer, "model_fields") else None
