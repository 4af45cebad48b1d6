"""OpenAPIProvider: the operations of an OpenAPI document as tools."""
