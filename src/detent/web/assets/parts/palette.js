// The command palette, and the list of keys.
"use strict";

const MOST = 50;

// Whether the letters of `asked` stand in `text` in this order; a lower number is a better match.
const match = (asked, text) => {
  const low = text.toLowerCase();
  const found = low.indexOf(asked);
  if (found >= 0) return found;
  let at = -1, spread = 100;
  for (const letter of asked) {
    const next = low.indexOf(letter, at + 1);
    if (next < 0) return null;
    spread += next - at;
    at = next;
  }
  return spread;
};

// entries: [{label, note, run}]
const Palette = ({ entries, onClose }) => {
  const [asked, ask] = useState("");
  const [chosen, choose] = useState(0);
  const found = useMemo(() => {
    const wanted = asked.trim().toLowerCase();
    if (!wanted) return entries.slice(0, MOST);
    return entries
      .map((entry) => [match(wanted, `${entry.label} ${entry.note || ""}`), entry])
      .filter(([rank]) => rank !== null)
      .sort((a, b) => a[0] - b[0])
      .slice(0, MOST)
      .map(([, entry]) => entry);
  }, [asked, entries]);
  const at = Math.min(chosen, found.length - 1);
  const run = (entry) => { onClose(); entry.run(); };
  const keys = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      const next = Math.max(0, Math.min(found.length - 1, at + by));
      choose(next);
      document.getElementById(`palette-${next}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && found[at]) {
      event.preventDefault();
      run(found[at]);
    }
  };
  return html`<${Dialog} label="Command palette" onClose=${onClose}>
    <div class="palette">
      <input data-focus type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`palette-${at}`} aria-label="Go to or do"
        placeholder="Go to a session, a phase, a task; do something…" value=${asked} onInput=${(event) => { ask(event.target.value); choose(0); }} onKeyDown=${keys} />
      <ul id="palette-list" role="listbox" aria-label="Found">
        ${found.map((entry, index) => html`<li key=${entry.label + entry.note} id=${`palette-${index}`} role="option" aria-selected=${index === at}
          class=${classes(index === at && "chosen")} onMouseDown=${(event) => { event.preventDefault(); run(entry); }}>
          <span class="label">${plain(entry.label)}</span><span class="note">${plain(entry.note || "")}</span>
          ${entry.keys && html`<${Keys} keys=${entry.keys} />`}
        </li>`)}
        ${!found.length && html`<li class="none" role="option" aria-selected="false">Nothing found.</li>`}
      </ul>
    </div>
  </${Dialog}>`;
};

const NAMES = { mod: "Ctrl", enter: "↵", esc: "Esc", left: "←", right: "→" };
const Keys = ({ keys }) => html`<span class="keys">${keys.split(" ").map((key) => html`<kbd>${NAMES[key] || key}</kbd>`)}</span>`;

const Help = ({ onClose }) => {
  const [on, set] = useState(keysEnabled());
  return html`<${Dialog} title="Keys" onClose=${onClose}>
    <dl class="key-list">
      ${allKeys().filter((entry) => entry.label).map((entry) => html`<div key=${entry.keys}><dt>${entry.label}</dt><dd><${Keys} keys=${entry.keys} /></dd></div>`)}
    </dl>
    <label class="check"><input type="checkbox" data-focus checked=${on} onChange=${(event) => { enableKeys(event.target.checked); set(event.target.checked); }} /> Single keys work</label>
  </${Dialog}>`;
};
