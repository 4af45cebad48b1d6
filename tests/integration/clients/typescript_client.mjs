// A TypeScript client that sends many requests to a server and prints the answers as JSON.
//
//   node typescript_client.mjs FOLDER MODE COMMAND ARGUMENT…
//
// FOLDER has the SDK in its node_modules. MODE is "legacy" (handshake) or a version to pin.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, mode, command, ...args] = process.argv.slice(2);
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
if (mode !== "legacy") options.versionNegotiation = { mode: { pin: mode } };
const client = new Client({ name: "typescript", version: "7" }, options);

const questions = [];
function onRequest(method, schema, answer) {
  const handle = async (request) => {
    questions.push([method, request.params.message ?? request.params.messages?.[0]?.content?.text]);
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

const answers = {};
async function record(name, request) {
  try {
    answers[name] = await request();
  } catch (failure) {
    answers[name] = { thrown: failure.code ?? failure.name, message: failure.message };
  }
}
// version 1 has another parameter before the options: the schema of the result
const resultSchema = folder.includes("/sdk-1") ? [undefined] : [];
const call = (name, toolArguments = {}, callOptions = {}) =>
  client.callTool({ name, arguments: toolArguments }, ...resultSchema, callOptions);

await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
answers.server = client.getServerVersion();
await record("tools", async () => (await client.listTools()).tools);
await record("add", () => call("add", { a: 1, b: 2 }));
await record("items", () => call("items"));
await record("pet", () => call("pet", { name: "Rex" }));
await record("maybe", () => call("maybe"));
await record("shout", () => call("shout", { word: "hey" }));
await record("invalid", () => call("add", { a: "x" }));
await record("crash", () => call("fail", { kind: "crash" }));
await record("unknown", () => call("nope"));
await record("wipe", () => call("wipe", { path: "/x" }));
await record("name", () => call("ask_name"));
await record("think", () => call("think", { prompt: "6 x 7" }));
await record("whoami", () => call("whoami"));
await record("rows", () => call("rows"));
await record("careful", () => call("careful"));
await record("carefulCount", () => call("careful_count"));
await record("allRows", async () => {
  const seen = [];
  const toolArguments = { count: 25000 };
  do {
    const { structuredContent } = await call("all_rows", toolArguments);
    const rows = structuredContent.result ?? structuredContent;
    seen.push(...rows.map((row) => row.n));
    toolArguments.cursor = structuredContent.meta?.page?.next_cursor;
  } while (toolArguments.cursor !== undefined);
  return { count: seen.length, isOrdered: seen.every((n, i) => n === i) };
});
answers.progress = [];
// The tool answers only when the client has received all notifications.
const onprogress = (progress) => {
  if (answers.progress.push(progress) === 3) call("release", { key: "gate" });
};
await record("steps", () => call("steps_to", { key: "gate" }, { onprogress }));
// The SDKs drop progress notifications that they read together with the answer.
answers.lastProgress = [];
for (let i = 0; i < 25; i++) {
  let last = null;
  await call("steps", { n: 3 }, { onprogress: (progress) => (last = progress) });
  answers.lastProgress.push(last?.message);
}
const controller = new AbortController();
const cancelledCall = call("wait_async", { key: "k" }, { signal: controller.signal });
await record("started", () => call("happened", { event: "wait k" }));
controller.abort("enough");
await record("aborted", () => cancelledCall);
await record("cancelled", () => call("happened", { event: "cancelled k" }));
await record("resources", async () => (await client.listResources()).resources);
await record("templates", async () => (await client.listResourceTemplates()).resourceTemplates);
await record("read", async () => (await client.readResource({ uri: "note://hello" })).contents);
await record("prompts", async () => (await client.listPrompts()).prompts);
await record("prompt", async () =>
  (await client.getPrompt({ name: "review", arguments: { code: "x" } })).messages);
answers.questions = questions;
await client.close();
console.log(JSON.stringify(answers));
