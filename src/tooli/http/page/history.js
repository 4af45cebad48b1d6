/* ---------------------------------------------------------------- history of calls
   It is kept in this browser. Secrets are left out, and results are not kept. */
const MAX_HISTORY = 60,
	MAX_HISTORY_TEXT = 4000;
const historyKey = () => `tooli-history ${location.pathname} ${app.app}`;
function readHistory() {
	try {
		const all = JSON.parse(local.get(historyKey()) || "[]");
		return Array.isArray(all) ? all.filter((x) => isObj(x) && typeof x.command === "string" && isObj(x.values)) : [];
	} catch {
		return [];
	}
}
/** Return the values without the secrets in them. */
function withoutSecrets(cmd, values) {
	const hidden = hideSecrets(cmd.input_schema, values),
		clean = (before, after) => {
			if (isObj(before) && isObj(after)) {
				const kept = emptyObject();
				for (const k of Object.keys(before)) {
					const v = clean(before[k], after[k]);
					if (v !== undefined) kept[k] = v;
				}
				return kept;
			}
			if (Array.isArray(before) && Array.isArray(after)) {
				const kept = before.map((x, i) => clean(x, after[i])).filter((x) => x !== undefined);
				return kept.length || !before.length ? kept : undefined;
			}
			return isEqual(before, after) && !isAttachment(before) ? before : undefined;
		};
	return clean(values, hidden);
}
function remember(cmd, values, options, state) {
	const kept = withoutSecrets(cmd, values),
		entry = { command: cmd.name, values: kept, options: { ...options, yes: false }, at: Date.now(), ...state };
	if (json(kept).length > MAX_HISTORY_TEXT) entry.values = {};
	const all = [entry, ...readHistory().filter((x) => !(x.command === cmd.name && isEqual(x.values, entry.values)))];
	local.set(historyKey(), json(all.slice(0, MAX_HISTORY)));
}
const timeText = (at) => new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
/** Return a list of the calls of a command. `fill` gets the values of the chosen one. */
function historyPane(cmd, fill) {
	const el = t(".form.past");
	return {
		el,
		show() {
			const all = readHistory().filter((x) => x.command === cmd.name);
			const clear = button(
				"btn slim",
				{
					onclick() {
						local.set(historyKey(), json(readHistory().filter((x) => x.command !== cmd.name)));
						this.closest(".past").replaceChildren(t("p.help", "The history is empty."));
						announce("The history is empty");
					},
				},
				"Clear the history",
			);
			el.replaceChildren(
				...(all.length
					? [
							t("p.help", "Calls from this browser, without secrets and without results. Choose one to fill in the form."),
							t(
								"ol.rows",
								all.map((x) =>
									t(
										"li",
										button(
											"ex",
											{ onclick: () => fill(x.values, x.options) },
											t("span.row", pill(x.ok ? "" : "bad", String(x.ok ? "OK" : x.code || "Failed")), t("span", timeText(x.at)), x.ms != null && t("span", formatDuration(x.ms))),
											t("code", callSummary(x.values)),
										),
									),
								),
							),
							t("div", clear),
						]
					: [t("p.help", "No calls from this browser yet.")]),
			);
		},
	};
}
/** Return arguments as one line: `city: Bern, count: 3`. */
function callSummary(values) {
	const all = Object.entries(values).map(([k, v]) => `${k}: ${toText(v)}`);
	return all.join(", ").slice(0, 300) || "without arguments";
}
const pill = (kind, words) => h("span", { class: "pill " + kind }, words);
const formatDuration = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);
