// The pinned token: its numbers and its nearest tokens in each matrix, which are drawn as lines.

class Card {
  // `shared` are the columns about tokens, the same in all panels.
  constructor(panels, store, shared = []) {
    Object.assign(this, { panels, store, shared, box: byId("card") });
    store.on("pin", (row) => this.show(row));
  }

  show(row) {
    if (row < 0) return this.close();
    const [{ data }] = this.panels;
    this.open(data.label(row), data.token(row));
    if (this.panels.length > 1) return this.compare(row);
    for (const { data: own, map } of this.panels) {
      this.add("p", describe(own, row));
      const states = own.states.filter(({ rows }) => rows.has(row)).map(({ word }) => word);
      if (states.length) this.add("p", `State: ${states.join(", ")}`);
      if (own.listed[row]) this.add("p", `Listed under: ${own.listed[row].join(", ")}`);
      const after = map.treated ? ` (${map.treated.title})` : "";
      const line = this.add("p", `Nearest by cosine${after}: `);
      if (map.treated && !map.treated.near) line.append(map.treated.name.startsWith(UNIT_FIRST) ? own.search.first : own.search.treated);
      else if (!map.treated && !own.nearest.has(row)) this.explainNone(own, line);
      for (const { row: near, cosine } of map.nearestTo(row)) {
        const said = cosine === undefined ? "" : ` ${formatCosine(cosine)}`;
        this.button(own.label(near) + said, () => this.store.pin(near), line);
      }
    }
  }

  // Numbers and nearest tokens in every matrix: one column each.
  compare(row) {
    const [{ data: first }] = this.panels;
    const own = (data) => data.columns.filter((c) => !this.shared.includes(c));
    this.add("p", describe({ ...first, columns: this.shared }, row));
    const box = this.add("div", "", "scroll");
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "The token in each matrix");
    const table = make("table", { className: "data" });
    box.append(table);
    const line = (head, cells, tag = "td") => {
      const tr = table.insertRow();
      tr.append(make("th", { scope: tag === "th" ? "col" : "row", textContent: head }));
      for (const text of cells) {
        const cell = make(tag, { className: "num", textContent: text });
        if (tag === "th") cell.scope = "col";
        tr.append(cell);
      }
      return tr;
    };
    line("", this.panels.map(({ name }) => name), "th");
    for (const column of own(first)) {
      const texts = this.panels.map(({ data }) => {
        const same = data.columns.find((c) => c.stored === column.stored);
        return same ? formatNumber(same.values[row], 3) : "–";
      });
      line(columnTitle(column), texts);
    }
    const near = line("nearest by cosine", this.panels.map(() => ""));
    this.panels.forEach(({ data, map }, i) => {
      const cell = near.cells[i + 1];
      cell.className = "near-list";
      if (!data.nearest.has(row)) this.explainNone(data, cell);
      for (const { row: other, cosine } of map.nearestTo(row)) {
        this.button(`${data.label(other)} ${formatCosine(cosine)}`, () => this.store.pin(other), cell);
      }
    });
  }

  // Why a token has no neighbors, and which tokens have some.
  explainNone({ nearest, total, rows, search }, line) {
    const known = nearest.size.toLocaleString("en");
    line.append(
      `not searched for this token: for all ${total.toLocaleString("en")} it takes ${search.time} of a core. ` +
        `${search.way} `,
    );
    if (!nearest.size) return;
    const mask = Uint8Array.from({ length: rows }, (_, i) => nearest.has(i));
    this.button(`Select the ${known} tokens that have them`, () => this.store.filter("neighbors", mask), line);
  }

  // A token whose row is not on the map.
  showLeftOut(label, number, known) {
    this.store.pin(-1);
    this.open(label, label);
    const parts = [`row ${number.toLocaleString("en")}`];
    parts.push(known ? `${known.state}, left out of all numbers and of the map` : "not on this map");
    if (known?.norm != null) parts.push(`‖w‖ ${formatNumber(known.norm)}`);
    this.add("p", parts.join(" · "));
    const compared = known ? "a row that is left out is not compared" : "listed for tokens on the map";
    this.add("p", `Nearest by cosine: ${compared}`);
  }

  // The focus goes back to what opened the card, unless it is elsewhere by now.
  close() {
    const active = document.activeElement;
    const lost = active === document.body || this.box.contains(active);
    if (lost && !this.box.hidden) {
      const line = `#token-table tr[data-row="${this.opener.dataset.row}"]`; // made anew
      const opener = this.opener.isConnected ? this.opener : document.querySelector(line);
      opener?.focus({ preventScroll: true });
    }
    this.box.hidden = true;
  }

  open(label, token) {
    if (this.box.hidden) {
      const active = document.activeElement;
      this.opener = active.closest("#search-list") ? byId("search") : active;
      this.box.hidden = false;
    }
    this.box.textContent = "";
    this.add("bdi", label, "word");
    this.button("Copy", () => navigator.clipboard?.writeText(token));
    this.button("Close", () => this.store.pin(-1));
  }

  add(tag, text, className = "") {
    const element = make(tag, { textContent: text, className });
    this.box.append(element);
    return element;
  }

  button(text, onClick, parent = this.box) {
    parent.append(makeButton(text, onClick), " ");
  }
}
