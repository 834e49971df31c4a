// Checkpoints: compare any two, go back to one after looking at what would happen, and undo it.
"use strict";

const Paths = ({ title, of, paths }) => (paths.length ? html`<h3>${title} <span class="note">${paths.length}</span></h3><ul class="paths">${paths.slice(0, 30).map((path) => html`<li key=${path}>${shape(of)}<code>${plain(path)}</code></li>`)}${paths.length > 30 && html`<li class="note">and ${count(paths.length - 30, "more file")}</li>`}</ul>` : null);

// The dry run comes first, and what is carried out is what it showed.
const Rollback = ({ at, path, to: id, title, label, onClose, onDone }) => {
  const [plan, setPlan] = useState(null);
  const [error, setError] = useState(null);
  const post = (more) => api.post(`${at.api}/${path}`, { ...(id ? { to: id } : {}), ...more });
  useEffect(() => { post({ dry_run: true }).then(setPlan, setError); }, []);
  const send = async () => {
    const { result } = await post({ dry_run: false, plan_id: plan.plan_id });
    onDone();
    return { done: [result?.safety ? `Done. The state before is checkpoint ${result.safety.name || result.safety.id}.` : "Done."] };
  };
  const shown = plan?.plan;
  const changes = Object.entries(shown?.phases || {}).filter(([, change]) => change.before !== change.after);
  const files = [["Restored", "modified", shown?.files.restored], ["Added again", "added", shown?.files.added], ["Removed", "deleted", shown?.files.removed]];
  return html`<${Ask} wide title=${title} label=${label} tone="danger" ready=${plan} fault=${error} send=${send} onClose=${onClose}>
    ${!plan && !error && html`<p class="loading">Looking at what would change…</p>`}
    ${shown && html`<p class="note">Nothing was changed yet. This would happen:</p>
      ${changes.length > 0 && html`<h3>Phases</h3><ul class="paths">${changes.map(([key, change]) => html`<li key=${key}><strong>${plain(key)}</strong> ${words(change.before)} → ${words(change.after)}</li>`)}</ul>`}
      ${files.map(([name, of, paths]) => html`<${Paths} key=${name} title=${name} of=${of} paths=${paths || []} />`)}
      ${files.every(([, , paths]) => !paths?.length) && html`<p>No file changes.</p>`}
      ${(shown.warnings || []).map((warning) => html`<p class="notice">${plain(warning)}</p>`)}`}
  </${Ask}>`;
};

const CheckpointsScreen = ({ data, onDone }) => {
  const at = links(data.project, data.session);
  const found = useGet(`${at.api}/checkpoints`, { project: data.project, session: data.session });
  const list = found.data?.checkpoints || [];
  const [marked, mark] = useState(null);
  const [open, setOpen] = useState(null);
  const [chosen, choose] = useChosen(list.length, (index) => go(at.diff(list[index].id, "now")), { id: "checkpoint" });
  const compare = (id) => (marked && marked !== id ? go(at.diff(...older(list, marked, id))) : mark(marked === id ? null : id));
  const can = api.access.can_decide;
  const done = () => { found.reload(); onDone(); };
  useKeys([
    { keys: "m", label: "Mark for a comparison, or compare with the marked", off: !list.length, run: () => compare(list[chosen].id) },
    { keys: "b", label: "Go back to the checkpoint", off: !can || !list.length, run: () => setOpen({ to: list[chosen] }) },
    { keys: "u", label: "Undo the rollback", off: !can || !found.data?.undo, run: () => setOpen({ undo: true }) },
  ]);
  return html`<div class="column"><${Loaded} from=${found}>${(shown) => html`
    ${can && shown.undo && html`<p class="notice">The last rollback can be undone. <button onClick=${() => setOpen({ undo: true })}>Undo it <kbd>u</kbd></button></p>`}
    ${!list.length && html`<p class="note">No checkpoint was taken yet.</p>`}
    <ul class="rows">${list.map((each, index) => html`<li key=${each.id} id=${`checkpoint-${index}`} class=${classes("line", "tall", index === chosen && "chosen", marked === each.id && "marked")} onClick=${() => choose(index)}>
      <span class="grow"><strong>${plain(each.name || each.id)}</strong> <span class="note">${plain(words(each.taken))}${each.by ? ` · ${plain(each.by)}` : ""} · ${count(each.files, "file")}, ${size(each.bytes)}${each.version ? ` · version ${each.version}` : ""}</span>
        ${each.note && html`<div>${text(each.note, 200)}</div>`}</span>
      <span class="buttons">${!api.frozen && html`<a class="button small" href=${at.diff(each.id, "now")}>Diff to now</a>
        <button class="small" aria-pressed=${marked === each.id} onClick=${() => compare(each.id)}>${marked && marked !== each.id ? "Compare with marked" : marked === each.id ? "Marked" : "Compare"}</button>`}
        ${can && html`<button class="small danger" onClick=${() => setOpen({ to: each })}>Go back…</button>`}</span>
      ${when(each.at)}</li>`)}</ul>
    ${open && html`<${Rollback} at=${at} path=${open.undo ? "undo" : "rollback"} to=${open.to?.id} title=${open.undo ? "Undo the rollback" : `Go back to ${open.to.name || open.to.id}`} label=${open.undo ? "Undo it" : "Go back"} onClose=${() => setOpen(null)} onDone=${done} />`}
  `}</${Loaded}></div>`;
};
// The older first: the list has the newest first.
const older = (list, a, b) => {
  const at = (id) => list.findIndex((each) => each.id === id);
  return at(a) > at(b) ? [a, b] : [b, a];
};
