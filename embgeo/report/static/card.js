// The pinned token: its numbers and its nearest tokens in each matrix, which are drawn as lines.

class Card {
  constructor(panels, store) {
    Object.assign(this, { panels, store, box: byId("card") });
    store.on("pin", (row) => this.show(row));
  }

  show(row) {
    this.box.hidden = row < 0;
    this.box.textContent = "";
    if (row < 0) return;
    const [{ data }] = this.panels;
    this.add("bdi", data.label(row), "word");
    this.button("Copy", () => navigator.clipboard?.writeText(data.token(row)));
    this.button("Close", () => this.store.pin(-1));
    for (const { name, data: own, map } of this.panels) {
      this.add("p", (name ? `${name}: ` : "") + describe(own, row));
      if (own.listed[row]) this.add("p", `Listed under: ${own.listed[row].join(", ")}`);
      const known = own.nearest.has(row);
      const line = this.add("p", known ? "Nearest by cosine: " : "Near in this plane: ");
      for (const { row: near, cosine } of map.nearestTo(row)) {
        const text = known ? `${own.label(near)} ${formatNumber(cosine, 2)}` : own.label(near);
        this.button(text, () => this.store.pin(near), line);
      }
    }
  }

  add(tag, text, className = "") {
    const element = document.createElement(tag);
    element.textContent = text;
    element.className = className;
    this.box.append(element);
    return element;
  }

  button(text, onClick, parent = this.box) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", onClick);
    parent.append(button, " ");
  }
}

// The tokens that the verdict names: labelled on the map, and pinned by a click on their names.
function wireBlamed(data, store, maps) {
  const rows = [];
  for (const word of document.querySelectorAll(".blame .word")) {
    let row = 0;
    while (row < data.rows && data.label(row) !== word.textContent) row++;
    if (row === data.rows) continue;
    rows.push(row);
    word.setAttribute("role", "button");
    word.tabIndex = 0;
    word.addEventListener("click", () => store.pin(row));
    word.addEventListener("keydown", (event) => {
      if (event.key === "Enter") store.pin(row);
    });
  }
  for (const map of maps) map.named = rows.map((row) => [row, data.label(row)]);
}
