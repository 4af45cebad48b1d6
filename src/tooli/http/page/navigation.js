/* ---------------------------------------------------------------- the list and navigation */
const hashOf = (cmd) => (cmd.mcp ? "#!" : "#/") + cmd.path.map(encodeURIComponent).join("/");
/** The link to a document of the app: its page with the values that the URI has. */
const resourceHash = (uri) => `#!resources/${encodeURIComponent(uri)}`;
let currentCommand = null;
let groupTexts = new Map();
const activeKinds = new Set();
function markMatches(text, words) {
	const out = t("span");
	let at = 0;
	const low = text.toLowerCase();
	while (at < text.length) {
		const [next, len] = words
			.map((w) => [low.indexOf(w, at), w.length])
			.filter(([i]) => i >= 0)
			.sort((a, b) => a[0] - b[0] || b[1] - a[1])[0] || [-1];
		if (next < 0) break;
		out.append(text.slice(at, next), t("mark", text.slice(next, next + len)));
		at = next + len;
	}
	out.append(text.slice(at));
	return out;
}
/** Return how well an entry of the list matches the words; 0 if it does not. */
function scoreOf(c, words) {
	if (activeKinds.size && (c.mcp || ![...activeKinds].every((k) => (c.annotations || []).includes(k)))) return 0;
	const name = c.name.toLowerCase(),
		whole = [name, c.description, c.when_to_use, c.uri, ...(c.annotations || []), ...Object.keys(propsOf(c))]
			.join(" ")
			.toLowerCase();
	return words.every((w) => whole.includes(w))
		? 1 + words.reduce((n, w) => n + (name.startsWith(w) ? 4 : name.includes(w) ? 2 : 0), 0)
		: 0;
}
function listEntry(c, group, words) {
	const risky = (c.annotations || []).includes("destructive");
	return h(
		"a",
		{ href: hashOf(c), "aria-current": c === currentCommand ? "page" : null },
		h(
			"span",
			{ class: "name" + (c.deprecated ? " old" : "") + (c.mcp ? " title" : "") },
			markMatches(group ? c.path.at(-1) : c.name, words),
			(risky || c.requires_approval) &&
				h(
					"span",
					{ class: "dot" + (risky ? "" : " wait"), title: risky ? "destructive" : "needs approval" },
					t("span.sr", risky ? " (destructive)" : " (needs approval)"),
				),
		),
		t("p", markMatches((c.description || "").split("\n")[0], words)),
	);
}
function list() {
	const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
	const found = [...commands, ...served].map((c) => [scoreOf(c, words), c]).filter(([n]) => n),
		items = [];
	if (words.length) found.sort((a, b) => b[0] - a[0]);
	let last = "";
	for (const [, c] of found) {
		const group = words.length || c.mcp ? "" : c.path.slice(0, -1).join(" "),
			heading = c.mcp ? c.section : group;
		if (heading !== last && !(words.length && !c.mcp && !last)) {
			last = heading;
			const about = c.mcp ? "" : groupTexts.get(group);
			items.push(t("h2", heading || "Commands"), about && t("p.about-group", about));
		}
		items.push(listEntry(c, group, words));
	}
	$("list").replaceChildren(
		...(items.length
			? items.filter(Boolean)
			: [
					t(
						".void",
						t("b", commands.length ? "No matches" : "No commands yet"),
						commands.length ? "Nothing matches this search." : "",
					),
				]),
	);
	const count = found.filter(([, c]) => !c.mcp).length;
	$("count").textContent =
		count === commands.length ? plural(commands.length, "command") : `${count} of ${plural(commands.length, "command")}`;
}
/** Return the commands in the order of the app: those without a group, then group by group. */
function inOrder(all) {
	const order = new Map((app.groups || []).map((g, i) => [g.path.join(" "), i])),
		groupOf = (c) => c.path.slice(0, -1).join(" ");
	for (const c of all) if (!order.has(groupOf(c))) order.set(groupOf(c), c.path.length < 2 ? -1 : order.size);
	return all
		.map((c, i) => [order.get(groupOf(c)), i, c])
		.sort((a, b) => a[0] - b[0] || a[1] - b[1])
		.map(([, , c]) => c);
}
function route(e) {
	const isServed = location.hash.startsWith("#!");
	const path = location.hash
		.replace(/^#[/!]?/, "")
		.split("/")
		.filter(Boolean)
		.map((p) => {
			try {
				return decodeURIComponent(p);
			} catch {
				return p;
			}
		});
	let cmd = (isServed ? served : commands).find((c) => isEqual(c.path, path)),
		given = null;
	if (isServed && !cmd && path[0] === "resources" && path.length === 2) [cmd, given] = findServed(path[1]) || [];
	currentCommand = cmd || null;
	document.body.classList.toggle("in-command", !!cmd || path.length > 0);
	document.title = cmd ? `${cmd.name} · ${app.app}` : app.app || "tooli";
	for (const a of $("list").querySelectorAll("a")) {
		if (a.getAttribute("href") !== (cmd && hashOf(cmd))) a.removeAttribute("aria-current");
		else {
			a.setAttribute("aria-current", "page");
			a.scrollIntoView({ block: "nearest" });
		}
	}
	const key = (k, text) => [
		t(
			"dt",
			k.split(" ").map((x) => [t("kbd", x), " "]),
		),
		t("dd", text),
	];
	if (cmd) {
		const view = viewOf(cmd);
		$("main").replaceChildren(view.el);
		$("main").scrollTop = 0;
		if (given) view.fill(given);
		if (media("(max-width: 767px)")) scrollTo(0, 0);
		if (e) media("(pointer: coarse), (max-width: 767px)") ? view.title.focus() : view.begin();
	} else if (path.length)
		$("main").replaceChildren(
			notice(
				isServed ? "Unknown document" : "Unknown command",
				path.join(" "),
				t(".row", h("a.btn", { href: "#/" }, "All commands")),
			),
		);
	else {
		const risky = commands.filter((c) => (c.annotations || []).includes("destructive")).length;
		$("main").replaceChildren(
			commands.length
				? notice(
						app.app,
						[
							app.description,
							`${plural(commands.length, "command")}${risky ? `, ${risky} of them destructive` : ""}. Choose one to fill in its form, run it, and take the same call to a program or an agent.`,
						]
							.filter(Boolean)
							.join("\n\n"),
						t(
							"dl",
							key("/", "find a command"),
							key("↑ ↓", "move through the list"),
							key("Enter", "open it"),
							key("Ctrl Enter", "run it"),
							key("Alt ↑", "move an item of a list up, or ↓ down"),
							key("Esc", "back to the list"),
						),
					)
				: notice(
						"No commands yet",
						"This app has no commands. Write a function, put @app.command() above it, and load this page again.",
					),
		);
		if (e && media("(max-width: 767px)")) $("find").focus({ preventScroll: true });
	}
}
async function load() {
	$("main").replaceChildren(t(".notice.row", t("span.spin"), "Loading the commands…"));
	const retry = t(".row", button("btn go", { onclick: load }, "Try again"));
	const fail = (...what) => {
		document.body.classList.add("in-command");
		$("main").replaceChildren(notice(...what));
		$("count").textContent = "";
		$("main").querySelector("input, h1").focus();
	};
	try {
		const response = await fetch(new URL("tools", location.href.split("#")[0]), {
			headers: headers({ Accept: "application/json" }),
			cache: "no-store",
		});
		if (response.status === 401)
			return fail("Sign in", "This API needs a token.", t(".row", tokenForm(load, !!token)));
		if (!response.ok)
			return fail(
				"The commands cannot be loaded",
				`The server answered ${response.status} to GET /tools.`,
				retry,
			);
		app = parse(await response.text());
		if (!Array.isArray(app.commands)) throw new SyntaxError("it contains no list of commands");
	} catch (e) {
		return e instanceof SyntaxError
			? fail(
					"The commands cannot be loaded",
					`The answer to GET /tools is invalid: ${e.message}`,
					retry,
				)
			: fail("The server cannot be reached", "Check that it is running. Nothing was changed.", retry);
	}
	prog = app.prog || app.app || "app";
	frameworkOptions = app.options || [];
	commands = inOrder(app.commands.map((c) => ({ ...c, path: c.path || String(c.name).split(" ") })));
	served = servedCommands();
	groupTexts = new Map((app.groups || []).map((g) => [g.path.join(" "), g.description.split("\n")[0]]));
	$("app-name").textContent = app.app;
	$("app-version").textContent = app.version ? `version ${app.version}` : "";
	const kinds = [...new Set(commands.flatMap((c) => c.annotations || []))];
	$("kinds").replaceChildren(
		...(kinds.length > 1 ? kinds : []).map((k) =>
			button(
				"chip",
				{
					"aria-pressed": "false",
					onclick(e) {
						activeKinds.has(k) ? activeKinds.delete(k) : activeKinds.add(k);
						e.target.setAttribute("aria-pressed", activeKinds.has(k));
						list();
					},
				},
				k,
			),
		),
	);
	list();
	route();
}

/* ---------------------------------------------------------------- theme and keyboard */
const THEMES = ["auto", "light", "dark"];
function theme(name) {
	name === "auto"
		? delete document.documentElement.dataset.theme
		: (document.documentElement.dataset.theme = name);
	const next = THEMES[(THEMES.indexOf(name) + 1) % 3],
		label = `Theme: ${name}. Change to ${next}`;
	$("theme").replaceChildren(icon(name));
	$("theme").title = label;
	$("theme").setAttribute("aria-label", label);
	$("theme").onclick = () => {
		local.set("tooli-theme", next);
		theme(next);
	};
}
theme(THEMES.includes(local.get("tooli-theme")) ? local.get("tooli-theme") : "auto");

const links = () => [...$("list").querySelectorAll("a")];
$("find").addEventListener("input", list);
$("find").addEventListener("keydown", (e) => {
	if (e.key === "ArrowDown") {
		e.preventDefault();
		links()[0]?.focus();
	} else if (e.key === "Enter" && links()[0]) {
		e.preventDefault();
		links()[0].click();
	}
});
$("list").addEventListener("keydown", (e) => {
	const all = links(),
		i = all.indexOf(document.activeElement),
		to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: all.length - 1 }[e.key];
	if (to === undefined || i < 0) return;
	e.preventDefault();
	to < 0 ? $("find").focus() : all[Math.min(to, all.length - 1)].focus();
});
$("list").addEventListener("click", (e) => {
	const a = e.target.closest("a");
	if (a && a.getAttribute("href") === location.hash && currentCommand) {
		e.preventDefault();
		viewOf(currentCommand).begin();
	}
});
$("skip").addEventListener("click", (e) => {
	e.preventDefault();
	$("main").focus();
});
document.addEventListener("keydown", (e) => {
	if (e.isComposing) return;
	const typing = e.target.matches?.("input, textarea, select");
	if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey) {
		e.preventDefault();
		if (media("(max-width: 767px)") && currentCommand) location.hash = "#/";
		$("find").focus();
		$("find").select();
	} else if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && currentCommand && !e.repeat) {
		e.preventDefault();
		viewOf(currentCommand).run();
	} else if (e.key === "Escape") {
		if (e.target === $("find") && $("find").value) {
			$("find").value = "";
			list();
			return;
		}
		const view = currentCommand && viewOf(currentCommand);
		if (view?.el.classList.contains("max")) view.el.querySelector(".answer [aria-pressed]").click();
		else if (media("(max-width: 767px)")) location.hash = "#/";
		else (links().find((a) => a.hasAttribute("aria-current")) || links()[0])?.focus();
	}
});
addEventListener("hashchange", route);
load();
