// Keys: each screen says which keys it has; `?` lists them, and the palette offers them by name.
const SEQUENCE_MS = 1200;
const layers = [];
let first = null;
let firstAt = 0;
let enabled = localStorage.getItem("detent-keys") !== "off";

const typing = (target) => target.closest?.("input, textarea, select, [contenteditable]");
const find = (keys) => {
	for (let index = layers.length - 1; index >= 0; index--) {
		const found = layers[index].current.find((entry) => entry.keys === keys && !entry.off);
		if (found) return found;
	}
	return null;
};
const name = (event) => {
	if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") return "mod k";
	if ((event.ctrlKey || event.metaKey) && event.key === "Enter") return "mod enter";
	if (event.ctrlKey || event.metaKey || event.altKey) return null;
	return { Enter: "enter", Escape: "esc", ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right" }[event.key] || event.key;
};
addEventListener("keydown", (event) => {
	const key = name(event);
	if (!key || event.defaultPrevented) return;
	const single = !key.startsWith("mod");
	// A dialog has the keyboard, and a field has its letters.
	if (single && (typing(event.target) || document.querySelector("dialog[open]"))) return;
	if (single && !enabled && key !== "?") return;
	// Enter on a button or a link is the button's.
	if (key === "enter" && event.target.closest?.("button, a, summary")) return;
	const sequence = first && Date.now() - firstAt < SEQUENCE_MS ? `${first} ${key}` : null;
	first = null;
	const found = (sequence && find(sequence)) || find(key);
	if (found) {
		event.preventDefault();
		found.run(event);
	} else if (key === "g") {
		first = key;
		firstAt = Date.now();
	}
});

// entries: [keys, what is done, its name, whether it is off now]
const useKeys = (entries) => {
	const layer = useRef();
	layer.current = entries.filter(Boolean).map(([keys, run, label, off]) => ({ keys, run, label, off }));
	useLayoutEffect(() => {
		layers.push(layer);
		return () => layers.splice(layers.indexOf(layer), 1);
	}, []);
};
const allKeys = () => {
	const seen = new Map();
	for (let index = layers.length - 1; index >= 0; index--)
		for (const entry of layers[index].current) if (!entry.off && !seen.has(entry.keys)) seen.set(entry.keys, entry);
	return [...seen.values()];
};

const keysEnabled = () => enabled;
const enableKeys = (on) => {
	enabled = on;
	localStorage.setItem("detent-keys", on ? "on" : "off");
};
