/* ---------------------------------------------------------------- requests to the server */
let app = {},
	commands = [],
	served = [], // the resources and prompts, in the form of commands
	prog = "",
	frameworkOptions = [],
	token = session.get("tooli-token") || "";
const MAX_STREAM_ROWS = 50000;
const headers = (more) => ({ ...(token && { Authorization: `Bearer ${token}` }), ...more });
function tokenForm(again, refused) {
	const input = h("input.in.mono", {
		type: "password",
		id: uid(),
		autocomplete: "off",
		"aria-label": "Bearer token",
	});
	return h(
		"form.fix",
		{
			onsubmit(e) {
				e.preventDefault();
				token = input.value.trim();
				session.set("tooli-token", token || null);
				again();
			},
		},
		t(
			"span",
			refused
				? "The server rejected this token."
				: "The server needs a bearer token. It is kept for this tab only.",
		),
		t(".wrap", input, h("button.btn.go", { type: "submit" }, "Use it")),
	);
}
const notice = (title, text, ...more) => t(".notice", h("h1", { tabIndex: -1 }, title), t("p", text), more);

/** Read the lines of a response as they arrive. */
async function readLines(response, read) {
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let rest = "";
	for (;;) {
		const { value, done } = await reader.read(),
			lines = (rest + (value || "")).split("\n");
		rest = done ? "" : lines.pop();
		lines.forEach(read);
		if (done) return;
	}
}
/** Return a function that takes the lines of an event stream and passes on its events. */
function eventReader(receive) {
	let name = "",
		data = [];
	return (line) => {
		if (line.startsWith("event:")) name = line.slice(6).trim();
		else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
		else if (!line.trim() && data.length) {
			receive(name || "message", parse(data.join("\n")));
			name = "";
			data = [];
		}
	};
}
/** Send the call of a command. The response is an envelope, JSON lines or events. */
function sendCall(cmd, values, options, signal) {
	if (cmd.mcp) {
		const request = mcpRequest(cmd, values);
		return fetch(mcpAddress(), { method: "POST", body: json(request), signal, cache: "no-store", headers: headers(mcpHeaders(request)) });
	}
	const q = query(options),
		live = cmd.reports && !options.dry_run,
		streams = cmd.streams && !options.dry_run;
	const boundary = attachedFiles(values).length > 0 && `tooli-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
	return fetch(address(cmd) + (q && "?" + q), {
		method: "POST",
		body: boundary ? formOf(values, boundary) : json(values),
		signal,
		cache: "no-store",
		headers: headers({
			"Content-Type": boundary ? `multipart/form-data; boundary=${boundary}` : "application/json",
			Accept: live
				? "text/event-stream, application/json;q=0.9"
				: streams
					? "application/x-ndjson, application/json;q=0.9"
					: "application/json",
		}),
	});
}
/** Return the names of the arguments that are files, or lists of files. */
const attachedFiles = (values) =>
	Object.keys(values).filter((k) => [values[k]].flat().length && [values[k]].flat().every(isAttachment));
/** Return the arguments as a form: JSON parts and files. FormData would send JSON as files. */
function formOf(values, boundary) {
	const parts = [],
		files = attachedFiles(values),
		quote = (text) => text.replace(/["\r\n]/g, encodeURIComponent),
		part = (name, more, content) =>
			parts.push(`--${boundary}\r\nContent-Disposition: form-data; name="${quote(name)}"${more}\r\n\r\n`, content, "\r\n");
	for (const [name, v] of Object.entries(values))
		if (!files.includes(name)) part(name, "\r\nContent-Type: application/json", json(v));
		else
			for (const x of [v].flat()) {
				const file = attachments.get(x);
				part(name, `; filename="${quote(file.name)}"\r\nContent-Type: application/octet-stream`, file);
			}
	return new Blob([...parts, `--${boundary}--\r\n`]);
}
/** Return the answer of an MCP server as an envelope. */
function envelopeOfMcp(cmd, text) {
	const answer = parse(text.replace(/^(event:.*\n)?data: ?/, ""));
	if (answer.error) {
		const { code, message, data } = answer.error,
			envelope = Object.values(data || {}).find((v) => isObj(v) && isObj(v.error));
		return envelope || { ok: false, error: { code: String(code), message }, meta: {} };
	}
	return { ok: true, result: cmd.mcp.result(answer.result), meta: {} };
}
/** Return the resources and prompts of the app in the form of commands. */
function servedCommands() {
	const resources = (app.resources || []).map((r) => {
		const template = r.uriTemplate || "",
			names = [...template.matchAll(/\{([^}*]+)\*?\}/g)].map((m) => m[1]);
		return {
			section: "Resources",
			name: r.title || r.name,
			path: ["resources", r.uri || template],
			uri: r.uri || template,
			description: r.description || "",
			input_schema: stringSchema(names.map((name) => ({ name, required: true }))),
			annotations: ["read-only"],
			verb: "Read",
			mcp: {
				method: "resources/read",
				params: (v) => ({ uri: r.uri || template.replace(/\{([^}*]+)(\*?)\}/g, (_, k, rest) => expand(v[k] ?? "", rest)) }),
				result: (x) => (x.contents?.length === 1 ? asResource(x.contents[0]) : (x.contents || []).map(asResource)),
			},
		};
	});
	const prompts = (app.prompts || []).map((p) => ({
		section: "Prompts",
		name: p.title || p.name,
		path: ["prompts", p.name],
		description: p.description || "",
		input_schema: stringSchema(p.arguments || []),
		annotations: ["read-only"],
		verb: "Fill in",
		mcp: {
			method: "prompts/get",
			params: (v) => ({ name: p.name, arguments: v }),
			result: (x) => ({ messages: x.messages || [] }),
		},
	}));
	return [...resources, ...prompts];
}
const expand = (value, rest) => (rest ? String(value).split("/").map(encodeURIComponent).join("/") : encodeURIComponent(String(value)));
const asResource = (contents) => ({ type: "resource", resource: contents });
const stringSchema = (all) => ({
	type: "object",
	properties: Object.fromEntries(all.map((a) => [a.name, { type: "string", ...(a.description && { description: a.description }) }])),
	required: all.filter((a) => a.required).map((a) => a.name),
});
/** Return the resource that has a URI, and the values of its template. */
function findServed(uri) {
	for (const cmd of served.filter((x) => x.uri)) {
		const names = [],
			source = cmd.uri.split(/(\{[^}]+\})/).map((part) => {
				const name = /^\{([^}*]+)(\*?)\}$/.exec(part);
				if (name) names.push(name[1]);
				return name ? (name[2] ? "(.+)" : "([^/]+)") : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
			}),
			found = uri.length < 2000 && new RegExp(`^${source.join("")}$`).exec(uri);
		if (found)
			try {
				return [cmd, Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1])]))];
			} catch {
				return null;
			}
	}
	return null;
}
const serves = (uri) => !!findServed(uri);
