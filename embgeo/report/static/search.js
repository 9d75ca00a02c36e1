// Search for part of a token: how many, the first few as a list, all of them highlighted on the map.

const MOST_MATCHES = 8;

class Search {
  constructor(data, store, map) {
    Object.assign(this, { data, store, map });
    this.input = document.getElementById("search");
    this.list = document.getElementById("search-list");
    this.output = document.getElementById("search-count");
    this.only = document.getElementById("search-only");
    this.only.addEventListener("click", () => this.showOnly());
    this.lower = null;
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") return this.list.querySelector("button")?.click();
      if (event.key !== "ArrowDown" || this.list.hidden) return;
      event.preventDefault();
      this.list.querySelector("button").focus();
    });
    this.list.addEventListener("keydown", (event) => this.walk(event));
    // The list covers part of the map: it closes when it loses the focus.
    document.addEventListener("pointerdown", (event) => {
      if (!this.list.contains(event.target) && event.target !== this.input) this.list.hidden = true;
    });
    this.input.addEventListener("focus", () => {
      this.list.hidden = !this.list.children.length;
    });
    store.on("selection", () => {
      if (store.found !== this.mask && this.sought) this.reset();
      this.only.setAttribute("aria-pressed", String(store.filters.has("search")));
    });
  }

  seek(text) {
    this.input.value = text;
    this.find();
    this.list.hidden = true;
  }

  find() {
    const sought = this.input.value.toLowerCase();
    this.sought = sought;
    this.store.filter("search", null);
    if (sought === "") {
      this.reset();
      this.store.mark(null);
      return;
    }
    const { rows, token } = this.data;
    this.lower ??= Array.from({ length: rows }, (_, i) => token(i).toLowerCase());
    const mask = new Uint8Array(rows);
    const found = [];
    let count = 0;
    for (let i = 0; i < rows; i++) {
      if (!this.lower[i].includes(sought)) continue;
      mask[i] = 1;
      count++;
      found.push(i);
    }
    // The whole token first, then the shortest.
    found.sort((a, b) => this.lower[a].length - this.lower[b].length || a - b);
    this.output.textContent = `${count.toLocaleString("en")} found`;
    this.fill(found.slice(0, MOST_MATCHES));
    this.only.hidden = count === 0;
    this.mask = mask;
    this.store.mark(mask);
  }

  // What is found becomes the selection, or stops to be it.
  showOnly() {
    const on = !this.store.filters.has("search");
    this.store.filter("search", on ? this.store.found : null, on ? this.sought : null);
  }

  fill(rows) {
    this.list.textContent = "";
    for (const row of rows) {
      const item = make("li");
      const button = makeButton("", () => {
        this.map.reveal(row);
        this.store.point(row, "search");
        this.store.pin(row);
        this.list.hidden = true;
      });
      button.append(make("bdi", { textContent: this.data.label(row) }));
      button.addEventListener("focus", () => this.store.point(row, "search"));
      button.addEventListener("mouseenter", () => this.store.point(row, "search"));
      item.append(button);
      this.list.append(item);
    }
    this.list.hidden = rows.length === 0;
  }

  walk(event) {
    const buttons = [...this.list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    if (event.key === "ArrowDown") buttons[Math.min(at + 1, buttons.length - 1)].focus();
    else if (event.key === "ArrowUp") (buttons[at - 1] ?? this.input).focus();
    else return;
    event.preventDefault();
  }

  reset() {
    this.sought = "";
    this.input.value = "";
    this.output.textContent = "";
    this.list.textContent = "";
    this.list.hidden = true;
    this.only.hidden = true;
  }
}
