// The pinned token: its numbers and its nearest tokens in each matrix, which are drawn as lines.

class Card {
  constructor(panels, store) {
    Object.assign(this, { panels, store, box: byId("card") });
    store.on("pin", (row) => this.show(row));
  }

  show(row) {
    this.box.hidden = row < 0;
    if (row < 0) return;
    const [{ data }] = this.panels;
    this.open(data.label(row), data.token(row));
    for (const { name, data: own, map } of this.panels) {
      this.add("p", (name ? `${name}: ` : "") + describe(own, row));
      const states = own.states.filter(({ rows }) => rows.has(row)).map(({ word }) => word);
      if (states.length) this.add("p", `State: ${states.join(", ")}`);
      if (own.listed[row]) this.add("p", `Listed under: ${own.listed[row].join(", ")}`);
      const line = this.add("p", "Nearest by cosine: ");
      if (!own.nearest.has(row)) line.append("not searched for this token");
      for (const { row: near, cosine } of map.nearestTo(row)) {
        this.button(`${own.label(near)} ${formatNumber(cosine, 2)}`, () => this.store.pin(near), line);
      }
    }
  }

  // A token whose row is not on the map.
  showLeftOut(label, number, known) {
    this.store.pin(-1);
    this.box.hidden = false;
    this.open(label, label);
    const parts = [`row ${number.toLocaleString("en")}`];
    parts.push(known ? `${known.state}, left out of all numbers and of the map` : "not on this map");
    if (known?.count != null) parts.push(`count ${formatNumber(known.count)}`);
    if (known?.norm != null) parts.push(`‖w‖ ${formatNumber(known.norm)}`);
    this.add("p", parts.join(" · "));
    const compared = known ? "a row that is left out is not compared" : "listed for tokens on the map";
    this.add("p", `Nearest by cosine: ${compared}`);
  }

  open(label, token) {
    this.box.textContent = "";
    this.add("bdi", label, "word");
    this.button("Copy", () => navigator.clipboard?.writeText(token));
    this.button("Close", () => this.store.pin(-1));
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

// The tokens that the verdict names: labelled on the map, and their cards by a click on their names.
function wireBlamed(data, card, maps) {
  const rows = [];
  for (const word of document.querySelectorAll(".blame .word")) {
    const number = Number(word.dataset.row);
    const row = data.number.indexOf(number);
    if (row >= 0) rows.push(row);
    const name = word.textContent.replace(/ \(row [\d,]+\)$/, "");
    const show = () => {
      if (row >= 0) card.store.pin(row);
      else card.showLeftOut(name, number, data.leftOut[number]);
      card.box.scrollIntoView({ block: "nearest" });
    };
    word.setAttribute("role", "button");
    word.tabIndex = 0;
    word.addEventListener("click", show);
    word.addEventListener("keydown", (event) => {
      if (event.key === "Enter") show();
    });
  }
  for (const map of maps) map.named = rows.map((row) => [row, data.label(row)]);
}
