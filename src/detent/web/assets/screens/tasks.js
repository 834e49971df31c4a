// Tasks: a plain board, and one task with its context.
const TASKS_A_PAGE = 200;
const CARD_TALL = 52;
const COLUMNS = [["ready", "Ready"], ["waiting", "Waiting"], ["active", "Active"], ["blocked", "Blocked"], ["failed", "Failed"], ["completed", "Done"]];

// The rows of one column: the pages that are seen are asked for, and those that were seen are kept.
const useRows = (data, status, q) => {
	const [[from, to], see] = useState([0, 1]);
	const start = (index) => Math.floor(Math.max(0, index) / TASKS_A_PAGE) * TASKS_A_PAGE;
	const ask = (offset) => useLive(data, offset == null ? null : `/tasks${api.query({ status, offset, limit: TASKS_A_PAGE, q })}`, "task");
	const kept = useRef({});
	if (kept.current.q !== q) kept.current = { q, pages: {} };
	const asked = [ask(start(from)), ask(start(to - 1) > start(from) ? start(to - 1) : null)];
	for (const { data: page } of asked) if (page) Object.assign(kept.current, { total: page.total, pages: { ...kept.current.pages, [page.offset]: page.tasks } });
	const { total, pages } = kept.current;
	return { total, see, error: asked[0].error, at: (index) => pages[start(index)]?.[index % TASKS_A_PAGE] };
};

const held = ({ owner, lease_s: lease }) => `held by ${plain(owner)}${lease != null ? `, lease ${Math.round(lease)} s` : ""}`;
const Card = ({ task, at, chosen, style }) => html`<a class=${classes("card", chosen && "chosen")} role="listitem" href=${at.task(task.id)} style=${style}>
	<div class="card-top"><code>${plain(task.id)}</code><span class="grow title">${plain(task.title).slice(0, 200)}</span></div>
	<div class="note">${task.claim ? held(task.claim) : task.reason ? plain(task.reason).slice(0, 120) : task.waiting_for.length ? `waits for ${plain(task.waiting_for.slice(0, 4).join(", "))}` : task.children ? count(task.children, "part") : plain(task.agent || task.type || "")}</div>
</a>`;

const Column = ({ data, at, status, label, q, active, chosen, setRows }) => {
	const rows = useRows(data, status, q);
	const length = rows.total ?? 0;
	const height = { height: `${CARD_TALL - 6}px` };
	useEffect(() => { if (active) setRows(rows, length); }, [active, length, q]);
	return html`<section class=${classes("board-column", active && "active")} aria-label=${`${label}, ${length}`}>
		<h3>${shape(status)}${label} <span class="count quiet">${length.toLocaleString("en")}</span></h3>
		${rows.error && html`<${Fault} error=${rows.error} />`}
		<${Virtual} label=${label} length=${length} height=${CARD_TALL} chosen=${active ? chosen : null} seen=${(from, to) => rows.see([from, to])} row=${(index) => {
			const task = rows.at(index);
			return task ? html`<${Card} key=${task.id} task=${task} at=${at} chosen=${active && index === chosen} style=${height} />` : html`<div key=${index} class="card" style=${height}></div>`;
		}} />
	</section>`;
};

const lines = (value) => value.split("\n").map((line) => line.trim()).filter(Boolean);

const Add = ({ at, onClose }) => {
	const [title, setTitle] = useState("");
	const [needs, setNeeds] = useState("");
	const [conditions, setConditions] = useState("");
	const send = () => api.post(`${at.api}/tasks`, { title: title.trim(), depends_on: needs.split(/[\s,]+/).filter(Boolean), acceptance: lines(conditions) });
	return html`<${Ask} title="Add a task" label="Add" ready=${title.trim()} send=${send} onClose=${onClose}>
		<${Field} label="Title" value=${title} set=${setTitle} first />
		<${Field} label="Needs these tasks first" value=${needs} set=${setNeeds} optional placeholder="IMPL-1, IMPL-2" />
		<${Field} label="Done when, one condition a line" value=${conditions} set=${setConditions} optional rows="3" />
	</${Ask}>`;
};

const Board = ({ data }) => {
	const at = links(data.project, data.session);
	const [q, setQ] = useState("");
	const [column, setColumn] = useState(null);
	const [adding, setAdding] = useState(false);
	const [rows, setRows] = useState({ length: 0 });
	const counts = data.tasks || {};
	const columns = COLUMNS.filter(([status]) => status !== "failed" || counts.failed);
	const active = column ?? Math.max(0, columns.findIndex(([status]) => counts[status] > 0));
	const [chosen, choose] = useChosen(rows.length, (index) => go(at.task(rows.at(index).id)), { id: "task" });
	const move = (by) => { setColumn(Math.max(0, Math.min(columns.length - 1, active + by))); choose(0); };
	const can = api.access.can_decide;
	useKeys([
		["h", () => move(-1), "Column to the left"], ["l", () => move(1), "Column to the right"],
		["left", () => move(-1)], ["right", () => move(1)],
		["n", () => setAdding(true), "Add a task", !can],
		["/", () => document.getElementById("task-search")?.focus(), "Search the tasks"],
	]);
	return html`<div class="board-screen">
		<div class="filters"><input id="task-search" type="search" placeholder="Search the tasks" aria-label="Search the tasks" value=${q} onInput=${(event) => setQ(event.target.value)} disabled=${api.frozen} />
			<span class="note">${count(counts.total || 0, "task")}</span>${can && html`<button class="push" onClick=${() => setAdding(true)}>Add a task</button>`}</div>
		${counts.total > 0 && html`<div class="column-tabs" role="group" aria-label="Columns">${columns.map(([status, label], index) => html`<button key=${status} aria-pressed=${index === active} onClick=${() => setColumn(index)}>${label} ${counts[status] || 0}</button>`)}</div>`}
		${!counts.total && html`<${Empty} title="No task yet."><p>Agents and people add tasks: <code>detent task add</code></p></${Empty}>`}
		<div class="board">${counts.total > 0 && columns.map(([status, label], index) => html`<${Column} key=${status} data=${data} at=${at} status=${status} label=${label} q=${q} active=${index === active} chosen=${chosen} setRows=${(column, length) => setRows({ ...column, length })} />`)}</div>
		${adding && html`<${Add} at=${at} onClose=${() => setAdding(false)} />`}
	</div>`;
};

// What may be done with a task in a state: [path, label, the field that is asked for].
const ACTIONS = {
	ready: [["start", "Start"], ["block", "Block", "reason"], ["split", "Split", "parts"], ["remove", "Remove"]],
	waiting: [["block", "Block", "reason"], ["split", "Split", "parts"], ["remove", "Remove"]],
	active: [["done", "Done", "summary"], ["block", "Block", "reason"], ["release", "Release", "reason"], ["fail", "Fail", "reason"]],
	blocked: [["unblock", "Unblock"]], failed: [["retry", "Retry"]], completed: [["reopen", "Reopen"]], container: [["split", "Split", "parts"]],
};
const ASK = { reason: "Why", parts: "The parts, one title a line", summary: "What was done", met: "How each condition is met, one line each" };

const Act = ({ at, id, action: [path, label, field], onClose }) => {
	const [said, setSaid] = useState("");
	const send = () => api.post(`${at.api}/tasks/${api.encode(id)}/${path}`, field ? { [field]: ["parts", "met"].includes(field) ? lines(said) : said.trim() } : {});
	return html`<${Ask} title=${`${label} ${plain(id)}`} label=${label} tone=${["remove", "fail"].includes(path) ? "danger" : "primary"} ready=${!field || said.trim()} send=${send} onClose=${onClose}>
		${field ? html`<${Field} label=${ASK[field]} value=${said} set=${setSaid} rows="4" first />` : html`<p>${label} this task?</p>`}
	</${Ask}>`;
};

const Edit = ({ at, id, document: given, onClose }) => {
	const [said, setSaid] = useState(JSON.stringify(given, null, 2));
	const send = async () => api.post(`${at.api}/tasks/${api.encode(id)}/edit`, { document: JSON.parse(said) });
	return html`<${Ask} wide title=${`Edit ${plain(id)}`} label="Save" send=${send} onClose=${onClose}>
		<${Field} label="The document of the task" value=${said} set=${setSaid} rows="20" class="mono" spellcheck="false" first />
	</${Ask}>`;
};

const Value = ({ value }) => {
	if (Array.isArray(value)) return value.length ? html`<ul class="plain-list">${value.map((each) => html`<li><${Value} value=${each} /></li>`)}</ul>` : "–";
	if (value && typeof value === "object") return html`<pre class="text" tabindex="0">${plain(JSON.stringify(value, null, 2)).slice(0, 8000)}</pre>`;
	return text(value ?? "–", 3000);
};

const Detail = ({ data, id }) => {
	const at = links(data.project, data.session);
	const found = useLive(data, `/tasks/${api.encode(id)}`);
	const [open, setOpen] = useState(null);
	const chips = (ids) => ids.length > 0 && ids.map((each) => html`<a key=${each} class="chip" href=${at.task(each)}>${plain(each)}</a> `);
	const task = found.data?.task;
	const state = task && (task.children ? "container" : task.status === "pending" ? (task.ready ? "ready" : "waiting") : { in_progress: "active" }[task.status] || task.status);
	const criteria = found.data?.document.context?.acceptance || [];
	const actions = (task && api.access.can_decide && ACTIONS[state] || []).map((action) => (action[0] === "done" && criteria.length ? ["done", "Done", "met"] : action));
	useKeys([["esc", () => go(at.tasks), "Back to the board"], ["e", () => setOpen({ edit: true }), "Edit the task", !actions.length]]);
	return html`<div class="column">${loaded(found, (shown) => html`
		<h2 class="title"><code>${plain(id)}</code> ${text(task.title, 300)} ${status(state, words(state))}</h2>
		${facts(task.parent && html`<a class="chip" href=${at.task(task.parent)}>part of ${plain(task.parent)}</a>`, plain(task.agent), count(task.attempts || 0, "attempt"), `version ${task.version}`,
			task.claim && html`${held(task.claim)} ${when(task.claim.since, "since ")}`)}
		${task.reason && html`<p class="notice">${text(task.reason, 600)}</p>`}
		<p class="buttons">${actions.map((action) => html`<button key=${action[0]} class=${action[0] === "remove" ? "danger" : ""} onClick=${() => setOpen({ action })}>${action[1]}</button>`)}
			${actions.length > 0 && html`<button onClick=${() => setOpen({ edit: true })}>Edit</button>`}<a class="button" href=${at.tasks}>Board</a></p>
		${pairs([["Needs", chips(task.depends_on)], ["Needed by", chips(shown.dependents.slice(0, 40))]])}
		${shown.summary && html`<section><h2>Summary</h2><p class="prose">${text(shown.summary)}</p></section>`}
		${shown.flow && html`<section><h2>Steps</h2><ol class="rows">${shown.flow.steps.map((step) => html`<li key=${step.step} class="line">${status(step.state)}<strong>${plain(step.step)}</strong><span class="grow">${text(step.said || "", 300)}</span></li>`)}</ol></section>`}
		<section><h2>Context</h2>${pairs(Object.entries(shown.document.context || {}).map(([name, value]) => [plain(words(name)), html`<${Value} value=${value} />`]))}</section>
		${shown.document.flow_control && html`<details><summary>Flow control</summary><pre class="text" tabindex="0">${plain(JSON.stringify(shown.document.flow_control, null, 2)).slice(0, 20000)}</pre></details>`}
		<section><h2>History</h2><ol class="commits">${shown.history.map((commit) => html`<${Commit} key=${commit.version} commit=${commit} />`)}</ol></section>
		${open?.action && html`<${Act} at=${at} id=${id} action=${open.action} onClose=${() => setOpen(null)} />`}
		${open?.edit && html`<${Edit} at=${at} id=${id} document=${shown.document} onClose=${() => setOpen(null)} />`}
	`)}</div>`;
};

const TasksScreen = ({ data, id }) => (id ? html`<${Detail} key=${id} data=${data} id=${id} />` : html`<${Board} data=${data} />`);
