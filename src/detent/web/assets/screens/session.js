// A session: where it stands, who works on what, what failed, what it costs.
const tokensOf = (tokens) => (tokens ? (tokens.input || 0) + (tokens.output || 0) : 0);

const meter = (name, value, note, part, style) => html`<div class="meter" key=${name}><dt>${words(name)}</dt><dd><span class="num">${value}</span> <span class="note">${note}</span>${part != null && bar(part, style)}</dd></div>`;
const NEAR = { approaching: " · near", exceeded: " · over" };
const budgetMeter = ({ name, used, limit, status: state }) => {
	const say = (value) => (name.includes("cost") ? money(value) : name.includes("minutes") ? duration(value * 60) : short(Math.round(value)));
	return meter(name, say(used), limit != null && `of ${say(limit)}${NEAR[state] || ""}`, limit && used / limit, state);
};

const Header = ({ data }) => {
	const { progress, tokens, tasks, budget, runner } = data;
	const limited = (name) => budget.some((entry) => entry.name === name);
	const state = data.needs.some((need) => need.is_yours) ? "needs_you" : runner ? "running" : data.status === "active" && !data.is_active ? "paused" : data.status;
	return html`<header>
		<h1>${text(data.task, 300)}</h1>
		${facts(status(state), plain(data.session), plain(data.workflow), data.branch && `branch ${plain(data.branch)}`, when(data.started_at, "started "),
			html`version <span class="num">${data.position.version}</span>`, runner && `run by ${plain(runner.owner)} at ${plain(runner.host)}`)}
		<dl class="meters">
			${meter("phases", progress.completed, `of ${progress.total}${progress.skipped ? `, ${progress.skipped} skipped` : ""}`, progress.completed / Math.max(1, progress.total), "good")}
			${budget.map(budgetMeter)}
			${!limited("tokens") && meter("tokens", short(tokensOf(tokens)), `${short(tokens.input || 0)} in, ${short(tokens.output || 0)} out`)}
			${!limited("cost") && tokens.cost > 0 && meter("cost", money(tokens.cost))}
			${tasks && meter("tasks", html`<a href=${links(data.project, data.session).tasks}>${tasks.completed} of ${tasks.total}</a>`, tasks.active > 0 && `${tasks.active} active`)}
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

const spent = ({ begun, ended }) => (begun ? (ended ? new Date(ended) : Date.now()) - new Date(begun) : 0);
const HOW = { completed: "completed", failed: "failed", redone: "failed", skipped: "skipped", reset: "skipped", "": "in_progress" };
const Attempt = ({ each, at, most }) => {
	return html`<li class="attempt">
		<div class="line">
			${status(HOW[each.how] || "pending", each.how || "in progress")}
			<a class="grow" href=${at.phase(each.phase)}><strong>${plain(each.phase)}</strong> <span class="note">attempt ${each.attempt}${each.agents.length ? ` · ${plain(each.agents.join(", "))}` : ""}</span></a>
			${bar(Math.max(0.02, spent(each) / most))}
			<${Elapsed} from=${each.begun} to=${each.ended} />${when(each.begun)}
		</div>
		${each.turns.length > 0 && html`<ol class="turns">${each.turns.map((turn, index) => html`<li key=${index}>${shape(turn.ended ? (turn.succeeded === false ? "failed" : "completed") : "running")}
			<span class="grow"><span class="note">turn ${index + 1}${turn.model ? ` · ${plain(turn.model)}` : ""}</span> ${text(turn.summary || "", 240)}</span>
			<span class="note num">${tokensOf(turn.tokens) ? `${short(tokensOf(turn.tokens))} tokens` : ""}</span><${Elapsed} from=${turn.launched} to=${turn.ended} /></li>`)}</ol>`}
		${each.closed.map((gate) => failure(gate.result, html`<a href=${at.gate(each.phase, gate.gate)}><strong>${plain(gate.gate)}</strong></a> ${words(gate.result)}${gate.exit_code != null ? `, exit code ${gate.exit_code}` : ""}
			${gate.command && html` <code>${text(gate.command, 120)}</code>`}${gate.error && html`<div>${text(gate.error, 400)}</div>`}`, gate.at))}
		${each.error && failure("failed", text(each.error, 500))}
	</li>`;
};

const Timeline = ({ data }) => {
	const at = links(data.project, data.session);
	const found = useLive(data, "/timeline");
	const [all, setAll] = useState(false);
	return html`<section aria-labelledby="timeline"><h2 id="timeline">Timeline</h2>${loaded(found, ({ attempts }) => {
		const most = Math.max(1, ...attempts.filter((each) => each.ended).map(spent));
		const newest = [...attempts].reverse();
		const shown = all ? newest : newest.slice(0, 60);
		return html`<ol class="timeline">${shown.map((each) => html`<${Attempt} key=${`${each.phase} ${each.attempt} ${each.begun}`} each=${each} at=${at} most=${most} />`)}</ol>
			${!attempts.length && html`<p class="note">No phase was begun yet.</p>`}
			${shown.length < newest.length && html`<button class="more" onClick=${() => setAll(true)}>Show ${count(newest.length - shown.length, "older attempt")}</button>`}`;
	})}</section>`;
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
			<${Timeline} data=${data} />
		</div>
	</div>`;
};

const PhaseDetail = ({ data, phase: key, decide }) => {
	const at = links(data.project, data.session);
	const phase = data.phases.find((each) => each.phase === key);
	const gates = data.gates[key] || [];
	const needs = data.needs.filter((need) => need.phase === key);
	const [chosen] = useChosen(gates.length, (index) => go(at.gate(key, gates[index].gate)), { id: "gate" });
	useKeys([["g d", () => go(at.review(key)), "Go to the diff"]]);
	if (!phase) return html`<${Fault} error=${{ message: `The workflow has no phase ${key}.` }} />`;
	return html`<div class="column">
		<h2 class="title">${plain(phase.title || key)} ${status(phase.status)}</h2>
		${facts(plain(key), plain(phase.agent), `attempt ${phase.attempt}${phase.retries ? `, ${count(phase.retries, "retry", "retries")}` : ""}`, phase.spent_s > 0 && duration(phase.spent_s),
			phase.begun_at && when(phase.begun_at, "begun "), phase.completed_at && when(phase.completed_at, "ended "))}
		<p class="buttons"><a class="button" href=${at.review(key)}>Changes of this phase</a></p>
		${needs.map((need) => html`<${Need} key=${need.id} compact need=${need} onDecide=${decide} />`)}
		${phase.error && failure("failed", text(phase.error))}
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
	useLayoutEffect(() => { if (data && !version) setVersion(data.position.version); }, [data]);
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
		["g o", () => go(at.session), "Go to the overview"],
		["g l", () => go(at.log), "Go to the log"],
		["g t", () => go(at.tasks), "Go to the tasks"],
		["g c", () => go(at.checkpoints), "Go to the checkpoints"],
		["g d", () => {
			const phase = (data?.phases || []).filter((each) => each.begun_at).at(-1);
			const now = data?.phases.find((each) => each.status === "in_progress") || phase;
			if (now) go(at.review(now.phase));
		}, "Go to the diff"],
	]);
	here = data ? { at, data } : null;
	const tab = { gate: "", review: "", diff: "checkpoints", phase: "" }[screen] ?? screen ?? "";
	return html`<main tabindex="-1">
		<nav class="crumbs" aria-label="Where"><a href=${to("p", project)}>${plain(data?.project_name || "Project")}</a><a href=${at.session}>${plain(session)}</a>
			${screen && more[0] && html`<span>${plain(more.join(" / "))}</span>`}</nav>
		${loaded(found, () => version > 0 && html`
			${!screen && html`<${Header} data=${data} />`}
			<nav class="tabs" aria-label="Session">${tabs.map(([key, label, href]) => html`<a key=${key} href=${href} aria-current=${tab === key ? "page" : undefined}>${label}${key === "" && data.needs.length > 0 && html` <span class="count">${data.needs.length}</span>`}</a>`)}
				${!screen && api.access.can_decide && html`<${RunButton} data=${data} at=${at} onDone=${found.reload} />`}</nav>
			${!screen && html`<${Overview} data=${data} run=${run === undefined ? data.run : run} decide=${decide} />`}
			${screen === "log" && html`<${Log} project=${project} session=${session} phases=${data.phases.map((phase) => phase.phase)} />`}
			${screen === "phase" && html`<${PhaseDetail} data=${data} phase=${more[0]} decide=${decide} />`}
			${screen === "gate" && html`<${GateScreen} key=${more.join("/")} data=${data} phase=${more[0]} gate=${more[1]} decide=${decide} />`}
			${screen === "review" && html`<${ReviewScreen} key=${more[0]} data=${data} phase=${more[0]} decide=${decide} />`}
			${screen === "diff" && html`<${DiffScreen} key=${more.join("/")} data=${data} from=${more[0]} until=${more[1]} />`}
			${screen === "checkpoints" && html`<${CheckpointsScreen} data=${data} onDone=${found.reload} />`}
			${screen === "tasks" && html`<${TasksScreen} data=${data} id=${more[0]} />`}
		`)}
		${dialog}
	</main>`;
};

const RunButton = ({ data, at, onDone }) => {
	const [path, label, said] = data.runner ? ["stop", "Stop the run", "The run was asked to stop."] : ["run", "Run", "A run was started."];
	const send = () => api.post(`${at.api}/${path}`).then(() => { say(said); onDone(); }, fault);
	return data.status === "active" && html`<button class="push" onClick=${send}>${label}</button>`;
};
