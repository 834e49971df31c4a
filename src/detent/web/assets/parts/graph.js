// The phase graph, drawn from top to bottom from the places that the server computed.
"use strict";

const ROW = 46, TALL = 34, WIDE = 176, GAP = 14, PAD = 10;
// A larger graph draws only what is seen.
const MANY = 120;

const place = (node) => ({ x: PAD + node.row * (WIDE + GAP), y: PAD + node.column * ROW });
const line = (from, to) => {
  const x1 = from.x + WIDE / 2, y1 = from.y + TALL, x2 = to.x + WIDE / 2, y2 = to.y;
  if (x1 === x2) return `M${x1} ${y1}V${y2}`;
  const bend = Math.min(8, Math.abs(x2 - x1) / 2), side = x2 > x1 ? 1 : -1, middle = y2 - (ROW - TALL) / 2;
  return `M${x1} ${y1}V${middle - bend / 2}Q${x1} ${middle} ${x1 + side * bend} ${middle}H${x2 - side * bend}Q${x2} ${middle} ${x2} ${middle + bend / 2}V${y2}`;
};
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// nodes: [{key, column, row, status, attempts, consensus, needs_you}], edges: [[from, to]]
const Graph = ({ nodes, edges, chosen, onOpen, label = "Phases" }) => {
  const box = useRef();
  const [view, set] = useState({ top: 0, tall: 1200 });
  const many = nodes.length > MANY;
  useLayoutEffect(() => {
    if (!box.current) return;
    const at = nodes.find((node) => node.key === chosen);
    if (at && many) box.current.scrollTop = Math.max(0, place(at).y - box.current.clientHeight / 3);
    set({ top: box.current.scrollTop, tall: box.current.clientHeight });
  }, [many, chosen]);
  const places = new Map(nodes.map((node) => [node.key, place(node)]));
  const states = new Map(nodes.map((node) => [node.key, node.status]));
  const wide = PAD * 2 - GAP + (1 + Math.max(0, ...nodes.map((node) => node.row))) * (WIDE + GAP);
  const tall = PAD * 2 + Math.max(0, ...nodes.map((node) => node.column)) * ROW + TALL;
  const low = view.top - 200, high = view.top + view.tall + 200;
  const seen = (from, to) => !many || (to >= low && from <= high);
  const open = (key) => (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    onOpen?.(key);
  };
  return html`<div class="graph" ref=${box} tabindex=${onOpen ? undefined : 0} onScroll=${many && ((event) => set({ top: event.currentTarget.scrollTop, tall: event.currentTarget.clientHeight }))}>
    <svg width=${wide} height=${tall} viewBox=${`0 0 ${wide} ${tall}`} role="group" aria-label=${label}>
      ${edges.map(([from, to]) => {
        const a = places.get(from), b = places.get(to);
        if (!a || !b || !seen(a.y, b.y + TALL)) return null;
        return html`<path key=${`${from}>${to}`} class=${classes("edge", states.get(from) === "completed" && "passed")} d=${line(a, b)} />`;
      })}
      ${nodes.map((node) => {
        const { x, y } = places.get(node.key);
        if (!seen(y, y + TALL)) return null;
        const state = node.needs_you ? "needs_you" : node.status;
        const [tone, drawn] = look(state);
        const name = `${node.key}: ${words(state)}${node.attempts > 1 ? `, ${node.attempts} attempts` : ""}${node.consensus ? ", consensus" : ""}`;
        return html`<g key=${node.key} class=${classes("node", `tone-${tone}`, node.key === chosen && "chosen")} transform=${`translate(${x} ${y})`}
          tabindex=${onOpen ? 0 : undefined} role=${onOpen ? "link" : "img"} aria-label=${plain(name)} onClick=${onOpen && open(node.key)} onKeyDown=${onOpen && open(node.key)} data-phase=${node.key}>
          <title>${plain(name)}</title>
          ${node.consensus && html`<rect class="box behind" x="3" y="3" width=${WIDE} height=${TALL} rx="7" />`}
          <rect class="box" width=${WIDE} height=${TALL} rx="7" />
          <g class="shape" transform=${`translate(9 ${(TALL - 15) / 2}) scale(.94)`}>${SHAPES[drawn]()}</g>
          <text x="31" y=${TALL / 2 + 4}>${cut(plain(node.key), node.attempts > 1 ? 18 : 21)}</text>
          ${node.attempts > 1 && html`<text class="tries" x=${WIDE - 9} y=${TALL / 2 + 4} text-anchor="end">×${node.attempts}</text>`}
        </g>`;
      })}
    </svg>
  </div>`;
};
