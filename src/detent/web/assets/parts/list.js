// Lists: j and k move through them, and a long one draws only the rows that are seen.
"use strict";

// The chosen row of `length` rows. `open` is called for Enter.
const useChosen = (length, open, { id = "row", start = 0 } = {}) => {
  const [chosen, choose] = useState(start);
  const at = Math.min(chosen, Math.max(0, length - 1));
  const move = (by) => {
    const next = Math.max(0, Math.min(length - 1, at + by));
    choose(next);
    document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: "nearest" });
  };
  useKeys([
    { keys: "j", label: "Next row", run: () => move(1) },
    { keys: "k", label: "Row before", run: () => move(-1) },
    { keys: "down", run: () => move(1) },
    { keys: "up", run: () => move(-1) },
    open && { keys: "enter", label: "Open", off: !length, run: () => open(at) },
  ]);
  return [at, choose];
};

// Rows of one height. `row(index)` draws one; `more(from, to)` is told what is seen.
const Virtual = ({ length, height, row, seen, chosen, label, className = "", role = "list" }) => {
  const box = useRef();
  const [view, set] = useState({ top: 0, tall: 800 });
  useLayoutEffect(() => {
    const measure = () => box.current && set({ top: box.current.scrollTop, tall: box.current.clientHeight || 800 });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (chosen == null || !box.current) return;
    const { scrollTop, clientHeight } = box.current;
    if (chosen * height < scrollTop) box.current.scrollTop = chosen * height;
    else if ((chosen + 1) * height > scrollTop + clientHeight) box.current.scrollTop = (chosen + 1) * height - clientHeight;
  }, [chosen]);
  const from = Math.max(0, Math.floor(view.top / height) - 8);
  const to = Math.min(length, Math.ceil((view.top + view.tall) / height) + 8);
  useEffect(() => { seen?.(from, to); }, [from, to, length]);
  const rows = [];
  for (let index = from; index < to; index++) rows.push(row(index));
  return html`<div class=${`virtual ${className}`} ref=${box} tabindex="0" role=${role} aria-label=${label}
    onScroll=${(event) => set({ top: event.currentTarget.scrollTop, tall: event.currentTarget.clientHeight })}>
    <div class="virtual-all" style=${{ height: `${length * height}px` }}>
      <div class="virtual-rows" style=${{ transform: `translateY(${from * height}px)` }}>${rows}</div>
    </div>
  </div>`;
};
