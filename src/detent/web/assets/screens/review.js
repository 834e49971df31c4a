// Review before approving: the diff since the phase began, or between two checkpoints, and the decision about it.
const Counts = ({ file }) => html`<span class="num">${file.binary ? "binary" : html`<ins>+${file.added ?? "?"}</ins> <del>−${file.removed ?? "?"}</del>`}</span>`;
const KIND = { "-": "removed", "+": "added", " ": "same" };

// One file, read when it is opened: a phase may change thousands.
const File = ({ base, from, until, file, open, onToggle, split, comments, onComment, id, chosen }) => {
	const found = useGet(open && !file.binary ? `${base}/diff${api.query({ from, to: until, path: file.path })}` : null);
	const body = () => {
		if (file.binary) return html`<p class="note">A binary file: ${size(file.size_before ?? 0)} before, ${size(file.size_after ?? 0)} after.</p>`;
		return html`${loaded(found, (data) => {
			if (data.binary) return html`<p class="note">A binary file.</p>`;
			if (data.large && !data.hunks.length) return html`<p class="note">The file is too large to show: ${size(file.size_after ?? file.size_before ?? 0)}. ${command(`git diff -- ${file.path}`)}</p>`;
			const hunks = data.hunks.map((hunk) => ({
				header: `@@ −${hunk.old_start},${hunk.old_count} +${hunk.new_start},${hunk.new_count} @@`,
				lines: hunk.lines.map((line) => ({ ...line, kind: KIND[line.op] })),
			}));
			return html`${data.note && html`<p class="note">${plain(data.note)}</p>`}<${Diff} file=${{ path: file.path, hunks, truncated: data.truncated }} split=${split} comments=${comments} onComment=${onComment} />`;
		})}`;
	};
	return html`<section class=${classes("file", chosen && "chosen")} id=${id} aria-label=${plain(file.path)}>
		<h3><button class="file-head" aria-expanded=${open} onClick=${onToggle}><span class="turn" aria-hidden="true">${open ? "▾" : "▸"}</span>${shape(file.status)}<code class="grow">${plain(file.path)}</code><span class="note">${file.status}</span><${Counts} file=${file} /></button></h3>
		${open && body()}
	</section>`;
};

// The files of a diff. `comments` is path:line -> text; without `onComment` it is only read.
const Files = ({ base, from, until, files, leftOut, comments = {}, onComment }) => {
	const [split, setSplit] = useState(innerWidth >= 1000);
	const [open, setOpen] = useState(() => new Set(files.filter((file) => !file.large).slice(0, 12).map((file) => file.path)));
	const toggle = (path) => setOpen((old) => { const next = new Set(old); if (!next.delete(path)) next.add(path); return next; });
	const [chosen] = useChosen(files.length, (index) => toggle(files[index].path), { id: "file" });
	useKeys([
		["v", () => setSplit(!split), "Side by side, or inline"],
		["e", () => setOpen(open.size ? new Set() : new Set(files.slice(0, 50).map((file) => file.path))), "Open or close all files"],
	]);
	const added = files.reduce((sum, file) => sum + (file.added || 0), 0), removed = files.reduce((sum, file) => sum + (file.removed || 0), 0);
	return html`<div class="files">
		<div class="diff-bar"><strong>${count(files.length + leftOut, "file")}</strong> <span class="num"><ins>+${added}</ins> <del>−${removed}</del></span>
			<span class="switch" role="group" aria-label="How the diff is shown"><button class="small" aria-pressed=${split} onClick=${() => setSplit(true)}>Side by side</button><button class="small" aria-pressed=${!split} onClick=${() => setSplit(false)}>Inline</button></span></div>
		${files.map((file, index) => html`<${File} key=${file.path} id=${`file-${index}`} base=${base} from=${from} until=${until} file=${file} open=${open.has(file.path)} onToggle=${() => toggle(file.path)} split=${split} comments=${comments} onComment=${onComment} chosen=${index === chosen} />`)}
		${leftOut > 0 && html`<p class="note">${count(leftOut, "more file")} changed. ${command("git diff --stat")}</p>`}
	</div>`;
};

const asReason = (comments) => Object.entries(comments).filter(([, text]) => text.trim()).map(([at, text]) => `${at}: ${text.trim()}`).join("\n");

const ReviewScreen = ({ data, phase }) => {
	const at = links(data.project, data.session);
	// What was shown stays shown while a person reads it; a decision about it is refused if the files changed.
	const now = useLive(data, `/review${api.query({ phase })}`);
	const [pinned, pin] = useState(null);
	useEffect(() => { if (now.data && !pinned) pin(now.data); }, [now.data]);
	const shown = pinned || now.data;
	const again = () => { pin(null); now.reload(); };
	const [comments, setComments] = useState({});
	const [dialog, decide] = useDecide(again);
	const onComment = (place, text) => setComments((old) => { const next = { ...old, [place]: text }; if (!text) delete next[place]; return next; });
	const changed = shown && shown.tree !== now.data.tree;
	const need = shown?.needs.find((each) => each.actions.length && each.is_yours);
	const approve = actionOf(need, isFirst);
	const reject = actionOf(need, isRejection);
	const said = asReason(comments);
	const doReject = (text) => decide(need, text ? { ...reject, label: "Ask for changes" } : reject, { given: shown, reason: said });
	useKeys([
		["a", () => decide(need, approve, { given: shown }), "Approve", !approve],
		["r", () => doReject(said), "Reject", !reject],
	]);
	return html`<div class="review">${loaded(now, () => shown && html`
		<div class="review-head">
			<div class="grow"><h2 class="title">Changes of ${plain(phase)}</h2>
				<p class="facts"><span class="note">attempt ${shown.attempt}</span>${shown.since && html`<span class="note">${plain(`${shown.since} – ${shown.until}`)}</span>`}<span class="note">tree <code title=${shown.tree}>${plain(String(shown.tree).slice(0, 12))}</code></span>
					${shown.gates.map((gate) => html`<a key=${gate.gate} class="quiet-link" href=${at.gate(phase, gate.gate)}>${status(gate.verdict, `${plain(gate.gate)} ${gate.verdict}`)}</a>`)}</p></div>
			<div class="verdict">
				${approve && html`<button class="primary" onClick=${() => decide(need, approve, { given: shown })}>Approve <kbd>a</kbd></button>`}
				${reject && html`<button onClick=${() => doReject(true)} disabled=${!said} title=${said ? "" : "Comment on a line first"}>Ask for changes${said && ` (${count(Object.keys(comments).length, "comment")})`}</button>`}
				${reject && html`<button class="danger" onClick=${() => doReject(said)}>Reject <kbd>r</kbd></button>`}
			</div>
		</div>
		${changed && html`<div class="fault" role="alert"><strong>The files changed after you opened this.</strong> ${paths(differing(shown, now.data))} <button onClick=${again}>Show the files as they are now</button></div>`}
		${shown.summary && html`<details class="summary" open><summary>What the agent says</summary><p class="prose">${text(shown.summary, 3000)}</p></details>`}
		${shown.notice && html`<p class="note">${text(shown.notice, 1000)}</p>`}
		${shown.files.length > 0 && html`<${Files} key=${shown.tree} base=${at.api} from=${shown.since} until=${shown.until} files=${shown.files} leftOut=${shown.left_out} comments=${comments} onComment=${reject && onComment} />`}
	`)}${dialog}</div>`;
};

// Which files differ between two readings, as far as their counts tell.
const differing = (before, after) => {
	const [was, is] = [before, after].map(({ files }) => files.map((file) => JSON.stringify(file)));
	return [...new Set([...was.filter((each) => !is.includes(each)), ...is.filter((each) => !was.includes(each))].map((each) => JSON.parse(each).path))];
};

// Two checkpoints, or a checkpoint and now.
const DiffScreen = ({ data, from, until }) => {
	const at = links(data.project, data.session);
	const found = useGet(`${at.api}/diff${api.query({ from, to: until })}`);
	return html`<div class="review"><h2 class="title">${plain(from)} → ${plain(until)}</h2>${loaded(found, (shown) => (shown.files.length
		? html`<${Files} base=${at.api} from=${from} until=${until} files=${shown.files} leftOut=${shown.left_out} />`
		: html`<p class="note">No file differs.</p>`))}</div>`;
};
