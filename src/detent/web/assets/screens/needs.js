// Needs you: the first screen. Everything that waits for a person, oldest first, decided on the spot.
const Sessions = ({ project }) => {
	const found = useGet(`${api.of(project.id)}/sessions`, { any: true });
	const open = (found.data?.sessions || []).filter((each) => ["active", "running"].includes(each.status));
	return open.map((each) => html`<${SessionRow} key=${each.session} project=${project.id} each=${each} name=${project.name} />`);
};

const NeedsScreen = ({ projects, found }) => {
	const needs = found.data?.needs || [];
	const [dialog, decide] = useDecide(found.reload);
	const [chosen] = useChosen(needs.length, (index) => open(needs[index]), { id: "need" });
	const open = (need) => {
		const at = links(need.project, need.session);
		if (need.phase && need.actions.some((action) => action.needs_tree)) go(at.review(need.phase));
		else if (need.gate) go(at.gate(need.phase, need.gate));
		else if (need.task) go(at.task(need.task));
		else go(at.session);
	};
	const act = (is) => {
		const action = actionOf(needs[chosen], is);
		if (action) decide(needs[chosen], action);
	};
	useKeys([
		["a", () => act(isFirst), "Approve, or the first decision", !actionOf(needs[chosen], isFirst)],
		["r", () => act(isRejection), "Reject", !actionOf(needs[chosen], isRejection)],
		["g d", () => go(links(needs[chosen].project, needs[chosen].session).review(needs[chosen].phase)), "Go to the diff", !needs[chosen]?.phase],
	]);
	return html`<main class="column" tabindex="-1">
		<h1>Needs you${needs.length > 0 && html` <span class="count">${needs.length}</span>`}</h1>
		${loaded(found, (data) => html`
			${data.problems.map((problem) => html`<p class="fault">${plain(problem.session || "")}: ${plain(problem.message)}</p>`)}
			${needs.length
				? html`<div class="needs" role="feed" aria-label="Needs you">${needs.map((need, index) => html`<${Need} key=${need.id} id=${`need-${index}`} need=${need} chosen=${index === chosen} onDecide=${decide} />`)}</div>`
				: html`<${Empty} title="Nothing needs you."><p>What waits for a person appears here by itself.</p></${Empty}>`}
		`)}
		${projects.length > 0 && html`<section><h2>At work</h2><ul class="rows">${projects.slice(0, 12).map((project) => html`<${Sessions} key=${project.id} project=${project} />`)}</ul></section>`}
		${dialog}
	</main>`;
};
