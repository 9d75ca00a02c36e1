// The board of suspects: show the rows of a reason on the map, copy them as CSV, copy the repair.

class Board {
  constructor(data, store, card, maps) {
    Object.assign(this, { data, store, card });
    const named = new Map();
    for (const line of document.querySelectorAll(".board [data-reason]")) {
      const serious = line.dataset.serious === "true" ? 1 : 0;
      const own = data.suspects.filter(({ reason }) => reason === line.dataset.reason);
      const mask = this.mask(own, serious);
      const [show, copy] = line.querySelectorAll("button");
      show.disabled = !mask.includes(1);
      if (show.disabled) show.textContent = "Not on the map";
      show.addEventListener("click", () => this.show(mask));
      store.on("selection", () => show.setAttribute("aria-pressed", String(store.found === mask)));
      copy.addEventListener("click", () => copyText(copy, this.csv(own, serious)));
      for (const word of line.querySelectorAll(".word")) {
        const row = this.wire(word);
        if (serious && row >= 0) named.set(row, word.textContent);
      }
    }
    const repair = document.querySelector(".repair button");
    repair?.addEventListener("click", () => copyText(repair, repair.previousElementSibling.textContent));
    for (const map of maps) map.named = [...named].slice(0, 6);
  }

  mask(suspects, serious) {
    const rows = new Set(suspects.flatMap((own) => [...own.rows].filter((_, i) => own.serious[i] === serious)));
    return Uint8Array.from(this.data.number, (number) => (rows.has(number) ? 1 : 0));
  }

  show(mask) {
    this.store.mark(this.store.found === mask ? null : mask);
    byId("map").scrollIntoView({ block: "nearest" });
  }

  csv(suspects, serious) {
    const lines = [["reason", "side", "serious", "row", "token", "norm", "measure", "value", "group", "help"]];
    for (const own of suspects) {
      own.rows.forEach((row, i) => {
        if (own.serious[i] !== serious) return;
        const cells = [own.reason, own.side, serious, row, own.tokens?.[i], own.norms?.[i], own.measure];
        lines.push([...cells, own.values?.[i], own.group?.[i], own.help]);
      });
    }
    return writeCsv(lines);
  }

  // A token on the board: its card by a click; the place of its row, or −1.
  wire(word) {
    const number = Number(word.dataset.row);
    const row = this.data.number.indexOf(number);
    const show = () => {
      if (row >= 0) this.store.pin(row);
      else this.card.showLeftOut(word.textContent, number, this.data.leftOut[number]);
      this.card.box.scrollIntoView({ block: "nearest" });
    };
    word.setAttribute("role", "button");
    word.tabIndex = 0;
    word.addEventListener("click", show);
    word.addEventListener("keydown", (event) => {
      if (event.key === "Enter") show();
    });
    return row;
  }
}
