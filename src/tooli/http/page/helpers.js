"use strict";
// Everything from the server is inserted as text. Never use innerHTML here.

/* ---------------------------------------------------------------- helpers */
const $ = (id) => document.getElementById(id);
const getOwn = (o, k) => (o != null && Object.hasOwn(o, k) ? o[k] : undefined);
const emptyObject = () => Object.create(null); // an argument may have the name __proto__
const isRaw = (v) => !!JSON.isRawJSON?.(v);
const isObj = (v) => v !== null && typeof v === "object" && !Array.isArray(v) && !isRaw(v);
const json = (v, gap) => JSON.stringify(v, null, gap);
const isEqual = (a, b) => json(a) === json(b);
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const media = (q) => matchMedia(q).matches;
let ids = 0;
const uid = () => `x${++ids}`;
const safeStorage = (name) => ({
	get(k) {
		try {
			return window[name].getItem(k);
		} catch {
			return null;
		}
	},
	set(k, v) {
		try {
			v == null ? window[name].removeItem(k) : window[name].setItem(k, v);
		} catch {
			/* not available in a private window */
		}
	},
});
const local = safeStorage("localStorage"),
	session = safeStorage("sessionStorage");

// Integers above 2^53 keep every digit if the browser supports that.
const parse = (text) =>
	JSON.parse(
		text,
		/\d{16}/.test(text) && JSON.rawJSON
			? (_, v, at) =>
					typeof v === "number" &&
					Number.isInteger(v) &&
					!Number.isSafeInteger(v) &&
					/^-?\d+$/.test(at?.source)
						? JSON.rawJSON(at.source)
						: v
			: undefined,
	);
function parseNumber(text) {
	const t = text.trim();
	if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(t)) return text;
	const n = Number(t);
	if (!Number.isFinite(n)) return text;
	return /^[-+]?\d+$/.test(t) && !Number.isSafeInteger(n) && JSON.rawJSON
		? JSON.rawJSON(String(BigInt(t.replace("+", ""))))
		: n;
}

/** Create an element: "p.help" is tag and class, followed by properties and children. */
function h(what, props, ...kids) {
	const [tag, ...classes] = what.split("."),
		el = document.createElement(tag || "div");
	if (classes.length) el.className = classes.join(" ");
	for (const [k, v] of Object.entries(props)) {
		if (v == null) continue;
		if (k === "class") el.className = v;
		else if (k.startsWith("on")) el.addEventListener(k.slice(2), v);
		else if (k in el && k !== "role") el[k] = v;
		else el.setAttribute(k, v);
	}
	el.append(...kids.flat(3).filter((k) => k != null && k !== false));
	return el;
}
/** Create an element without properties. An object from the server must not become properties. */
const t = (what, ...kids) => h(what, {}, ...kids);
const ICONS = {
	x: "M4 4l8 8M12 4l-8 8",
	plus: "M8 3v10M3 8h10",
	up: "M8 13V3M4 7l4-4 4 4",
	down: "M8 3v10M4 9l4 4 4-4",
	copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
	done: "M3 8.5l3.2 3.2L13 5",
	bad: "M8 2l6.5 11.5h-13zM8 6.5v3M8 11.6v.1",
	back: "M10 3L5 8l5 5",
	wide: "M9.5 2.5h4v4M6.5 13.5h-4v-4M13 3L9.5 6.5M3 13l3.5-3.5",
	light:
		"M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
	dark: "M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1z",
	auto: "M2.5 3h11v7.5h-11zM6 13.5h4M8 10.5v3",
	pick: "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2v3M10.5 2v3",
	file: "M4 1.5h5L12.5 5v9.5h-8.5zM9 1.5V5h3.5",
	save: "M8 2v8M4.5 7L8 10.5 11.5 7M2.5 13.5h11",
	dice: "M3 8a5 5 0 0 1 9-3M13 8a5 5 0 0 1-9 3M12 2v3H9M4 14v-3h3",
};
function icon(name) {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"),
		path = document.createElementNS(svg.namespaceURI, "path");
	svg.setAttribute("viewBox", "0 0 16 16");
	svg.setAttribute("class", "i");
	svg.setAttribute("aria-hidden", "true");
	path.setAttribute("d", ICONS[name]);
	svg.append(path);
	return svg;
}
const button = (names, props, ...kids) => h("button", { type: "button", class: names, ...props }, ...kids);
const iconButton = (name, label, onclick, more) =>
	button(`tool ${name}`, { "aria-label": label, title: label, onclick, ...more }, icon(name));
const announce = (text) => {
	$("live").textContent = "";
	setTimeout(() => ($("live").textContent = text), 30);
};

async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		/* not supported or not allowed */
	}
	const area = h("textarea.sr", { value: text }),
		before = document.activeElement;
	document.body.append(area);
	area.select();
	let done = false;
	try {
		done = document.execCommand("copy");
	} catch {
		/* copying is not possible */
	}
	area.remove();
	before?.focus();
	return done;
}
function copyButton(text, label = "Copy") {
	const words = t("span", "Copy");
	const b = button(
		"btn slim copy",
		{
			"aria-label": label,
			async onclick() {
				const done = await copyText(text());
				words.textContent = done ? "Copied" : "Not allowed";
				b.firstChild.replaceWith(icon(done ? "done" : "bad"));
				announce(done ? "Copied" : "Copying is not allowed here");
				setTimeout(() => {
					words.textContent = "Copy";
					b.firstChild.replaceWith(icon("copy"));
				}, 1600);
			},
		},
		icon("copy"),
		words,
	);
	return b;
}
function tabs(label, names, panel, pick) {
	const id = uid();
	panel.id ||= id;
	panel.setAttribute("role", "tabpanel");
	const all = names.map((name, n) =>
		button(
			"",
			{
				role: "tab",
				id: `${id}-${n}`,
				"aria-controls": panel.id,
				onclick: () => choose(n),
				onkeydown(e) {
					const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
					if (step) {
						e.preventDefault();
						choose((n + step + all.length) % all.length, true);
					}
				},
			},
			name,
		),
	);
	function choose(n, focus) {
		all.forEach((t, i) => {
			t.setAttribute("aria-selected", i === n);
			t.tabIndex = i === n ? 0 : -1;
		});
		if (focus) all[n].focus();
		panel.setAttribute("aria-labelledby", all[n].id);
		pick(names[n]);
	}
	return { el: t(".tabs", h(".tl", { role: "tablist", "aria-label": label }, all)), choose };
}
/** Highlight a line of JSON, Python or shell: strings, keys, numbers, keywords. */
function highlight(text) {
	const out = document.createDocumentFragment();
	let end = 0;
	for (const m of text.matchAll(
		/("(?:[^"\\]|\\.)*")(\s*:)?|'(?:[^'\\]|\\.)*'|(?<![\w-])--?[a-z][\w.-]*|\b(?:true|false|null|True|False|None)\b|(?<![\w.:/-])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b/g,
	)) {
		out.append(text.slice(end, m.index));
		const word = m[1] || m[0],
			c = word[0];
		out.append(
			h(
				"span",
				{
					class: m[2]
						? "t-k"
						: c === '"' || c === "'"
							? "t-s"
							: /^--?[a-z]/.test(word)
								? "t-k t-f"
								: /[\d]/.test(word)
									? "t-n"
									: "t-w",
				},
				word,
			),
		);
		end = m.index + word.length;
	}
	out.append(text.slice(end));
	return out;
}

