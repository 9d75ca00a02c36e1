// What if: the map, numbers and neighbors after a cure; all of them were measured with the others.

const UNIT_ENDING = "+unit";

class WhatIf {
  constructor(data, store, map, showStored) {
    Object.assign(this, { data, store, map, showStored });
    this.slider = byId("cure");
    this.unit = byId("cure-unit");
    this.names = data.cures.map((cure) => cure.name).filter((name) => !name.endsWith(UNIT_ENDING));
    this.slider.max = this.names.length - 1;
    this.slider.addEventListener("input", () => this.show());
    this.unit.addEventListener("change", () => this.show());
    this.bars = data.cures[0].cosines.map((_, i) => {
      const bar = shape(byId("cure-cosines"), "rect", "bar-chosen");
      place(bar, { x: i + 0.06, width: 0.88 });
      return bar;
    });
    this.describe(data.cures[0]);
  }

  // Equal cosines, so equal neighbors, with and without unit rows.
  get cure() {
    const name = this.names[this.slider.value];
    const find = (wanted) => this.data.cures.find((cure) => cure.name === wanted);
    return { shown: find(this.unit.checked ? name + UNIT_ENDING : name), base: find(name) };
  }

  show() {
    const { shown, base } = this.cure;
    const stored = shown === this.data.cures[0];
    this.map.cured = base.name === "none" ? null : base;
    if (stored) this.showStored();
    else this.map.setView({ ...shown, labels: ["axis 1", "axis 2"], ring: null });
    this.describe(shown);
    if (this.store.pinned >= 0) this.store.pin(this.store.pinned);
  }

  // Another plane is one of the stored rows.
  reset() {
    this.slider.value = 0;
    this.unit.checked = false;
    this.map.cured = null;
    this.describe(this.data.cures[0]);
  }

  describe(cure) {
    const title = cure.title + (cure.name.endsWith(UNIT_ENDING) ? ", rows of norm 1" : "");
    byId("cure-name").textContent = title;
    this.slider.setAttribute("aria-valuetext", title);
    const cells = document.querySelectorAll("#cure-numbers [data-number]");
    cells.forEach((cell, i) => {
      cell.textContent = cure.numbers[i];
      cell.title = cure.exact[i] === null ? "all directions have the same variance: no preferred eigenvectors" : "";
    });
    const top = Math.max(...cure.cosines);
    this.bars.forEach((bar, i) => {
      const height = (40 * cure.cosines[i]) / top;
      place(bar, { y: 40 - height, height });
    });
  }
}

// Neighbors after a cure: places on the page; a missing one has the place of the row.
function nearAfter(cure, row) {
  const found = [];
  for (let i = row * cure.k; i < (row + 1) * cure.k; i++) {
    if (cure.near[i] !== row) found.push({ row: cure.near[i] });
  }
  return found;
}
