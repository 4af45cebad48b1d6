/* ---------------------------------------------------------------- one command */
const views = new Map();
/** The words of the switches in the form. */
const TOGGLE_WORDS = { dry_run: "dry run", yes: "confirmed", detailed: "detailed" };
function makeView(cmd) {
	defs = cmd.input_schema?.$defs || {};
	uploadNames = cmd.uploads || [];
	const kinds = cmd.annotations || [],
		risky = kinds.includes("destructive"),
		options = Object.fromEntries([...TOGGLES.map((k) => [k, false]), ["limit", ""]]),
		view = { cmd, risky, status: t("span.say") };
	const form = makeField(
		{ type: "object", properties: {}, ...cmd.input_schema },
		{ name: "", depth: -1, required: true, root: true },
	);
	const none = !Object.keys(propsOf(cmd)).length;
	if (none) form.el.firstChild.firstChild.prepend(t("p.help", `This ${cmd.mcp ? cmd.section.toLowerCase().slice(0, -1) : "command"} has no parameters.`));
	const languages = languagesOf(cmd),
		remembered = local.get("tooli-language");
	let shownAs = "Form",
		language = getOwn(languages, remembered) ? remembered : Object.keys(languages)[0];

	/* the request, as a form and as JSON, and the calls before */
	const area = h("textarea.in.code.whole", {
		id: uid(),
		spellcheck: false,
		"aria-label": "The request as JSON",
		rows: 14,
		oninput() {
			let v;
			try {
				v = parse(area.value || "{}");
				if (!isObj(v)) throw new Error("An object is expected");
			} catch (e) {
				wrong.textContent = e.message;
				wrong.hidden = false;
				return;
			}
			wrong.hidden = true;
			form.set(v);
			repaint();
		},
	});
	const wrong = h("p.hint", { hidden: true }),
		jsonPane = h(".form", { hidden: true }, t(".field", area, wrong)),
		past = historyPane(cmd, (v, o) => {
			requestTabs.choose(0);
			fill(v, o);
			announce("The form is filled in");
			form.focus();
		});
	const values = () => form.get();
	const pane = t("div.pane", form.el, jsonPane, past.el);
	const requestTabs = tabs("Request", ["Form", "JSON", "History"], pane, (name) => {
		shownAs = name;
		form.el.hidden = name !== "Form";
		jsonPane.hidden = name !== "JSON";
		past.el.hidden = name !== "History";
		if (name === "History") past.show();
		if (name === "JSON") {
			area.value = json(values(), 2);
			wrong.hidden = true;
		}
	});
	const fill = (v, o) => {
		form.set(v);
		for (const k in options) if (o && k in o) options[k] = o[k];
		if (shownAs === "JSON") area.value = json(values(), 2);
		repaint();
	};
	const clear = button(
		"btn slim",
		{
			onclick() {
				fill({});
				form.focus();
			},
		},
		"Clear",
	);
	requestTabs.el.append(t("span.gap"), clear);

	/* the call for other interfaces */
	const code = h("pre", { tabIndex: 0 });
	const text = () => languages[language](cmd, values(), options);
	const languageTabs = tabs("The same call", Object.keys(languages), code, (name) => {
		language = name;
		local.set("tooli-language", name);
		repaint();
	});
	languageTabs.el.append(t("span.gap"), copyButton(text, "Copy the call"));
	function repaint() {
		const line = text();
		code.replaceChildren(line.length > 20000 ? line.slice(0, 20000) + " …" : highlight(line));
		for (const c of chips) c.setAttribute("aria-pressed", options[c.value]);
		limit.value = options.limit;
		go.className = "btn " + (risky && !options.dry_run ? "maybe" : "go");
		goWords.textContent = options.dry_run ? "Dry run" : cmd.verb || "Run";
		clear.hidden = !Object.keys(values()).length;
		// A confirmation is for the call that was shown; it is withdrawn when the form changes.
		for (const b of answer.el.querySelectorAll(".risk")) b.disabled = !isEqual(values(), lastValues);
	}
	const chip = (name) =>
		button(
			"chip",
			{
				value: name,
				title: optionNamed(name).help,
				"aria-pressed": "false",
				onclick() {
					options[name] = !options[name];
					repaint();
				},
			},
			TOGGLE_WORDS[name],
		);
	const chips = cmd.mcp ? [] : TOGGLES.filter((k) => optionNamed(k) && (risky || k !== "yes")).map(chip);
	const limit = h("input.in.rows-in", {
		inputMode: "numeric",
		"aria-label": "Rows of a page",
		placeholder: "all",
		autocomplete: "off",
		oninput() {
			options.limit = /^[1-9]\d*$/.test(limit.value.trim()) ? limit.value.trim() : "";
			const typed = limit.value;
			repaint();
			limit.value = typed;
		},
	});
	const hasLimit = cmd.paginated && optionNamed("limit");

	/* running the call */
	const mac = /Mac|iP/.test(navigator.platform),
		goWords = t("span", cmd.verb || "Run");
	const go = button(
		"btn go",
		{ "aria-keyshortcuts": "Control+Enter", onclick: () => run() },
		goWords,
		h("kbd", { "aria-hidden": "true" }, mac ? "⌘↵" : "Ctrl ↵"),
	);
	const stop = button("btn stop", { hidden: true, onclick: () => control?.abort() }, "Cancel");
	const dry = risky && button("btn go", { onclick: () => run({ dry_run: true }) }, "Dry run");
	const answer = makeAnswer(view);
	let control = null,
		ticking,
		lastValues,
		failed = [];
	function busy(on) {
		go.hidden = on;
		stop.hidden = !on;
		if (dry) dry.hidden = on;
		clearInterval(ticking);
		if (!on && document.activeElement === document.body) go.focus({ preventScroll: true });
	}
	/** Run the call. `more` are options for this call only; `append` adds its rows to those before. */
	async function run(more, { values: given, append } = {}) {
		if (shownAs === "JSON" && !wrong.hidden) return area.focus();
		if (control) return; // one call at a time: the previous one may still run on the server
		const controller = (control = new AbortController()),
			o = { ...options, ...more },
			sent = (lastValues = given || values()),
			started = performance.now();
		const since = () => performance.now() - started;
		const call = {
			sent,
			append,
			progress: makeProgress(),
			count: 0,
			again: () => run(more, { values: given, append }),
			nextPage: (cursor) => run({ ...more, cursor }, { values: sent, append: true }),
		};
		failed.splice(0).forEach((f) => f.fail(""));
		busy(true);
		answer.el.setAttribute("aria-busy", "true");
		ticking = setInterval(
			() => (view.status.textContent = (call.count ? plural(call.count, "row") + " · " : "") + formatDuration(since())),
			100,
		);
		const waiting = append ? 0 : setTimeout(() => answer.wait(call.progress), 150);
		let finish, httpStatus;
		try {
			const response = await sendCall(cmd, sent, o, controller.signal);
			httpStatus = response.status;
			if (response.ok && !cmd.mcp && /ndjson|event-stream/.test(response.headers.get("content-type"))) {
				if (cmd.streams) clearTimeout(waiting);
				finish = await answer.showStream(response, controller.signal, since, call);
			} else {
				const responseText = await response.text();
				finish = () => answer.showResponse(httpStatus, responseText, since(), call);
			}
		} catch (e) {
			finish = () => answer.showNoAnswer(controller.signal.aborted, e, call.again);
		}
		clearTimeout(waiting);
		control = null;
		busy(false);
		const env = finish();
		if (!append && httpStatus && httpStatus !== 401 && !controller.signal.aborted) {
			const ok = !answer.el.querySelector(".fault");
			remember(cmd, sent, o, { ok, code: env?.error?.code || answer.el.querySelector(".sum .pill")?.textContent, ms: since() });
		}
		if (!append && media("(max-width: 1179px)") && !form.el.contains(document.activeElement))
			answer.el.scrollIntoView({
				block: "start",
				behavior: media("(prefers-reduced-motion: reduce)") ? "auto" : "smooth",
			});
	}
	function locate(path) {
		// "rule.match", "files.0" and "files[0].name" are paths to a field or its container
		let at = form,
			found = null;
		for (const k of path.split(/\.|\[|\]\.?/).filter((x) => x !== "")) {
			at = at.child?.(k);
			if (!at) break;
			found = at;
		}
		return found;
	}
	/** Show the errors at their fields; return the fields. */
	function markFields(list) {
		if (shownAs !== "Form" && list.length) requestTabs.choose(0);
		for (const x of list) {
			const f = locate(String(x.field));
			if (f) {
				f.fail(x.message);
				failed.push(f);
			}
		}
		return failed;
	}
	function apply({ cmd: other, values: v, options: o }) {
		if (other !== cmd) location.hash = hashOf(other);
		const there = other === cmd ? view : viewOf(other);
		there.fill(v, { ...o, yes: false });
		if (other === cmd) {
			announce("Applied to the form");
			go.focus();
		}
	}
	form.el.addEventListener("edit", repaint);

	const { left, title } = describeCommand(cmd, { fill, go, status: view.status, parts: [requestTabs.el, pane], bar: [dry, go, stop] });
	view.el = t(
		".command",
		left,
		t(
			".right",
			h(
				"section.box.call",
				{ "aria-label": "The same call" },
				languageTabs.el,
				code,
				(chips.length > 0 || hasLimit) &&
					h(
						".opts",
						{ role: "group", "aria-label": "Options" },
						chips.length > 0 && "with",
						chips,
						hasLimit && t("label.row", "Rows", limit),
					),
			),
			answer.el,
		),
	);
	Object.assign(view, { run, fill, repaint, title, locate, markFields, apply });
	view.begin = () => (none ? go : form).focus();
	requestTabs.choose(0);
	languageTabs.choose(Object.keys(languages).indexOf(language));
	return view;
}

/** Return the left part of the page: what the command does, its examples, the form and its errors. */
function describeCommand(cmd, { fill, go, status, parts, bar }) {
	const group = cmd.mcp ? "" : cmd.path.slice(0, -1).join(" "),
		[first, ...rest] = (cmd.description || "").split(/\n\s*\n/);
	const badge = (words, kind = "") => h("span", { class: "badge " + kind }, words);
	const title = h("h1", { tabIndex: -1 }, group && t("span", group + " "), cmd.mcp ? cmd.name : (cmd.path.at(-1) ?? cmd.name));
	const left = t(
		".left",
		t(
			"header.head",
			button("back", { onclick: () => (location.hash = "#/") }, icon("back"), "All commands"),
			title,
			t(
				".badges",
				(cmd.mcp ? [] : cmd.annotations || []).map((k) => badge(k, { destructive: "bad", "read-only": "good" }[k])),
				cmd.requires_approval && badge("a human must approve", "wait"),
				cmd.danger_level && badge(`danger: ${toText(cmd.danger_level)}`, "wait"),
				cmd.streams && badge("streams"),
				cmd.auth?.length && badge(`needs ${cmd.auth.join(", ")}`, "wait"),
				cmd.uri && badge(cmd.uri),
			),
			first && t("p.about", first),
			rest.length > 0 && t("p.about", rest.join("\n\n")),
			cmd.when_to_use && t("p.about", t("b", "When to use it. "), cmd.when_to_use),
		),
		cmd.deprecated &&
			t("p.note", cmd.deprecated === true ? "Deprecated." : `Deprecated: ${toText(cmd.deprecated)}`),
		(cmd.examples || []).length > 0 &&
			h(
				".examples",
				{ role: "group", "aria-label": "Examples" },
				cmd.examples.map((x) => exampleButton(cmd, x, fill, go)),
			),
		parts,
		Object.keys(cmd.error_codes || {}).length > 0 &&
			t(
				"details.plain.more",
				t("summary", "Errors"),
				t(
					"dl.codes",
					Object.entries(cmd.error_codes).map(([k, v]) => [t("dt.mono", k), t("dd", toText(v))]),
				),
			),
		t(".bar", bar, status),
	);
	return { left, title };
}
function exampleButton(cmd, example, fill, go) {
	const words = (example.args || []).map(String);
	let parsed = null;
	try {
		parsed = parseArguments(cmd, words);
	} catch {
		/* the form cannot express it, for example a file */
	}
	return button(
		"ex",
		{
			title: parsed ? "Fill in the form" : "Only the command line can do this",
			disabled: !parsed,
			onclick() {
				fill(parsed.values, { dry_run: false, ...parsed.options, yes: false }); // only a person may confirm
				announce("The form is filled in");
				go.focus({ preventScroll: true });
			},
		},
		example.description && t("span", example.description),
		t("code", parsed ? callSummary(parsed.values) : [...prog.split(/\s+/), ...commandPath(cmd), ...words].map(sh).join(" ")),
	);
}
function viewOf(cmd) {
	if (!views.has(cmd)) views.set(cmd, makeView(cmd));
	defs = cmd.input_schema?.$defs || {};
	uploadNames = cmd.uploads || [];
	return views.get(cmd);
}
