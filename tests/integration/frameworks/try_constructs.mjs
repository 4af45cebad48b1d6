// Gives each construct to an MCP client, and prints what its model receives.
//
//     node try_constructs.mjs FRAMEWORK PYTHON SERVER CASES
//
// CASES is `{construct: arguments}`. The output is `{construct: {schema, answer}}`, or
// `{construct: {error}}` if the framework refuses the construct.

const [framework, python, server, cases] = process.argv.slice(2);

async function vercel(name, args) {
  const { createMCPClient } = await import("@ai-sdk/mcp");
  const { Experimental_StdioMCPTransport } = await import("@ai-sdk/mcp/mcp-stdio");
  const transport = new Experimental_StdioMCPTransport({ command: python, args: [server, name] });
  const client = await createMCPClient({ transport });
  try {
    const tool = (await client.tools())[name];
    const answer = await tool.execute(args, { toolCallId: "1", messages: [] });
    return { schema: tool.inputSchema.jsonSchema, answer: answer.content[0].text };
  } finally {
    await client.close();
  }
}

async function mastra(name, args) {
  const { MCPClient } = await import("@mastra/mcp");
  const client = new MCPClient({ id: name, servers: { s: { command: python, args: [server, name] } } });
  try {
    const tool = (await client.listTools())[`s_${name}`];
    const answer = await tool.execute(args, {});
    const schema = tool.inputSchema["~standard"].jsonSchema.input({ target: "draft-07" });
    return { schema, answer: typeof answer === "string" ? answer : answer.content[0].text };
  } finally {
    await client.disconnect();
  }
}

const found = {};
for (const [name, args] of Object.entries(JSON.parse(cases))) {
  try {
    found[name] = await { vercel, mastra }[framework](name, args);
  } catch (error) {
    found[name] = { error: String(error).slice(0, 500) };
  }
}
console.log(`\n${JSON.stringify(found)}`);
process.exit(0);
