// The sessions of a project.
"use strict";

const Row = ({ project, each, id, chosen }) => html`<li id=${id} class=${classes(chosen && "chosen")}><a class="line" href=${to("p", project, "s", each.session)}>
  ${status(each.problem ? "damaged" : each.needs ? "needs_you" : each.status, each.needs ? "needs you" : each.status)}
  <span class="grow">${text(each.problem || each.task || each.session, 140)}</span>
  <span class="note">${plain(each.workflow || "")}${each.phase ? ` · ${plain(each.phase)}` : ""}${each.tasks ? ` · ${each.tasks_done}/${count(each.tasks, "task")}` : ""}</span>
  ${when(each.last_activity || each.started_at)}</a></li>`;

const ProjectScreen = ({ project, name }) => {
  const found = useGet(`${api.of(project)}/sessions`, { any: true });
  const all = [...(found.data?.sessions || [])].sort((a, b) => String(b.last_activity).localeCompare(String(a.last_activity)));
  const open = all.filter((each) => !["completed", "cancelled"].includes(each.status));
  const ended = all.filter((each) => ["completed", "cancelled"].includes(each.status));
  const rows = [...open, ...ended];
  const [chosen] = useChosen(rows.length, (index) => go(to("p", project, "s", rows[index].session)));
  const draw = (each) => html`<${Row} key=${each.session} id=${`row-${rows.indexOf(each)}`} project=${project} each=${each} chosen=${rows[chosen] === each} />`;
  const [enrolling, setEnrolling] = useState(false);
  const canEnrol = api.access.can_decide && api.access.hardware;
  useKeys([{ keys: "E", label: "Enrol a key", off: !canEnrol, run: () => setEnrolling(true) }]);
  return html`<main class="column" tabindex="-1">
    <h1>${plain(name)}${canEnrol && html` <button class="small" onClick=${() => setEnrolling(true)}>Enrol a key</button>`}</h1>
    ${enrolling && html`<${Enrol} project=${project} onClose=${() => setEnrolling(false)} />`}
    <${Loaded} from=${found}>${() => html`
      ${!rows.length && html`<${Empty} title="No session yet."><p>${api.access.can_decide ? html`<a class="button primary" href=${to("p", project, "start")}>Start a session</a>` : html`<code>detent start "TASK"</code>`}</p></${Empty}>`}
      ${open.length > 0 && html`<h2>Open</h2><ul class="rows">${open.map(draw)}</ul>`}
      ${ended.length > 0 && html`<h2>Ended</h2><ul class="rows">${ended.map(draw)}</ul>`}
    `}</${Loaded}>
  </main>`;
};
