// Times: relative by default, absolute on a key, both always in the tooltip.
"use strict";

const TICK_MS = 5000;
const listeners = new Set();
let absolute = localStorage.getItem("detent-times") === "absolute";
setInterval(() => !document.hidden && listeners.forEach((tell) => tell({})), TICK_MS);

const duration = (seconds) => {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 && s < 600 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h${Math.floor((s % 3600) / 60) ? ` ${Math.floor((s % 3600) / 60)} min` : ""}`;
  return `${Math.floor(s / 86400)} d${Math.floor((s % 86400) / 3600) ? ` ${Math.floor((s % 86400) / 3600)} h` : ""}`;
};
const ago = (date) => {
  const seconds = (Date.now() - date) / 1000;
  if (seconds < -5) return `in ${duration(-seconds)}`;
  if (seconds < 5) return "now";
  const [unit] = [duration(seconds).match(/^\d+ \w+/)[0]];
  return `${unit} ago`;
};
const two = (number) => String(number).padStart(2, "0");
const clock = (date) => {
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return date.toDateString() === new Date().toDateString() ? time : `${day} ${time}`;
};

const useTick = () => {
  const [, tick] = useState({});
  useEffect(() => {
    listeners.add(tick);
    return () => listeners.delete(tick);
  }, []);
};

const Time = ({ at, prefix = "" }) => {
  useTick();
  if (!at) return null;
  const date = new Date(at);
  return html`<time datetime=${date.toISOString()} title=${`${date.toLocaleString()} · ${ago(date)}`}
    >${prefix}${absolute ? clock(date) : ago(date)}</time>`;
};
const when = (at, prefix) => html`<${Time} at=${at} prefix=${prefix} />`;
// The time since a moment, while it goes on.
const Elapsed = ({ from, to }) => {
  useTick();
  if (!from) return null;
  return html`<span class="num">${duration(((to ? new Date(to) : Date.now()) - new Date(from)) / 1000)}</span>`;
};
const toggleTimes = () => {
  absolute = !absolute;
  localStorage.setItem("detent-times", absolute ? "absolute" : "relative");
  listeners.forEach((tell) => tell({}));
};
