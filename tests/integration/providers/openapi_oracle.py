"""Validate requests with openapi-core. It runs in an environment of its own, with its versions.

Reads {"documents": {name: document}, "requests": [{"document", "method", "target", "headers",
"body"}]} from stdin; prints a list with null or the reason of the rejection for each request.
"""

from __future__ import annotations

import json
import sys
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from openapi_core import OpenAPI
from openapi_core.datatypes import RequestParameters
from werkzeug.datastructures import Headers, ImmutableMultiDict

HOST = "http://127.0.0.1"


class Request:
    """A request in the form that openapi-core takes."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        parts = urlsplit(recorded["target"])
        headers = Headers(list(recorded["headers"].items()))
        pairs = [c.split("=", 1) for c in headers.get("cookie", "").split("; ") if "=" in c]
        self.host_url = HOST
        self.path = parts.path
        self.method = recorded["method"].lower()
        self.body = recorded["body"].encode("latin-1") or None
        self.content_type = headers.get("content-type", "")
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(parse_qsl(parts.query, keep_blank_values=True)),
            header=headers,
            cookie=ImmutableMultiDict(pairs),
        )


def without_servers_and_security(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document whose only server is the one that has recorded the requests."""
    document["servers"] = [{"url": HOST}]
    document.pop("security", None)
    for item in document["paths"].values():
        item.pop("servers", None)
        for operation in item.values():
            if isinstance(operation, dict):
                operation.pop("servers", None)
                operation.pop("security", None)
    return document


def main() -> None:
    """Validate the requests."""
    given = json.load(sys.stdin)
    documents: dict[str, OpenAPI] = {}
    found: list[str | None] = []
    for recorded in given["requests"]:
        name = recorded["document"]
        try:
            if name not in documents:
                document = without_servers_and_security(given["documents"][name])
                documents[name] = OpenAPI.from_dict(document)
            documents[name].validate_request(Request(recorded))
            found.append(None)
        except Exception as failure:  # openapi-core raises errors of many classes
            cause = failure.__cause__ or failure
            errors = [str(error.message) for error in getattr(cause, "schema_errors", ())]
            found.append(f"{type(failure).__name__}: {cause} {errors}"[:400])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
