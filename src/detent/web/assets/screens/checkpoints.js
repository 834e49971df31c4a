// Checkpoints: compare any two, go back to one after looking at what would happen, and undo it.

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
	const files = [["Restored", "modified", shown?.files.restored], ["Added again", "added", shown?.files.added], ["Removed", "removed", shown?.files.removed]];
	return html`<${Ask} wide title=${title} label=${label} tone="danger" ready=${plan} fault=${error} send=${send} onClose=${onClose}>
		${!plan && !error && html`<p class="loading">Looking at what would change…</p>`}
		${shown && html`<p class="note">Nothing was changed yet. This would happen:</p>
			${changes.length > 0 && html`<h3>Phases</h3><ul class="paths">${changes.map(([key, change]) => html`<li key=${key}><strong>${plain(key)}</strong> ${words(change.before)} → ${words(change.after)}</li>`)}</ul>`}
			${files.map(([name, of, listed]) => listed?.length > 0 && html`<h3>${name} <span class="note">${listed.length}</span></h3>${paths(listed, of)}`)}
			${files.every(([, , listed]) => !listed?.length) && html`<p>No file changes.</p>`}
			${(shown.warnings || []).map((warning) => html`<p class="notice">${plain(warning)}</p>`)}`}
	</${Ask}>`;
};

const CheckpointsScreen = ({ data, onDone }) => {
	const at = links(data.project, data.session);
	const found = useLive(data, "/checkpoints");
	const list = found.data?.checkpoints || [];
	const [marked, mark] = useState(null);
	const [open, setOpen] = useState(null);
	const [chosen, choose] = useChosen(list.length, (index) => go(at.diff(list[index].id, "now")), { id: "checkpoint" });
	// The older first: the list has the newest first.
	const byAge = (...ids) => list.map((each) => each.id).filter((id) => ids.includes(id)).reverse();
	const compare = (id) => (marked && marked !== id ? go(at.diff(...byAge(marked, id))) : mark(marked === id ? null : id));
	const can = api.access.can_decide;
	const done = () => { found.reload(); onDone(); };
	useKeys([
		["m", () => compare(list[chosen].id), "Mark for a comparison, or compare with the marked", !list.length],
		["b", () => setOpen({ to: list[chosen] }), "Go back to the checkpoint", !can || !list.length],
		["u", () => setOpen({ undo: true }), "Undo the rollback", !can || !found.data?.undo],
	]);
	return html`<div class="column">${loaded(found, (shown) => html`
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
	`)}</div>`;
};
