// The OAuth client of the TypeScript SDK, with a user who agrees to everything.
//
//   node typescript_client.mjs FOLDER MODE URL REDIRECT
//
// FOLDER has the SDK in its node_modules. MODE is "legacy" (handshake) or a version to pin. REDIRECT
// is the URL to which the authorization server sends the user back.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, mode, url, redirectUrl] = process.argv.slice(2);
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

// Follow the redirects of the authorization server, as the browser of a user does.
async function browse(start) {
  const cookies = new Map();
  let target = start;
  while (!target.startsWith(redirectUrl)) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await fetch(target, { redirect: "manual", headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [name, value] = line.split(";")[0].split("=");
      cookies.set(name, value);
    }
    const location = answer.headers.get("location");
    if (!location) throw new Error(await answer.text());
    target = new URL(location, target).href;
  }
  return new URL(target).searchParams;
}

const requested = [];
const store = {};
let answer;
const authProvider = {
  redirectUrl,
  clientMetadata: {
    client_name: "typescript",
    redirect_uris: [redirectUrl],
    token_endpoint_auth_method: "client_secret_post",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
  },
  clientInformation: () => store.client,
  saveClientInformation: (client) => void (store.client = client),
  tokens: () => store.tokens,
  saveTokens: (tokens) => void (store.tokens = tokens),
  saveCodeVerifier: (verifier) => void (store.verifier = verifier),
  codeVerifier: () => store.verifier,
  redirectToAuthorization: async (target) => {
    requested.push(Object.fromEntries(target.searchParams));
    answer = await browse(target.href);
  },
};

const statuses = [];
const logged = async (target, init) => {
  const response = await fetch(target, init);
  statuses.push([init?.method ?? "GET", new URL(target).pathname, response.status]);
  return response;
};

let client, transport;
async function connect() {
  const options = mode === "legacy" ? {} : { versionNegotiation: { mode: { pin: mode } } };
  client = new Client({ name: "typescript", version: "7" }, options);
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider, fetch: logged });
  await client.connect(transport);
}

// Run a request. If the client asks its user, finish that and run the request again.
async function authorized(run) {
  try {
    return await run();
  } catch (failure) {
    if (!answer) throw failure;
    const parameters = answer;
    answer = undefined;
    const passed = folder.includes("/sdk-1") ? parameters.get("code") : parameters;
    await transport.finishAuth(passed);
    return await run();
  }
}

const call = (name, toolArguments = {}) =>
  client.callTool({ name, arguments: toolArguments }, ...resultSchema);
const value = (result) => result.structuredContent.result ?? result.structuredContent;

await authorized(connect);
const answers = { whoami: value(await call("whoami")), peek: value(await call("peek")) };
answers.listed = (await client.listTools()).tools.map((tool) => tool.name);
// Version 1 of the SDK refreshes its token instead of asking its user for more scopes.
if (folder.includes("/sdk-1")) delete store.tokens.refresh_token;
answers.put = value(await authorized(() => call("put", { thing: "rice" })));
answers.listedAfter = (await client.listTools()).tools.map((tool) => tool.name);
answers.scope = store.tokens.scope;
const refreshed = statuses.length;
store.tokens = { ...store.tokens, access_token: "no-longer-valid" };
answers.afterRefresh = value(await call("peek"));
answers.refresh = statuses.slice(refreshed);
answers.requested = requested;
answers.statuses = statuses;
await client.close();
console.log(JSON.stringify(answers));
