// Needs you: the first screen. Everything that waits for a person, oldest first, decided on the spot.
"use strict";

const Sessions = ({ project }) => {
  const found = useGet(`${api.of(project.id)}/sessions`, { any: true });
  const open = (found.data?.sessions || []).filter((each) => ["active", "running"].includes(each.status));
  return open.map((each) => html`<li key=${each.session}><a class="line" href=${to("p", project.id, "s", each.session)}>
    ${status(each.status)}<span class="grow">${text(each.task || each.session, 120)}</span>
    <span class="note">${plain(project.name)}${each.phase ? ` · ${plain(each.phase)}` : ""}</span>${when(each.last_activity)}</a></li>`);
};

const NeedsScreen = ({ projects }) => {
  const found = useGet("/api/needs", { any: true });
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
    { keys: "a", label: "Approve, or the first decision", off: !actionOf(needs[chosen], isFirst), run: () => act(isFirst) },
    { keys: "r", label: "Reject", off: !actionOf(needs[chosen], isRejection), run: () => act(isRejection) },
    { keys: "g d", label: "Go to the diff", off: !needs[chosen]?.phase, run: () => go(links(needs[chosen].project, needs[chosen].session).review(needs[chosen].phase)) },
  ]);
  return html`<main class="column" tabindex="-1">
    <h1>Needs you${needs.length > 0 && html` <span class="count">${needs.length}</span>`}</h1>
    <${Loaded} from=${found}>${(data) => html`
      ${data.problems.map((problem) => html`<p class="fault">${plain(problem.session || "")}: ${plain(problem.message)}</p>`)}
      ${needs.length
        ? html`<div class="needs" role="feed" aria-label="Needs you">${needs.map((need, index) => html`<${Need} key=${need.id} id=${`need-${index}`} need=${need} chosen=${index === chosen} onDecide=${decide} />`)}</div>`
        : html`<${Empty} title="Nothing needs you."><p>What waits for a person appears here by itself.</p></${Empty}>`}
    `}</${Loaded}>
    ${projects.length > 0 && html`<section><h2>At work</h2><ul class="rows">${projects.slice(0, 12).map((project) => html`<${Sessions} key=${project.id} project=${project} />`)}</ul></section>`}
    ${dialog}
  </main>`;
};
