"""What the server surfaces (HTTP, MCP) share: tools by name, threads, sockets."""
