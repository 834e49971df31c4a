// What a screen shows, kept up to date.
const SOON_MS = 40, LATER_MS = 250;

// The answer to a GET request. It is asked again when `session`, which this tab watches, has a new commit; with
// `any`, when anything changed anywhere.
// The old answer stays until the new one is there, so nothing flickers.
const useGet = (path, { project, session, kind, any } = {}) => {
	const [result, set] = useState({ path: null });
	const turn = useRef(0);
	const reload = useCallback(async () => {
		if (!path) return;
		const mine = ++turn.current;
		try {
			const data = await api.get(path);
			if (mine === turn.current) set({ path, data });
		} catch (error) {
			// An unreachable server keeps what was shown; the header says that the connection is lost.
			if (mine === turn.current) set((old) => (error.status === 0 && old.path === path && old.data ? old : { path, error }));
		}
	}, [path]);
	useEffect(() => { reload(); }, [path]);
	useEffect(() => {
		if (!session && !any) return undefined;
		let timer = null;
		const hear = ({ kind: told, data, missed }) => {
			const isOther = kind && data?.commit && !missed && !data.commit.kinds.includes(kind);
			if (timer || told === "run" || (any && told === "at") || isOther) return;
			timer = setTimeout(() => { timer = null; reload(); }, any ? LATER_MS : SOON_MS);
		};
		const end = any ? live.onAnything(hear) : live.listen(project, session, hear);
		return () => { clearTimeout(timer); end(); };
	}, [project, session, any, path]);
	const fresh = result.path === path ? result : {};
	return { data: fresh.data, error: fresh.error, loading: !fresh.data && !fresh.error, reload };
};

// Something below a session that is shown, asked again with every commit of it.
// With `kind`, only for commits of that kind.
const useLive = ({ project, session }, path, kind) => useGet(path && `${api.of(project, session)}${path}`, { project, session, kind });

const Fault = ({ error, retry }) => html`<div class="fault" role="alert">
	<strong>${plain(error.message)}</strong>
	${error.wayOut && html`<p>${plain(error.wayOut)}</p>`}
	${error.paths?.length > 0 && paths(error.paths)}
	${retry && html`<button onClick=${retry}>Try again</button>`}
</div>`;

// The three states of a request: not there yet, failed, there.
const loaded = (from, draw) => {
	if (from.error) return html`<${Fault} error=${from.error} retry=${from.reload} />`;
	if (from.loading) return html`<div class="loading" role="status">Loading…</div>`;
	return draw(from.data);
};

const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;
