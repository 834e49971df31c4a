// Dialogs, and messages that go away by themselves.
"use strict";

const SHOWN_MS = 6000;

// A native modal dialog: the browser keeps the focus inside, and Escape closes it.
const Dialog = ({ title, onClose, children, wide, label }) => {
  const box = useRef();
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    box.current.querySelector("[data-focus]")?.focus();
    return () => before?.isConnected && before.focus();
  }, []);
  const outside = (event) => event.target === box.current && onClose();
  return html`<dialog ref=${box} class=${classes("dialog", wide && "wide")} aria-label=${label || title} onClose=${onClose} onMouseDown=${outside}>
    <div class="dialog-in">
      ${title && html`<header><h2>${title}</h2><button class="icon" aria-label="Close" onClick=${onClose}>✕</button></header>`}
      ${children}
    </div>
  </dialog>`;
};

const tellers = new Set();
const say = (text, tone = "good") => tellers.forEach((tell) => tell({ text, tone, id: Math.random() }));
const fault = (error) => say(`${error.message}${error.wayOut ? ` ${error.wayOut}` : ""}`, "bad");
const Messages = () => {
  const [messages, set] = useState([]);
  useEffect(() => {
    const tell = (message) => {
      set((shown) => [...shown, message]);
      setTimeout(() => set((shown) => shown.filter((each) => each.id !== message.id)), SHOWN_MS);
    };
    tellers.add(tell);
    return () => tellers.delete(tell);
  }, []);
  return html`<div class="messages" role="status" aria-live="polite">
    ${messages.map((each) => html`<div key=${each.id} class=${`message tone-${each.tone}`}>${plain(each.text)}</div>`)}
  </div>`;
};

const typed = (set) => (event) => set(event.target.value);
const Field = ({ label, value, set, rows, first, optional, ...rest }) => html`<label class="field"><span>${plain(label)}</span>
  <${rows ? "textarea" : "input"} rows=${rows} value=${value} required=${!optional} data-focus=${first} onInput=${typed(set)} ...${rest} /></label>`;

// A dialog that sends something. `send` is called when it is ready, and its refusal is shown; Ctrl-Enter sends it too.
const Ask = ({ title, wide, label, tone = "primary", ready = true, fault: given, send, onClose, children }) => {
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    if (!ready || busy) return;
    setBusy(true);
    setError(null);
    try {
      const reply = await send();
      onClose();
      const said = [...(reply?.done || []), ...(reply?.warnings || [])].join(" · ");
      if (said) say(said);
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  const keys = (event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && submit(event);
  const shown = error || given;
  return html`<${Dialog} title=${title} wide=${wide} onClose=${onClose}><form onSubmit=${submit} onKeyDown=${keys}>
    ${typeof children === "function" ? children(error, () => setError(null)) : children}
    ${shown && html`<${Fault} error=${shown} />`}
    <footer><button type="button" onClick=${onClose}>Not now</button><button class=${tone} disabled=${!ready || busy} data-focus>${plain(label)}</button></footer>
  </form></${Dialog}>`;
};
