"""Code that the server surfaces (HTTP, MCP) share: tool dispatch, thread pool, sockets."""
