/* ---------------------------------------------------------------- showing a value */
/** Draw only the visible rows, so that long lists stay fast. */
function virtualScroll(scroller, height, count, draw) {
	let from = -1,
		to = -1,
		due = false;
	const redraw = (force) => {
		const first = Math.max(0, Math.floor(scroller.scrollTop / height) - 12),
			end = Math.min(count(), first + Math.ceil((scroller.clientHeight || 800) / height) + 24);
		if (force || first !== from || end !== to) draw((from = first), (to = end));
	};
	scroller.addEventListener("scroll", () => {
		if (!due) {
			due = true;
			requestAnimationFrame(() => {
				due = false;
				redraw();
			});
		}
	});
	new ResizeObserver(() => redraw()).observe(scroller);
	redraw(true);
	return () => redraw(true);
}
const cellText = (v) => (v === undefined ? "" : v === null ? "null" : toText(v));
function tree(value, key, open = 0) {
	const kids = isObj(value) ? Object.entries(value) : Array.isArray(value) ? value : null,
		name = key === undefined ? [] : [t("span.kk", key), ": "];
	if (!kids) return t(".leaf", name, highlight(json(value)));
	const inner = t(".kids"),
		inside = kids.length < 9 ? open - 1 : 0;
	let upto = 0;
	const fill = () => {
		for (const end = Math.min(kids.length, upto + 100); upto < end; upto++)
			inner.append(
				isObj(value) ? tree(kids[upto][1], kids[upto][0], inside) : tree(kids[upto], String(upto), inside),
			);
		if (upto < kids.length)
			inner.append(
				button(
					"btn slim",
					{
						onclick(e) {
							e.target.remove();
							fill();
						},
					},
					`Show more of ${kids.length.toLocaleString("en")}`,
				),
			);
	};
	const el = h(
		"details",
		{
			ontoggle() {
				if (!upto) fill();
			},
		},
		t(
			"summary",
			name,
			t(
				"span.dim",
				Array.isArray(value)
					? `[ ${plural(kids.length, "item")} ]`
					: `{ ${kids
							.slice(0, 5)
							.map(([k]) => k)
							.join(", ")}${kids.length > 5 ? ", …" : ""} }`,
			),
		),
		inner,
	);
	if (open > 0 && kids.length) {
		el.open = true;
		fill();
	}
	return el;
}
const MAX_COLUMNS = 60,
	MAX_CARD_DEPTH = 3;
/** Return how a list is shown: rows of a table, parts one below the other, or a tree. */
function shapeOf(list) {
	const sample = list.slice(0, 200);
	if (sample.some(isBlock)) return sample.length < 100 ? "parts" : "tree";
	if (sample.every((v) => v === null || typeof v !== "object" || isRaw(v))) return "table";
	if (!sample.every((v) => isObj(v) && Object.keys(v).length)) return "tree";
	return columnsOf(sample, 0, []).length > MAX_COLUMNS ? "tree" : "table";
}
/** Return the elements of a value: pictures, tables, cards, trees or text. */
function showValue(v, deep = 0) {
	if (isBlock(v)) return showBlock(v);
	if (Array.isArray(v) && v.length) {
		if (deep && isPlainList(v)) return listText(v);
		const shape = shapeOf(v);
		if (shape === "table") return table(v, deep ? "Nested rows" : "Result").el;
		if (shape === "parts") return t(".parts", v.map((x) => (isBlock(x) ? showBlock(x) : t(".part", showValue(x, 1)))));
	}
	if (isObj(v) && Object.keys(v).length && deep < MAX_CARD_DEPTH && Object.keys(v).length <= MAX_COLUMNS) return card(v, deep);
	if (v && typeof v === "object" && !isRaw(v))
		return Object.keys(v).length ? t(".tree", tree(v, undefined, 2)) : t("span.dim", Array.isArray(v) ? "none" : "{ }");
	return typeof v === "string" ? showText(v, deep ? "text/plain" : "") : showText(cellText(v));
}
const card = (v, deep) =>
	t(
		"dl.card",
		Object.entries(v).map(([k, x]) => [t("dt", k), h("dd", { class: x === null ? "nil" : "" }, cardValue(x, deep))]),
	);
function cardValue(x, deep) {
	if (x === null || typeof x !== "object" || isRaw(x)) return typeof x === "string" && looksLikeMarkdown(x) ? showText(x) : cellText(x);
	const shown = showValue(x, deep + 1);
	if (!isObj(x) || isBlock(x) || !Object.keys(x).length) return shown;
	return h("details.fold", { open: deep < 2 }, t("summary.dim", summarize(x)), shown);
}
function rawView(lines) {
	const pre = t("pre"),
		inner = t("div", pre),
		el = h(".raw", { tabIndex: 0, role: "region", "aria-label": "The response" }, inner);
	const most = lines.slice(0, 2000).reduce((m, l) => Math.max(m, Math.min(l.length, 4000)), 0);
	inner.style.height = `${lines.length * 20 + 24}px`;
	inner.style.width = `${most + 6}ch`;
	virtualScroll(
		el,
		20,
		() => lines.length,
		(from, to) => {
			pre.style.top = `${from * 20 + 12}px`;
			pre.replaceChildren(
				...lines.slice(from, to).flatMap((l) => [highlight(l.length > 4000 ? l.slice(0, 4000) + " …" : l), "\n"]),
			);
		},
	);
	return el;
}

