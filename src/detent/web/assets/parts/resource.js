// What a screen shows, kept up to date.
"use strict";

const SOON_MS = 40;

// The answer to a GET request. It is asked again when `session`, which this tab watches, has a new commit; with
// `any`, when anything changed anywhere.
// The old answer stays until the new one is there, so nothing flickers.
const useGet = (path, { project, session, any } = {}) => {
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
    if (!session) return undefined;
    let timer = null;
    const end = live.listen(project, session, (message) => {
      if (message.kind === "run" || timer) return;
      timer = setTimeout(() => { timer = null; reload(); }, SOON_MS);
    });
    return () => { clearTimeout(timer); end(); };
  }, [project, session, path]);
  useEffect(() => {
    if (!any) return undefined;
    let timer = null;
    const end = live.onAnything((message) => {
      if (message.kind === "run" || message.kind === "at" || timer) return;
      timer = setTimeout(() => { timer = null; reload(); }, SOON_MS);
    });
    return () => { clearTimeout(timer); end(); };
  }, [any, path]);
  const fresh = result.path === path ? result : {};
  return { data: fresh.data, error: fresh.error, loading: !fresh.data && !fresh.error, reload, set: (data) => set({ path, data }) };
};

const Fault = ({ error, retry }) => html`<div class="fault" role="alert">
  <strong>${plain(error.message)}</strong>
  ${error.wayOut && html`<p>${plain(error.wayOut)}</p>`}
  ${error.paths?.length > 0 && html`<ul class="paths">${error.paths.map((path) => html`<li><code>${plain(path)}</code></li>`)}</ul>`}
  ${retry && html`<button onClick=${retry}>Try again</button>`}
</div>`;

// The three states of a request: not there yet, failed, there.
const Loaded = ({ from, children }) => {
  if (from.error) return html`<${Fault} error=${from.error} retry=${from.reload} />`;
  if (from.loading) return html`<div class="loading" role="status">Loading…</div>`;
  return children(from.data);
};

const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;
