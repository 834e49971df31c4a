// Addresses: every object has one, behind the # so that a copy opened as a file has them too.
"use strict";

const parts = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean).map(decodeURIComponent);
const to = (...names) => `#/${names.map(encodeURIComponent).join("/")}`;
const go = (address) => { location.hash = address; };

const useRoute = () => {
  const [route, set] = useState(parts);
  useEffect(() => {
    const changed = () => { set(parts()); scrollTo(0, 0); };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
};

// Addresses of the objects of one session.
const links = (project, session) => ({
  session: to("p", project, "s", session),
  log: to("p", project, "s", session, "log"),
  tasks: to("p", project, "s", session, "tasks"),
  checkpoints: to("p", project, "s", session, "checkpoints"),
  task: (id) => to("p", project, "s", session, "tasks", id),
  phase: (phase) => to("p", project, "s", session, "phase", phase),
  gate: (phase, gate) => to("p", project, "s", session, "gate", phase, gate),
  review: (phase) => to("p", project, "s", session, "review", phase),
  diff: (from, until) => to("p", project, "s", session, "diff", from, until),
  api: api.of(project, session),
});

// The session that is shown: {at, data}. The palette offers its phases and gates.
let here = null;
