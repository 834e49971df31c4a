// A status is a shape, a word and a colour, so that none of them is needed alone.
// tone, shape, the words that have them
const LOOKS = [
	["quiet", "dots", "waiting"], ["quiet", "bars", "paused archived"], ["quiet", "slash", "skipped cancelled"],
	["live", "half", "in_progress active running"], ["good", "check", "completed done passed pass approved"], ["good", "plus", "added"],
	["bad", "cross", "failed fail error rejected damaged"], ["bad", "minus", "removed"],
	["warn", "bang", "blocked escalated needs_you"], ["warn", "dashed", "stale"], ["warn", "dot", "modified"],
];
const look = (word) => LOOKS.find(([, , listed]) => listed.split(" ").includes(String(word).toLowerCase())) || ["quiet", "ring"];

// Each shape is drawn in 16 by 16: [class, path]. `cut` is drawn in the colour of the ground.
const RING = "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 1 1 0-11z";
const SHAPES = {
	ring: [["", RING]],
	dashed: [["dashed", RING]],
	dots: [["", RING], ["full", "M8 6.6a1.4 1.4 0 1 1 0 2.8 1.4 1.4 0 1 1 0-2.8z"]],
	half: [["", RING], ["full pulse", "M8 4.6a3.4 3.4 0 0 1 0 6.8z"]],
	check: [["full", "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 1 1 0-13z"], ["cut", "M5 8.2l2.1 2.1L11 6.2"]],
	cross: [["full", "M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2z"], ["cut", "M5.8 5.8l4.4 4.4m0-4.4l-4.4 4.4"]],
	bang: [["full", "M8 1.4l6.9 12.4H1.1z"], ["cut", "M8 6v3.6m0 1.9v.3"]],
	slash: [["", `${RING}M4.6 11.4l6.8-6.8`]],
	bars: [["", "M5.5 4v8m5-8v8"]],
	plus: [["", "M8 3.5v9M3.5 8h9"]],
	minus: [["", "M3.5 8h9"]],
	dot: [["full", "M8 5a3 3 0 1 1 0 6 3 3 0 1 1 0-6z"]],
};
const drawing = (drawn) => SHAPES[drawn].map(([style, path]) => html`<path class=${style} d=${path} />`);
const shape = (of) => {
	const [tone, drawn] = look(of);
	return html`<svg class=${`shape tone-${tone}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">${drawing(drawn)}</svg>`;
};
const words = (word) => String(word ?? "").replace(/_/g, " ");
const status = (of, word = of) => html`<span class=${`status tone-${look(of)[0]}`}>${shape(of)}${words(word)}</span>`;

// Names with their values; those without a value are left out.
const pairs = (rows) => html`<dl class="pairs">${rows.filter(([, value]) => value).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
// A list of paths or names. `of` is the status that its shape tells.
const paths = (names, of, most = 30) => html`<ul class="paths">${names.slice(0, most).map((name) => html`<li key=${name}>${of && shape(of)}<code>${plain(name)}</code></li>`)}
	${names.length > most && html`<li class="note">and ${count(names.length - most, "more", "more")}</li>`}</ul>`;
// Short facts in a line; empty ones are left out.
const facts = (...told) => html`<div class="facts">${told.filter(Boolean).map((fact) => html`<span class="note">${fact}</span>`)}</div>`;
const bar = (part, style = "") => html`<span class=${`bar ${style}`} aria-hidden="true"><span style=${{ width: `${100 * Math.max(0, Math.min(1, part))}%` }}></span></span>`;
const failure = (of, body, at) => html`<div class="failure">${shape(of)}<div class="grow">${body}</div>${when(at)}</div>`;
