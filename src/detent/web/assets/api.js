// Requests to the server, and the token that they carry.
//
// The link that `detent ui` opens has a token in its fragment. It is exchanged once for the token of this browser session,
// which lives in sessionStorage. Another tab gets it from an open tab.
(() => {
  "use strict";
  const KEY = "detent-token";
  const ANSWER_WITHIN_MS = 400;
  const frozen = window.DETENT_EXPORT;
  const channel = typeof BroadcastChannel === "function" && !frozen ? new BroadcastChannel("detent-token") : null;
  let token = null;
  let access = { can_decide: false, read_only_because: frozen ? "This is a copy. It can be read, not changed." : "" };
  const lost = new Set();

  class ApiError extends Error {
    constructor(status, { message, way_out: wayOut, kind, paths } = {}) {
      super(message || `The server answered with status ${status}.`);
      Object.assign(this, { status, wayOut, kind, paths });
    }
  }

  const store = (value) => {
    token = value;
    try {
      if (value) sessionStorage.setItem(KEY, JSON.stringify({ token: value, access }));
      else sessionStorage.removeItem(KEY);
    } catch {
      // A browser that forbids storage keeps the token until the tab is loaded again.
    }
  };

  if (channel)
    channel.onmessage = ({ data }) => {
      if (data.ask && token) channel.postMessage({ token, access });
    };

  const fromOpenTab = () =>
    new Promise((resolve) => {
      if (!channel) return resolve(null);
      const answers = new BroadcastChannel("detent-token");
      const end = (value) => {
        answers.close();
        resolve(value);
      };
      answers.onmessage = ({ data }) => data.token && end(data);
      answers.postMessage({ ask: true });
      setTimeout(() => end(null), ANSWER_WITHIN_MS);
    });

  // True if the page may ask the server.
  async function enter() {
    if (frozen) return true;
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (given) {
      const to = new URLSearchParams(location.hash.slice(1)).get("to") || "/needs";
      history.replaceState(null, "", `${location.pathname}#${to}`);
      const reply = await request("POST", "/api/exchange", { token: given });
      ({ can_decide: access.can_decide, read_only_because: access.read_only_because } = reply);
      store(reply.token);
      return true;
    }
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(KEY));
    } catch {
      kept = null;
    }
    kept = kept || (await fromOpenTab());
    if (!kept) return false;
    access = kept.access;
    store(kept.token);
    return true;
  }

  const headers = (extra) => ({ ...(token ? { Authorization: `Bearer ${token}` } : {}), ...extra });

  async function request(method, path, body) {
    let reply;
    try {
      reply = await fetch(path, {
        method,
        headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }),
        body: body === undefined ? undefined : JSON.stringify(body),
        credentials: "omit",
        cache: "no-store",
      });
    } catch {
      throw new ApiError(0, { message: "The server does not answer.", way_out: "Start it again: detent ui", kind: "offline" });
    }
    const data = await reply.json().catch(() => ({}));
    if (reply.ok) return data;
    const error = new ApiError(reply.status, data.error);
    if (reply.status === 401 || error.kind === "token") {
      store(null);
      for (const tell of lost) tell(error);
    }
    throw error;
  }

  const fromExport = async (path) => {
    const [bare, query] = path.split("?");
    const found = frozen.api[path] ?? frozen.api[bare];
    if (found === undefined)
      throw new ApiError(404, { message: "This copy does not have that.", way_out: "Open the page of the project: detent ui" });
    return window.detent.narrow ? window.detent.narrow(bare, new URLSearchParams(query), found) : found;
  };

  const get = (path) => (frozen ? fromExport(path) : request("GET", path));
  const post = (path, body = {}) =>
    frozen ? Promise.reject(new ApiError(403, { message: access.read_only_because })) : request("POST", path, body);

  const encode = encodeURIComponent;
  const of = (project, session) => `/api/p/${encode(project)}${session ? `/s/${encode(session)}` : ""}`;

  window.detent.api = {
    ApiError, enter, get, post, headers, of, encode,
    frozen: Boolean(frozen),
    get access() { return access; },
    onLost: (tell) => { lost.add(tell); return () => lost.delete(tell); },
  };
})();
