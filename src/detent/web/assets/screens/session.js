// A session: where it stands, who works on what, what failed, what it costs.
"use strict";

const Meter = ({ entry }) => {
  const part = entry.limit ? Math.min(1, entry.used / entry.limit) : 0;
  const number = (value) => (value == null ? "–" : entry.name.includes("cost") ? money(value) : entry.name.includes("minutes") ? duration(value * 60) : short(Math.round(value)));
  return html`<div class=${`meter is-${entry.status}`}><dt>${words(entry.name)}</dt>
    <dd><span class="num">${number(entry.used)}</span>${entry.limit != null && html` <span class="note">of ${number(entry.limit)}${entry.status === "exceeded" ? " · over" : entry.status === "approaching" ? " · near" : ""}</span>
      <span class="bar" aria-hidden="true"><span style=${{ width: `${part * 100}%` }}></span></span>`}</dd></div>`;
};

const tokensOf = (tokens) => (tokens ? (tokens.input || 0) + (tokens.output || 0) : 0);

const Header = ({ data }) => {
  const cost = data.budget.some((entry) => entry.name.includes("cost"));
  const used = data.budget.some((entry) => entry.name === "tokens");
  const state = data.needs.some((need) => need.is_yours) ? "needs_you" : data.runner ? "running" : data.status === "active" && !data.is_active ? "paused" : data.status;
  return html`<header class="session-head">
    <h1>${text(data.task, 300)}</h1>
    <div class="facts">
      ${status(state)}
      <span class="note">${plain(data.session)}</span>
      <span class="note">${plain(data.workflow)}</span>
      ${data.branch && html`<span class="note">branch ${plain(data.branch)}</span>`}
      <span class="note">${when(data.started_at, "started ")}</span>
      <span class="note" title=${data.position.sum}>version <span class="num" data-version>${data.position.version}</span></span>
      ${data.runner && html`<span class="note">run by ${plain(data.runner.owner)} at ${plain(data.runner.host)}</span>`}
    </div>
    <dl class="meters">
      <div class="meter"><dt>phases</dt><dd><span class="num">${data.progress.completed}</span> <span class="note">of ${data.progress.total}${data.progress.skipped ? `, ${data.progress.skipped} skipped` : ""}</span>
        <span class="bar good" aria-hidden="true"><span style=${{ width: `${(100 * data.progress.completed) / Math.max(1, data.progress.total)}%` }}></span></span></dd></div>
      ${data.budget.map((entry) => html`<${Meter} key=${entry.name} entry=${entry} />`)}
      ${!used && html`<div class="meter"><dt>tokens</dt><dd><span class="num">${short(tokensOf(data.tokens))}</span> <span class="note">${short(data.tokens.input || 0)} in, ${short(data.tokens.output || 0)} out</span></dd></div>`}
      ${!cost && data.tokens.cost > 0 && html`<div class="meter"><dt>cost</dt><dd><span class="num">${money(data.tokens.cost)}</span></dd></div>`}
      ${data.tasks && html`<div class="meter"><dt>tasks</dt><dd><a href=${links(data.project, data.session).tasks}><span class="num">${data.tasks.completed}</span> of ${data.tasks.total}</a> <span class="note">${data.tasks.active ? `${data.tasks.active} active` : ""}</span></dd></div>`}
    </dl>
    ${data.notices.map((notice) => html`<p class="notice">${plain(notice)}</p>`)}
  </header>`;
};

const Job = ({ job, at }) => html`<li class="job">
  ${shape("running")}
  <div class="grow">
    <div><a href=${at.phase(job.phase)}><strong>${plain(job.phase)}</strong></a>${job.task && html` <a class="chip" href=${at.task(job.task)}>${plain(job.task)}</a>`} <span class="note">${plain(job.agent)}${job.model ? ` · ${plain(job.model)}` : ""} · attempt ${job.attempt}${job.turn ? `, turn ${job.turn}` : ""} · ${short(tokensOf(job.tokens))} tokens</span></div>
    <div class="doing">${job.tool ? html`<code>${plain(job.tool.tool)}</code> ${text(typeof job.tool.input === "string" ? job.tool.input : JSON.stringify(job.tool.input), 160)}` : text(job.doing || job.note || "", 160)}</div>
    ${job.lines.length > 0 && html`<pre class="text tail" tabindex="0" aria-label="Last output">${job.lines.slice(-6).map((line) => plain(line.slice(0, 400))).join("\n")}</pre>`}
  </div>
  <${Elapsed} from=${job.since} />
</li>`;

const HOW = { completed: "completed", failed: "failed", redone: "failed", skipped: "skipped", reset: "skipped", "": "in_progress" };
const Attempt = ({ each, at, most }) => {
  const bad = each.error || each.closed.length > 0;
  const seconds = each.begun ? ((each.ended ? new Date(each.ended) : Date.now()) - new Date(each.begun)) / 1000 : 0;
  return html`<li class=${classes("attempt", bad && "bad")}>
    <div class="line">
      ${status(HOW[each.how] || "pending", each.how || "in progress")}
      <a class="grow" href=${at.phase(each.phase)}><strong>${plain(each.phase)}</strong> <span class="note">attempt ${each.attempt}${each.agents.length ? ` · ${plain(each.agents.join(", "))}` : ""}</span></a>
      <span class="span" aria-hidden="true"><span style=${{ width: `${Math.min(100, Math.max(2, (100 * seconds) / most))}%` }}></span></span>
      <${Elapsed} from=${each.begun} to=${each.ended} />${when(each.begun)}
    </div>
    ${each.turns.length > 0 && html`<ol class="turns">${each.turns.map((turn, index) => html`<li key=${index}>${shape(turn.ended ? (turn.succeeded === false ? "failed" : "completed") : "running")}
      <span class="grow"><span class="note">turn ${index + 1}${turn.model ? ` · ${plain(turn.model)}` : ""}</span> ${text(turn.summary || "", 240)}</span>
      <span class="note num">${tokensOf(turn.tokens) ? `${short(tokensOf(turn.tokens))} tokens` : ""}</span><${Elapsed} from=${turn.launched} to=${turn.ended} /></li>`)}</ol>`}
    ${each.closed.map((gate) => html`<div class="failure" key=${gate.gate + gate.at}>${shape(gate.result)}<div class="grow"><a href=${at.gate(each.phase, gate.gate)}><strong>${plain(gate.gate)}</strong></a> ${words(gate.result)}${gate.exit_code != null ? `, exit code ${gate.exit_code}` : ""}
      ${gate.command && html` <code>${text(gate.command, 120)}</code>`}${gate.error && html`<div>${text(gate.error, 400)}</div>`}</div>${when(gate.at)}</div>`)}
    ${each.error && html`<div class="failure">${shape("failed")}<div class="grow">${text(each.error, 500)}</div></div>`}
  </li>`;
};

const Timeline = ({ project, session }) => {
  const at = links(project, session);
  const found = useGet(`${at.api}/timeline`, { project, session });
  const [all, setAll] = useState(false);
  return html`<section aria-labelledby="timeline"><h2 id="timeline">Timeline</h2><${Loaded} from=${found}>${({ attempts }) => {
    const most = Math.max(1, ...attempts.map((each) => (each.ended ? (new Date(each.ended) - new Date(each.begun)) / 1000 : 0)));
    const newest = [...attempts].reverse();
    const shown = all ? newest : newest.slice(0, 60);
    return html`<ol class="timeline">${shown.map((each) => html`<${Attempt} key=${`${each.phase} ${each.attempt} ${each.begun}`} each=${each} at=${at} most=${most} />`)}</ol>
      ${!attempts.length && html`<p class="note">No phase was begun yet.</p>`}
      ${shown.length < newest.length && html`<button class="more" onClick=${() => setAll(true)}>Show ${count(newest.length - shown.length, "older attempt")}</button>`}`;
  }}</${Loaded}></section>`;
};

const nodesOf = (data) => {
  const states = new Map(data.phases.map((phase) => [phase.phase, phase]));
  const asked = new Set(data.needs.filter((need) => need.is_yours).map((need) => need.phase));
  return data.graph.nodes.map((node) => {
    const phase = states.get(node.phase) || {};
    return { ...node, key: node.phase, status: phase.status || "pending", attempts: phase.attempt || 0, needs_you: asked.has(node.phase) };
  });
};
const edgesOf = (graph) => graph.edges.map((edge) => [edge.from, edge.to]);

const Overview = ({ data, run, decide }) => {
  const at = links(data.project, data.session);
  const keys = data.phases.map((phase) => phase.phase);
  const now = Math.max(0, data.phases.findIndex((phase) => phase.status === "in_progress" || phase.status === "failed"));
  const [chosen] = useChosen(keys.length, (index) => go(at.phase(keys[index])), { id: "phase", start: now });
  const jobs = run && !run.ended ? run.jobs : [];
  return html`<div class="split-view">
    <aside aria-label="Phases"><details class="graph-box" open=${innerWidth > 760}><summary>Phases</summary><${Graph} nodes=${nodesOf(data)} edges=${edgesOf(data.graph)} chosen=${keys[chosen]} onOpen=${(key) => go(at.phase(key))} /></details></aside>
    <div class="main-part">
      ${data.needs.length > 0 && html`<section aria-label="Needs you"><h2>Needs you</h2>${data.needs.map((need) => html`<${Need} key=${need.id} compact need=${need} onDecide=${decide} />`)}</section>`}
      ${jobs.length > 0 && html`<section><h2>At work</h2><ul class="jobs">${jobs.map((job) => html`<${Job} key=${`${job.phase} ${job.task}`} job=${job} at=${at} />`)}</ul></section>`}
      ${run?.ended && html`<p class="note">The last run ended ${when(run.ended.at)}: ${text(run.ended.said || run.ended.end, 200)}</p>`}
      ${!data.needs.length && data.next.length > 0 && html`<section><h2>Next</h2>${data.next.map((line) => html`<p>${command(line)}</p>`)}</section>`}
      <${Timeline} project=${data.project} session=${data.session} />
    </div>
  </div>`;
};

const PhaseDetail = ({ data, phase: key, decide }) => {
  const at = links(data.project, data.session);
  const phase = data.phases.find((each) => each.phase === key);
  const gates = data.gates[key] || [];
  const needs = data.needs.filter((need) => need.phase === key);
  const [chosen] = useChosen(gates.length, (index) => go(at.gate(key, gates[index].gate)), { id: "gate" });
  useKeys([{ keys: "g d", label: "Go to the diff", run: () => go(at.review(key)) }]);
  if (!phase) return html`<${Fault} error=${{ message: `The workflow has no phase ${key}.` }} />`;
  return html`<div class="column">
    <h2 class="title">${plain(phase.title || key)} ${status(phase.status)}</h2>
    <p class="facts"><span class="note">${plain(key)}</span>${phase.agent && html`<span class="note">${plain(phase.agent)}</span>`}<span class="note">attempt ${phase.attempt}${phase.retries ? `, ${count(phase.retries, "retry", "retries")}` : ""}</span>
      <span class="note">${phase.spent_s ? duration(phase.spent_s) : ""}</span>${phase.begun_at && html`<span class="note">${when(phase.begun_at, "begun ")}</span>`}${phase.completed_at && html`<span class="note">${when(phase.completed_at, "ended ")}</span>`}</p>
    <p class="buttons"><a class="button" href=${at.review(key)}>Changes of this phase</a></p>
    ${needs.map((need) => html`<${Need} key=${need.id} compact need=${need} onDecide=${decide} />`)}
    ${phase.error && html`<div class="failure">${shape("failed")}<div class="grow">${text(phase.error)}</div></div>`}
    ${phase.skip_reason && html`<p>Skipped: ${text(phase.skip_reason)}</p>`}
    ${phase.summary && html`<section><h2>Summary</h2><p class="prose">${text(phase.summary)}</p></section>`}
    <section><h2>Gates</h2>
      ${gates.length ? html`<ul class="rows">${gates.map((gate, index) => html`<li key=${gate.gate} id=${`gate-${index}`} class=${classes(index === chosen && "chosen")}><a class="line" href=${at.gate(key, gate.gate)}>${status(gate.verdict)}<strong>${plain(gate.gate)}</strong><span class="note">${plain(gate.kind)}</span><span class="grow">${text(gate.reason, 200)}</span></a></li>`)}</ul>` : html`<p class="note">This phase has no gate.</p>`}
    </section>
  </div>`;
};

// The frame of all screens of a session: it reads the session once, and keeps it live for what is inside.
const SessionScreen = ({ project, session, rest }) => {
  const at = links(project, session);
  const [version, setVersion] = useState(0);
  const found = useGet(at.api, { project, session: version ? session : null });
  const [run, setRun] = useState(undefined);
  const [dialog, decide] = useDecide(found.reload);
  const data = found.data;
  useLayoutEffect(() => {
    if (!data || version) return undefined;
    setVersion(data.position.version);
    return undefined;
  }, [data]);
  useLayoutEffect(() => {
    if (!version) return undefined;
    const end = live.watch(project, session, version);
    const stop = live.listen(project, session, (message) => {
      if (message.kind === "run") setRun(message.data.run);
      if (message.kind === "reset") found.reload();
    });
    return () => { stop(); end(); };
  }, [version]);
  const [screen, ...more] = rest;
  const tabs = [["", "Overview", at.session], ["log", "Log", at.log], ["tasks", "Tasks", at.tasks], ["checkpoints", "Checkpoints", at.checkpoints]];
  useKeys([
    { keys: "g o", label: "Go to the overview", run: () => go(at.session) },
    { keys: "g l", label: "Go to the log", run: () => go(at.log) },
    { keys: "g t", label: "Go to the tasks", run: () => go(at.tasks) },
    { keys: "g c", label: "Go to the checkpoints", run: () => go(at.checkpoints) },
    { keys: "g d", label: "Go to the diff", run: () => {
      const phase = (data?.phases || []).filter((each) => each.begun_at).at(-1);
      const now = data?.phases.find((each) => each.status === "in_progress") || phase;
      if (now) go(at.review(now.phase));
    } },
  ]);
  here = data ? { at, data } : null;
  const tab = { gate: "", review: "", diff: "checkpoints", phase: "" }[screen] ?? screen ?? "";
  return html`<main tabindex="-1">
    <nav class="crumbs" aria-label="Where"><a href=${to("p", project)}>${plain(data?.project_name || "Project")}</a><span aria-hidden="true">/</span><a href=${at.session}>${plain(session)}</a>
      ${screen && more[0] && html`<span aria-hidden="true">/</span><span>${plain(more.join(" / "))}</span>`}</nav>
    <${Loaded} from=${found}>${() => html`
      ${!screen && html`<${Header} data=${data} />`}
      <nav class="tabs" aria-label="Session">${tabs.map(([key, label, href]) => html`<a key=${key} href=${href} aria-current=${tab === key ? "page" : undefined}>${label}${key === "" && data.needs.length > 0 && html` <span class="count">${data.needs.length}</span>`}</a>`)}
        ${!screen && api.access.can_decide && html`<${RunButton} data=${data} at=${at} onDone=${found.reload} />`}</nav>
      ${!screen && version > 0 && html`<${Overview} data=${data} run=${run === undefined ? data.run : run} decide=${decide} />`}
      ${screen === "log" && version > 0 && html`<${Log} project=${project} session=${session} phases=${data.phases.map((phase) => phase.phase)} />`}
      ${screen === "phase" && html`<${PhaseDetail} data=${data} phase=${more[0]} decide=${decide} />`}
      ${screen === "gate" && html`<${GateScreen} key=${more.join("/")} data=${data} phase=${more[0]} gate=${more[1]} decide=${decide} />`}
      ${screen === "review" && html`<${ReviewScreen} key=${more[0]} data=${data} phase=${more[0]} decide=${decide} />`}
      ${screen === "diff" && html`<${DiffScreen} key=${more.join("/")} data=${data} from=${more[0]} until=${more[1]} />`}
      ${screen === "checkpoints" && html`<${CheckpointsScreen} data=${data} onDone=${found.reload} />`}
      ${screen === "tasks" && version > 0 && html`<${TasksScreen} data=${data} id=${more[0]} />`}
    `}</${Loaded}>
    ${dialog}
  </main>`;
};

const RunButton = ({ data, at, onDone }) => {
  const [busy, set] = useState(false);
  if (data.status !== "active") return null;
  const send = async (path) => {
    set(true);
    try {
      await api.post(`${at.api}/${path}`);
      say(path === "run" ? "A run was started." : "The run was asked to stop.");
      onDone();
    } catch (error) { fault(error); }
    set(false);
  };
  return data.runner
    ? html`<button class="push" disabled=${busy} onClick=${() => send("stop")}>Stop the run</button>`
    : html`<button class="push" disabled=${busy} onClick=${() => send("run")}>Run</button>`;
};
