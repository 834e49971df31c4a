// History and figures: sessions that ended, and how they compare.
"use strict";

const percent = (rate) => (rate == null ? "–" : `${Math.round(rate * 100)} %`);
// The canvas needs the colour that a variable stands for in this theme.
const colour = (name) => {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};

// One line over time. uPlot draws on a canvas, so the figures stand in the table too.
const Plot = ({ title, times, values, say }) => {
  const box = useRef();
  useEffect(() => {
    const draw = () => {
      box.current.replaceChildren();
      const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "11px system-ui" };
      return new window.uPlot(
        {
          width: box.current.clientWidth, height: 150, legend: { show: false }, cursor: { y: false }, padding: [10, 12, 0, 0],
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
  return html`<figure class="plot"><figcaption>${title} <span class="num">${last == null ? "–" : say(last)}</span></figcaption><div ref=${box} role="img" aria-label=${`${title} over time; the table below has the values`}></div></figure>`;
};

const Phases = ({ sessions }) => {
  const phases = new Map();
  for (const each of sessions) for (const phase of each.phases) {
    const all = phases.get(phase.phase) || { minutes: [], attempts: 0 };
    if (phase.minutes != null) all.minutes.push(phase.minutes);
    all.attempts += phase.attempts || 0;
    phases.set(phase.phase, all);
  }
  const rows = [...phases].map(([phase, { minutes, attempts }]) => {
    const sorted = [...minutes].sort((a, b) => a - b);
    return { phase, attempts, runs: minutes.length, middle: sorted.length ? sorted[Math.floor((sorted.length - 1) / 2)] : 0, most: sorted.at(-1) || 0 };
  });
  const longest = Math.max(0.01, ...rows.map((row) => row.most));
  return html`<section><h2>Durations by phase</h2><div class="scroll" tabindex="0" role="region" aria-label="Durations by phase"><table class="figures"><thead><tr><th>Phase</th><th class="right">Median</th><th class="right">Longest</th><th class="right">Attempts</th><th class="wide-cell"><span class="hidden">Median as a bar</span></th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.phase}><th scope="row">${plain(row.phase)}</th><td class="right num">${duration(row.middle * 60)}</td><td class="right num">${duration(row.most * 60)}</td><td class="right num">${row.attempts}</td><td class="wide-cell"><span class="bar good"><span style=${{ width: `${(100 * row.middle) / longest}%` }}></span></span></td></tr>`)}</tbody></table></div></section>`;
};

const HistoryScreen = ({ project }) => {
  const found = useGet(`${api.of(project)}/history`);
  const sessions = found.data?.sessions || [];
  const newest = [...sessions].reverse();
  const [marked, mark] = useState(null);
  const [chosen] = useChosen(newest.length, (index) => go(to("p", project, "s", newest[index].session)));
  const compare = (id) => (marked && marked !== id ? go(to("p", project, "compare", marked, id)) : mark(marked === id ? null : id));
  useKeys([{ keys: "m", label: "Mark for a comparison, or compare with the marked", off: !newest.length || Boolean(api.frozen), run: () => compare(newest[chosen].session) }]);
  const times = sessions.map((each) => new Date(each.ended_at || each.started_at) / 1000);
  return html`<main class="column broad" tabindex="-1"><h1>History</h1><${Loaded} from=${found}>${() => (!sessions.length
    ? html`<${Empty} title="No session has ended yet."><p>Figures appear here with the first that does.</p></${Empty}>`
    : html`
      <div class="plots">
        <${Plot} title="Time" times=${times} values=${sessions.map((each) => each.minutes)} say=${(value) => (value < 1 ? `${Math.round(value * 60)} s` : value < 90 ? `${Math.round(value)} min` : `${(value / 60).toFixed(1)} h`)} />
        <${Plot} title="Gates passed at the first try" times=${times} values=${sessions.map((each) => each.first_try_rate)} say=${percent} />
        <${Plot} title="Retries" times=${times} values=${sessions.map((each) => each.retries)} say=${(value) => String(Math.round(value * 10) / 10)} />
        ${sessions.some((each) => each.tokens.cost) ? html`<${Plot} title="Cost" times=${times} values=${sessions.map((each) => each.tokens.cost ?? null)} say=${money} />` : html`<${Plot} title="Tokens" times=${times} values=${sessions.map((each) => tokensOf(each.tokens))} say=${(value) => short(Math.round(value))} />`}
      </div>
      <section><h2>Sessions</h2><div class="scroll" tabindex="0" role="region" aria-label="Sessions that ended"><table class="figures"><thead><tr><th>Session</th><th>Ended</th><th class="right">Time</th><th class="right">First try</th><th class="right">Retries</th><th class="right">Tokens</th><th class="right">Cost</th><th><span class="hidden">Compare</span></th></tr></thead>
        <tbody>${newest.map((each, index) => html`<tr key=${each.session} id=${`row-${index}`} class=${classes(index === chosen && "chosen")}><th scope="row"><a href=${to("p", project, "s", each.session)}>${text(each.task || each.session, 80)}</a> ${status(each.status)}</th><td>${when(each.ended_at)}</td><td class="right num">${duration((each.minutes || 0) * 60)}</td><td class="right num">${percent(each.first_try_rate)}</td><td class="right num">${each.retries}</td><td class="right num">${short(tokensOf(each.tokens))}</td><td class="right num">${money(each.tokens.cost)}</td>
          <td>${!api.frozen && html`<button class="small" aria-pressed=${marked === each.session} onClick=${() => compare(each.session)}>${marked && marked !== each.session ? "With marked" : "Compare"}</button>`}</td></tr>`)}</tbody></table></div></section>
      <${Phases} sessions=${sessions} />`)}</${Loaded}></main>`;
};

const CompareScreen = ({ project, a, b }) => {
  const found = useGet(`${api.of(project)}/compare${api.query({ a, b })}`);
  return html`<main class="column broad" tabindex="-1"><nav class="crumbs" aria-label="Where"><a href=${to("p", project, "history")}>History</a><span aria-hidden="true">/</span><span>Compare</span></nav><h1>Compare</h1><${Loaded} from=${found}>${(shown) => {
    const rows = [["Status", (row) => status(row.status)], ["Time", (row) => duration((row.minutes || 0) * 60)], ["Attempts", (row) => row.attempts], ["Retries", (row) => row.retries], ["Gates passed at the first try", (row) => percent(row.first_try_rate)], ["Tokens", (row) => short(tokensOf(row.tokens))], ["Cost", (row) => money(row.tokens.cost)]];
    const cell = (side) => (side ? `${duration((side.minutes || 0) * 60)}${side.attempts > 1 ? ` ×${side.attempts}` : ""}` : "–");
    return html`<div class="scroll" tabindex="0" role="region" aria-label="Comparison"><table class="figures compare"><thead><tr><th></th>${[shown.a, shown.b].map((row) => html`<th><a href=${to("p", project, "s", row.session)}>${text(row.task || row.session, 80)}</a></th>`)}</tr></thead>
      <tbody>${rows.map(([label, say]) => html`<tr key=${label}><th scope="row">${label}</th><td class="num">${say(shown.a)}</td><td class="num">${say(shown.b)}</td></tr>`)}
      ${shown.phases.map((phase) => html`<tr key=${phase.phase}><th scope="row">${plain(phase.phase)}</th><td class="num">${cell(phase.a)}</td><td class="num">${cell(phase.b)}</td></tr>`)}</tbody></table></div>`;
  }}</${Loaded}></main>`;
};
