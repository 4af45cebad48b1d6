"""List the operations of an OpenAPI document: `openapi_tooli.py FILE [--schemas]`.

Without `--schemas`: names, effects and summaries, which help, search and deferred discovery need.
With it, the whole list of an MCP server, with the schemas of arguments and results.
"""

import json
import sys

from tooli import Tooli
from tooli.providers import OpenAPIProvider


def main() -> None:
    """Print the number of operations, and the size of their descriptions."""
    app = Tooli("api")
    app.add_provider(OpenAPIProvider(sys.argv[1], base_url="https://api.test"))
    if "--schemas" not in sys.argv:
        tools = list(app.catalog)
        print(f"{len(tools)} operations, {sum(len(tool.doc.summary) for tool in tools)} characters")
        return
    from tooli.mcp.service import McpService

    service = McpService(app)
    count = size = 0
    cursor = None
    while count == 0 or cursor is not None:
        page = service.list_tools(cursor, stateless=False)
        cursor, count = page.get("nextCursor"), count + len(page["tools"])
        size += len(json.dumps(page["tools"]))
    print(f"{count} operations, {size} characters")
