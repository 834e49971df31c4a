// A status is a shape, a word and a colour, so that none of them is needed alone.
"use strict";

// word -> [tone, shape]
const LOOKS = {
  pending: ["quiet", "ring"], ready: ["quiet", "ring"], waiting: ["quiet", "dots"], paused: ["quiet", "bars"],
  in_progress: ["live", "half"], active: ["live", "half"], running: ["live", "half"],
  completed: ["good", "check"], done: ["good", "check"], passed: ["good", "check"], pass: ["good", "check"], approved: ["good", "check"],
  failed: ["bad", "cross"], fail: ["bad", "cross"], error: ["bad", "cross"], rejected: ["bad", "cross"], cancelled: ["quiet", "slash"],
  skipped: ["quiet", "slash"], blocked: ["warn", "bang"], escalated: ["warn", "bang"], stale: ["warn", "dashed"], needs_you: ["warn", "bang"],
  awaiting_review: ["warn", "bang"], damaged: ["bad", "cross"], archived: ["quiet", "bars"], added: ["good", "plus"], deleted: ["bad", "minus"], modified: ["warn", "dot"],
};
const look = (word) => LOOKS[String(word).toLowerCase().replace(/[ -]/g, "_")] || ["quiet", "ring"];

const SHAPES = {
  ring: () => html`<circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="1.5" />`,
  dashed: () => html`<circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="1.8" stroke-dasharray="3 2.4" />`,
  dots: () => html`<circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="1.5" /><circle cx="8" cy="8" r="1.4" fill="currentColor" />`,
  half: () => html`<circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="1.6" /><path class="pulse" d="M8 4.6a3.4 3.4 0 0 1 0 6.8z" fill="currentColor" />`,
  check: () => html`<circle cx="8" cy="8" r="6.5" fill="currentColor" /><path d="M5 8.2l2.1 2.1L11 6.2" fill="none" stroke="var(--ground)" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round" />`,
  cross: () => html`<path d="M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2z" fill="currentColor" /><path d="M5.8 5.8l4.4 4.4m0-4.4l-4.4 4.4" stroke="var(--ground)" stroke-width="1.6" stroke-linecap="round" />`,
  bang: () => html`<path d="M8 1.4l6.9 12.4H1.1z" fill="currentColor" stroke="currentColor" stroke-width="1" stroke-linejoin="round" /><path d="M8 6v3.6m0 1.9v.3" stroke="var(--ground)" stroke-width="1.6" stroke-linecap="round" />`,
  slash: () => html`<circle cx="8" cy="8" r="5.5" fill="none" stroke="currentColor" stroke-width="1.5" /><path d="M4.6 11.4l6.8-6.8" stroke="currentColor" stroke-width="1.5" />`,
  bars: () => html`<path d="M5.5 4v8m5-8v8" stroke="currentColor" stroke-width="2" stroke-linecap="round" />`,
  plus: () => html`<path d="M8 3.5v9M3.5 8h9" stroke="currentColor" stroke-width="2" />`,
  minus: () => html`<path d="M3.5 8h9" stroke="currentColor" stroke-width="2" />`,
  dot: () => html`<circle cx="8" cy="8" r="3" fill="currentColor" />`,
};
const shape = (of) => {
  const [tone, drawn] = look(of);
  return html`<svg class=${`shape tone-${tone}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">${SHAPES[drawn]()}</svg>`;
};
const words = (word) => String(word ?? "").replace(/_/g, " ");
const status = (of, word = of) => html`<span class=${`status tone-${look(of)[0]}`}>${shape(of)}${words(word)}</span>`;
