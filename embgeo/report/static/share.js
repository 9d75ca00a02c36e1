// Share the view: a link that opens it again, the map as a picture, the selection as a table.

function readLink() {
  try {
    return JSON.parse(decodeURIComponent(location.hash.split("at=")[1] ?? "null"));
  } catch {
    return null;
  }
}

class Share {
  constructor(data, store, maps) {
    Object.assign(this, { data, store, maps });
    byId("copy-link").addEventListener("click", () => this.copyLink());
    byId("save-picture").addEventListener("click", () => this.savePicture());
    byId("save-drawing").addEventListener("click", () => saveDrawing(document.querySelector(".replaced svg.figure"), "map"));
    byId("save-table").addEventListener("click", () => this.saveTable());
  }

  copyLink() {
    const { store } = this;
    const state = { view: byId("view").value, color: byId("color").value, pin: store.pinned };
    state.find = byId("search").value;
    state.filters = [...store.sources];
    history.replaceState(null, "", `#at=${encodeURIComponent(JSON.stringify(state))}`);
    navigator.clipboard?.writeText(location.href).catch(() => {});
  }

  // Plane and color first: a lasso was drawn in that plane.
  restore(brushes, search) {
    const state = readLink();
    if (!state) return;
    for (const [id, value] of [["view", state.view], ["color", state.color]]) {
      byId(id).value = value;
      byId(id).dispatchEvent(new Event("change"));
    }
    if (state.find) search.seek(state.find);
    for (const [name, source] of state.filters) {
      if (name === "search") search.showOnly();
      else if (name.startsWith("lasso")) {
        const map = this.maps.at(Number(name.slice(5)));
        this.store.filter(name, rowsInside(map, source), source);
      } else brushes.find((b) => name === `brush:${b.column.key}`)?.select(source);
    }
    this.store.pin(state.pin);
  }

  savePicture() {
    this.maps.forEach((map, i) => {
      map.canvas.toBlob((blob) => save(blob, `map${this.maps.length > 1 ? `-${i + 1}` : ""}.png`));
    });
  }

  saveTable() {
    const columns = tokenColumns(this.data);
    for (const { data, view } of this.maps) {
      const of = data.name ? `, ${data.name}` : "";
      // A film shows the last matrix once more.
      if (columns.some(({ title }) => title === `x${of}`)) continue;
      columns.push({ title: `x${of}`, key: (i) => view.x[i] }, { title: `y${of}`, key: (i) => view.y[i] });
    }
    const lines = [columns.map((c) => c.title)];
    for (let i = 0; i < this.data.rows; i++) {
      if (this.store.mask && !this.store.mask[i]) continue;
      lines.push(columns.map((c) => c.key(i)));
    }
    save(new Blob([writeCsv(lines)], { type: "text/csv" }), "tokens.csv");
  }
}

function save(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

function writeCsv(lines) {
  const quote = (cell) => `"${String(cell ?? "").replaceAll('"', '""')}"`;
  return lines.map((cells) => `${cells.map(quote).join(",")}\r\n`).join("");
}

// The button says that its text was copied, or that the browser does not allow it.
async function copyText(button, text) {
  const before = button.textContent;
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  button.textContent = done ? "Copied" : "Not allowed";
  setTimeout(() => (button.textContent = before), 1500);
}
