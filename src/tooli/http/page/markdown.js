/* ---------------------------------------------------------------- Markdown
   The text becomes elements one by one. HTML in it stays text, pictures become links, and a link
   leads only to the web or to a mail address. */
const MAX_INLINE_DEPTH = 6;
const INLINE =
	/\\([\\`*_{}[\]()#+.!|<>~-])|(`{1,3})([^`](?:.{0,400}?[^`])?)\2(?!`)|(!?)\[([^\]\n]{0,300})\]\(\s*<?([^\s()<>]{0,600})>?(?:\s+"[^"\n]{0,200}")?\s*\)|<(https?:\/\/[^\s<>]{1,600})>|(https?:\/\/[^\s<>"'`\])]{1,600}[^\s<>"'`\]).,;:!?])|(\*\*|__)(?=\S)([^\n]{1,600}?[^\s*_])\9|(?<![\w*_])([*_])(?=[^\s*_])([^\n]{0,400}?[^\s*_])\11(?![\w*_])|~~(?=\S)([^~\n]{1,400})~~/gs;
const looksLikeMarkdown = (text) => {
	const head = text.slice(0, 5000);
	return (
		/^#{1,6} \S/m.test(head) ||
		/^```/m.test(head) ||
		/^\|?[ :]*-{3,}[ :]*\|/m.test(head) ||
		/\[[^\]\n]{1,100}\]\(https?:/.test(head) ||
		(head.match(/^ {0,3}(?:[-*]|\d+\.) \S/gm) || []).length > 1 ||
		/\*\*[^\s*][^*\n]{0,100}\*\*/.test(head)
	);
};
function inline(text, depth = 0) {
	if (depth > MAX_INLINE_DEPTH || text.length > 20000) return [text];
	const out = [];
	let end = 0;
	for (const m of text.matchAll(INLINE)) {
		out.push(text.slice(end, m.index));
		end = m.index + m[0].length;
		const [, escaped, , code, bang, label, target, auto, bare, , bold, , italic, gone] = m;
		if (escaped) out.push(escaped);
		else if (code !== undefined) out.push(t("code", code));
		else if (label !== undefined) out.push(webLink(target, bang ? `${label || "picture"} (picture)` : inline(label, depth + 1)));
		else if (auto || bare) out.push(webLink(auto || bare, auto || bare));
		else if (bold) out.push(t("strong", inline(bold, depth + 1)));
		else if (italic) out.push(t("em", inline(italic, depth + 1)));
		else if (gone) out.push(t("s", inline(gone, depth + 1)));
	}
	out.push(text.slice(end));
	return out;
}
const LIST_ITEM = /^( *)([-*+]|\d{1,9}[.)]) +(.*)$/,
	RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/,
	TABLE_RULE = /^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:?)? *\|? *$/;
const cellsOf = (line) =>
	line
		.trim()
		.replace(/^\||\|$/g, "")
		.split(/(?<!\\)\|/)
		.map((cell) => cell.trim());
const MAX_MARKDOWN_TEXT = 60000,
	MAX_MARKDOWN_LINES = 2000;
let headingLevel = 1; // of the last heading: a heading is at most one level below it
function markdown(text) {
	const lines = text.slice(0, MAX_MARKDOWN_TEXT).replaceAll("\r", "").replaceAll("\t", "    ").split("\n"),
		cut = text.length > MAX_MARKDOWN_TEXT || lines.length > MAX_MARKDOWN_LINES;
	headingLevel = 1;
	return t(".md", blocks(lines.slice(0, MAX_MARKDOWN_LINES), 0), cut && t("p.dim", "… shortened; the source is complete"));
}
function blocks(lines, depth) {
	const out = [];
	let i = 0;
	const startsBlock = (line) => /^ {0,3}(#{1,6} |```|~~~|>)/.test(line) || RULE.test(line) || LIST_ITEM.test(line);
	while (i < lines.length) {
		const line = lines[i],
			heading = /^ {0,3}(#{1,6}) +(.*?)(?: +#+)? *$/.exec(line),
			fence = /^ {0,3}(```+|~~~+)/.exec(line);
		if (!line.trim()) i++;
		else if (heading) {
			headingLevel = Math.min(6, heading[1].length + 1, headingLevel + 1);
			out.push(h(`h${headingLevel}`, { class: `s${heading[1].length}` }, inline(heading[2])));
			i++;
		} else if (fence) {
			const start = ++i;
			while (i < lines.length && !lines[i].trim().startsWith(fence[1])) i++;
			out.push(h("pre", { tabIndex: 0 }, t("code", lines.slice(start, i++).join("\n"))));
		} else if (RULE.test(line)) {
			out.push(t("hr"));
			i++;
		} else if (/^ {0,3}>/.test(line)) {
			const start = i;
			while (i < lines.length && /^ {0,3}>/.test(lines[i])) i++;
			const inner = lines.slice(start, i).map((l) => l.replace(/^ {0,3}> ?/, ""));
			out.push(t("blockquote", depth < MAX_INLINE_DEPTH ? blocks(inner, depth + 1) : inner.join("\n")));
		} else if (LIST_ITEM.test(line)) {
			const [list, next] = listBlock(lines, i, depth);
			out.push(list);
			i = next;
		} else if (line.includes("|") && TABLE_RULE.test(lines[i + 1] || "")) {
			const aligned = cellsOf(lines[i + 1]).map((c) => (/-:$/.test(c) ? "n" : "")),
				row = (l, tag) => t("tr", cellsOf(l).map((c, n) => h(tag, { class: aligned[n] || "" }, inline(c.replaceAll("\\|", "|"))))),
				head = row(line, "th");
			const rows = [];
			for (i += 2; i < lines.length && lines[i].includes("|"); i++) rows.push(row(lines[i], "td"));
			out.push(h(".md-table", { tabIndex: 0, role: "region", "aria-label": "Table" }, t("table", t("thead", head), t("tbody", rows))));
		} else {
			const start = i++;
			while (i < lines.length && lines[i].trim() && !startsBlock(lines[i])) i++;
			out.push(t("p", inline(lines.slice(start, i).map((l) => l.trim()).join("\n"))));
		}
	}
	return out;
}
/** Return a list with its nested lists, and the number of the line after it. */
function listBlock(lines, i, depth) {
	const [, indent, marker] = LIST_ITEM.exec(lines[i]),
		ordered = /\d/.test(marker),
		items = [];
	for (let item; i < lines.length && (item = LIST_ITEM.exec(lines[i])); ) {
		if (item[1].length !== indent.length || /\d/.test(item[2]) !== ordered) break;
		const inner = [item[3]];
		for (i++; i < lines.length; i++) {
			const space = /^ */.exec(lines[i])[0].length;
			if (lines[i].trim() ? space <= indent.length : !/^ /.test(lines[i + 1] || "")) break;
			inner.push(lines[i].slice(Math.min(space, indent.length + 2)));
		}
		const kids = depth < MAX_INLINE_DEPTH ? blocks(inner, depth + 1) : [inner.join("\n")];
		items.push(t("li", kids.length && kids[0].tagName === "P" ? [...kids[0].childNodes, kids.slice(1)] : kids));
		while (i < lines.length && !lines[i].trim() && LIST_ITEM.test(lines[i + 1] || "")) i++;
	}
	const el = t(ordered ? "ol" : "ul", items);
	if (ordered && parseInt(marker, 10) !== 1) el.start = parseInt(marker, 10);
	return [el, i];
}
