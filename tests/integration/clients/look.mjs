// A TypeScript client that looks at a server and writes down what it sees, as JSON.
//
//   node look.mjs FOLDER ERA COMMAND ARGUMENT…
//
// FOLDER has the client's package in its node_modules; ERA is "legacy" or a version to pin.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, era, command, ...args] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));

function load(...names) {
  for (const name of names) {
    try {
      return require(name);
    } catch (failure) {
      if (failure.code !== "MODULE_NOT_FOUND") throw failure;
    }
  }
  throw new Error(`none of ${names}`);
}

const { Client } = load("@modelcontextprotocol/client", "@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load(
  "@modelcontextprotocol/client/stdio",
  "@modelcontextprotocol/sdk/client/stdio.js",
);

const options = { capabilities: { elicitation: {}, sampling: {} } };
if (era !== "legacy") options.versionNegotiation = { mode: { pin: era } };
const client = new Client({ name: "typescript", version: "7" }, options);

const asked = [];
function onRequest(method, schema, answer) {
  const handle = async (request) => {
    asked.push([method, request.params.message ?? request.params.messages?.[0]?.content?.text]);
    return answer;
  };
  let types = {};
  try {
    types = require("@modelcontextprotocol/sdk/types.js");
  } catch {}
  client.setRequestHandler(types[schema] ?? method, handle);
}
const yes = { action: "accept", content: { yes: true, name: "Ada" } };
onRequest("elicitation/create", "ElicitRequestSchema", yes);
onRequest("sampling/createMessage", "CreateMessageRequestSchema", {
  role: "assistant",
  model: "m",
  content: { type: "text", text: "42" },
});

const seen = {};
async function note(name, ask) {
  try {
    seen[name] = await ask();
  } catch (failure) {
    seen[name] = { thrown: failure.code ?? failure.name, message: failure.message };
  }
}
const first = folder.includes("/sdk-1") ? [undefined] : []; // the schema of the result
const call = (name, given = {}, more = {}) =>
  client.callTool({ name, arguments: given }, ...first, more);

await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
seen.server = client.getServerVersion();
await note("tools", async () => (await client.listTools()).tools);
await note("add", () => call("add", { a: 1, b: 2 }));
await note("items", () => call("items"));
await note("pet", () => call("pet", { name: "Rex" }));
await note("maybe", () => call("maybe"));
await note("shout", () => call("shout", { word: "hey" }));
await note("wrong", () => call("add", { a: "x" }));
await note("crash", () => call("fail", { kind: "crash" }));
await note("unknown", () => call("nope"));
await note("wipe", () => call("wipe", { path: "/x" }));
await note("name", () => call("ask_name"));
await note("think", () => call("think", { prompt: "6 x 7" }));
await note("whoami", () => call("whoami"));
seen.progress = [];
// These clients forget who wants to know of progress as soon as the answer is there, and so the
// answer waits until all of it was heard.
const onprogress = (one) => {
  if (seen.progress.push(one) === 3) call("release", { key: "gate" });
};
await note("steps", () => call("steps_to", { key: "gate" }, { onprogress }));
const giving = new AbortController();
const waiting = call("wait_async", { key: "k" }, { signal: giving.signal });
await note("started", () => call("happened", { event: "wait k" }));
giving.abort("enough");
await note("aborted", () => waiting);
await note("cancelled", () => call("happened", { event: "cancelled k" }));
await note("resources", async () => (await client.listResources()).resources);
await note("templates", async () => (await client.listResourceTemplates()).resourceTemplates);
await note("read", async () => (await client.readResource({ uri: "note://hello" })).contents);
await note("prompts", async () => (await client.listPrompts()).prompts);
await note("prompt", async () =>
  (await client.getPrompt({ name: "review", arguments: { code: "x" } })).messages);
seen.asked = asked;
await client.close();
console.log(JSON.stringify(seen));
