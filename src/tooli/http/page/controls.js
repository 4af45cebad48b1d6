/* ---------------------------------------------------------------- controls
   Each is { el, get, set, focus }. Optional: input, the element that errors are shown for; child(key), the
   field inside; empty, the empty value of its kind; group, true if it has more than one element. */
const notifyEdit = (el) => el.dispatchEvent(new Event("edit", { bubbles: true }));
const MAX_DEPTH = 3;

function textControl(s, c) {
	const format = s.format || "",
		picks = { date: "date", time: "time", "date-time": "datetime-local" }[format];
	const encoded = /^(base64|base64url|byte)$/.test(format) || s.contentEncoding === "base64",
		file = encoded || format === "binary" || c.upload;
	let value;
	const secret = format === "password" || s.writeOnly;
	const model = getOwn(FORMATS, format)?.[1] || s.examples?.[0],
		ask =
			typeof s.default === "string" && s.default
				? s.default
				: typeof model === "string"
					? `such as ${model}`
					: c.upload
						? "a text, or a file"
						: "";
	const input = h(secret ? "input" : "textarea", {
		id: c.id,
		class: "in" + (format || s.pattern ? " mono" : ""),
		spellcheck: false,
		autocomplete: "off",
		placeholder: ask,
		inputMode: { email: "email", uri: "url", url: "url" }[format] || "text",
		"aria-label": c.label,
		autocapitalize: "off",
	});
	if (secret) input.type = "password";
	else input.rows = 1;
	const grow = () => {
		if (!secret && !CSS.supports("field-sizing: content")) {
			input.style.height = "auto";
			input.style.height = `${input.scrollHeight + 2}px`;
		}
	};
	const show = () => {
		input.value = value ?? "";
		input.placeholder = value === "" ? "an empty text" : ask;
		grow();
	};
	const put = (v) => {
		value = v;
		show();
		notifyEdit(input);
	};
	input.addEventListener("input", () => {
		value = input.value === "" ? undefined : input.value;
		grow();
		notifyEdit(input);
	});
	input.addEventListener("keydown", (e) => {
		if (
			e.key === "Enter" &&
			!e.shiftKey &&
			!e.ctrlKey &&
			!e.metaKey &&
			!e.isComposing &&
			!input.value.includes("\n")
		)
			e.preventDefault();
	});
	const extra = [];
	if (picks) {
		const native = h("input", {
			type: picks,
			class: "native",
			tabIndex: -1,
			"aria-hidden": "true",
			onchange() {
				if (native.value) put(native.value.length === 16 ? native.value + ":00" : native.value);
				input.focus();
			},
		});
		if (picks !== "date") native.step = 1;
		extra.push(
			button(
				"btn sq",
				{
					"aria-label": `Pick a ${format}`,
					title: "Pick",
					onclick() {
						if (value) native.value = value.replace(" ", "T").replace(/(Z|[-+]\d\d:?\d\d)$/, "");
						try {
							native.showPicker();
						} catch {
							native.focus();
						}
					},
				},
				icon("pick"),
			),
			native,
		);
	}
	if (format === "uuid")
		extra.push(
			button(
				"btn sq",
				{
					"aria-label": "Generate a new value",
					title: "Generate a new value",
					onclick() {
						const b = [...crypto.getRandomValues(new Uint8Array(16))]; // randomUUID needs HTTPS
						b[6] = (b[6] & 15) | 64;
						b[8] = (b[8] & 63) | 128;
						put(
							b
								.map((x) => x.toString(16).padStart(2, "0"))
								.join("")
								.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-"),
						);
					},
				},
				icon("dice"),
			),
		);
	const el = t(".wrap", input);
	if (file) addFileChooser(el, extra, put, input, format, c);
	el.append(...extra);
	return {
		el: extra.length ? el : input,
		input,
		empty: "",
		get: () => value,
		set(v) {
			value = v;
			show();
		},
		focus: () => input.focus(),
	};
}

/* Files of the form. In place of each, the arguments have its placeholder. */
const attachments = new Map();
const isAttachment = (v) => typeof v === "string" && attachments.has(v);
function attach(file) {
	let name = `<file ${file.name}>`;
	for (let n = 2; attachments.has(name) && attachments.get(name) !== file; n++) name = `<file ${n} ${file.name}>`;
	attachments.set(name, file);
	return name;
}
async function encodeFile(file, format) {
	const bytes = new Uint8Array(await file.arrayBuffer());
	let text = "";
	for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
	return format === "base64url" ? btoa(text).replaceAll("+", "-").replaceAll("/", "_") : btoa(text);
}
/** Let a person choose a file, or drop one on the field. */
function addFileChooser(el, extra, put, input, format, c) {
	async function take(file) {
		if (c.upload) put(attach(file));
		else if (format === "binary")
			try {
				put(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer()));
			} catch {
				announce("The file is not text");
				input.placeholder = "The file is not UTF-8 text, and this parameter needs text";
			}
		else put(await encodeFile(file, format));
	}
	const chooser = h("input", {
		type: "file",
		class: "native",
		tabIndex: -1,
		"aria-hidden": "true",
		async onchange() {
			const [file] = chooser.files;
			if (file) await take(file);
			chooser.value = "";
			input.focus();
		},
	});
	const mark = (on) => el.classList.toggle("drop", on);
	for (const name of ["dragenter", "dragover"])
		el.addEventListener(name, (e) => {
			if (![...e.dataTransfer.types].includes("Files")) return;
			e.preventDefault();
			mark(true);
		});
	el.addEventListener("dragleave", (e) => el.contains(e.relatedTarget) || mark(false));
	el.addEventListener("drop", (e) => {
		mark(false);
		if (!e.dataTransfer.files.length) return;
		e.preventDefault();
		take(e.dataTransfer.files[0]);
	});
	extra.push(
		button(
			"btn file",
			{ "aria-label": `Choose a file for ${c.name}`, title: "Choose a file, or drop one here", onclick: () => chooser.click() },
			icon("file"),
			"File",
		),
		chooser,
	);
}

function numberControl(s, c) {
	const input = h("input", {
		id: c.id,
		class: "in mono",
		inputMode: s.type === "integer" && !(s.minimum < 0) ? "numeric" : "decimal",
		autocomplete: "off",
		role: "spinbutton",
		placeholder: s.default != null ? String(s.default) : "",
		"aria-label": c.label,
		"aria-valuemin": s.minimum,
		"aria-valuemax": s.maximum,
	});
	const get = () => (input.value.trim() === "" ? undefined : parseNumber(input.value));
	const step = (way) => {
		const by = s.multipleOf || 1,
			from = get() ?? s.default ?? (s.minimum != null ? s.minimum - by : 0);
		if (typeof from !== "number") return;
		let n = Number((from + way * by).toPrecision(15));
		if (n < s.minimum) n = s.minimum;
		if (n > s.maximum) n = s.maximum;
		input.value = n;
		mark();
		notifyEdit(input);
	};
	const mark = () => {
		const v = get();
		v === undefined ? input.removeAttribute("aria-valuenow") : input.setAttribute("aria-valuenow", toText(v));
	};
	input.addEventListener("input", () => {
		mark();
		notifyEdit(input);
	});
	input.addEventListener("keydown", (e) => {
		const way = { ArrowUp: 1, ArrowDown: -1 }[e.key];
		if (way && !e.altKey) {
			e.preventDefault();
			step(way);
		}
	});
	const stepButton = (name, label, way) =>
		button("btn sq", { tabIndex: -1, "aria-label": label, onclick: () => step(way) }, name);
	return {
		el: c.label ? input : t(".wrap", input, stepButton("−", "Less", -1), stepButton("+", "More", 1)),
		input,
		get,
		set(v) {
			input.value = v === undefined ? "" : toText(v);
			mark();
		},
		focus: () => input.focus(),
	};
}

function switchControl(s, c) {
	let value;
	const words = t("span");
	const input = button(
		"",
		{
			id: c.id,
			class: "sw",
			role: "switch",
			"aria-label": c.label,
			onclick() {
				value = value === undefined ? !s.default : !value;
				show();
				notifyEdit(input);
			},
		},
		t("i"),
		words,
	);
	const show = () => {
		input.setAttribute("aria-checked", value ?? s.default ?? false);
		input.classList.toggle("on", value !== undefined);
		words.textContent =
			value === undefined
				? typeof s.default === "boolean"
					? `${s.default ? "on" : "off"}, by default`
					: "not set"
				: value
					? "on"
					: "off";
		words.className = value === undefined ? "dim" : "";
	};
	show();
	return {
		el: input,
		input,
		get: () => value,
		set(v) {
			value = v;
			show();
		},
		focus: () => input.focus(),
	};
}

function choiceControl(s, c, values) {
	const labels = values.map(toText),
		at = (v) => values.findIndex((x) => isEqual(x, v)),
		standard = s.default === undefined ? -1 : at(s.default);
	if (labels.join("").length <= 34 && values.length <= 5) {
		const radios = labels.map((_, i) =>
			h("input", { type: "radio", name: c.id, value: i, id: i ? null : c.id, onchange: () => notifyEdit(el) }),
		);
		const el = h(
			".segs",
			{ role: "radiogroup", "aria-label": c.label || c.name },
			labels.map((text, i) =>
				h(
					"label",
					{ title: i === standard ? "the default" : "" },
					radios[i],
					h("span", { class: i === standard ? "df" : "" }, text),
				),
			),
		);
		return {
			el,
			input: el,
			get: () => values[radios.findIndex((r) => r.checked)],
			set(v) {
				const n = v === undefined ? -1 : at(v);
				radios.forEach((r, i) => (r.checked = i === n));
			},
			focus: () => (radios.find((r) => r.checked) || radios[0]).focus(),
		};
	}
	const el = h(
		"select",
		{ id: c.id, class: "in", "aria-label": c.label, onchange: () => notifyEdit(el) },
		h("option", { value: "" }, standard < 0 ? "—" : `${labels[standard]} (the default)`),
		labels.map((text, i) => h("option", { value: i }, text)),
	);
	return {
		el,
		input: el,
		get: () => (el.value === "" ? undefined : values[el.value]),
		set(v) {
			el.value = v === undefined ? "" : at(v);
		},
		focus: () => el.focus(),
	};
}

function jsonControl(s, c) {
	const input = h("textarea", {
		id: c.id,
		class: "in code",
		spellcheck: false,
		autocomplete: "off",
		"aria-label": c.label,
		placeholder: s.default !== undefined ? json(s.default) : "JSON",
	});
	const get = () => {
		if (!input.value.trim()) return undefined;
		try {
			return parse(input.value);
		} catch {
			return input.value;
		}
	};
	input.addEventListener("input", () => notifyEdit(input));
	return {
		el: input,
		input,
		get,
		set(v) {
			input.value = v === undefined ? "" : json(v, 2);
		},
		focus: () => input.focus(),
		hint() {
			if (input.value.trim())
				try {
					parse(input.value);
				} catch (e) {
					return `Not valid JSON, so it is sent as text: ${e.message}`;
				}
			return "";
		},
	};
}

