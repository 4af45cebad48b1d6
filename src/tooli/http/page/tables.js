/* ---------------------------------------------------------------- tables */
const ROW_HEIGHT = 33;
const MAX_FILTER_TEXT = 2000;
const isNested = (v) =>
	v !== null && typeof v === "object" && !isRaw(v) && !(Array.isArray(v) && isPlainList(v));
const isPlainList = (v) => v.length < 40 && v.every((x) => x === null || typeof x !== "object" || isRaw(x));
/** Return a nested value as a few words: what it contains, not its JSON. */
function summarize(v) {
	if (Array.isArray(v)) return plural(v.length, "item");
	const keys = Object.keys(v);
	return `{ ${keys.slice(0, 3).join(", ")}${keys.length > 3 ? ", …" : ""} }`;
}
const listText = (v) => (v.length ? v.map(cellText).join(", ") : "none");
function displayText(v) {
	if (isBlock(v)) return v.type === "resource_link" ? String(v.name || v.uri) : v.type;
	return isNested(v) ? summarize(v) : Array.isArray(v) ? listText(v) : cellText(v);
}
/** Compare two cells: numbers by value, texts in the order of words, empty cells last. */
function compareCells(a, b) {
	const empty = (v) => v === undefined || v === null || v === "";
	if (empty(a) || empty(b)) return empty(a) - empty(b);
	const number = (v) => (typeof v === "number" ? v : isRaw(v) ? BigInt(json(v)) : null),
		x = number(a),
		y = number(b);
	if (x !== null && y !== null) return x < y ? -1 : x > y ? 1 : 0;
	return toText(a).slice(0, 500).localeCompare(toText(b).slice(0, 500), "en", { numeric: true });
}
/** Return rows as CSV. A text that a spreadsheet would run as a formula gets an apostrophe. */
function toCsv(rows) {
	const columns = columnsOf(rows, 0, []),
		plain = !isObj(rows[0]);
	const cell = (v) => {
		if (v === undefined || v === null) return "";
		let text = toText(v);
		if (typeof v === "string" && /^[=+\-@\t\r]/.test(v) && typeof parseNumber(v) === "string") text = "'" + text;
		return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
	};
	const lines = plain
		? ["value", ...rows.map(cell)]
		: [columns.map(cell).join(","), ...rows.map((row) => columns.map((c) => cell(getOwn(row, c))).join(","))];
	return lines.join("\r\n") + "\r\n";
}
function columnsOf(rows, from, known) {
	const names = new Set(known);
	for (let i = from; i < rows.length; i++) for (const k of Object.keys(rows[i] ?? {})) names.add(k);
	return [...names];
}

/** A table that sorts and filters its rows, and draws only those that are visible. */
function table(rows, label) {
	const plain = !isObj(rows[0]),
		at = (r, c) => (plain ? (c === "#" ? r + 1 : rows[r]) : getOwn(rows[r], c));
	const body = t("tbody"),
		tbl = h("table", { role: "grid", "aria-label": label }),
		scroller = t(".grid", tbl),
		peek = h(".peek", { hidden: true, role: "region", "aria-label": "The selected cell" });
	let cols = [],
		seen = 0,
		focused = [0, 0],
		numeric = new Set(),
		live = new Map(),
		order = null, // the numbers of the rows that are shown, if sorted or filtered
		sortedBy = null,
		sign = 1;
	const count = () => (order ? order.length : rows.length),
		rowAt = (i) => (order ? order[i] : i);
	const above = h("tr.pad-row", { "aria-hidden": "true" }, t("td")),
		below = above.cloneNode(true);
	const find = h("input.in", {
		type: "search",
		placeholder: "Filter the rows",
		"aria-label": `Filter the rows: ${label}`,
		autocomplete: "off",
		spellcheck: false,
		oninput: () => arrange(),
	});
	const shown = h("span.dim", { role: "status" }),
		tools = h(".gridbar", { hidden: true }, find, shown);

	function measure() {
		const known = plain ? ["#", "value"] : columnsOf(rows, seen, cols);
		seen = rows.length;
		tools.hidden = rows.length < 6;
		if (known.length === cols.length) return;
		cols = known;
		numeric = new Set();
		const sample = Math.min(rows.length, 120);
		const widths = cols.map((c) => {
			let most = c.length + 2,
				numbers = 0,
				some = 0;
			for (let r = 0; r < sample; r++) {
				const v = at(r, c);
				if (v == null) continue;
				some++;
				if (typeof v === "number" || isRaw(v)) numbers++;
				most = Math.max(most, Math.min(60, displayText(v).length));
			}
			if (some && numbers === some) numeric.add(c);
			return Math.min(380, innerWidth * 0.55, Math.max(64, most * 7.6 + 34));
		});
		const group = t(
			"colgroup",
			widths.map((w) => {
				const col = t("col");
				col.style.width = `${w}px`;
				return col;
			}),
		);
		tbl.style.width = `max(100%, ${Math.ceil(widths.reduce((a, b) => a + b, 0))}px)`;
		tbl.setAttribute("aria-colcount", cols.length);
		tbl.replaceChildren(group, t("thead", t("tr", cols.map(header))), body);
		above.firstChild.colSpan = below.firstChild.colSpan = cols.length;
		forget();
	}
	function header(c) {
		const sort = button("", { title: `Sort by ${c}`, onclick: () => sortBy(c) }, t("span", c), t("i"));
		return h("th", { scope: "col", class: numeric.has(c) ? "n" : "", "aria-sort": "none" }, sort);
	}
	function sortBy(c) {
		[sortedBy, sign] = sortedBy !== c ? [c, 1] : sign > 0 ? [c, -1] : [null, 1];
		tbl.querySelectorAll("th").forEach((th, i) => {
			const state = cols[i] !== sortedBy ? "none" : sign > 0 ? "ascending" : "descending";
			th.setAttribute("aria-sort", state);
		});
		arrange();
		announce(sortedBy === null ? "In the original order" : `Sorted by ${c}, ${sign > 0 ? "ascending" : "descending"}`);
	}
	/** Find the rows to show, in their order. */
	function arrange() {
		const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
		order = null;
		if (words.length) {
			const text = (r) => (typeof rows[r] === "string" ? rows[r] : json(rows[r])).slice(0, MAX_FILTER_TEXT).toLowerCase();
			order = [...rows.keys()].filter((r) => {
				const whole = text(r);
				return words.every((w) => whole.includes(w));
			});
		}
		if (sortedBy !== null)
			order = (order || [...rows.keys()]).sort((a, b) => {
				const [x, y] = [at(a, sortedBy), at(b, sortedBy)],
					isEmpty = x == null || y == null;
				return compareCells(x, y) * (isEmpty ? 1 : sign) || a - b;
			});
		shown.textContent = words.length ? `${count().toLocaleString("en")} of ${plural(rows.length, "row")}` : "";
		focused = [0, 0];
		peek.hidden = true;
		scroller.scrollTop = 0;
		forget();
		redraw?.();
	}
	function forget() {
		live.clear();
		body.replaceChildren(above, below);
	}
	function showPeek(c, v) {
		const nested = isNested(v);
		peek.hidden = false;
		peek.classList.toggle("deep", nested);
		peek.replaceChildren(t("b", c), " ", nested ? showValue(v, 1) : cellText(v).slice(0, 50000));
	}
	const row = (i) => {
		const r = rowAt(i);
		return h(
			"tr",
			{ "aria-rowindex": i + 2 },
			cols.map((c, n) => {
				const v = at(r, c),
					text = displayText(v).slice(0, 400);
				return h(
					"td",
					{
						tabIndex: i === focused[0] && n === focused[1] ? 0 : -1,
						role: "gridcell",
						class: numeric.has(c) ? "n" : v == null ? "nil" : "",
						onfocus() {
							focused = [i, n];
							showPeek(c, v);
						},
					},
					isNested(v) ? t("span.deep", text) : text,
				);
			}),
		);
	};
	function draw(from, to) {
		const held = live.get(focused[0]);
		const losesFocus = held?.contains(document.activeElement) && (focused[0] < from || focused[0] >= to);
		for (const [r, tr] of live)
			if (r < from || r >= to) {
				tr.remove();
				live.delete(r);
			}
		for (let r = from, after = above; r < to; r++) {
			if (!live.has(r)) {
				live.set(r, row(r));
				after.after(live.get(r));
			}
			after = live.get(r);
		}
		above.firstChild.style.height = `${from * ROW_HEIGHT}px`;
		below.firstChild.style.height = `${(count() - to) * ROW_HEIGHT}px`;
		above.hidden = !from;
		below.hidden = to >= count();
		tbl.setAttribute("aria-rowcount", count() + 1);
		if (!live.has(focused[0]) && live.has(from)) live.get(from).cells[0].tabIndex = 0;
		if (losesFocus) {
			scroller.tabIndex = -1;
			scroller.focus({ preventScroll: true });
		}
	}
	let redraw;
	measure();
	redraw = virtualScroll(scroller, ROW_HEIGHT, count, draw);
	scroller.addEventListener("keydown", (e) => {
		if (!e.target.matches("td, .grid")) return;
		const page = Math.max(1, Math.floor(scroller.clientHeight / ROW_HEIGHT) - 2),
			[dr, dc] =
				{
					ArrowDown: [1, 0],
					ArrowUp: [-1, 0],
					ArrowRight: [0, 1],
					ArrowLeft: [0, -1],
					PageDown: [page, 0],
					PageUp: [-page, 0],
					Home: e.ctrlKey ? [-1e9, 0] : [0, -1e9],
					End: e.ctrlKey ? [1e9, 0] : [0, 1e9],
				}[e.key] || [];
		if (dr === undefined || !count()) return;
		e.preventDefault();
		const r = Math.min(count() - 1, Math.max(0, focused[0] + dr)),
			c = Math.min(cols.length - 1, Math.max(0, focused[1] + dc));
		const top = r * ROW_HEIGHT,
			room = scroller.clientHeight - ROW_HEIGHT - 34;
		if (top < scroller.scrollTop) scroller.scrollTop = top;
		else if (top > scroller.scrollTop + room) scroller.scrollTop = top - room;
		redraw();
		live.get(focused[0])?.cells[focused[1]]?.setAttribute("tabindex", -1);
		const cell = live.get(r)?.cells[c];
		if (cell) {
			cell.tabIndex = 0;
			cell.focus({ preventScroll: !dc });
		}
	});
	return {
		el: t(".body", tools, scroller, peek),
		more() {
			measure();
			if (order) arrange();
			else redraw();
		},
	};
}
