/* ---------------------------------------------------------------- schemas */
let defs = {};
function resolve(s) {
	if (!isObj(s)) return {};
	for (let hops = 0; typeof s.$ref === "string" && hops < 9; hops++) {
		const { $ref, ...rest } = s;
		s = { ...getOwn(defs, $ref.split("/").pop()), ...rest };
	}
	if (s.allOf?.length === 1) {
		const { allOf, ...rest } = s;
		s = { ...resolve(allOf[0]), ...rest };
	}
	if (s.oneOf && !s.anyOf) s = { ...s, anyOf: s.oneOf };
	if (Array.isArray(s.type)) {
		const { type, ...rest } = s;
		s = { ...rest, anyOf: type.map((t) => ({ ...rest, type: t })) };
	}
	return s;
}
function normalize(raw) {
	let schema = resolve(raw),
		nullable = false;
	if (schema.anyOf) {
		const { anyOf, ...outer } = schema,
			all = anyOf.map(resolve),
			some = all.filter((s) => s.type !== "null");
		nullable = some.length < all.length;
		schema = some.length === 1 ? { ...normalize(some[0]).schema, ...outer } : { ...outer, anyOf: some };
	}
	return { schema, nullable };
}
function kindOf(s) {
	if ("const" in s) return "const";
	if (s.enum) return "enum";
	if (s.anyOf) return "union";
	if (s.type === "array")
		return s.prefixItems && s.items !== undefined && s.items !== false
			? "any"
			: s.prefixItems
				? "tuple"
				: "list";
	if (s.type === "object" || s.properties)
		return Object.keys(s.properties || {}).length ? "object" : isObj(s.additionalProperties) ? "map" : "free";
	return ["string", "integer", "number", "boolean"].includes(s.type) ? s.type : "any";
}
function typeOf(raw, deep = 0) {
	const { schema: s, nullable } = normalize(raw),
		next = (x) => (deep > 2 ? "…" : typeOf(x, deep + 1));
	const word =
		{
			const: () => json(s.const),
			enum: () => "choice",
			union: () => s.anyOf.map(next).join(" or "),
			list: () => `list of ${next(s.items)}`,
			tuple: () => `(${s.prefixItems.map(next).join(", ")})`,
			object: () => (deep ? `{${Object.keys(s.properties).join(", ")}}` : "object"),
			map: () => `map of ${next(s.additionalProperties)}`,
			free: () => "object",
			string: () => s.format || "text",
			any: () => "JSON",
		}[kindOf(s)]?.() || s.type;
	return nullable ? word + " or null" : word;
}
function limitsOf(s) {
	const span = (a, b, of = "") =>
		a == null && b == null
			? ""
			: of + (a === b ? a : a == null ? `≤ ${b}` : b == null ? `≥ ${a}` : `${a}–${b}`);
	return [
		span(s.minimum, s.maximum),
		s.exclusiveMinimum != null && `> ${s.exclusiveMinimum}`,
		s.exclusiveMaximum != null && `< ${s.exclusiveMaximum}`,
		s.multipleOf && `multiple of ${s.multipleOf}`,
		span(s.minLength, s.maxLength, "length "),
		s.prefixItems ? "" : span(s.minItems, s.maxItems, "items "),
		s.uniqueItems && "no duplicates",
		s.pattern && `like ${s.pattern}`,
	]
		.filter(Boolean)
		.join(", ");
}
const FORMATS = {
	uuid: [/^[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}$/i, "00000000-0000-0000-0000-000000000000"],
	email: [/^\S+@\S+\.\S+$/, "name@example.org"],
	date: [/^\d{4}-\d\d-\d\d$/, "2026-01-31"],
	time: [/^\d\d:\d\d/, "13:45:00"],
	"date-time": [/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/, "2026-01-31T13:45:00Z"],
	duration: [/^([-+]?P(?=.)|[-+]?[\d.]+$|.*\d\d:\d\d)/, "PT1H30M"],
	uri: [/^[a-z][\w+.-]*:/i, "https://example.org"],
	base64url: [/^[\w+/=-]*$/, "aGVsbG8="],
};
FORMATS.url = FORMATS.uri;
FORMATS.base64 = FORMATS.byte = FORMATS.base64url;
/** Return a hint about an invalid value, or an empty text. The server decides what is valid. */
function hintFor(raw, v) {
	const { schema: s, nullable } = normalize(raw),
		kind = kindOf(s);
	if (v === null)
		return nullable || kind === "any" || (s.enum || [s.const]).includes(null)
			? ""
			: "null is not allowed";
	if (kind === "const") return isEqual(s.const, v) ? "" : `Must be ${json(s.const)}`;
	if (kind === "enum") return s.enum.some((x) => isEqual(x, v)) ? "" : "Not one of the allowed values";
	if (kind === "union") return s.anyOf.some((x) => !hintFor(x, v)) ? "" : "Matches none of the alternatives";
	if (kind === "boolean") return typeof v === "boolean" ? "" : "Must be true or false";
	if (kind === "integer" || kind === "number") {
		if (isRaw(v)) return "";
		if (typeof v !== "number") return "Not a number";
		if (kind === "integer" && !Number.isInteger(v)) return "Must be a whole number";
		const off = v < s.minimum || v > s.maximum || v <= s.exclusiveMinimum || v >= s.exclusiveMaximum;
		return off
			? `Outside ${limitsOf(s)}`
			: s.multipleOf && Math.abs(v / s.multipleOf - Math.round(v / s.multipleOf)) > 1e-9
				? `Must be a multiple of ${s.multipleOf}`
				: "";
	}
	if (kind === "string") {
		if (typeof v !== "string") return "Must be text";
		const form = getOwn(FORMATS, s.format);
		if (form && !form[0].test(v)) return `Expected ${s.format}, as in ${form[1]}`;
		if (v.length < s.minLength) return `At least ${plural(s.minLength, "character")}`;
		if (v.length > s.maxLength) return `At most ${plural(s.maxLength, "character")}`;
		try {
			if (s.pattern && !new RegExp(s.pattern, "u").test(v)) return `Does not match ${s.pattern}`;
		} catch {
			/* JavaScript does not support the pattern */
		}
		return "";
	}
	if (kind === "list" || kind === "tuple") {
		if (!Array.isArray(v)) return "Not a list";
		if (v.length < s.minItems || v.length > s.maxItems)
			return `Expected ${limitsOf(s) || plural(s.minItems, "item")}`;
		if (s.uniqueItems && new Set(v.map((x) => json(x))).size < v.length) return "The list has duplicate items";
		return v.map((x, i) => hintFor(s.prefixItems?.[i] || s.items, x)).find(Boolean) || "";
	}
	if (kind === "any") return "";
	if (!isObj(v)) return "Must be an object";
	const lacks = (s.required || []).find((k) => !Object.hasOwn(v, k));
	return lacks
		? `${lacks} is missing`
		: Object.entries(s.properties || {})
				.map(([k, x]) => (Object.hasOwn(v, k) ? hintFor(x, v[k]) : ""))
				.find(Boolean) || "";
}
/** Return whether a control of this kind can show the value. */
const canShow = (s, v) =>
	(
		({
			const: () => isEqual(s.const, v),
			enum: () => s.enum.some((x) => isEqual(x, v)),
			union: () => s.anyOf.some((x) => canShow(normalize(x).schema, v)),
			boolean: () => typeof v === "boolean",
			integer: () =>
				typeof v === "number" || isRaw(v) || (typeof v === "string" && typeof parseNumber(v) === "string"),
			string: () => typeof v === "string",
			list: () => Array.isArray(v) && v.length <= 200,
			tuple: () => Array.isArray(v) && v.length === s.prefixItems.length,
			object: () => isObj(v),
			map: () => isObj(v),
		})[kindOf(s) === "number" ? "integer" : kindOf(s)] || (() => true)
	)();
const toText = (v) => (typeof v === "string" ? v : json(v));

