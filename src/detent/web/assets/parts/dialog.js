// Dialogs, and messages that go away by themselves.
"use strict";

const SHOWN_MS = 6000;

// A native modal dialog: the browser keeps the focus inside, and Escape closes it.
const Dialog = ({ title, onClose, children, wide, label }) => {
  const box = useRef();
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    const wanted = box.current.querySelector("[data-focus]");
    if (wanted) wanted.focus();
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
