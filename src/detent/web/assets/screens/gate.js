// A gate: its verdict, the receipt behind it, its history, and who approved with which proof.
const Proof = ({ proof }) => (proof ? html`<span class="chip" title=${plain(proof.statement || "")}>${plain([proof.assurance, proof.method, proof.identity].filter(Boolean).join(" · "))}${proof.key ? html` <code>${plain(proof.key.slice(0, 24))}</code>` : ""}</span>` : null);

const Receipt = ({ receipt, title, stale, checked }) => html`<section class="receipt" aria-label=${title}>
	<h2>${title} ${status(receipt.result)}</h2>
	${pairs([
		["Command", receipt.command && html`<code>${text(receipt.command, 400)}</code>`],
		["Exit code", String(receipt.exit_code ?? "–")],
		["Took", receipt.duration_s != null && duration(receipt.duration_s)],
		["Checked", checked && when(checked)],
		["By", plain([receipt.by, receipt.account && `account ${receipt.account}`, receipt.host].filter(Boolean).join(", "))],
		["Tests", receipt.tests && (Object.entries(receipt.tests).filter(([, value]) => value > 0).map(([name, value]) => `${value} ${words(name)}`).join(", ") || "none")],
		["Coverage", receipt.coverage != null && `${receipt.coverage} %`],
		["Coverage of changed lines", receipt.changed_coverage != null && `${receipt.changed_coverage} %`],
		["Reviewed by", receipt.review && plain([receipt.review.reviewer.client, receipt.review.reviewer.role].filter(Boolean).join(" as "))],
		["Program", receipt.program && html`<code>${plain(receipt.program.path || receipt.program.name)}</code>`],
	])}
	${stale && failure("stale", html`<strong>Stale</strong>: ${count(stale.count, "input")} changed since. ${paths(stale.files)}`)}
	${receipt.error && html`<p>${text(receipt.error, 800)}</p>`}
	${receipt.failing.length > 0 && html`<h3>Failing tests</h3>${paths(receipt.failing, "failed", 100)}`}
	${receipt.lost_count > 0 && html`<h3>Tests that are gone</h3><ul class="paths">${Object.entries(receipt.lost).slice(0, 100).map(([name, outcome]) => html`<li key=${name}><code>${plain(name)}</code> <span class="note">${plain(outcome)}</span></li>`)}</ul>`}
	${receipt.skipped.length > 0 && html`<h3>Skipped tests</h3>${paths(receipt.skipped, "", 100)}`}
	${receipt.new.length > 0 && html`<h3>New tests</h3>${paths(receipt.new, "", 100)}`}
	${receipt.finding_count > 0 && html`<h3>Findings</h3>${paths(receipt.findings, "failed", 100)}`}
	${receipt.review && receipt.review.text && html`<h3>Review</h3><${Text} block value=${receipt.review.text} limit=${4000} />`}
	${receipt.tail && html`<h3>End of the output</h3><${Text} block value=${receipt.tail} limit=${20000} />`}
	${receipt.inputs && html`<details><summary>${count(receipt.inputs.count, "input")} · <code title=${receipt.inputs.digest}>${plain(receipt.inputs.digest.slice(0, 12))}</code></summary>
		<ul class="paths">${receipt.inputs.files.map((file) => html`<li key=${file.path}><code>${plain(file.path)}</code> <code class="note">${plain(String(file.digest).slice(0, 12))}</code></li>`)}</ul></details>`}
</section>`;

const GateScreen = ({ data, phase, gate, decide }) => {
	const at = links(data.project, data.session);
	const found = useLive(data, `/gate${api.query({ phase, gate })}`);
	const needs = found.data?.needs || [];
	const act = (is) => { const need = needs.find((each) => actionOf(each, is)); if (need) decide(need, actionOf(need, is)); };
	useKeys([
		["a", () => act(isFirst), "Approve, or the first decision", !needs.some((need) => actionOf(need, isFirst))],
		["r", () => act(isRejection), "Reject", !needs.some((need) => actionOf(need, isRejection))],
		["g d", () => go(at.review(phase)), "Go to the diff"],
	]);
	return html`<div class="column">${loaded(found, (shown) => html`
		<h2 class="title">${plain(gate)} ${status(shown.verdict)}</h2>
		${facts(html`<a href=${at.phase(phase)}>${plain(phase)}</a>`, plain(shown.kind), shown.assurance && `decisions: ${plain(shown.assurance)}`)}
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
	`)}</div>`;
};
