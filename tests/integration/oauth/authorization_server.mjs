// An authorization server on this machine (oidc-provider), whose user agrees to everything.
//
//   node authorization_server.mjs FOLDER RESOURCE FORMAT
//
// FOLDER has oidc-provider in its node_modules. RESOURCE is the URL of the server that the tokens
// are for. FORMAT is "jwt" or "opaque". Prints its URL. A line on stdin with a new FORMAT applies to
// later tokens; `rotate` signs with a new key, after a restart of the provider on the same port.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const [folder, resource, initialFormat] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));
const SCOPES = "shop:read shop:write";
let format = initialFormat;

function newKey() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
}

function newProvider(issuer) {
  const provider = new Provider(issuer, {
    jwks: { keys: [newKey()] },
    cookies: { keys: ["a test"] },
    scopes: ["offline_access", ...SCOPES.split(" ")],
    pkce: { required: () => true },
    clients: [
      {
        client_id: "shop",
        client_secret: "a-secret-of-the-shop",
        redirect_uris: [],
        response_types: [],
        grant_types: [],
        token_endpoint_auth_method: "client_secret_basic",
      },
      {
        client_id: "robot",
        client_secret: "a-secret-of-the-robot",
        redirect_uris: [],
        response_types: [],
        grant_types: ["client_credentials"],
      },
    ],
    clientAuthMethods: ["none", "client_secret_basic", "client_secret_post"],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, interaction) => `/agree/${interaction.uid}` },
    issueRefreshToken: () => true,
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, indicator) => ({
          scope: SCOPES,
          audience: indicator,
          accessTokenFormat: format,
          accessTokenTTL: 3600,
          jwt: { sign: { alg: "RS256" } },
        }),
      },
    },
  });
  provider.use(async (ctx, next) => {
    if (ctx.path === "/reg") {
      // a client that registers with few scopes may request more of them later
      let text = "";
      for await (const chunk of ctx.req) text += chunk;
      const { scope, ...metadata } = JSON.parse(text);
      ctx.req.body = metadata;
    }
    if (!ctx.path.startsWith("/agree/")) return next();
    const { prompt, params, grantId } = await provider.interactionDetails(ctx.req, ctx.res);
    if (prompt.name === "login") {
      const result = { login: { accountId: "ada" } };
      return provider.interactionFinished(ctx.req, ctx.res, result);
    }
    const grant = grantId
      ? await provider.Grant.find(grantId)
      : new provider.Grant({ accountId: "ada", clientId: params.client_id });
    grant.addOIDCScope(`openid ${params.scope ?? ""}`);
    for (const indicator of [params.resource ?? resource].flat()) {
      grant.addResourceScope(indicator, params.scope ?? "");
    }
    const result = { consent: { grantId: await grant.save() } };
    return provider.interactionFinished(ctx.req, ctx.res, result, { mergeWithLastSubmission: true });
  });
  return provider;
}

let handle = () => {};
const server = createServer((request, response) => handle(request, response));
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  handle = newProvider(issuer).callback();
  console.log(issuer);
  createInterface({ input: process.stdin }).on("line", (line) => {
    if (line === "rotate") handle = newProvider(issuer).callback();
    else format = line;
    console.log("done");
  });
  process.stdin.on("end", () => process.exit());
});
