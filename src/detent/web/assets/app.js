// The frame of the page: the menu, the keys that work everywhere, and the screen of the address.
const themed = document.documentElement.dataset;
themed.theme = localStorage.getItem("detent-theme") || "";
const switchTheme = () => {
	const isDark = themed.theme ? themed.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	themed.theme = isDark ? "light" : "dark";
	localStorage.setItem("detent-theme", themed.theme);
	dispatchEvent(new Event("detent-theme"));
};

const Closed = ({ error }) => html`<main class="column closed" tabindex="-1"><h1>Detent</h1>
	<p>${error && error.kind !== "unauthorized" ? plain(error.message) : "This browser has no access to the page, or it has ended."}</p>
	<p>In a terminal, this opens it:</p><pre class="text" tabindex="0">detent ui --link</pre></main>`;

const Menu = ({ route, projects, waiting, onPalette, onHelp }) => {
	const project = route[0] === "p" ? route[1] : null;
	const item = (href, label, here, extra) => html`<a href=${href} aria-current=${here ? "page" : undefined}>${label}${extra}</a>`;
	const [connection, setConnection] = useState(live.state);
	useEffect(() => live.onState(setConnection), []);
	// On a phone the menu scrolls.
	useEffect(() => document.querySelector(".menu-items [aria-current]")?.scrollIntoView({ block: "nearest" }), [route.join("/"), projects.length]);
	return html`<nav class="menu" aria-label="Main">
		<a class="brand" href="#/needs" aria-label="Detent"><img src="assets/icon.svg" width="20" height="20" alt="" /><span>Detent</span></a>
		<div class="menu-items">
			${item("#/needs", "Needs you", route[0] === "needs", waiting > 0 && html` <span class="count">${waiting}</span>`)}
			${projects.map((each) => html`<div class="menu-project" key=${each.id}>${item(to("p", each.id), plain(each.name), project === each.id && !route[2], each.problem && html` <span class="note">!</span>`)}
				${project === each.id && html`<div class="menu-sub">${item(to("p", each.id, "history"), "History", route[2] === "history" || route[2] === "compare")}${!api.frozen && item(to("p", each.id, "start"), "Start", route[2] === "start")}</div>`}</div>`)}
		</div>
		<div class="menu-end">
			<span class=${classes("connection", connection)} role="status">${api.frozen ? `Copy of ${new Date(api.frozen.made_at).toLocaleString()}` : connection === "live" ? "Live" : "Connection lost, trying again"}</span>
			<button class="icon" onClick=${onPalette} title="Command palette (Ctrl K)">⌘</button>
			<button class="icon" onClick=${switchTheme} title="Dark or light (d)">◐</button>
			<button class="icon" onClick=${onHelp} title="Keys (?)">?</button>
		</div>
	</nav>`;
};

const App = () => {
	const route = useRoute();
	const [over, setOver] = useState(null);
	const [lost, setLost] = useState(null);
	useEffect(() => api.onLost(setLost), []);
	const { data: found } = useGet("/api/projects", { any: true });
	const asked = useGet("/api/needs", { any: true });
	const needs = asked.data?.needs || [];
	const projects = found?.projects || [];
	const waiting = needs.filter((need) => need.is_yours).length;
	const project = route[0] === "p" ? projects.find((each) => each.id === route[1]) : null;
	useEffect(() => { if (!route.length) history.replaceState(null, "", "#/needs"), dispatchEvent(new HashChangeEvent("hashchange")); }, [route.length]);
	useEffect(() => { document.title = `${waiting ? `(${waiting}) ` : ""}${route[3] || project?.name || "Needs you"} · Detent`; }, [waiting, route.join("/"), project?.name]);
	// A new screen begins at its top, for a screen reader too.
	useEffect(() => { document.querySelector("main")?.focus({ preventScroll: true }); }, [route.join("/")]);
	const near = project || projects.find((each) => each.id === api.access.project) || projects[0];
	useKeys([
		["mod k", () => setOver("palette"), "Command palette"],
		["?", () => setOver("help"), "This list"],
		["g n", () => go("#/needs"), "Go to what needs you"],
		["g s", () => go(to("p", near.id)), "Go to the sessions", !near],
		["g h", () => go(to("p", near.id, "history")), "Go to the history", !near],
		["c", () => go(to("p", near.id, "start")), "Start a session", !near || Boolean(api.frozen)],
		["t", toggleTimes, "Relative or absolute times"],
		["d", switchTheme, "Dark or light"],
	]);
	if (lost) return html`<${Closed} error=${lost} />`;
	const entries = over === "palette" ? paletteEntries(projects, needs) : [];
	const screen = () => {
		if (route[0] === "p" && route[1]) {
			const props = { key: route.slice(0, 4).join("/"), project: route[1], name: project?.name || route[1] };
			if (route[2] === "s" && route[3]) return html`<${SessionScreen} ...${props} session=${route[3]} rest=${route.slice(4)} />`;
			if (route[2] === "history") return html`<${HistoryScreen} ...${props} />`;
			if (route[2] === "compare") return html`<${CompareScreen} ...${props} a=${route[3]} b=${route[4]} />`;
			if (route[2] === "start") return html`<${StartScreen} ...${props} />`;
			return html`<${ProjectScreen} ...${props} />`;
		}
		return html`<${NeedsScreen} projects=${projects} found=${asked} />`;
	};
	return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main")?.focus(); }}>To the content</a>
		<${Menu} route=${route} projects=${projects} waiting=${waiting} onPalette=${() => setOver("palette")} onHelp=${() => setOver("help")} />
		<div class="body">
			${!api.access.can_decide && api.access.read_only_because && html`<p class="banner" role="note">Read-only: ${plain(api.access.read_only_because)}</p>`}
			${screen()}
		</div>
		<${Messages} />
		${over === "palette" && html`<${Palette} entries=${entries} onClose=${() => setOver(null)} />`}
		${over === "help" && html`<${Help} onClose=${() => setOver(null)} />`}`;
};

const paletteEntries = (projects, needs) => {
	const entries = allKeys().filter((entry) => entry.label && !["j", "k", "enter", "mod k"].includes(entry.keys)).map((entry) => ({ label: entry.label, keys: entry.keys, run: () => setTimeout(entry.run) }));
	for (const need of needs) entries.push({ label: need.what.slice(0, 120), note: "needs you", run: () => go(need.phase ? links(need.project, need.session).phase(need.phase) : links(need.project, need.session).session) });
	if (here) {
		for (const phase of here.data.phases) entries.push({ label: phase.phase, note: `phase, ${phase.status.replace("_", " ")}`, run: () => go(here.at.phase(phase.phase)) });
		for (const [phase, gates] of Object.entries(here.data.gates)) for (const gate of gates) entries.push({ label: gate.gate, note: `gate of ${phase}, ${gate.verdict}`, run: () => go(here.at.gate(phase, gate.gate)) });
	}
	for (const project of projects) {
		entries.push({ label: project.name, note: "project", run: () => go(to("p", project.id)) });
		if (project.active) entries.push({ label: project.active, note: `active session of ${project.name}`, run: () => go(to("p", project.id, "s", project.active)) });
	}
	return entries;
};

async function begin() {
	const page = document.getElementById("page");
	try {
		if (!(await api.enter())) return render(html`<${Closed} />`, page);
		await api.learn();
	} catch (error) {
		return render(html`<${Closed} error=${error} />`, page);
	}
	page.replaceChildren();
	render(html`<${App} />`, page);
	live.begin();
	return undefined;
}
begin();
