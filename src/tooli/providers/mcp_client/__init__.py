"""A client of MCP servers, for `MCPProvider`.

    MCPProvider ─▶ ServerSession ─┬▶ ServerProcess    a program, over its stdin and stdout
         │                        └▶ HttpEndpoint     a URL, streamable HTTP
         ├▶ tool_list_cache       the list of tools on disk, so that help starts no server
         └▶ ServerCall ─┬▶ caller_questions    elicitation and sampling, for the caller
                        └▶ call_results        content and errors, as results of tooli

The client is written with the standard library and threads. The official SDK takes 0.9 s of CPU
time to import, which is longer than most calls on a command line. It would also need one event loop
for all calls, has no limit for a message, and fails on results that differ from their schema.
"""
