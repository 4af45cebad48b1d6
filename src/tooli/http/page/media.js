/* ---------------------------------------------------------------- pictures, sounds and documents */
const PICTURES = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml|x-icon)$/,
	SOUNDS = /^audio\/[\w.+-]+$/,
	BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const ENDINGS = { "image/jpeg": "jpg", "image/svg+xml": "svg", "text/plain": "txt", "text/markdown": "md", "audio/mpeg": "mp3" };
/** Return whether a value is a content block: an Image, an Audio, an Embedded or a Link. */
function isBlock(v) {
	if (!isObj(v)) return false;
	const text = (x) => typeof x === "string";
	if (v.type === "image" || v.type === "audio") return text(v.data) && text(v.mimeType) && BASE64.test(v.data);
	if (v.type === "resource_link") return text(v.uri);
	const doc = v.type === "resource" && v.resource;
	return isObj(doc) && text(doc.uri) && (text(doc.text) || (text(doc.blob) && BASE64.test(doc.blob)));
}
const sizeText = (n) =>
	n < 1000 ? `${n} bytes` : n < 1e6 ? `${(n / 1000).toFixed(n < 10000 ? 1 : 0)} kB` : `${(n / 1e6).toFixed(1)} MB`;
const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
const sizeOf = (base64) => (base64.length * 3) / 4 - (base64.match(/=*$/)?.[0].length || 0);
function fileName(name, mime) {
	const ending = getOwn(ENDINGS, mime) || (/^\w+\/([a-z0-9]{2,5})$/.exec(mime || "") || [])[1] || "bin",
		base = (String(name).split(/[/\\?#]/).filter(Boolean).at(-1) || "result").replace(/[^\w.-]+/g, "-").slice(0, 60);
	return /\.\w{1,5}$/.test(base) ? base : `${base}.${ending}`;
}
/** Save content as a file. Its type is never one that the browser would show as a page. */
function saveFile(name, content, type = "application/octet-stream") {
	const url = URL.createObjectURL(new Blob([content], { type })),
		a = h("a", { href: url, download: name });
	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}
const downloadButton = (label, name, content, type) =>
	button("btn slim", { "aria-label": `Download ${label}`, onclick: () => saveFile(name(), content(), type) }, icon("save"), t("span", label));
const isWebLink = (uri) => /^(https?:\/\/|mailto:)/i.test(uri);
const webLink = (uri, ...kids) =>
	isWebLink(uri)
		? h("a.link", { href: uri, target: "_blank", rel: "noopener noreferrer" }, kids)
		: h("span", { title: uri }, kids);

function showBlock(v) {
	if (v.type === "resource_link") return showLink(v);
	const doc = v.type === "resource" ? v.resource : { uri: v.type, blob: v.data, mimeType: v.mimeType };
	return showDocument(doc, v.type !== "resource");
}
function showLink(v) {
	const known = (app.resources || []).length > 0 && serves(v.uri);
	return t(
		".doc",
		icon("file"),
		t("div", t("b", webLink(v.uri, v.name || v.uri)), v.description && t("p", v.description), t("p.dim", v.uri)),
		known && h("a.btn.slim", { href: resourceHash(v.uri) }, "Read"),
	);
}
/** Show a document: a picture, a sound, Markdown, text, or a file to download. */
function showDocument(doc, unnamed) {
	const mime = String(doc.mimeType || "").toLowerCase(),
		type = mime.split(";")[0].trim();
	const caption = (what, ...more) =>
		t("figcaption", t("span", what), more, doc.blob !== undefined && download(), doc.blob === undefined && textDownload());
	const name = () => fileName(unnamed ? "result" : doc.uri, type),
		download = () => downloadButton("File", name, () => bytesOf(doc.blob)),
		textDownload = () => downloadButton("File", name, () => doc.text);
	const head = [unnamed ? null : t("b", doc.uri), t("span.dim", [type || "no type", doc.blob === undefined ? "" : sizeText(sizeOf(doc.blob))].filter(Boolean).join(" · "))];
	if (doc.blob === undefined) {
		let data;
		if (/json$/.test(type))
			try {
				data = parse(doc.text);
			} catch {
				/* it is shown as text */
			}
		return t("figure.media", caption(t("span.row", head)), data === undefined ? showText(doc.text, type) : showValue(data, 1));
	}
	if (PICTURES.test(type)) {
		const img = h("img", { src: `data:${type};base64,${doc.blob}`, alt: unnamed ? "Picture in the result" : doc.uri });
		const size = t("span.dim");
		img.addEventListener("load", () => img.naturalWidth && (size.textContent = `${img.naturalWidth} × ${img.naturalHeight}`));
		img.addEventListener("error", () => img.replaceWith(t("p.dim", "The browser cannot show this picture.")));
		return t("figure.media", img, caption(t("span.row", head, size)));
	}
	if (SOUNDS.test(type)) {
		const sound = h("audio", { controls: true, src: `data:${type};base64,${doc.blob}`, "aria-label": unnamed ? "Sound in the result" : doc.uri });
		return t("figure.media", sound, caption(t("span.row", head)));
	}
	return t(
		".doc",
		icon("file"),
		t("div", head),
		type === "application/pdf" &&
			button(
				"btn slim",
				{
					onclick() {
						const url = URL.createObjectURL(new Blob([bytesOf(doc.blob)], { type }));
						window.open(url, "_blank", "noopener");
						setTimeout(() => URL.revokeObjectURL(url), 60000);
					},
				},
				"Open",
			),
		download(),
	);
}
/** Show a text; one that is or looks like Markdown can be shown as such. */
function showText(text, type = "") {
	const cut = text.length > 200000,
		head = cut ? text.slice(0, 200000) : text;
	const plain = h(
		"pre",
		{ class: "text" + (text.length < 40 && !text.includes("\n") && !type ? " big" : ""), tabIndex: text.length > 600 ? 0 : null },
		head + (cut ? "\n… shortened; the copy is complete" : ""),
	);
	if (/^data:image\/[\w.+-]+;base64,[A-Za-z0-9+/]+=*$/.test(text)) {
		const [mime, data] = [text.slice(5, text.indexOf(";")), text.slice(text.indexOf(",") + 1)];
		return showDocument({ uri: "image", blob: data, mimeType: mime }, true);
	}
	if (type !== "text/markdown" && (type || !looksLikeMarkdown(text))) return plain;
	const holder = t("div"),
		id = uid();
	const radios = ["Formatted", "Source"].map((name, i) =>
		h(
			"label",
			{},
			h("input", {
				type: "radio",
				name: id,
				checked: !i,
				onchange: () => holder.replaceChildren(i ? plain : markdown(head)),
			}),
			t("span", name),
		),
	);
	holder.append(markdown(head));
	return t("div", h(".segs.small", { role: "radiogroup", "aria-label": "Show the text" }, radios), holder);
}
/** Show the messages of a prompt. */
const showMessages = (messages) =>
	t(
		".messages",
		messages.map((m) =>
			t(".message", t("b", m.role), isObj(m.content) && m.content.type === "text" ? showText(String(m.content.text), "text/plain") : showValue(m.content, 1)),
		),
	);
