// Several maps of the same tokens: one plane, one coloring and one selection for all of them.

class LinkedMaps {
  constructor(members, shared, boxes, store) {
    Object.assign(this, { members, boxes, store, armed: false });
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

  // The map of the film comes last.
  get maps() {
    return [...this.panels, ...(this.film ? [this.film] : [])].map((panel) => panel.map);
  }

  addFilm(film) {
    this.film = film;
    film.lasso = new Lasso(film.map);
    new Gestures(film.map, film.lasso, () => this.arm(!this.armed));
  }

  setView(key, sameScale) {
    const together = this.boxes[key].box;
    for (const { data, map } of this.panels) {
      const view = data.views.find((v) => v.key === key);
      map.setView(sameScale ? { ...view, box: together } : view);
    }
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
    for (const { map, lasso } of [...this.panels, ...(this.film ? [this.film] : [])]) {
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
    for (const { lasso } of this.panels) lasso.drop();
    this.film?.lasso.drop();
  }
}
