// The table of all or the selected tokens: sorted by a column, one page at a time, walked with keys.
// At first the serious suspects, then the others from the closest to the mean direction.

const DEEPEST_FIRST = "cosine.angle_to_mean";

class TokenTable {
  constructor(data, store, map) {
    Object.assign(this, { data, store, map, page: 0, sorting: null });
    this.size = byId("page-size");
    this.jump = byId("page-jump");
    this.size.addEventListener("change", () => this.go(0));
    this.jump.addEventListener("change", () => this.go(Number(this.jump.value) - 1));
    this.order = firstOrder(data);
    this.columns = tokenColumns(data);
    this.head = document.querySelector("#token-table thead tr");
    this.body = document.querySelector("#token-table tbody");
    this.columns.forEach((column) => this.head.append(this.heading(column)));
    this.back = document.getElementById("page-back");
    this.forward = document.getElementById("page-forward");
    this.back.addEventListener("click", () => this.go(this.page - 1));
    this.forward.addEventListener("click", () => this.go(this.page + 1));
    this.body.addEventListener("keydown", (e) => this.key(e));
    store.on("selection", () => this.refresh());
    store.on("hover", (row) => this.highlight(row));
    this.refresh();
  }

  heading(column) {
    column.cell = make("th", { scope: "col", className: column.number ? "num" : "" });
    column.cell.append(makeButton(column.title, () => this.sort(column)));
    return column.cell;
  }

  sort(column) {
    const up = this.sorting?.column === column ? !this.sorting.up : column.firstUp;
    this.sorting = { column, up };
    for (const other of this.columns) other.cell.removeAttribute("aria-sort");
    column.cell.setAttribute("aria-sort", up ? "ascending" : "descending");
    this.refresh();
  }

  refresh() {
    const { mask } = this.store;
    this.rows = mask ? this.order.filter((i) => mask[i]) : Uint32Array.from(this.order);
    if (this.sorting) {
      const { column, up } = this.sorting;
      const sign = up ? 1 : -1;
      const { key } = column;
      // Equal keys keep their order: typed arrays sort stably.
      this.rows.sort((a, b) => {
        const [p, q] = [key(a), key(b)];
        return p < q ? -sign : p > q ? sign : 0;
      });
    }
    this.page = 0;
    this.show();
  }

  go(page) {
    const last = Math.max(0, Math.ceil(this.rows.length / this.size.value) - 1);
    this.page = Math.max(0, Math.min(last, Math.floor(page) || 0));
    this.show();
  }

  show() {
    const size = Number(this.size.value);
    const from = this.page * size;
    const shown = this.rows.subarray(from, from + size);
    this.body.textContent = "";
    shown.forEach((row, i) => this.body.append(this.line(row, i)));
    const pages = Math.max(1, Math.ceil(this.rows.length / size));
    byId("page-number").textContent = `of ${pages.toLocaleString("en")}`;
    this.jump.value = this.page + 1;
    this.jump.max = pages;
    document.getElementById("browser-count").textContent = selectionText(this.data, this.store);
    document.getElementById("browser-title").textContent = this.store.mask
      ? "Tokens in the selection"
      : "Tokens";
    this.back.disabled = this.page === 0;
    this.forward.disabled = this.page === pages - 1;
  }

  line(row, i) {
    const line = make("tr", { tabIndex: i === 0 ? 0 : -1 });
    line.dataset.row = row;
    for (const column of this.columns) {
      const cell = make("td", { className: column.number ? "num" : "token" });
      cell.append(make("bdi", { textContent: column.text(row) }));
      line.append(cell);
    }
    // Not "mouseenter": rows that scroll past a resting mouse are not pointed at.
    line.addEventListener("mousemove", () => this.store.point(row, "table"));
    line.addEventListener("focus", () => this.store.point(row, "table"));
    line.addEventListener("click", () => {
      this.map.reveal(row);
      this.store.pin(row);
    });
    return line;
  }

  key(event) {
    const lines = [...this.body.children];
    const at = lines.indexOf(event.target.closest("tr"));
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 };
    if (event.key in moves) this.focus(lines, moves[event.key]);
    else if (event.key === "PageDown" || event.key === "PageUp") {
      this.go(this.page + (event.key === "PageDown" ? 1 : -1));
      this.focus([...this.body.children], 0);
    } else if (event.key === "Enter" && at >= 0) lines[at].click();
    else return;
    event.preventDefault();
  }

  focus(lines, to) {
    const line = lines[Math.max(0, Math.min(lines.length - 1, to))];
    for (const other of lines) other.tabIndex = other === line ? 0 : -1;
    line?.focus();
  }

  highlight(row) {
    for (const line of this.body.children) {
      line.classList.toggle("pointed", Number(line.dataset.row) === row);
    }
  }
}

function anglesOf(data) {
  return data.columns.filter((c) => c.key === DEEPEST_FIRST).map((c) => c.values);
}

// From the closest to the mean direction; of several matrices, in any of them.
function firstOrder(data) {
  const order = Uint32Array.from({ length: data.rows }, (_, i) => i);
  // Of several matrices, the smallest angle in any.
  const angles = data.angles ?? anglesOf(data);
  if (angles.length) {
    const smallest = angles[0].map((_, i) => Math.min(...angles.map((values) => values[i])));
    order.sort((a, b) => smallest[a] - smallest[b]);
  }
  const first = new Set(data.first);
  return Uint32Array.from([...data.first, ...order.filter((i) => !first.has(i))]);
}

function tokenColumns(data) {
  const columns = [
    {
      title: "row",
      number: true,
      firstUp: true,
      key: (i) => data.number[i],
      text: (i) => data.number[i].toLocaleString("en"),
    },
  ];
  if (data.hasTokens) {
    columns.push({ title: "token", firstUp: true, key: data.token, text: data.label });
  }
  if (data.count) {
    columns.push({
      title: "count",
      number: true,
      key: (i) => data.count[i],
      text: (i) => formatNumber(data.count[i]),
    });
  }
  if (data.popular) {
    columns.push({
      title: "class",
      key: (i) => (data.popular[i] ? "frequent" : "rare"),
      text: (i) => (data.popular[i] ? "frequent" : "rare"),
    });
  }
  // The counts themselves are there.
  for (const column of data.columns.filter((c) => !(data.count && c.key === "frequency.log_count"))) {
    const format = columnFormat(column.values);
    columns.push({
      title: columnTitle(column),
      number: true,
      key: (i) => column.values[i],
      text: (i) => format(column.values[i]),
    });
  }
  return columns;
}

function selectionText(data, store) {
  const all = data.rows.toLocaleString("en");
  const thinned =
    data.rows < data.total
      ? ` (drawn evenly over frequencies from ${data.total.toLocaleString("en")}; the numbers use all of them)`
      : "";
  if (!store.mask) return `All ${all} tokens${thinned}.`;
  const share = formatNumber((100 * store.count) / data.rows, 2);
  return `${store.count.toLocaleString("en")} of ${all} tokens selected (${share}%)${thinned}.`;
}
