// Commits as they happen. One tab of the browser reads one stream and tells the others: a browser opens six connections
// to a server, and there may be more tabs than that.
//
// Each tab knows the version of a journal that it shows. A commit that it has is dropped, and one that it missed makes it
// ask again, so each commit is shown once, whichever tab reads and however often the server ends.
"use strict";

const live = (() => {
  const RETRY_MS = [300, 600, 1000, 2000, 5000];
  const GATHER_MS = 30;
  const LOOK_MS = 5000;
  const MOST_SESSIONS = 32;
  const WATCH = "detent-watch:";
  const on = !api.frozen;
  const channel = on && typeof BroadcastChannel === "function" ? new BroadcastChannel("detent-live") : null;
  const locks = on && navigator.locks;

  // In every tab: what it shows, up to which version, and who wants to know.
  const shown = new Map();
  const anything = new Set();
  const states = new Set();
  let state = "live";

  const tellState = (next) => {
    if (next === state) return;
    state = next;
    for (const tell of states) tell(state);
  };

  function deliver(message) {
    if (message.state) return tellState(message.state);
    for (const tell of anything) tell(message);
    const mine = shown.get(message.key);
    if (!mine) return undefined;
    if (message.kind === "commit") {
      if (message.version <= mine.at) return undefined;
      if (message.version > mine.at + 1) message = { ...message, missed: true };
      mine.at = message.version;
    } else if (message.kind === "at") {
      if (message.version <= mine.at) return undefined;
      mine.at = message.version;
      message = { ...message, missed: true };
    }
    for (const tell of mine.listeners) tell(message);
    return undefined;
  }
  const tellAll = (message) => {
    deliver(message);
    channel?.postMessage(message);
  };

  // In the tab that leads: the sessions that any tab shows, each with the version that was read.
  const read = new Map();
  let leads = false;
  let stream = null;
  let timer = null;

  const want = (key, at) => {
    if (read.has(key)) tellAll({ key, kind: "at", version: read.get(key) });
    else if (read.size < MOST_SESSIONS) {
      read.set(key, at);
      reopen();
    }
  };
  const reopen = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      stream?.abort();
      follow((stream = new AbortController()));
    }, GATHER_MS);
  };

  async function follow(mine) {
    for (let failures = 0; !mine.signal.aborted; failures++) {
      try {
        const query = [...read].map(([key, at]) => `s=${encodeURIComponent(`${key}@${at}`)}`).join("&");
        const reply = await fetch(`/api/events?${query}`, {
          headers: api.headers({ Accept: "text/event-stream" }),
          credentials: "omit",
          cache: "no-store",
          signal: mine.signal,
        });
        if (reply.status === 403) return;
        if (!reply.ok) throw new Error(String(reply.status));
        if (failures) tellAll({ kind: "changed" });
        failures = 0;
        tellAll({ state: "live" });
        await events(reply.body.getReader(), mine, (kind, data) => {
          const key = data.session ? `${data.project}/${data.session}` : null;
          const version = data.commit?.version;
          if (kind === "commit") {
            if (version <= read.get(key)) return;
            read.set(key, version);
          }
          tellAll({ key, kind, version, data });
        });
      } catch {
        // The connection was lost, or the server ended: below it is tried again.
      }
      if (mine.signal.aborted) return;
      tellAll({ state: "lost" });
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]));
    }
  }

  async function events(reader, mine, tell) {
    const decoder = new TextDecoder();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done || mine.signal.aborted) return;
      rest += decoder.decode(value, { stream: true });
      for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
        let kind = "message";
        let data = "";
        for (const line of rest.slice(0, end).split("\n")) {
          if (line.startsWith("event:")) kind = line.slice(6).trim();
          else if (line.startsWith("data:")) data += line.slice(5).trimStart();
        }
        if (data) tell(kind, JSON.parse(data));
      }
    }
  }

  // A tab holds a shared lock for what it shows. A lock of a tab that is gone is gone too.
  async function forget() {
    const held = new Set(locks ? (await locks.query()).held.map((lock) => lock.name) : [...shown.keys()].map((key) => WATCH + key));
    const left = [...read.keys()].filter((key) => !held.has(WATCH + key));
    for (const key of left) read.delete(key);
    if (left.length) reopen();
  }

  function lead() {
    leads = true;
    for (const [key, { at }] of shown) want(key, at);
    channel?.postMessage({ where: true });
    reopen();
    setInterval(forget, LOOK_MS);
  }

  if (channel)
    channel.onmessage = ({ data }) => {
      if (data.where) for (const [key, { at }] of shown) channel.postMessage({ want: key, at });
      else if (data.want) leads && want(data.want, data.at);
      else deliver(data);
    };

  // This tab shows the session up to the version `at`. Returns the way to end it.
  function watch(project, session, at) {
    if (!on) return () => {};
    const key = `${project}/${session}`;
    const entry = shown.get(key) || { at, holders: 0, listeners: new Set(), release: () => {} };
    entry.at = Math.max(entry.at, at);
    if (!entry.holders++) {
      shown.set(key, entry);
      const ask = () => (leads ? want(key, entry.at) : channel?.postMessage({ want: key, at: entry.at }));
      if (locks)
        locks.request(WATCH + key, { mode: "shared" }, () => {
          ask();
          return new Promise((resolve) => (entry.release = resolve));
        });
      else ask();
    }
    return () => {
      if (--entry.holders) return;
      entry.release();
      shown.delete(key);
    };
  }

  // Calls `tell` for each message about a session that this tab watches.
  function listen(project, session, tell) {
    const entry = shown.get(`${project}/${session}`);
    entry?.listeners.add(tell);
    return () => entry?.listeners.delete(tell);
  }

  function begin() {
    if (!on) return;
    if (locks)
      locks.request("detent-lead", () => {
        lead();
        return new Promise(() => {});
      });
    else lead();
  }

  return {
    begin, watch, listen,
    get state() { return state; },
    onState: (tell) => { states.add(tell); return () => states.delete(tell); },
    onAnything: (tell) => { anything.add(tell); return () => anything.delete(tell); },
  };
})();
