"""The HTTP surface: an app's tools as an ASGI application, and the server that runs it."""
