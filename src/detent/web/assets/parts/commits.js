// The log of a session: commits, newest first, that stay live.
const COMMITS_A_PAGE = 100;
const LOG_KINDS = ["phase", "gate", "decision", "task", "agent", "checkpoint", "session", "question"];

const matches = (commit, { q, kind, phase }) =>
	(!kind || commit.kinds.includes(kind)) && (!phase || commit.phases.includes(phase)) &&
	(!q || [commit.by, ...commit.lines].join("\n").toLowerCase().includes(q.toLowerCase()));

// Commits by version: the list of the server and the stream may both bring one, and it is there once.
const useLog = (project, session, filter) => {
	const [log, set] = useState({ commits: new Map(), more: false, loading: true });
	const base = `${api.of(project, session)}/log`;
	const turn = useRef(0);
	const ask = async (before, keep) => {
		const mine = keep ? turn.current : ++turn.current;
		try {
			const found = await api.get(`${base}${api.query({ before, limit: COMMITS_A_PAGE, ...filter })}`);
			if (mine !== turn.current) return;
			set((old) => {
				const commits = new Map(keep ? old.commits : []);
				for (const commit of found.commits) commits.set(commit.version, commit);
				return { commits, more: keep && !before ? old.more : found.more, loading: false };
			});
		} catch (error) {
			set((old) => (old.commits.size && error.status === 0 ? old : { ...old, loading: false, error }));
		}
	};
	useEffect(() => { ask(null, false); }, [base, filter.q, filter.kind, filter.phase]);
	useEffect(() => live.listen(project, session, (message) => {
		if (message.kind === "reset") ask(null, false);
		else if (message.missed) ask(null, true);
		if (message.kind === "commit" && matches(message.data.commit, filter))
			set((old) => ({ ...old, commits: new Map(old.commits).set(message.version, message.data.commit) }));
	}), [base, filter.q, filter.kind, filter.phase]);
	const commits = [...log.commits.values()].sort((a, b) => b.version - a.version);
	return { ...log, commits, older: () => ask(commits.at(-1).version, true), retry: () => ask(null, false) };
};

const Commit = ({ commit }) => html`<li class="commit" data-version=${commit.version}>
	<span class="version num">${commit.version}</span>
	<span class=${`who who-${commit.actor}`}>${plain(commit.by)}${commit.actor !== "person" && html` <span class="note">${commit.mark ? plain(commit.mark) : commit.actor}</span>`}</span>
	<div class="lines">${commit.lines.map((line) => html`<div>${text(line, 700)}</div>`)}
		${commit.proof && html`<div class="note">${plain([commit.proof.assurance, commit.proof.method, commit.proof.identity].filter(Boolean).join(" · "))}</div>`}
	</div>
	${when(commit.at)}
</li>`;

const Log = ({ project, session, phases = [] }) => {
	const [filter, set] = useState({ q: "", kind: "", phase: "" });
	const log = useLog(project, session, filter);
	const change = (name) => (event) => set({ ...filter, [name]: event.target.value });
	return html`<section class="log" aria-label="Log">
		<div class="filters">
			${!api.frozen && html`<input type="search" placeholder="Filter the log" aria-label="Filter the log by text" value=${filter.q} onInput=${change("q")} />
			<select aria-label="Kind" value=${filter.kind} onChange=${change("kind")}><option value="">All kinds</option>${LOG_KINDS.map((kind) => html`<option value=${kind}>${kind}</option>`)}</select>
			<select aria-label="Phase" value=${filter.phase} onChange=${change("phase")}><option value="">All phases</option>${phases.map((key) => html`<option value=${key}>${plain(key)}</option>`)}</select>`}
		</div>
		${log.error && html`<${Fault} error=${log.error} retry=${log.retry} />`}
		${!log.loading && !log.commits.length && !log.error && html`<p class="note">No commit matches.</p>`}
		<ol class="commits" aria-live="off">${log.commits.map((commit) => html`<${Commit} key=${commit.version} commit=${commit} />`)}</ol>
		${log.more && html`<button class="more" onClick=${log.older}>Show older commits</button>`}
	</section>`;
};
