// What every script uses. Scripts are classic, because modules do not load from file://: they share one scope, and each
// uses what those before it define.
const { html, render, useState, useEffect, useLayoutEffect, useRef, useMemo, useCallback } = window.htmPreact;

const LONGEST = 4000;
// Characters that hide or reorder text: bidirectional controls, zero-width characters, byte order mark.
const HIDING = /[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

// Text of agents and files, with every character that would act on the screen made visible.
const plain = (value) =>
	String(value ?? "")
		.replace(/\r\n/g, "\n")
		.replace(CONTROL, (c) => {
			const code = c.charCodeAt(0);
			return code < 32 ? String.fromCharCode(0x2400 + code) : `‹U+${code.toString(16).padStart(4, "0").toUpperCase()}›`;
		})
		.replace(HIDING, (c) => `‹U+${c.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}›`);

const size = (bytes) => {
	if (bytes < 1024) return `${bytes} B`;
	if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(bytes < 10240 ? 1 : 0)} KB`;
	return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
};

// Cut before it is cleaned: a text of a megabyte costs nothing until a person asks for it.
const Text = ({ value, limit, block }) => {
	const [all, setAll] = useState(false);
	const text = String(value ?? "");
	const cut = !all && text.length > limit;
	const body = html`${plain(cut ? text.slice(0, limit) : text)}${cut &&
	html`… <button class="link" onClick=${() => setAll(true)}>Show all ${size(text.length)}</button>`}`;
	return block ? html`<pre class="text" tabindex="0">${body}</pre>` : html`<bdi class="text">${body}</bdi>`;
};

const text = (value, limit = LONGEST) => html`<${Text} value=${value} limit=${limit} />`;

const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

const short = (number) => {
	if (number == null) return "–";
	if (number < 1000) return String(number);
	if (number < 1e6) return `${(number / 1000).toFixed(number < 1e4 ? 1 : 0)}k`;
	return `${(number / 1e6).toFixed(1)}M`;
};

const money = (value) => (value == null ? "–" : `$${value.toFixed(value < 10 ? 2 : 0)}`);

const classes = (...names) => names.filter(Boolean).join(" ");
