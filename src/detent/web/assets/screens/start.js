// Start: a session, or a run, with its graph shown before.
"use strict";

const Form = ({ project, data }) => {
  const [form, set] = useState({ workflow: data.default_workflow || data.workflows[0]?.name, task: "", size: "", agent: "", parallel: "", run: true });
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const change = (name) => (event) => set({ ...form, [name]: event.target.type === "checkbox" ? event.target.checked : event.target.value });
  const workflow = data.workflows.find((each) => each.name === form.workflow);
  const left = new Set(workflow?.sizes?.[form.size] || []);
  const send = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const body = { workflow: form.workflow, task: form.task.trim(), run: form.run };
      for (const name of ["size", "agent"]) if (form[name]) body[name] = form[name];
      if (form.parallel) body.parallel = Number(form.parallel);
      const reply = await api.post(`${api.of(project)}/start`, body);
      if (reply.notices?.length) say(reply.notices.join(" · "));
      go(to("p", project, "s", reply.session));
    } catch (fault) { setError(fault); setBusy(false); }
  };
  const nodes = (workflow?.graph.nodes || []).map((node) => ({ ...node, key: node.phase, status: left.has(node.phase) ? "skipped" : "pending", attempts: 0 }));
  return html`<div class="split-view start">
    <form onSubmit=${send} class="main-part" onKeyDown=${(event) => (event.ctrlKey || event.metaKey) && event.key === "Enter" && send(event)}>
      <label class="field"><span>Task</span><textarea rows="4" required placeholder="What is to be done?" value=${form.task} onInput=${change("task")}></textarea></label>
      <label class="field"><span>Workflow</span><select value=${form.workflow} onChange=${(event) => set({ ...form, workflow: event.target.value, size: "" })}>${data.workflows.map((each) => html`<option key=${each.name} value=${each.name}>${plain(each.name)}${each.title && each.title !== each.name ? ` – ${plain(each.title)}` : ""}</option>`)}</select></label>
      ${Object.keys(workflow?.sizes || {}).length > 0 && html`<label class="field"><span>Size</span><select value=${form.size} onChange=${change("size")}><option value="">All phases</option>${Object.entries(workflow.sizes).map(([name, out]) => html`<option key=${name} value=${name}>${plain(name)}${out.length ? ` – without ${plain(out.join(", "))}` : ""}</option>`)}</select></label>`}
      <label class="check"><input type="checkbox" checked=${form.run} onChange=${change("run")} /> Run it: agents work through the phases</label>
      ${form.run && html`<div class="pair-fields">
        <label class="field"><span>Agent</span><select value=${form.agent} onChange=${change("agent")}><option value="">As configured</option>${data.agents.map((each) => html`<option key=${each.name} value=${each.name}>${plain(each.name)}${each.is_default ? " (default)" : ""}</option>`)}</select></label>
        <label class="field"><span>Phases at once</span><input type="number" min="1" max="16" placeholder="as configured" value=${form.parallel} onInput=${change("parallel")} /></label></div>`}
      ${error && html`<${Fault} error=${error} />`}
      ${api.access.can_decide ? html`<p><button class="primary" disabled=${busy || !form.task.trim()}>${form.run ? "Start the run" : "Start the session"}</button></p>` : html`<p class="note">This page is read-only.</p>`}
    </form>
    <aside aria-label="The workflow"><h2>${plain(workflow?.title || form.workflow || "")}</h2>${workflow && html`<${Graph} key=${form.workflow} nodes=${nodes} edges=${edgesOf(workflow.graph)} label="Phases of the workflow" />`}</aside>
  </div>`;
};

const StartScreen = ({ project, name }) => {
  const found = useGet(`${api.of(project)}/workflows`);
  return html`<main tabindex="-1"><h1>Start in ${plain(name)}</h1><${Loaded} from=${found}>${(data) => html`<${Form} project=${project} data=${data} />`}</${Loaded}></main>`;
};
