// Tasks: a plain board, and one task with its context.
"use strict";

const TASKS_A_PAGE = 200;
const CARD_TALL = 52;
const COLUMNS = [["ready", "Ready"], ["waiting", "Waiting"], ["active", "Active"], ["blocked", "Blocked"], ["failed", "Failed"], ["completed", "Done"]];

// The rows of one column, read page by page as they are seen.
const usePages = (base, status, q, stamp) => {
  const [pages, set] = useState({ rows: new Map(), total: null });
  const asked = useRef(new Set());
  const turn = useRef(0);
  const key = `${base} ${status} ${q}`;
  const ask = async (page, mine) => {
    if (asked.current.has(page)) return;
    asked.current.add(page);
    try {
      const found = await api.get(`${base}/tasks${api.query({ status, offset: page * TASKS_A_PAGE, limit: TASKS_A_PAGE, q })}`);
      if (mine !== turn.current) return;
      set((old) => {
        const rows = new Map(old.fresh === mine ? old.rows : []);
        found.tasks.forEach((task, index) => rows.set(page * TASKS_A_PAGE + index, task));
        return { rows, total: found.total, fresh: mine };
      });
    } catch (error) { asked.current.delete(page); if (error.status !== 0) set((old) => ({ ...old, error })); }
  };
  const seen = useRef([0, 1]);
  const look = (from, to) => {
    seen.current = [from, to];
    for (let page = Math.floor(from / TASKS_A_PAGE); page <= Math.floor(Math.max(from, to - 1) / TASKS_A_PAGE); page++) ask(page, turn.current);
  };
  useEffect(() => { turn.current++; asked.current = new Set(); look(...seen.current); }, [key, stamp]);
  return { ...pages, look };
};

const Card = ({ task, at, chosen, id }) => html`<a id=${id} class=${classes("card", chosen && "chosen")} role="listitem" href=${at.task(task.id)} style=${{ height: `${CARD_TALL - 6}px` }}>
  <div class="card-top"><code>${plain(task.id)}</code><span class="grow title">${plain(task.title).slice(0, 200)}</span></div>
  <div class="note">${task.claim ? html`held by ${plain(task.claim.owner)}${task.claim.lease_s != null ? `, lease ${Math.round(task.claim.lease_s)} s` : ""}` : task.reason ? plain(task.reason).slice(0, 120) : task.waiting_for.length ? `waits for ${plain(task.waiting_for.slice(0, 4).join(", "))}` : task.children ? count(task.children, "part") : plain(task.agent || task.type || "")}</div>
</a>`;

const Column = ({ at, status, label, q, total, stamp, active, chosen, setRows }) => {
  const pages = usePages(at.api, status, q, stamp);
  const length = pages.total ?? 0;
  useEffect(() => { if (active) setRows(pages.rows, length); }, [active, pages.rows, length]);
  return html`<section class=${classes("board-column", active && "active")} aria-label=${`${label}, ${length}`}>
    <h3>${shape(status)}${label} <span class="count quiet">${(pages.total ?? total ?? 0).toLocaleString("en")}</span></h3>
    ${pages.error && html`<${Fault} error=${pages.error} />`}
    <${Virtual} label=${label} length=${length} height=${CARD_TALL} chosen=${active ? chosen : null} seen=${pages.look} row=${(index) => {
      const task = pages.rows.get(index);
      return task ? html`<${Card} key=${task.id} id=${active ? `task-${index}` : undefined} task=${task} at=${at} chosen=${active && index === chosen} />` : html`<div key=${index} class="card blank" style=${{ height: `${CARD_TALL - 6}px` }}></div>`;
    }} />
  </section>`;
};

const lines = (value) => value.split("\n").map((line) => line.trim()).filter(Boolean);

const Add = ({ at, onClose, onDone }) => {
  const [title, setTitle] = useState("");
  const [needs, setNeeds] = useState("");
  const [conditions, setConditions] = useState("");
  const send = async () => {
    const reply = await api.post(`${at.api}/tasks`, { title: title.trim(), depends_on: needs.split(/[\s,]+/).filter(Boolean), acceptance: lines(conditions) });
    onDone();
    return reply;
  };
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
  const [rows, setRows] = useState({ rows: new Map(), length: 0 });
  const [stamp, setStamp] = useState(0);
  useEffect(() => live.listen(data.project, data.session, (message) => (message.missed || message.data?.commit?.kinds.includes("task")) && setStamp((old) => old + 1)), []);
  const counts = data.tasks || {};
  const columns = COLUMNS.filter(([status]) => status !== "failed" || counts.failed);
  const active = column ?? Math.max(0, columns.findIndex(([status]) => counts[status] > 0));
  const [chosen, choose] = useChosen(rows.length, (index) => rows.rows.get(index) && go(at.task(rows.rows.get(index).id)), { id: "task" });
  const move = (by) => { setColumn(Math.max(0, Math.min(columns.length - 1, active + by))); choose(0); };
  const can = api.access.can_decide;
  useKeys([
    { keys: "h", label: "Column to the left", run: () => move(-1) }, { keys: "l", label: "Column to the right", run: () => move(1) },
    { keys: "left", run: () => move(-1) }, { keys: "right", run: () => move(1) },
    { keys: "n", label: "Add a task", off: !can, run: () => setAdding(true) },
    { keys: "/", label: "Search the tasks", run: () => document.getElementById("task-search")?.focus() },
  ]);
  return html`<div class="board-screen">
    <div class="filters"><input id="task-search" type="search" placeholder="Search the tasks" aria-label="Search the tasks" value=${q} onInput=${(event) => setQ(event.target.value)} disabled=${api.frozen} />
      <span class="note">${count(counts.total || 0, "task")}</span>${can && html`<button class="push" onClick=${() => setAdding(true)}>Add a task</button>`}</div>
    ${counts.total > 0 && html`<div class="column-tabs" role="group" aria-label="Columns">${columns.map(([status, label], index) => html`<button key=${status} aria-pressed=${index === active} onClick=${() => setColumn(index)}>${label} ${counts[status] || 0}</button>`)}</div>`}
    ${!counts.total && html`<${Empty} title="No task yet."><p>Agents and people add tasks: <code>detent task add</code></p></${Empty}>`}
    <div class="board">${counts.total > 0 && columns.map(([status, label], index) => html`<${Column} key=${status} at=${at} status=${status} label=${label} q=${q} total=${counts[status]} stamp=${stamp} active=${index === active} chosen=${chosen} setRows=${(map, length) => setRows({ rows: map, length })} />`)}</div>
    ${adding && html`<${Add} at=${at} onClose=${() => setAdding(false)} onDone=${() => setStamp((old) => old + 1)} />`}
  </div>`;
};

// What may be done with a task in a state: [path, label, the field that is asked for].
const ACTIONS = {
  ready: [["start", "Start"], ["block", "Block", "reason"], ["split", "Split", "parts"], ["remove", "Remove"]],
  waiting: [["block", "Block", "reason"], ["split", "Split", "parts"], ["remove", "Remove"]],
  active: [["done", "Done", "summary"], ["block", "Block", "reason"], ["release", "Release", "reason"], ["fail", "Fail", "reason"]],
  blocked: [["unblock", "Unblock"]], failed: [["retry", "Retry"]], completed: [["reopen", "Reopen"]], container: [["split", "Split", "parts"]],
};
const ASK = { reason: "Why", parts: "The parts, one title a line", summary: "What was done" };

const Act = ({ at, id, action: [path, label, field], onClose, onDone }) => {
  const [said, setSaid] = useState("");
  const send = async () => {
    const reply = await api.post(`${at.api}/tasks/${api.encode(id)}/${path}`, field ? { [field]: field === "parts" ? lines(said) : said.trim() } : {});
    onDone();
    return reply;
  };
  return html`<${Ask} title=${`${label} ${plain(id)}`} label=${label} tone=${["remove", "fail"].includes(path) ? "danger" : "primary"} ready=${!field || said.trim()} send=${send} onClose=${onClose}>
    ${field ? html`<${Field} label=${ASK[field]} value=${said} set=${setSaid} rows="4" first />` : html`<p>${label} this task?</p>`}
  </${Ask}>`;
};

const Edit = ({ at, id, document: given, onClose, onDone }) => {
  const [said, setSaid] = useState(JSON.stringify(given, null, 2));
  const send = async () => {
    let document;
    try {
      document = JSON.parse(said);
    } catch (wrong) {
      throw new api.ApiError(0, { message: `This is not JSON: ${wrong.message}` });
    }
    const reply = await api.post(`${at.api}/tasks/${api.encode(id)}/edit`, { document });
    onDone();
    return reply;
  };
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
  const found = useGet(`${at.api}/tasks/${api.encode(id)}`, { project: data.project, session: data.session });
  const [open, setOpen] = useState(null);
  const task = found.data?.task;
  const state = task && (task.children ? "container" : task.status === "pending" ? (task.ready ? "ready" : "waiting") : { in_progress: "active" }[task.status] || task.status);
  const actions = task && api.access.can_decide ? ACTIONS[state] || [] : [];
  useKeys([{ keys: "esc", label: "Back to the board", run: () => go(at.tasks) }, { keys: "e", label: "Edit the task", off: !actions.length, run: () => setOpen({ edit: true }) }]);
  return html`<div class="column"><${Loaded} from=${found}>${(shown) => html`
    <h2 class="title"><code>${plain(id)}</code> ${text(task.title, 300)} ${status(state, words(state))}</h2>
    <p class="facts">${task.parent && html`<a class="chip" href=${at.task(task.parent)}>part of ${plain(task.parent)}</a>`}${task.agent && html`<span class="note">${plain(task.agent)}</span>`}<span class="note">${count(task.attempts || 0, "attempt")}</span><span class="note">version ${task.version}</span>
      ${task.claim && html`<span class="note">held by ${plain(task.claim.owner)} ${when(task.claim.since, "since ")}${task.claim.lease_s != null ? `, lease ${Math.round(task.claim.lease_s)} s` : ""}</span>`}</p>
    ${task.reason && html`<p class="notice">${text(task.reason, 600)}</p>`}
    <p class="buttons">${actions.map((action) => html`<button key=${action[0]} class=${action[0] === "remove" ? "danger" : ""} onClick=${() => setOpen({ action })}>${action[1]}</button>`)}
      ${actions.length > 0 && html`<button onClick=${() => setOpen({ edit: true })}>Edit</button>`}<a class="button" href=${at.tasks}>Board</a></p>
    <dl class="pairs">
      ${task.depends_on.length > 0 && html`<div><dt>Needs</dt><dd>${task.depends_on.map((each) => html`<a key=${each} class="chip" href=${at.task(each)}>${plain(each)}</a> `)}</dd></div>`}
      ${shown.dependents.length > 0 && html`<div><dt>Needed by</dt><dd>${shown.dependents.slice(0, 40).map((each) => html`<a key=${each} class="chip" href=${at.task(each)}>${plain(each)}</a> `)}</dd></div>`}
    </dl>
    ${shown.summary && html`<section><h2>Summary</h2><p class="prose">${text(shown.summary)}</p></section>`}
    ${shown.flow && html`<section><h2>Steps</h2><ol class="rows">${shown.flow.steps.map((step) => html`<li key=${step.step} class="line">${status(step.state)}<strong>${plain(step.step)}</strong><span class="grow">${text(step.said || "", 300)}</span></li>`)}</ol></section>`}
    <section><h2>Context</h2><dl class="pairs wide">${Object.entries(shown.document.context || {}).map(([name, value]) => html`<div key=${name}><dt>${plain(words(name))}</dt><dd><${Value} value=${value} /></dd></div>`)}</dl></section>
    ${shown.document.flow_control && html`<details><summary>Flow control</summary><pre class="text" tabindex="0">${plain(JSON.stringify(shown.document.flow_control, null, 2)).slice(0, 20000)}</pre></details>`}
    <section><h2>History</h2><ol class="commits">${shown.history.map((commit) => html`<${Commit} key=${commit.version} commit=${commit} />`)}</ol></section>
    ${open?.action && html`<${Act} at=${at} id=${id} action=${open.action} onClose=${() => setOpen(null)} onDone=${found.reload} />`}
    ${open?.edit && html`<${Edit} at=${at} id=${id} document=${shown.document} onClose=${() => setOpen(null)} onDone=${found.reload} />`}
  `}</${Loaded}></div>`;
};

const TasksScreen = ({ data, id }) => (id ? html`<${Detail} key=${id} data=${data} id=${id} />` : html`<${Board} data=${data} />`);
