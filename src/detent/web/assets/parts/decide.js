// Decisions: what waits for a person, and the dialog in which it is decided.
"use strict";

const KINDS = {
  question: "Question", escalation: "Escalation", budget: "Budget", review: "Review", vote: "Approval", answer: "Choice", report: "Report", accept: "Accept",
  stale: "Check again", closed: "Closed gate", command: "Test command", failed: "Failed", task: "Task", step: "Step", tasks_left: "Tasks left",
};

const copy = async (line) => {
  try {
    await navigator.clipboard.writeText(line);
    say("The command was copied.");
  } catch {
    say("The browser does not let this page copy. Select the command and copy it.", "bad");
  }
};
const command = (line) => html`<span class="command"><code>${plain(line)}</code><button class="icon" title="Copy" aria-label=${`Copy ${plain(line)}`} onClick=${() => copy(line)}>⧉</button></span>`;

// The files that an approval is about, as the server sees them now.
const Shown = ({ review, href, onLeave }) => html`<div class="shown">
  ${review.since
    ? html`<p><strong>${count(review.files.length + review.left_out, "file")}</strong> changed since <code>${plain(review.since)}</code>. <a href=${href} onClick=${onLeave}>Look at the changes</a></p>`
    : html`<p>No checkpoint was taken when the phase began, so there is no diff.</p>`}
  <ul class="paths">${review.files.slice(0, 6).map((file) => html`<li key=${file.path}>${shape(file.status === "removed" ? "deleted" : file.status)}<code>${plain(file.path)}</code>
    <span class="num">${file.binary ? "binary" : html`<ins>+${file.added ?? "?"}</ins> <del>−${file.removed ?? "?"}</del>`}</span></li>`)}
    ${review.files.length > 6 && html`<li class="note">and ${count(review.files.length - 6, "more file")}</li>`}</ul>
  <p class="note">You decide about exactly these files: <code title=${review.tree}>${plain(String(review.tree).slice(0, 12))}</code></p>
</div>`;

// `given` is the review that the person looked at; without it, the dialog shows one.
const Decide = ({ need, action, given, reason: begun = "", onClose, onDone }) => {
  const at = links(need.project, need.session);
  const [reason, setReason] = useState(begun);
  const [also, setAlso] = useState("");
  const [review, setReview] = useState(given || null);
  const [error, setError] = useState(null);
  const look = () => {
    setReview(null);
    api.get(`${at.api}/review${api.query({ phase: need.phase })}`).then(setReview, setError);
  };
  useEffect(() => { if (action.needs_tree && !given) look(); }, []);
  const ready = (!action.needs_reason || reason.trim()) && (!action.also || also.trim()) && (!action.needs_tree || review);
  const needsKey = need.assurance && need.assurance !== "attended";
  const send = async () => {
    const body = { ...action.body, decision: action.decision };
    if (action.needs_reason) body[action.reason_field] = reason.trim();
    if (action.also) body[action.also[0]] = also.trim();
    if (review) Object.assign(body, { tree: review.tree, position: review.position });
    if (needsKey) body.proof = await prove(at, body);
    const reply = await api.post(`${at.api}/decide`, body);
    onDone?.(reply);
    return reply;
  };
  return html`<${Ask} title=${`${action.label}${need.phase ? ` · ${plain(need.phase)}` : ""}`} label=${action.label} tone=${action.style} ready=${ready} fault=${error} send=${send} onClose=${onClose}>${(refusal, clear) => html`
    <p class="about">${text(need.what, 600)}</p>
    ${action.needs_tree && review && html`<${Shown} review=${review} href=${at.review(need.phase)} onLeave=${onClose} />`}
    ${action.needs_tree && !review && !error && html`<p class="loading">Looking at the files…</p>`}
    ${action.also && html`<${Field} label=${action.also[1]} value=${also} set=${setAlso} class="mono" first />`}
    ${action.needs_reason && html`<${Field} label=${action.reason_label} value=${reason} set=${setReason} rows="3" first />`}
    ${needsKey && html`<p class="note">This decision is ${plain(need.assurance)}: your key signs it.</p>`}
    ${refusal?.kind === "tree_changed" && html`<p><button type="button" onClick=${() => { clear(); look(); }}>Look at the files as they are now</button></p>`}
  `}</${Ask}>`;
};

// One entry of the list, with its decisions. `compact` leaves out what the screen around it says.
const Need = ({ need, compact, chosen, id, onDecide }) => {
  const at = links(need.project, need.session);
  const can = api.access.can_decide;
  return html`<article class=${classes("need", chosen && "chosen")} id=${id} aria-label=${`${KINDS[need.kind] || need.kind}: ${plain(need.what).slice(0, 120)}`}>
    <header>
      <span class="kind">${shape(need.is_yours ? "needs_you" : "waiting")}${KINDS[need.kind] || need.kind}</span>
      <span class="where">
        ${!compact && html`<a href=${at.session} class="quiet-link">${text(need.task_text || need.session, 90)}</a><span class="note">${plain(need.project_name)}</span>`}
        ${need.phase && html`<a class="chip" href=${at.phase(need.phase)}>${plain(need.phase)}</a>`}
        ${need.gate && html`<a class="chip" href=${at.gate(need.phase, need.gate)}>${plain(need.gate)}</a>`}
        ${need.task && html`<a class="chip" href=${at.task(need.task)}>${plain(need.task)}</a>`}
      </span>
      ${when(need.since)}
    </header>
    <p class="what">${text(need.what, 500)}</p>
    ${need.waits_for.length > 0 && html`<p class="note">Waits for ${plain(need.waits_for.join(", "))}.</p>`}
    <footer>
      ${can && need.is_yours && need.actions.map((action) => html`<button key=${action.label} class=${action.style} onClick=${() => onDecide(need, action)}>${plain(action.label)}</button>`)}
      ${need.actions.some((action) => action.needs_tree) && html`<a class="button" href=${at.review(need.phase)}>Review changes</a>`}
      ${(!can || !need.is_yours || !need.actions.length) && command(need.command)}
    </footer>
  </article>`;
};

// The state of a dialog: [what to draw, how to open it].
const useDecide = (onDone) => {
  const [open, set] = useState(null);
  const dialog = open && html`<${Decide} key=${`${open.need.id} ${open.action.label}`} ...${open} onClose=${() => set(null)} onDone=${onDone} />`;
  return [dialog, (need, action, more = {}) => set({ need, action, ...more })];
};
const actionOf = (need, is) => (api.access.can_decide && need?.is_yours ? need.actions.find(is) : undefined);
const isFirst = (action) => action.style === "primary";
const isRejection = (action) => action.style === "danger" || action.body.choice === "redo";
