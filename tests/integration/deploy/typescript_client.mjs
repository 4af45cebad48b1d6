// A TypeScript client that opens several sessions of a server over HTTP and prints the answers.
//
//   node typescript_client.mjs FOLDER MODE URL SESSIONS
//
// FOLDER has the SDK in its node_modules. MODE is "legacy" (handshake) or a version to pin.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, mode, url, sessions] = process.argv.slice(2);
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
const { StreamableHTTPClientTransport } = load(
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/sdk/client/streamableHttp.js",
);
const resultSchema = folder.includes("/sdk-1") ? [undefined] : [];

// a new connection for each request, so that the requests reach different workers
const fetchOnce = (target, init) =>
  fetch(target, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), connection: "close" } });

async function run() {
  const options = mode === "legacy" ? {} : { versionNegotiation: { mode: { pin: mode } } };
  const client = new Client({ name: "typescript", version: "7" }, options);
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: fetchOnce }));
  const call = (name, toolArguments = {}, callOptions = {}) =>
    client.callTool({ name, arguments: toolArguments }, ...resultSchema, callOptions);
  const value = (result) => result.structuredContent.result ?? result.structuredContent;
  await client.listTools();
  const sums = [];
  for (let i = 0; i < 5; i++) sums.push(value(await call("add", { a: i, b: 1 })));
  const progress = [];
  await call("steps", { count: 3 }, { onprogress: (event) => progress.push(event.progress) });
  const name = value(await call("whoami"));
  await client.close();
  return { sums, name, progress };
}

console.log(JSON.stringify(await Promise.all(Array.from({ length: Number(sessions) }, run))));
