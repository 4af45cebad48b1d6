"""Read functions into tools, convert values, and write JSON Schema."""
