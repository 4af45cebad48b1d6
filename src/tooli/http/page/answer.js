/* ---------------------------------------------------------------- the answer of a command */
const blank = (title, ...text) => t(".void", t("b", title), ...text);
const notesOf = (meta) =>
	[...(meta?.warnings || []), meta?.deprecated && `Deprecated: ${toText(meta.deprecated)}`]
		.filter(Boolean)
		.map((w) => t("p.note", toText(w)));
const MAX_LOG_LINES = 500;

/** The progress and the log messages of a running call. */
function makeProgress() {
	const fill = t("i"),
		bar = h(".track", { role: "progressbar", "aria-label": "Progress", hidden: true }, fill),
		words = t("p.step"),
		lines = h(".log", { role: "log", "aria-label": "Log messages", tabIndex: 0, hidden: true });
	let count = 0;
	return {
		el: t(".live", bar, words, lines),
		get lines() {
			return count ? lines : null;
		},
		get count() {
			return count;
		},
		progress({ done, total, message }) {
			const share = total > 0 ? Math.max(0, Math.min(1, done / total)) : null;
			bar.hidden = false;
			bar.classList.toggle("unknown", share === null);
			if (share === null) bar.removeAttribute("aria-valuenow");
			else {
				fill.style.width = `${share * 100}%`;
				bar.setAttribute("aria-valuenow", Math.round(share * 100));
			}
			const step = total == null ? toText(done) : `${toText(done)} of ${toText(total)}`;
			words.replaceChildren(t("b", step), message ? ` ${toText(message)}` : "");
			bar.setAttribute("aria-valuetext", words.textContent);
		},
		log({ level, message }) {
			const atEnd = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 30;
			const kind = /^(error|critical|alert|emergency)$/.test(level) ? "bad" : level === "warning" ? "wait" : "";
			lines.append(h("p", { class: kind }, kind && t("b", `${level}: `), toText(message).slice(0, 4000)));
			if (lines.childElementCount > MAX_LOG_LINES) lines.firstChild.remove();
			lines.hidden = false;
			count++;
			if (atEnd) lines.scrollTop = lines.scrollHeight;
		},
	};
}

/** The box with the answer: a result, a failure or a question. `view` is the command. */
function makeAnswer(view) {
	const { cmd } = view,
		body = t(".body"),
		sum = h(".sum", { hidden: true });
	let parts = [],
		raw = () => "",
		rows = null, // the rows of the result, with those of the next pages
		rowTable = null,
		value;
	const resultTabs = tabs("Result", ["Result", "Response"], body, (name) =>
		body.replaceChildren(...(name === "Result" ? parts : [rawView(raw().split("\n"))])),
	);
	const max = iconButton("wide", "Larger", () => max.setAttribute("aria-pressed", view.el.classList.toggle("max")), { "aria-pressed": "false" });
	const name = (ending) => () => fileName(`${cmd.path.join("-")}.${ending}`);
	const csv = downloadButton("CSV", name("csv"), () => toCsv(rows), "text/csv;charset=utf-8"),
		jsonFile = downloadButton("JSON", name("json"), () => json(rows || value, 2), "application/json");
	resultTabs.el.append(t("span.gap"), csv, jsonFile, copyButton(() => raw(), "Copy the response"), max);
	resultTabs.el.hidden = true;
	body.append(
		blank(
			"The answer appears here",
			cmd.output_schema && typeOf(cmd.output_schema, 1) !== "JSON"
				? t("span", "Result: ", t("code", typeOf(cmd.output_schema, 1)))
				: cmd.mcp
					? ""
					: "Fill in the form, then run it.",
		),
	);
	const el = h("section.box.answer", { "aria-label": "Result" }, resultTabs.el, sum, body);
	const answer = { el, body, show, showSuccess, showFailure, showNoAnswer, showResponse, showStream, wait };

	function summarizeCall(head) {
		sum.replaceChildren(
			...head.filter((x) => x != null && x !== false).map((x) => (x instanceof Node ? x : t("span", x))),
		);
		view.status.textContent = [...sum.children].filter((x) => !x.matches("button")).map((x) => x.textContent).join(" · ");
	}
	/** Show content, its summary and its source; `result` can be downloaded. */
	function show(content, head, source, announcement, result) {
		parts = content.flat().filter(Boolean);
		raw = source;
		value = result;
		rows = Array.isArray(result) && result.length && (isPlainRow(result[0]) || isObj(result[0])) ? result : null;
		if (rows !== rowTable?.rows) rowTable = null;
		csv.hidden = !rows || result.some(isBlock);
		jsonFile.hidden = result === undefined;
		summarizeCall(head);
		resultTabs.el.hidden = sum.hidden = false;
		el.removeAttribute("aria-busy");
		resultTabs.choose(0);
		announce(announcement || view.status.textContent);
	}
	/** Show that the call runs; `progress` is shown as it arrives. */
	function wait(progress) {
		resultTabs.el.hidden = sum.hidden = true;
		body.replaceChildren(t(".pad.running", t(".row", t("span.spin"), t("b", "Running…")), progress.el));
	}
	function logOf(progress) {
		const lines = progress?.lines;
		return lines && t("details.plain.logs", t("summary", `Log: ${plural(progress.count, "message")}`), lines);
	}

	/** Show the answer to a call that did not stream. */
	function showResponse(httpStatus, text, ms, call) {
		let env;
		try {
			env = cmd.mcp && httpStatus !== 401 ? envelopeOfMcp(cmd, text) : parse(text);
		} catch {
			/* reported below */
		}
		if (httpStatus === 401) showSignIn(env, text, call);
		else if (!isObj(env) || typeof env.ok !== "boolean")
			show(
				[
					blank(
						`The server answered ${httpStatus} with something else than a result`,
						t("code", text.slice(0, 300) || "The response is empty."),
					),
				],
				[pill("bad", httpStatus)],
				() => text,
			);
		else env.ok ? showSuccess(env, httpStatus, ms, call) : showFailure(env, httpStatus, ms, call);
		return env;
	}
	function showSignIn(env, text, call) {
		const form = tokenForm(() => {
			call.again();
			views.forEach((v) => v.repaint());
		}, !!token);
		show([t(".fault", t("h2", env?.error?.message || "Not signed in"), form)], [pill("bad", "401")], () => text, "A token is required");
		body.querySelector("input").focus();
	}
	function showNoAnswer(stopped, e, again) {
		if (stopped)
			show(
				[blank("Cancelled", "The page no longer waits. The command may have done a part of its work.")],
				[pill("wait", "Cancelled")],
				() => "",
			);
		else
			show(
				[
					blank(
						"The server cannot be reached",
						"The state of the call is unknown: it may have run.",
						t(".void", button("btn", { onclick: again }, "Try again")),
					),
				],
				[pill("bad", "No answer")],
				() => String(e),
				"The server cannot be reached",
			);
	}
	function showSuccess(env, httpStatus, ms, call) {
		const v = env.result,
			plan = env.meta?.dry_run,
			page = env.meta?.page;
		const time = h("span", { title: `${formatDuration(ms)} including the network` }, formatDuration(env.meta?.duration_ms ?? ms));
		const next =
			page?.next_cursor &&
			button("btn slim next", { onclick: () => call.nextPage(page.next_cursor) }, "Next page");
		if (call.append && rowTable && Array.isArray(v)) {
			for (const row of v) rows.push(row);
			rowTable.more();
			raw = () => json(env, 2);
			summarizeCall([pill("", "OK"), httpStatus, rowCount(page), time, next]);
			el.removeAttribute("aria-busy");
			announce(`${plural(v.length, "more row")}`);
			return next ? next.focus() : rowTable.el.querySelector("[tabindex='0']")?.focus();
		}
		const n = Array.isArray(v) ? v.length : null,
			asTable = n > 0 && shapeOf(v) === "table";
		if (asTable) rowTable = { ...table(v, "Result"), rows: v };
		const content =
			n === 0
				? blank("No results", "The list is empty.")
				: v === undefined || v === ""
					? blank("Done", "The command returned nothing.")
					: asTable
						? rowTable.el
						: cmd.mcp && v.messages
							? showMessages(v.messages)
							: showValue(v);
		rows = v;
		show(
			[notesOf(env.meta), content, plan && view.risky && confirmButton(call), logOf(call.progress), !next && nextSteps(env.meta)],
			[
				plan ? pill("wait", "Dry run: nothing ran") : pill("", "OK"),
				httpStatus,
				n !== null && rowCount(page),
				time,
				next,
			],
			() => json(env, 2),
			`Succeeded${n === null ? "" : ", " + rowCount(page)}`,
			v,
		);
	}
	const rowCount = (page) => {
		const word = rows.length && shapeOf(rows) !== "table" ? "item" : "row";
		return page?.total > rows.length ? `${rows.length.toLocaleString("en")} of ${plural(page.total, word)}` : plural(rows.length, word);
	};
	const confirmButton = (call) =>
		t(".pad", button("btn risk", { onclick: () => view.run({ dry_run: false, yes: true }, { values: call.sent }) }, "Confirm and run"));
	const nextSteps = (meta) =>
		Array.isArray(meta?.next) &&
		meta.next.length > 0 &&
		t(
			".pad.steps",
			t("b", "Next"),
			meta.next.map((step) => t("p", toText(step.why ?? ""))),
		);

	/** Show the rows of a stream as they arrive. Returns a function that shows the end. */
	async function showStream(response, signal, since, call) {
		const list = [];
		let live,
			shape,
			ended,
			failure,
			timer,
			state = ["Done", ""];
		const isEvents = /event-stream/.test(response.headers.get("content-type"));
		const add = (v) => {
			list.push(v);
			call.count++;
			timer ??= setTimeout(draw, call.count < 50 ? 0 : 120);
		};
		const line = (text) => {
			if (!text.trim()) return;
			const v = parse(text);
			if (isObj(v) && v.ok === false && isObj(v.error) && isObj(v.meta)) failure = v;
			else add(v);
		};
		const event = (name, v) => {
			if (name === "progress" || name === "log") {
				call.progress[name](v);
				if (!live && !call.progress.el.isConnected) wait(call.progress);
			} else if (name === "end") ended = v;
			else if (name === "error") failure = v;
			else add(v);
		};
		const draw = () => {
			timer = null;
			if (!list.length) return;
			if (list.length > MAX_STREAM_ROWS * 1.2) {
				list.splice(0, list.length - MAX_STREAM_ROWS);
				live = null;
			}
			const now = shapeOf(list);
			if (live?.more && shape === now) live.more();
			else {
				live =
					(shape = now) === "table"
						? table(list, "Result")
						: { el: t(".tree", tree(list.slice(-200), undefined, 1)) };
				resultTabs.el.hidden = true;
				sum.hidden = false;
				sum.replaceChildren(pill("wait", "Streaming"), t("span"));
				body.replaceChildren(t(".pad.slim-live", call.progress.el), live.el);
			}
			sum.lastChild.textContent = plural(call.count, "row");
		};
		try {
			await readLines(response, isEvents ? eventReader(event) : line);
			if (isEvents && !ended && !failure) state = ["Cut off", "bad"];
		} catch {
			state = signal.aborted ? ["Cancelled", "wait"] : ["Cut off", "bad"];
		}
		clearTimeout(timer);
		draw();
		return () => {
			const arrived = live ? [t("p.note", `${plural(call.count, "row")} arrived before the failure.`), live.el] : [];
			if (failure) return showFailure(failure, failure.status ?? response.status, since(), call, arrived);
			if (ended && !cmd.streams) return showSuccess(ended, response.status, since(), call);
			if (signal.aborted && !live) return showNoAnswer(true);
			rowTable = live?.more ? { ...live, rows: list } : null;
			show(
				[live?.el || blank("No results", state[1] ? "The answer is not complete." : "The command returned no rows."), logOf(call.progress)],
				[
					pill(state[1], state[0]),
					plural(call.count, "row"),
					formatDuration(since()),
					call.count > list.length && `the last ${list.length} are kept`,
				],
				() => list.map((r) => json(r)).join("\n"),
				undefined,
				list,
			);
		};
	}

	/** Show a failure, what to do about it, and the fields that it names. */
	function showFailure(env, httpStatus, ms, call, before = []) {
		const e = env.error || {},
			all = (e.details?.errors || []).filter((x) => x?.field),
			list = all.length ? all : e.field ? [e] : [],
			failed = view.markFields(list),
			known = getOwn(cmd.error_codes, e.code),
			ask = e.code === "E1010";
		const actions = ask ? [] : suggestedActions(e, call, list.length > 0);
		show(
			[
				notesOf(env.meta),
				t(
					".fault",
					t("h2", e.message || "The call failed."),
					known && t("p.dim", `${e.code}: ${toText(known)}`),
					all.length > 1 &&
						t(
							"ul",
							all.map((x) =>
								t(
									"li",
									button("", { onclick: () => view.locate(String(x.field))?.focus() }, x.field),
									t("span", x.message),
								),
							),
						),
					ask ? question(call, actions) : fixBox(e, call, actions),
				),
				before,
				logOf(call.progress),
			],
			[pill("bad", e.code || "Failed"), httpStatus, e.category, formatDuration(env.meta?.duration_ms ?? ms)],
			() => json(env, 2),
			`Failed, ${e.code}: ${e.message}`,
		);
		(failed[0] || actions[0])?.focus();
	}
	/** Ask whether a destructive command may run, and show with which arguments. */
	function question(call, actions) {
		actions.push(
			button("btn", { onclick: () => view.run({ dry_run: true }, { values: call.sent }) }, "Dry run first"),
			button("btn risk", { onclick: () => view.run({ yes: true }, { values: call.sent }) }, "Confirm and run"),
		);
		const shown = hideSecrets(cmd.input_schema, call.sent);
		return t(
			".fix.hot",
			t("span", "A dry run shows what would happen and changes nothing. The call is:"),
			Object.keys(shown).length ? card(shown, 1) : t("p.dim", "without arguments"),
			t(".row", actions),
		);
	}
	/** Return what a person can do about a failure: apply a suggestion, open another command, retry. */
	function suggestedActions(e, call, hasFields) {
		const suggestion = e.suggestion || {},
			words = Array.isArray(suggestion.argv) ? suggestion.argv.map(String) : null;
		if (suggestion.applicability !== "has_placeholders") {
			const given = isObj(suggestion.arguments) ? { cmd: commandOfExample(suggestion.example) || cmd, values: suggestion.arguments } : words && parseCommandLine(words);
			if (given && !(given.cmd === cmd && isEqual(given.values, call.sent)))
				return [
					button(
						"btn go",
						{ onclick: () => view.apply(given) },
						given.cmd === cmd ? "Apply" : `Open ${given.cmd.name}`,
					),
				];
		}
		const canRetry = (e.is_retryable && !hasFields) || e.details?.approval;
		return canRetry ? [button("btn", { onclick: call.again }, e.details?.approval ? "Run it again" : "Try again")] : [];
	}
	/** Return the command that the example of a suggestion names, such as `POST /tools/users/list {…}`. */
	function commandOfExample(example) {
		const path = /^POST \/tools\/([^\s?]+)/.exec(example || "")?.[1];
		return path && commands.find((c) => c.path.join("/") === path || c.mcp_name === path);
	}
	function fixBox(e, call, actions) {
		const suggestion = e.suggestion,
			approval = e.details?.approval,
			words = Array.isArray(suggestion?.argv) && !isObj(suggestion.arguments) ? suggestion.argv.map(String).map(sh).join(" ") : null;
		const line = isObj(approval) && typeof approval.command === "string" ? approval.command : (words ?? (e.code === "E2101" ? LANGUAGES.CLI(cmd, call.sent, {}) : null));
		if (!suggestion && !actions.length && !line) return null;
		return t(
			".fix",
			suggestion?.fix && t("span", suggestion.fix),
			line && t("pre", line),
			approval?.expires && t("span.dim", `The request is valid until ${timeText(Date.parse(approval.expires))}.`),
			(actions.length > 0 || line) && t(".row", actions, line && copyButton(() => line, "Copy the command line")),
		);
	}
	return answer;
}
const isPlainRow = (v) => v === null || typeof v !== "object" || isRaw(v);
