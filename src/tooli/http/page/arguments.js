/* ---------------------------------------------------------------- command lines of examples and suggestions */
/** Parse command-line arguments, for examples and suggestions of errors. */
function parseArguments(cmd, argv) {
	const values = emptyObject(),
		options = {},
		positionals = [],
		props = propsOf(cmd),
		byFlag = new Map();
	const unsupported = () => {
		throw new Error("only the command line can do this");
	};
	for (const table of ["flags", "negations"])
		for (const [n, fs] of Object.entries(cmd[table] || {}))
			for (const f of [fs].flat()) byFlag.set(f, [n, table === "flags"]);
	function value(raw, word) {
		const { schema: s } = normalize(raw),
			kind = kindOf(s);
		if (kind === "integer" || kind === "number") return parseNumber(word);
		if (kind === "boolean")
			return /^(true|yes|on|1|t|y)$/i.test(word) ? true : /^(false|no|off|0|f|n)$/i.test(word) ? false : word;
		if (kind === "enum" || kind === "const")
			return (s.enum || [s.const]).find((x) => toText(x) === word) ?? word;
		if (kind === "union") {
			const all = s.anyOf.map((x) => value(x, word));
			return all.find((v, i) => !hintFor(s.anyOf[i], v)) ?? all[0];
		}
		if (kind === "string") return word;
		if (/^@/.test(word)) unsupported();
		try {
			return parse(word);
		} catch {
			if (kind === "any") return word;
		}
		const [k, ...v] = word.split("=");
		return v.length ? { [k]: value(getOwn(s.properties, k) || s.additionalProperties, v.join("=")) } : word;
	}
	function assign(name, words, path = []) {
		let schema = normalize(getOwn(props, name)).schema,
			at = values,
			key = name;
		for (const part of path) {
			at = at[key] = isObj(at[key]) ? at[key] : emptyObject();
			key = part;
			schema = normalize(getOwn(schema.properties, part) || schema.additionalProperties).schema;
		}
		const kind = kindOf(schema);
		if (kind === "tuple") at[key] = words.map((w, i) => value(schema.prefixItems[i], w));
		else if (kind === "list")
			at[key] = (at[key] || []).concat(
				words.length === 1 && /^\[/.test(words[0])
					? value({}, words[0])
					: words.map((w) => value(schema.items, w)),
			);
		else {
			const v = value(schema, words[0]);
			at[key] = isObj(v) && isObj(at[key]) ? Object.assign(at[key], v) : v;
		}
	}
	const remaining = [...argv];
	while (remaining.length) {
		const word = remaining.shift();
		if (word === "--") {
			positionals.push(...remaining.splice(0));
			break;
		}
		if (!/^-[^\d.]/.test(word)) {
			positionals.push(word);
			continue;
		}
		const [, flag, , inlineValue] = byFlag.has(word) ? [, word] : word.match(/^([^=]+)(=([^]*))?$/),
			[stem, ...path] = byFlag.has(flag) ? [flag] : flag.split(".");
		if (!byFlag.has(stem)) {
			const plainFlag = flag.replace("--tooli-", "--");
			if (frameworkOptions.some((x) => x.shortcuts.includes(plainFlag))) continue; // an output mode
			const option = frameworkOptions.find((x) => x.flags.includes(plainFlag)) ?? unsupported(),
				given = option.takes_value ? (inlineValue ?? remaining.shift()) : undefined,
				toggle = TOGGLES.find((k) => option.choices.includes(k));
			if (TOGGLES.includes(option.name)) options[option.name] = true;
			else if (toggle) options[toggle] = given === toggle;
			else if (option.name === "input") Object.assign(values, parse(given));
			else if (!option.is_display) unsupported();
			continue;
		}
		const [name, yes] = byFlag.get(stem),
			{ schema } = normalize(getOwn(props, name)),
			kind = kindOf(schema);
		if (kind === "boolean" && inlineValue === undefined) values[name] = yes;
		else
			assign(
				name,
				kind === "tuple" && !path.length
					? remaining.splice(0, schema.prefixItems.length)
					: [inlineValue ?? remaining.shift() ?? unsupported()],
				path,
			);
	}
	const order = cmd.positional || [];
	order.forEach((name, i) => {
		const { schema } = normalize(getOwn(props, name)),
			kind = kindOf(schema),
			n =
				kind === "tuple"
					? schema.prefixItems.length
					: kind === "list"
						? Math.max(0, positionals.length - (order.length - 1 - i))
						: 1,
			words = positionals.splice(0, n);
		if (words.length) assign(name, words);
	});
	if (positionals.length) unsupported();
	return { values, options };
}
/** Return the command and the arguments of a suggested command line. */
function parseCommandLine(argv) {
	for (let i = 0; i < Math.min(argv.length, 4); i++) {
		const fits = commands
			.filter(
				(c) =>
					(commandPath(c).length || argv[i] === prog.split(/\s+/).at(-1)) &&
					commandPath(c).every((w, n) => argv[i + n] === w),
			)
			.sort((a, b) => commandPath(b).length - commandPath(a).length)[0];
		if (fits)
			try {
				return { cmd: fits, ...parseArguments(fits, argv.slice(i + (commandPath(fits).length || 1))) };
			} catch {
				return null;
			}
	}
	return null;
}

