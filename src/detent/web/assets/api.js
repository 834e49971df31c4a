// Requests to the server, and their token.
//
// The link that `detent ui` opens has a token in its fragment. It is exchanged once for the token of this browser session,
// which lives in sessionStorage. Another tab gets it from an open tab.
const api = (() => {
	const KEY = "detent-token";
	const ANSWER_WITHIN_MS = 400;
	const frozen = window.DETENT_EXPORT;
	const channel = frozen ? null : new BroadcastChannel("detent-token");
	let token = null;
	let access = { can_decide: false, read_only_because: null };
	const lost = new Set();

	class ApiError extends Error {
		constructor(status, { message, way_out: wayOut, kind, paths } = {}) {
			super(message || `The server answered with status ${status}.`);
			Object.assign(this, { status, wayOut, kind, paths });
		}
	}

	const store = (value) => {
		token = value;
		if (value) sessionStorage.setItem(KEY, value);
		else sessionStorage.removeItem(KEY);
	};

	if (channel)
		channel.onmessage = ({ data }) => {
			if (data.ask && token) channel.postMessage({ token });
		};

	const fromOpenTab = () =>
		new Promise((resolve) => {
			const answers = new BroadcastChannel("detent-token");
			const end = (value) => {
				answers.close();
				resolve(value);
			};
			answers.onmessage = ({ data }) => data.token && end(data.token);
			answers.postMessage({ ask: true });
			setTimeout(() => end(null), ANSWER_WITHIN_MS);
		});

	// True if the page may ask the server.
	async function enter() {
		if (frozen) return true;
		const given = new URLSearchParams(location.hash.slice(1)).get("token");
		if (given) {
			const go = new URLSearchParams(location.hash.slice(1)).get("go") || "/needs";
			history.replaceState(null, "", `${location.pathname}#${go.replace(/^#/, "")}`);
			store((await request("POST", "/api/exchange", { token: given })).token);
			return true;
		}
		const kept = sessionStorage.getItem(KEY) || (await fromOpenTab());
		if (kept) store(kept);
		return Boolean(kept);
	}

	const headers = (extra) => ({ ...(token ? { Authorization: `Bearer ${token}` } : {}), ...extra });

	async function request(method, path, body) {
		const sent = token;
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
		// It may be of an earlier token.
		if (error.kind === "unauthorized" && sent && sent === token) {
			store(null);
			for (const tell of lost) tell(error);
		}
		throw error;
	}

	const fromExport = async (path) => {
		const found = frozen.answers[path];
		if (found !== undefined) return found;
		throw new ApiError(404, { message: "This copy does not have that.", way_out: "The page of the project has it: detent ui" });
	};

	const get = (path) => (frozen ? fromExport(path) : request("GET", path));
	const post = (path, body = {}) =>
		frozen ? Promise.reject(new ApiError(403, { message: "This is a copy. It can be read, not changed." })) : request("POST", path, body);

	// Whether this page may decide.
	const learn = async () => (access = await get("/api/me"));

	const encode = encodeURIComponent;
	// A copy looks answers up by the whole path, so what is not given is left out.
	const query = (given) => {
		const parts = Object.entries(given).filter(([, value]) => value != null && value !== "");
		return parts.length ? `?${parts.map(([name, value]) => `${name}=${encode(value)}`).join("&")}` : "";
	};
	const of = (project, session) => `/api/p/${encode(project)}${session ? `/s/${encode(session)}` : ""}`;

	return {
		ApiError, enter, learn, get, post, headers, of, encode, query,
		frozen: frozen || null,
		get access() { return access; },
		onLost: (tell) => { lost.add(tell); return () => lost.delete(tell); },
	};
})();
