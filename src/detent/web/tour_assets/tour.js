// The panel of the tour. The terminal shows the same step, and either goes on.
(() => {
	const LOOK_MS = 400;
	const place = document.body.appendChild(document.createElement("div"));
	let went = "";

	const Panel = ({ step }) => html`<aside class="tour" aria-label="Tour">
		<h2>Tour, step ${step.number} of ${step.of}</h2>
		<div aria-live="polite">${step.text.split("\n\n").map((text) => (text.startsWith("    ") ? html`<pre class="text" tabindex="0">${text.replace(/^ {4}/gm, "")}</pre>` : html`<p>${text}</p>`))}</div>
		${step.command && html`<pre class="text" tabindex="0">${step.command}</pre>`}
		${step.is_running
			? html`<p class="note">${step.command ? "It is running in your terminal. If it asks a question, answer it there." : "The tour has ended."}</p>`
			: html`<button class="primary" onClick=${() => api.post("/api/tour", { number: step.number }).then(look).catch(() => {})}>${step.command ? "Run it" : "End the tour"}</button>`}
	</aside>`;

	async function look() {
		const { step, screen } = await api.get("/api/tour");
		if (step) render(html`<${Panel} step=${step} />`, place);
		if (screen && screen !== went) go((went = screen));
	}

	async function follow() {
		for (let lost = 0; lost < 5; ) {
			try {
				await look();
				lost = 0;
			} catch {
				lost += 1;
			}
			await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
		}
		render(html`<aside class="tour" aria-label="Tour"><p>The tour has ended, and its project is removed.</p></aside>`, place);
	}
	follow();
})();
