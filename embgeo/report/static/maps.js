// Maps of the same tokens: one plane, one coloring and one selection for all of them.

class LinkedMaps {
  constructor(members, shared, store) {
    Object.assign(this, { members, store, armed: false });
    this.panels = members.map((member, i) => {
      const box = document.querySelector(`[data-map="${member.place}"]`);
      const data = mapData(member, shared);
      const map = new Scatter(...["canvas", ".overlay", ".tooltip"].map((s) => box.querySelector(s)), data, store);
      map.place = i;
      const lasso = new Lasso(map);
      new Gestures(map, lasso, () => this.arm(!this.armed));
      return { name: member.name, data, map, lasso, colorings: makeColorings(data) };
    });
  }

  // The film comes last.
  get all() {
    return this.film ? [...this.panels, this.film] : this.panels;
  }

  get maps() {
    return this.all.map((panel) => panel.map);
  }

  addFilm(film) {
    this.film = film;
    film.lasso = new Lasso(film.map);
    new Gestures(film.map, film.lasso, () => this.arm(!this.armed));
  }

  // The colorings of all panels have the same keys: the same numbers of the same tokens.
  setColoring(key) {
    for (const { map, colorings } of this.panels) {
      map.setColoring(colorings.find((c) => c.key === key));
    }
    this.film?.map.setColoring(this.panels.at(-1).colorings.find((c) => c.key === key));
  }

  arm(on) {
    this.armed = on;
    byId("lasso").setAttribute("aria-pressed", String(on));
    for (const { map, lasso } of this.all) {
      lasso.armed = on;
      map.canvas.classList.toggle("armed", on);
    }
  }

  zoom(factor) {
    for (const map of this.maps) map.zoom(factor);
  }

  fit() {
    for (const map of this.maps) map.fit();
  }

  // Search and table center every map on a token.
  reveal(row) {
    for (const map of this.maps) map.reveal(row);
  }

  retint() {
    for (const map of this.maps) map.retint();
  }

  drop() {
    this.arm(false);
    for (const { lasso } of this.all) lasso.drop();
  }
}

// The numbers of a token on a map: those in its matrix, then those of the token itself.
function mapData(member, shared) {
  return { ...member, columns: [...member.columns, ...shared] };
}

// The controls above the maps; `show` shows a plane by its key.
function wireMaps(maps, store, show) {
  const [{ data, colorings }] = maps.panels;
  fillSelect(byId("view"), data.views.map((v) => [v.key, v.title]), show);
  const color = (key) => {
    maps.setColoring(key);
    drawLegend(byId("legend"), colorings.find((c) => c.key === key));
  };
  fillSelect(byId("color"), colorings.map((c) => [c.key, c.title]), color);
  show(data.views[0].key);
  color(colorings[0].key);
  byId("lasso").addEventListener("click", () => maps.arm(!maps.armed));
  byId("zoom-in").addEventListener("click", () => maps.zoom(1.5));
  byId("zoom-out").addEventListener("click", () => maps.zoom(1 / 1.5));
  byId("reset").addEventListener("click", () => maps.fit());
  byId("clear").addEventListener("click", () => store.clear());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    maps.drop();
    store.point(-1, "keys");
    store.clear();
    store.pin(-1);
  });
}
