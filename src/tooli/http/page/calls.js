/* ---------------------------------------------------------------- a call as shell, Python, curl and MCP */
const sh = (w) => (/^[\w@%+=:,./-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`);
const propsOf = (cmd) => cmd.input_schema?.properties || {};
const commandPath = (cmd) => cmd.cli_path || cmd.path; // empty for an app with a single command
const flagOf = (cmd, name, table = "flags") => [getOwn(cmd[table], name)].flat()[0];
const address = (cmd) =>
	new URL(["tools", ...cmd.path.map(encodeURIComponent)].join("/"), location.href.split("#")[0]).href;
function frameworkFlag(cmd, option) {
	// a parameter of the same name wins; the framework option is then --tooli-…
	const [flag] = option.flags,
		taken = [...Object.values(cmd.flags || {}), ...Object.values(cmd.negations || {})].flat();
	return taken.includes(flag) ? flag.replace("--", "--tooli-") : flag;
}
/* Framework options that the page can switch on. The server describes all options in `app.options`. */
const TOGGLES = ["dry_run", "yes", "detailed"];
/* Framework options with a value of the person's choice. */
const VALUES = ["limit", "cursor"];
const optionNamed = (name) => frameworkOptions.find((x) => x.name === name);
function spelling(name, surface) {
	// the option and its value in an interface: a flag, or a choice that has this value
	const accepted = frameworkOptions.filter((x) => x.interfaces.includes(surface)),
		flag = accepted.find((x) => x.name === name),
		choice = accepted.find((x) => x.choices.includes(name));
	return flag ? [flag, true] : choice ? [choice, name] : null;
}
const activeOptions = (o, surface) => [
	...TOGGLES.filter((k) => o[k])
		.map((k) => spelling(k, surface))
		.filter(Boolean),
	...VALUES.filter((k) => o[k] && optionNamed(k)?.interfaces.includes(surface)).map((k) => [optionNamed(k), o[k]]),
];
const query = (o) =>
	activeOptions(o, "http")
		.map(([option, value]) => `${option.name}=${encodeURIComponent(value)}`)
		.join("&");

function cliArguments(cmd, values) {
	// null if the command line cannot express it
	const words = (v) => {
		const all = (Array.isArray(v) ? v : [v]).map((x) => (x === null || Array.isArray(x) ? null : toText(x)));
		return all.length && !all.includes(null) ? all : null;
	};
	const positionals = [],
		options = [],
		order = cmd.positional || [],
		last = order.findLastIndex((n) => Object.hasOwn(values, n));
	for (const [i, name] of order.slice(0, last + 1).entries()) {
		const { schema } = normalize(getOwn(propsOf(cmd), name)),
			v = getOwn(values, name) ?? schema.default,
			w = v == null ? null : words(v);
		if (!w || (kindOf(schema) === "list" && i < order.length - 1)) return null;
		positionals.push(...w);
	}
	for (const [name, v] of Object.entries(values)) {
		if (order.includes(name)) continue;
		const flag = flagOf(cmd, name),
			{ schema } = normalize(getOwn(propsOf(cmd), name)),
			w = words(v);
		if (!flag || !w) return null;
		if (kindOf(schema) === "boolean" && typeof v === "boolean") {
			const no = flagOf(cmd, name, "negations");
			if (v) options.push(flag);
			else if (no) options.push(no);
			else if (schema.default !== false) return null;
		} else if (kindOf(schema) === "tuple") {
			if (w.some((x) => x.startsWith("-"))) return null;
			options.push(flag, ...w);
		} else for (const x of w) options.push(...(x.startsWith("-") ? [`${flag}=${x}`] : [flag, x]));
	}
	return { positionals, options };
}
function asCli(cmd, values, o) {
	const head = [...prog.split(/\s+/), ...commandPath(cmd)],
		args = cliArguments(cmd, values);
	const more = activeOptions(o, "cli").flatMap(([option, value]) => [
		frameworkFlag(cmd, option),
		...(value === true ? [] : [String(value)]),
	]);
	if (!args)
		return [...head, frameworkFlag(cmd, optionNamed("input")), json(values), ...more].map(sh).join(" ");
	const tail = [...args.options, ...more];
	return [
		...head,
		...(args.positionals.some((w) => /^-./.test(w)) ? [...tail, "--", ...args.positionals] : [...args.positionals, ...tail]),
	]
		.map(sh)
		.join(" ");
}
function asCurl(cmd, values, o) {
	const q = query(o),
		files = attachedFiles(values),
		jsonPart = (k, v) => `${k}="${json(v).replace(/[\\"]/g, "\\$&")}";type=application/json`,
		filePart = (k, v) => `${k}=@${attachments.get(v).name}`;
	return [
		`curl ${cmd.streams ? "-N " : ""}-X POST ${sh(address(cmd) + (q && "?" + q))}`,
		cmd.streams && "-H 'Accept: application/x-ndjson'",
		token && '-H "Authorization: Bearer $TOKEN"',
		...(files.length
			? Object.entries(values).flatMap(([k, v]) =>
					files.includes(k) ? [v].flat().map((x) => `-F ${sh(filePart(k, x))}`) : `-F ${sh(jsonPart(k, v))}`,
				)
			: ["-H 'Content-Type: application/json'", `-d ${sh(json(values))}`]),
	]
		.filter(Boolean)
		.join(" \\\n  ");
}
function asPython(cmd, values, o) {
	const literal = (v) =>
		v === null
			? "None"
			: v === true
				? "True"
				: v === false
					? "False"
					: Array.isArray(v)
						? `[${v.map(literal).join(", ")}]`
						: isObj(v)
							? `{${Object.entries(v)
									.map(([k, x]) => `${json(k)}: ${literal(x)}`)
									.join(", ")}}`
							: json(v);
	const opts = activeOptions(o, "python").map(([option, value]) => [option.name, literal(value)]),
		clash = opts.some(([k]) => Object.hasOwn(propsOf(cmd), k));
	const args = [json(cmd.name)],
		otherNames = emptyObject();
	for (const [k, v] of Object.entries(values))
		/^[A-Za-z_]\w*$/.test(k) ? args.push(`${k}=${literal(v)}`) : (otherNames[k] = v);
	const set = opts.map((x) => x.join("="));
	if (!clash) args.push(...set);
	if (Object.keys(otherNames).length) args.push(`**${literal(otherNames)}`);
	const start = `app${clash ? `.options(${set.join(", ")})` : ""}.${cmd.streams ? "stream" : "call"}(`,
		line = `${start}${args.join(", ")})`,
		long = line.length > 76;
	const call = long ? `${start}\n    ${args.join(",\n    ")},\n)` : line;
	return cmd.streams ? `for item in ${call}:\n    print(item)` : call;
}
/** Return the request of a resource or a prompt, which only MCP has. */
const mcpRequest = (cmd, values) => ({
	jsonrpc: "2.0",
	id: 1,
	method: cmd.mcp.method,
	params: {
		...cmd.mcp.params(values),
		_meta: { "io.modelcontextprotocol/protocolVersion": MCP_VERSION, "io.modelcontextprotocol/clientCapabilities": {} },
	},
});
const MCP_VERSION = "2026-07-28";
const mcpAddress = () => new URL("mcp", location.href.split("#")[0]).href;
function mcpHeaders(request) {
	const name = request.params.uri ?? request.params.name,
		safe = /^[\x20-\x7e]*$/.test(name) && name.trim() === name && !/^=\?base64\?/i.test(name),
		bytes = new TextEncoder().encode(name);
	return {
		"Content-Type": "application/json",
		Accept: "application/json, text/event-stream",
		"MCP-Protocol-Version": MCP_VERSION,
		"Mcp-Method": request.method,
		"Mcp-Name": safe ? name : `=?base64?${btoa(String.fromCharCode(...bytes))}?=`,
	};
}
function mcpCurl(cmd, values) {
	const request = mcpRequest(cmd, values),
		sent = Object.entries(mcpHeaders(request)).map(([k, v]) => `-H ${sh(`${k}: ${v}`)}`);
	return [`curl ${sh(mcpAddress())}`, token && '-H "Authorization: Bearer $TOKEN"', ...sent, `-d ${sh(json(request))}`]
		.filter(Boolean)
		.join(" \\\n  ");
}
function asMcp(cmd, values, o) {
	const set = Object.fromEntries(activeOptions(o, "mcp").map(([option, value]) => [option.name, value])),
		meta = Object.keys(set).length ? { _meta: { "io.tooli/options": set } } : {};
	return json(
		{ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: cmd.mcp_name, arguments: values, ...meta } },
		2,
	);
}
const SECRET_NAME = /(^|[_-])(password|passwd|passphrase|secret|token|api[_-]?key|credentials?)$/i;
/** Return the values with a placeholder such as <token> for each secret, to show and to copy. */
function hideSecrets(raw, value, name = "secret") {
	const { schema: s } = normalize(raw ?? {});
	if (value == null || value === "") return value;
	if (s.writeOnly || s.format === "password" || (typeof value === "string" && SECRET_NAME.test(name))) return `<${name}>`;
	if (s.anyOf) return s.anyOf.reduce((v, member) => hideSecrets(member, v, name), value);
	if (Array.isArray(value))
		return value.map((v, i) => hideSecrets(s.prefixItems?.[i] ?? (isObj(s.items) ? s.items : {}), v, name));
	if (!isObj(value)) return value;
	const others = isObj(s.additionalProperties) ? s.additionalProperties : {},
		hidden = emptyObject();
	for (const [k, v] of Object.entries(value)) hidden[k] = hideSecrets(getOwn(s.properties, k) ?? others, v, k);
	return hidden;
}
const LANGUAGES = Object.fromEntries(
	Object.entries({ curl: asCurl, Python: asPython, MCP: asMcp, CLI: asCli }).map(([name, write]) => [
		name,
		(cmd, values, o) => write(cmd, hideSecrets(cmd.input_schema, values), o),
	]),
);
const MCP_LANGUAGES = { curl: mcpCurl, MCP: (cmd, values) => json(mcpRequest(cmd, values), 2) };
const languagesOf = (cmd) => (cmd.mcp ? MCP_LANGUAGES : LANGUAGES);
