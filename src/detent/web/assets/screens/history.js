// History: sessions that ended, and how they compare.
const percent = (rate) => (rate == null ? "–" : `${Math.round(rate * 100)} %`);
// A canvas needs the colour behind a variable.
const colour = (name) => {
	const probe = document.body.appendChild(document.createElement("i"));
	probe.style.color = `var(${name})`;
	const found = getComputedStyle(probe).color;
	probe.remove();
	return found;
};

// Dates and times as on the rest of the page, not as in the United States.
const fmtDate = (form) => window.uPlot.fmtDate(form.replace(/{M}.{D}(.{YY})?/, (_, year) => `${year ? "{YYYY}-" : ""}{MM}-{DD}`).replace(/{h}(:{mm})?{aa}/, "{HH}:{mm}"));

// One line over time; a table has the figures too.
const Plot = ({ title, times, values, say }) => {
	const box = useRef();
	useEffect(() => {
		const draw = () => {
			box.current.replaceChildren();
			const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "11px system-ui" };
			return new window.uPlot(
				{
					width: box.current.clientWidth, height: 150, fmtDate, legend: { show: false }, cursor: { show: false }, padding: [10, 12, 0, 0],
					scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
					axes: [axis, { ...axis, size: 52, values: (_, ticks) => ticks.map(say) }],
					series: [{}, { stroke: colour("--accent"), width: 2, fill: colour("--accent-soft"), points: { show: true, size: 6, fill: colour("--accent") }, spanGaps: true }],
				},
				[times, values], box.current);
		};
		let plot = draw();
		const again = () => { plot.destroy(); plot = draw(); };
		const observer = new ResizeObserver(() => plot.width !== box.current.clientWidth && again());
		observer.observe(box.current);
		const dark = matchMedia("(prefers-color-scheme: dark)");
		dark.addEventListener("change", again);
		addEventListener("detent-theme", again);
		return () => { observer.disconnect(); dark.removeEventListener("change", again); removeEventListener("detent-theme", again); plot.destroy(); };
	}, [JSON.stringify(values)]);
	const last = [...values].reverse().find((value) => value != null);
	return html`<figure class="plot"><figcaption>${title} <span class="num">${last == null ? "–" : say(last)}</span></figcaption><div ref=${box} role="img" aria-label=${`${title} over time; the table has the values`}></div></figure>`;
};

const minutes = (value) => duration((value || 0) * 60);
// rows: [title, cells]; `mark` is the chosen row.
const figures = (label, heads, rows, mark) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class="figures">
	<thead><tr>${heads.map((head) => html`<th>${head}</th>`)}</tr></thead>
	<tbody>${rows.map(([first, ...cells], index) => html`<tr id=${`row-${index}`} class=${index === mark ? "chosen" : ""}><th scope="row">${first}</th>${cells.map((cell) => html`<td class="num">${cell}</td>`)}</tr>`)}</tbody>
</table></div>`;

const phaseRow = ({ phase, attempts, median, longest, share }) => [plain(phase), minutes(median), minutes(longest), attempts, bar(share, "good")];
const gateRow = (of) => [of.title, percent(of.first_try_rate), of.retries, of.open_s == null ? "–" : duration(of.open_s), of.by_hand, of.escapes, of.flaky_of];
const gatePlot = ({ title, times, rates }) => times[1] && html`<${Plot} title=${title} say=${percent} times=${times} values=${rates} />`;

const HistoryScreen = ({ project }) => {
	const found = useGet(`${api.of(project)}/history`);
	const { sessions = [], phases, gates } = found.data || {};
	const newest = [...sessions].reverse();
	const [marked, mark] = useState(null);
	const [chosen] = useChosen(newest.length, (index) => go(to("p", project, "s", newest[index].session)));
	const compare = (id) => (marked && marked !== id ? go(to("p", project, "compare", marked, id)) : mark(marked === id ? null : id));
	useKeys([["m", () => compare(newest[chosen].session), "Mark for a comparison, or compare with the marked", !newest.length || api.frozen]]);
	const times = sessions.map((each) => new Date(each.ended_at || each.started_at) / 1000);
	const plot = (title, value, say) => html`<${Plot} title=${title} times=${times} values=${sessions.map(value)} say=${say} />`;
	const row = (each) => [
		html`<a href=${to("p", project, "s", each.session)}>${text(each.task || each.session, 80)}</a> ${status(each.status)}`,
		when(each.ended_at), minutes(each.minutes), percent(each.first_try_rate), each.retries, short(tokensOf(each.tokens)), money(each.tokens.cost),
		!api.frozen && html`<button class="small" aria-pressed=${marked === each.session} onClick=${() => compare(each.session)}>${marked && marked !== each.session ? "With marked" : "Compare"}</button>`,
	];
	return html`<main class="column broad" tabindex="-1"><h1>History</h1>${loaded(found, () => (!sessions.length
		? html`<${Empty} title="No session has ended yet." />`
		: html`<div class="plots">
				${plot("Time", (each) => each.minutes, minutes)}
				${plot("Gates passed at the first try", (each) => each.first_try_rate, percent)}
				${plot("Retries", (each) => each.retries, (value) => String(Math.round(value * 10) / 10))}
				${sessions.some((each) => each.tokens.cost) ? plot("Cost", (each) => each.tokens.cost, money) : plot("Tokens", (each) => tokensOf(each.tokens), short)}
			</div>
			<h2>Sessions</h2>${figures("Sessions that ended", ["Session", "Ended", "Time", "First try", "Retries", "Tokens", "Cost", ""], newest.map(row), chosen)}
			<h2>Durations by phase</h2>${figures("Durations by phase", ["Phase", "Median", "Longest", "Attempts", ""], phases.map(phaseRow))}
			<h2>Gates</h2>${figures("Gates", ["Gate", "First try", "Retries", "Opens in", "By hand", "Escapes", "Flaky"], gates.map(gateRow))}
			<div class="plots">${gates.map(gatePlot)}</div>`))}</main>`;
};

const CompareScreen = ({ project, a, b }) => {
	const found = useGet(`${api.of(project)}/compare${api.query({ a, b })}`);
	const facts = [
		["Status", (row) => status(row.status)], ["Time", (row) => minutes(row.minutes)], ["Attempts", (row) => row.attempts], ["Retries", (row) => row.retries],
		["Gates passed at the first try", (row) => percent(row.first_try_rate)], ["Tokens", (row) => short(tokensOf(row.tokens))], ["Cost", (row) => money(row.tokens.cost)],
	];
	const cell = (side) => (side ? `${minutes(side.minutes)}${side.attempts > 1 ? ` ×${side.attempts}` : ""}` : "–");
	const head = (row) => html`<a href=${to("p", project, "s", row.session)}>${text(row.task || row.session, 80)}</a>`;
	return html`<main class="column broad" tabindex="-1"><nav class="crumbs" aria-label="Where"><a href=${to("p", project, "history")}>History</a></nav><h1>Compare</h1>
		${loaded(found, ({ a: one, b: other, phases }) => figures("Comparison", ["", head(one), head(other)], [
			...facts.map(([name, say]) => [name, say(one), say(other)]), ...phases.map((each) => [plain(each.phase), cell(each.a), cell(each.b)])]))}</main>`;
};
