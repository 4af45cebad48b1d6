function listControl(s, c) {
	const rows = [],
		host = t("ol.rows"),
		nested = ["object", "map", "union", "tuple", "list"].includes(kindOf(normalize(s.items).schema));
	let sendsEmpty = false; // true: an empty list is sent
	function label() {
		rows.forEach((r, i) => {
			r.field.rename(`${c.name} ${i + 1}`);
			r.up.disabled = i === 0;
			r.down.disabled = i === rows.length - 1;
			r.rest.forEach((b, n) =>
				b.setAttribute("aria-label", `${["Move up", "Move down", "Remove"][n]}: ${c.name} ${i + 1}`),
			);
		});
	}
	function add(v, at = rows.length, quiet) {
		const field = makeField(s.items ?? {}, {
			name: `${c.name} ${at + 1}`,
			depth: c.depth + 1,
			required: true,
			plain: !nested,
			nested,
			upload: c.upload,
		});
		const row = { field };
		row.up = iconButton("up", "Move up", () => move(row, -1));
		row.down = iconButton("down", "Move down", () => move(row, 1));
		row.rest = [row.up, row.down, iconButton("x", "Remove", () => drop(row))];
		row.el = h(
			"li.item",
			{
				onkeydown(e) {
					const way = { ArrowUp: -1, ArrowDown: 1 }[e.key];
					if (way && e.altKey) {
						e.preventDefault();
						e.stopPropagation();
						move(row, way, e.target);
					} else if (nested || e.isComposing || !e.target.matches("input, textarea")) return;
					else if (e.key === "Enter" && !e.shiftKey && !e.ctrlKey && !e.metaKey) {
						e.preventDefault();
						add(undefined, rows.indexOf(row) + 1).focus();
					} else if (e.key === "Backspace" && e.target.value === "" && rows.length) {
						e.preventDefault();
						drop(row);
					}
				},
			},
			field.el,
			row.rest,
		);
		rows.splice(at, 0, row);
		host.insertBefore(row.el, host.children[at] || null);
		if (v !== undefined) field.set(v);
		label();
		if (!quiet) notifyEdit(host);
		return field;
	}
	function move(row, way, target) {
		const i = rows.indexOf(row),
			to = i + way,
			held = target || document.activeElement;
		if (to < 0 || to >= rows.length) return;
		rows.splice(to, 0, rows.splice(i, 1)[0]);
		host.insertBefore(row.el, host.children[way > 0 ? to + 1 : to] || null);
		label();
		(held?.disabled ? row.field : held)?.focus?.();
		announce(`Moved to ${to + 1} of ${rows.length}`);
		notifyEdit(host);
	}
	function drop(row) {
		const i = rows.indexOf(row);
		rows.splice(i, 1);
		row.el.remove();
		label();
		(rows[Math.max(0, i - 1)]?.field || more).focus();
		notifyEdit(host);
	}
	const more = button(
		"btn slim",
		{
			id: c.id,
			"aria-label": `Add to ${c.name}`,
			onclick: () => {
				sendsEmpty = false;
				add().focus();
			},
		},
		icon("plus"),
		"Add",
	);
	const live = () => rows.filter((r) => r.field.get() !== undefined);
	return {
		el: t(".stack", host, more),
		group: true,
		empty: [],
		get() {
			const v = live().map((r) => r.field.get());
			return v.length || sendsEmpty ? v : undefined;
		},
		set(v) {
			rows.splice(0).forEach((r) => r.el.remove());
			sendsEmpty = v?.length === 0;
			v?.forEach((x) => add(x, rows.length, true));
		},
		focus: () => (rows[0]?.field || more).focus(),
		child: (k) => live()[k]?.field,
		sendsEmpty: () => sendsEmpty && !rows.length,
	};
}

function tupleControl(s, c) {
	const parts = s.prefixItems.map((x, i) =>
		makeField(x, { name: `${c.name} ${i + 1}`, depth: c.depth + 1, required: true, nested: true }),
	);
	return {
		el: t(
			".nest",
			parts.map((p) => p.el),
		),
		group: true,
		child: (k) => parts[k],
		focus: () => parts[0].focus(),
		set: (v) => parts.forEach((p, i) => p.set(v?.[i])),
		get() {
			const v = parts.map((p) => p.get());
			return v.every((x) => x === undefined) ? undefined : v.map((x) => x ?? null);
		},
	};
}

function mapControl(s, c) {
	const rows = [],
		host = t(".rows");
	let sendsEmpty = false;
	function add(key, v, quiet) {
		const field = makeField(s.additionalProperties === true ? {} : (s.additionalProperties ?? {}), {
			name: `${c.name}: value`,
			depth: c.depth + 1,
			required: true,
			plain: true,
		});
		const name = h("input.in.mono.key", {
			value: key,
			placeholder: "key",
			"aria-label": `${c.name}: key`,
			spellcheck: false,
			autocomplete: "off",
			oninput: () => notifyEdit(name),
		});
		const row = {
			name,
			field,
			el: t(
				".item",
				t(".wrap", name, field.el),
				iconButton("x", "Remove", () => {
					rows.splice(rows.indexOf(row), 1);
					row.el.remove();
					notifyEdit(host);
					more.focus();
				}),
			),
		};
		row.el.firstChild.classList.add("field");
		rows.push(row);
		host.append(row.el);
		if (v !== undefined) field.set(v);
		if (!quiet) {
			notifyEdit(host);
			name.focus();
		}
	}
	const more = button(
		"btn slim",
		{
			id: c.id,
			"aria-label": `Add to ${c.name}`,
			onclick: () => {
				sendsEmpty = false;
				add("", undefined);
			},
		},
		icon("plus"),
		"Add",
	);
	const live = () => rows.filter((r) => r.name.value !== "" && r.field.get() !== undefined);
	return {
		el: t(".stack", host, more),
		group: true,
		empty: {},
		focus: () => (rows[0]?.name || more).focus(),
		child: (k) => rows.find((r) => r.name.value === k)?.field,
		get() {
			const all = live(),
				v = emptyObject();
			all.forEach((r) => (v[r.name.value] = r.field.get()));
			return all.length || sendsEmpty ? v : undefined;
		},
		set(v) {
			rows.splice(0).forEach((r) => r.el.remove());
			sendsEmpty = !!v && !Object.keys(v).length;
			Object.entries(v || {}).forEach(([k, x]) => add(k, x, true));
		},
		sendsEmpty: () => sendsEmpty && !rows.length,
	};
}

function objectControl(s, c) {
	const needed = s.required || [],
		parts = Object.entries(s.properties || {}).map(([name, x]) =>
			makeField(x, { name, depth: c.depth + 1, required: needed.includes(name) }),
		);
	const open = s.additionalProperties === true || isObj(s.additionalProperties);
	// It also has the keys that the schema does not allow: the server reports them.
	const rest = mapControl(s, { id: uid(), name: "other keys", depth: c.depth });
	const others = h(
		".field",
		{ hidden: !open },
		t(".fh", t("span.lb", open ? "other keys" : "not in the schema")),
		rest.el,
	);
	return {
		el: h(
			"div",
			{ class: c.root ? "form" : "nest" },
			parts.map((p) => p.el),
			others,
		),
		group: true,
		parts,
		child: (k) => parts.find((p) => p.name === k) || rest.child(k),
		focus: () => (parts[0] || rest).focus(),
		get() {
			const v = emptyObject();
			for (const p of parts) {
				const x = p.get();
				if (x !== undefined) v[p.name] = x;
			}
			return Object.assign(v, rest.get());
		},
		set(v) {
			const extra = Object.entries(v || {}).filter(([k]) => !parts.some((p) => p.name === k));
			parts.forEach((p) => p.set(getOwn(v, p.name)));
			rest.set(extra.length ? Object.fromEntries(extra) : undefined);
			others.hidden = !open && !extra.length;
		},
	};
}

function unionControl(s, c) {
	const host = t("div"),
		name = (x) => {
			const fixed = Object.values(x.properties || {})
				.map((p) => resolve(p))
				.find((p) => "const" in p);
			return fixed ? toText(fixed.const) : typeOf(x, 1);
		};
	const names = s.anyOf.map(name).map((n, i, all) => (all.indexOf(n) < i ? `${n} (${i + 1})` : n));
	let inner;
	const which = choiceControl({}, { id: c.id, name: `Form of ${c.name}` }, names);
	function selectForm(i, v) {
		inner =
			i < 0
				? undefined
				: makeField(
						{ ...s.anyOf[i], description: undefined },
						{ name: c.name, depth: c.depth, required: true, plain: true, upload: c.upload },
					);
		host.replaceChildren(...(inner ? [inner.el] : []));
		host.className = inner ? "field" : "";
		if (v !== undefined) inner?.set(v);
	}
	which.el.addEventListener("edit", () => selectForm(names.indexOf(which.get())));
	return {
		el: t(".stack", which.el, host),
		group: true,
		get: () => inner?.get(),
		focus: () => (inner || which).focus(),
		child: (k) => inner?.child(k),
		set(v) {
			const fits = v === undefined ? -1 : s.anyOf.findIndex((x) => !hintFor(x, v)),
				i = v !== undefined && fits < 0 ? s.anyOf.findIndex((x) => canShow(normalize(x).schema, v)) : fits;
			which.set(names[i]);
			selectForm(i, v);
		},
	};
}

function constControl(s, c) {
	const el = h("code.fixed", { id: c.id, tabIndex: -1 }, json(s.const));
	return { el, group: true, get: () => s.const, set() {}, focus: () => el.focus() };
}

function makeControl(s, c) {
	const kind = kindOf(s);
	if (c.depth >= MAX_DEPTH && ["object", "map", "list", "tuple", "union"].includes(kind))
		return jsonControl(s, c);
	if (kind === "boolean")
		return c.required || c.nullable ? choiceControl(s, c, [true, false]) : switchControl(s, c);
	if (kind === "enum") return choiceControl(s, c, s.enum);
	if (kind === "const" && !c.required) return choiceControl(s, c, [s.const]);
	return (
		{
			const: constControl,
			union: unionControl,
			list: listControl,
			tuple: tupleControl,
			object: objectControl,
			map: mapControl,
			string: textControl,
			integer: numberControl,
			number: numberControl,
		}[kind] || jsonControl
	)(s, c);
}

let uploadNames = []; // the parameters of the command that take files
/** One parameter: label, help, control, hint and error. It can be omitted, null, or shown as JSON. */
function makeField(raw, { name, depth = 0, required, plain, root, nested, upload }) {
	const { schema, nullable } = normalize(raw),
		kind = kindOf(schema),
		id = uid(),
		deep = depth >= MAX_DEPTH;
	const folds = !required && !deep && ["object", "tuple"].includes(kind);
	const c = { id, name, depth, required, nullable, root, label: plain ? name : undefined, upload: upload || (depth === 0 && uploadNames.includes(name)) };
	let mode = folds ? "off" : "form",
		rawControl;
	const control = root ? objectControl(schema, c) : makeControl(schema, c),
		f = { name, schema };
	const active = () => (mode === "raw" ? rawControl : control);
	const text = t("span", name),
		group = control.group || kind === "enum" || control.el.className === "segs";
	const help = h("p.help", { id: id + "h", hidden: !schema.description || plain }, schema.description || "");
	const hint = h("p.hint", { id: id + "n", hidden: true }),
		err = h("p.err", { id: id + "e", hidden: true });
	const reset = button(
		"mini",
		{
			title: "Leave it out of the call",
			onclick() {
				f.set(undefined);
				f.focus();
				notifyEdit(f.el);
			},
		},
		"reset",
	);
	const nil = button(
		"mini",
		{
			"aria-pressed": "false",
			title: "Send null",
			onclick() {
				f.set(mode === "null" ? undefined : null);
				notifyEdit(f.el);
				nil.focus();
			},
		},
		"null",
	);
	const empty =
		control.empty === undefined
			? null
			: button(
					"mini quiet",
					{
						title: `Send an empty ${kind === "string" ? "text" : kind === "map" ? "object" : "list"}`,
						onclick() {
							f.set(control.empty);
							notifyEdit(f.el);
							f.focus();
						},
					},
					json(control.empty),
				);
	const add = button(
		"btn slim",
		{
			"aria-label": `Add ${name}`,
			onclick() {
				mode = "form";
				notifyEdit(f.el);
				control.focus();
			},
		},
		icon("plus"),
		"Add",
	);
	const limits = limitsOf(schema),
		standard = schema.default,
		defaultText =
			standard === undefined || standard === null || kind === "boolean" || isEqual(standard, control.empty)
				? ""
				: `default ${toText(standard)}`;
	const holder = t(".stack");
	const head = t(
		".fh",
		group ? h("span.lb", { id: id + "l" }, text) : h("label", { htmlFor: id, id: id + "l" }, text),
		t(
			"span.ty",
			[kind === "const" ? "" : typeOf(schema), limits, defaultText.length > 60 ? defaultText.slice(0, 60) + "…" : defaultText]
				.filter(Boolean)
				.join(" · "),
		),
		required && !nested && kind !== "const" && t("span.rq", "required"),
		t("span.gap"),
		empty,
		nullable && nil,
		reset,
	);
	f.el = t(
		".field",
		root ? null : plain ? (nullable ? t(".fh", nil) : null) : head,
		root ? null : help,
		holder,
		hint,
		err,
	);
	if (group && !root) {
		f.el.setAttribute("role", "group");
		plain ? f.el.setAttribute("aria-label", name) : f.el.setAttribute("aria-labelledby", id + "l");
	}
	f.get = () => (mode === "off" ? undefined : mode === "null" ? null : active().get());
	f.set = (v) => {
		if (v === undefined) {
			mode = folds ? "off" : "form";
			control.set(undefined);
		} else if (v === null && nullable) {
			mode = "null";
			control.set(undefined);
		} else if (canShow(schema, v) || control.hint) {
			mode = "form";
			control.set(v);
		} else {
			mode = "raw";
			rawControl ||= jsonControl({}, { ...c, label: name });
			rawControl.set(v);
		}
		f.fail("");
		refresh();
	};
	f.focus = () => (mode === "off" ? add : mode === "null" ? nil : active()).focus();
	f.child = (k) => {
		if (mode === "off" && control.child) {
			mode = "form";
			refresh();
		}
		return mode === "form" ? control.child?.(k) : undefined;
	};
	f.rename = (n) => {
		text.textContent = name = n;
		c.name = n;
		if (plain) {
			control.input?.setAttribute("aria-label", n);
			if (group) f.el.setAttribute("aria-label", n);
		}
	};
	f.fail = (message) => {
		err.hidden = !message;
		err.replaceChildren(...(message ? [icon("bad"), t("span", message)] : []));
		const at = active().input || f.el;
		message
			? at.setAttribute("aria-invalid", "true")
			: [control.input, rawControl?.input, f.el].forEach((x) => x?.removeAttribute("aria-invalid"));
		describe();
		if (message) hint.hidden = true;
	};
	function describe() {
		const at = active().input,
			by = [!help.hidden && help.id, !hint.hidden && hint.id, !err.hidden && err.id]
				.filter(Boolean)
				.join(" ");
		if (at) by ? at.setAttribute("aria-describedby", by) : at.removeAttribute("aria-describedby");
		if (at && required && !plain && at.matches("input, textarea, select, [role=radiogroup]"))
			at.setAttribute("aria-required", "true");
	}
	function refresh() {
		const v = f.get(),
			want = mode === "off" ? add : mode === "null" ? t("code.fixed", "null") : active().el;
		if (mode === "null" ? holder.firstChild?.textContent !== "null" : holder.firstChild !== want)
			holder.replaceChildren(want);
		nil.setAttribute("aria-pressed", mode === "null");
		reset.hidden =
			root ||
			v === undefined ||
			kind === "const" ||
			(required && kind === "object" && mode === "form") ||
			nested;
		if (empty) empty.hidden = v !== undefined || mode !== "form";
		const hintText =
			root || mode === "null" || v === undefined
				? control.hint?.() || ""
				: mode === "raw"
					? rawControl.hint() || "The form cannot show this value, so it is shown as JSON."
					: control.sendsEmpty?.()
						? "An empty list or object is sent."
						: control.hint?.() || (control.child || isAttachment(v) ? "" : hintFor(schema, v));
		hint.textContent = hintText;
		hint.hidden = !hintText || !err.hidden;
		describe();
	}
	f.el.addEventListener("edit", () => {
		if (!err.hidden) f.fail("");
		refresh();
	});
	if (root) holder.className = "";
	refresh();
	return f;
}

