// A diff of one file: side by side or inline, with a comment on any line.
"use strict";

// A line that is longer is cut; a file with more rows shows the rest on request.
const LONGEST_LINE = 2000;
const FIRST_ROWS = 600;

const shownLine = (line) => plain(line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}… (${line.length.toLocaleString("en")} characters)` : line);

// Rows with both sides: a run of removed lines stands beside the run of added lines that follows it.
const sideBySide = (lines) => {
  const rows = [];
  for (let index = 0; index < lines.length; ) {
    if (lines[index].kind === "same") {
      rows.push([lines[index], lines[index]]);
      index++;
      continue;
    }
    const gone = [], come = [];
    while (index < lines.length && lines[index].kind === "removed") gone.push(lines[index++]);
    while (index < lines.length && lines[index].kind === "added") come.push(lines[index++]);
    for (let at = 0; at < Math.max(gone.length, come.length); at++) rows.push([gone[at] || null, come[at] || null]);
  }
  return rows;
};

const Comment = ({ at, comments, onComment }) => {
  const [open, setOpen] = useState(false);
  const said = comments?.[at];
  if (!onComment && !said) return null;
  if (!open && !said) return html`<button class="comment-add" aria-label=${`Comment on line ${at.split(":").pop()}`} onClick=${() => setOpen(true)}>+</button>`;
  return html`<div class="comment">
    <textarea rows="2" aria-label=${`Comment on line ${at.split(":").pop()}`} placeholder="What should change here?" value=${said || ""}
      ref=${(box) => open && box && !said && box.focus()} onInput=${(event) => onComment(at, event.target.value)}></textarea>
    <button class="link" onClick=${() => { setOpen(false); onComment(at, ""); }}>Remove</button>
  </div>`;
};

const Cell = ({ line, side }) => {
  if (!line) return html`<td class="number"></td><td class="code none"></td>`;
  const kind = line.kind === "same" ? "" : line.kind;
  return html`<td class=${classes("number", kind)}>${side === "old" ? line.old : line.new}</td>
    <td class=${classes("code", kind)}><span class="sign" aria-hidden="true">${line.kind === "removed" ? "−" : line.kind === "added" ? "+" : " "}</span>${shownLine(line.text)}</td>`;
};

// file: {path, hunks: [{header, lines: [{kind, old, new, text}]}], truncated}
const Diff = ({ file, split, comments, onComment }) => {
  const [most, setMost] = useState(FIRST_ROWS);
  const rows = useMemo(
    () => file.hunks.flatMap((hunk) => [{ header: hunk.header }, ...(split ? sideBySide(hunk.lines) : hunk.lines.map((line) => [line]))]),
    [file, split],
  );
  const wide = (split ? 4 : 3) + (onComment ? 1 : 0);
  const at = (line) => `${file.path}:${line.new || line.old}`;
  return html`<div class=${classes("diff", split && "split")} tabindex="0" role="region" aria-label=${`Changes of ${plain(file.path)}`}>
    <table>
      <colgroup>${split ? html`<col class="thin" /><col /><col class="thin" /><col />` : html`<col class="thin" /><col class="thin" /><col />`}${onComment && html`<col class="narrow" />`}</colgroup>
      <tbody>
        ${rows.slice(0, most).map((row) => {
          if (row.header !== undefined) return html`<tr class="hunk"><td colspan=${wide}>${plain(row.header)}</td></tr>`;
          const line = row[1] || row[0];
          const note = line && line.kind !== "same" ? at(line) : null;
          return html`<tr>
              ${split
                ? html`<${Cell} line=${row[0]} side="old" /><${Cell} line=${row[1]} side="new" />`
                : html`<td class=${classes("number", line.kind !== "same" && line.kind)}>${line.old || ""}</td><${Cell} line=${line} side="new" />`}
              ${onComment && html`<td class="comment-cell">${note && !comments[note] && html`<${Comment} at=${note} comments=${comments} onComment=${onComment} />`}</td>`}
            </tr>
            ${note && comments?.[note] !== undefined && html`<tr class="comment-row"><td colspan=${wide}><${Comment} at=${note} comments=${comments} onComment=${onComment} /></td></tr>`}`;
        })}
      </tbody>
    </table>
    ${rows.length > most && html`<button class="more" onClick=${() => setMost(rows.length)}>Show ${count(rows.length - most, "more line")}</button>`}
    ${file.truncated && html`<p class="note">The rest is too large to show here: <code>git diff -- ${plain(file.path)}</code></p>`}
  </div>`;
};
