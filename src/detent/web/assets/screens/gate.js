// A gate: its verdict, the receipt behind it, its history, and who approved with which proof.
"use strict";

const Proof = ({ proof }) => (proof ? html`<span class="chip" title=${plain(proof.statement || "")}>${plain([proof.assurance, proof.method, proof.identity].filter(Boolean).join(" · "))}${proof.key ? html` <code>${plain(proof.key.slice(0, 24))}</code>` : ""}</span>` : null);

const Receipt = ({ receipt, title, stale, checked }) => html`<section class="receipt" aria-label=${title}>
  <h2>${title} ${status(receipt.result)}</h2>
  <dl class="pairs">
    ${receipt.command && html`<div><dt>Command</dt><dd><code>${text(receipt.command, 400)}</code></dd></div>`}
    <div><dt>Exit code</dt><dd class="num">${receipt.exit_code ?? "–"}</dd></div>
    ${receipt.duration_s != null && html`<div><dt>Took</dt><dd>${duration(receipt.duration_s)}</dd></div>`}
    ${checked && html`<div><dt>Checked</dt><dd>${when(checked)}</dd></div>`}
    ${receipt.by && html`<div><dt>By</dt><dd>${plain(receipt.by)}${receipt.account ? `, account ${plain(receipt.account)}` : ""}${receipt.host ? ` at ${plain(receipt.host)}` : ""}</dd></div>`}
    ${receipt.tests && html`<div><dt>Tests</dt><dd>${Object.entries(receipt.tests).filter(([, value]) => typeof value === "number" && value).map(([name, value]) => `${value} ${words(name)}`).join(", ") || "none"}</dd></div>`}
    ${receipt.coverage != null && html`<div><dt>Coverage</dt><dd>${receipt.coverage} %</dd></div>`}
    ${receipt.program && html`<div><dt>Program</dt><dd><code>${plain(receipt.program.path || receipt.program.name)}</code></dd></div>`}
  </dl>
  ${stale && html`<div class="failure">${shape("stale")}<div class="grow"><strong>Stale</strong>: ${count(stale.count, "input")} changed since. <ul class="paths">${stale.files.slice(0, 20).map((path) => html`<li key=${path}><code>${plain(path)}</code></li>`)}</ul></div></div>`}
  ${receipt.error && html`<p>${text(receipt.error, 800)}</p>`}
  ${receipt.failing.length > 0 && html`<h3>Failing tests</h3><ul class="paths">${receipt.failing.slice(0, 100).map((name) => html`<li key=${name}>${shape("failed")}<code>${plain(name)}</code></li>`)}</ul>`}
  ${receipt.lost_count > 0 && html`<h3>Tests that are gone</h3><ul class="paths">${Object.entries(receipt.lost).slice(0, 100).map(([name, outcome]) => html`<li key=${name}><code>${plain(name)}</code> <span class="note">${plain(outcome)}</span></li>`)}</ul>`}
  ${receipt.tail && html`<h3>End of the output</h3><${Text} block value=${receipt.tail} limit=${20000} />`}
  ${receipt.inputs && html`<details><summary>${count(receipt.inputs.count, "input")} · <code title=${receipt.inputs.digest}>${plain(receipt.inputs.digest.slice(0, 12))}</code></summary>
    <ul class="paths">${receipt.inputs.files.map((file) => html`<li key=${file.path}><code>${plain(file.path)}</code> <code class="note">${plain(String(file.digest).slice(0, 12))}</code></li>`)}</ul></details>`}
</section>`;

const GateScreen = ({ data, phase, gate, decide }) => {
  const at = links(data.project, data.session);
  const found = useGet(`${at.api}/gate${api.query({ phase, gate })}`, { project: data.project, session: data.session });
  const needs = found.data?.needs || [];
  const act = (is) => { const need = needs.find((each) => actionOf(each, is)); if (need) decide(need, actionOf(need, is)); };
  useKeys([
    { keys: "a", label: "Approve, or the first decision", off: !needs.some((need) => actionOf(need, isFirst)), run: () => act(isFirst) },
    { keys: "r", label: "Reject", off: !needs.some((need) => actionOf(need, isRejection)), run: () => act(isRejection) },
    { keys: "g d", label: "Go to the diff", run: () => go(at.review(phase)) },
  ]);
  return html`<div class="column"><${Loaded} from=${found}>${(shown) => html`
    <h2 class="title">${plain(gate)} ${status(shown.verdict)}</h2>
    <p class="facts"><a href=${at.phase(phase)}>${plain(phase)}</a><span class="note">${plain(shown.kind)}</span>${shown.assurance && html`<span class="note">decisions: ${plain(shown.assurance)}</span>`}</p>
    <p class="prose">${text(shown.reason, 1200)}</p>
    ${shown.way_out && shown.verdict !== "PASS" && html`<p class="note">${text(shown.way_out, 600)}</p>`}
    ${needs.map((need) => html`<${Need} key=${need.id} compact need=${need} onDecide=${decide} />`)}
    ${shown.state.approved_by && html`<p>${shape("approved")} Approved by <strong>${plain(shown.state.approved_by)}</strong>: ${text(shown.state.approval_reason || "", 400)}</p>`}
    ${(shown.votes.length > 0 || shown.quorum) && html`<section><h2>Votes ${shown.quorum && html`<span class="note">${shown.votes.filter((vote) => vote.approve).length} of ${shown.quorum}</span>`}</h2>
      <ul class="rows">${shown.votes.map((vote) => html`<li key=${vote.identity + vote.at} class="line">${status(vote.approve ? "approved" : "rejected")}<strong>${plain(vote.identity)}</strong>${vote.stands_for && html`<span class="note">as ${plain([].concat(vote.stands_for).join(", "))}</span>`}<span class="grow">${text(vote.reason, 300)}</span><${Proof} proof=${vote.proof} />${when(vote.at)}</li>`)}</ul>
      ${shown.voters && html`<p class="note">May vote: ${plain(shown.voters.join(", "))}</p>`}</section>`}
    ${shown.receipt && html`<${Receipt} title="Receipt" receipt=${shown.receipt} stale=${shown.stale} checked=${shown.checked_at} />`}
    ${shown.aside && html`<${Receipt} title="Receipt with the protected files" receipt=${shown.aside} />`}
    <section><h2>History</h2>${shown.history.length ? html`<ol class="rows history">${shown.history.map((each) => html`<li key=${each.version} class="line">
      <span class="version num">${each.version}</span>${each.result && status(each.result)}<span class="grow">${text(each.what, 300)}${each.exit_code != null && html` <span class="note">exit code ${each.exit_code}</span>`}</span><span class="note">${plain(each.by)}</span><${Proof} proof=${each.proof} />${when(each.at)}</li>`)}</ol>` : html`<p class="note">Nothing happened at this gate yet.</p>`}</section>
    ${Object.keys(shown.settings).length > 0 && html`<details><summary>Settings</summary><pre class="text" tabindex="0">${plain(JSON.stringify(shown.settings, null, 2))}</pre></details>`}
  `}</${Loaded}></div>`;
};
