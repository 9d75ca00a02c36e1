// What if: the map, numbers and neighbors after a treatment; all of them were measured with the others.

const UNIT_ENDING = "+unit";
const STOPS = { none: "stored", mean: "mean off", "top-1": "top 1 off", "top-2": "2 off", "top-3": "3 off", whiten: "whitened" };

class WhatIf {
  constructor(data, store, map, showStored) {
    Object.assign(this, { data, store, map, showStored });
    this.slider = byId("treatment");
    this.unit = byId("treatment-unit");
    this.names = data.treatments.map((treatment) => treatment.name).filter((name) => !name.endsWith(UNIT_ENDING));
    this.slider.max = this.names.length - 1;
    this.slider.addEventListener("input", () => this.show());
    this.unit.addEventListener("change", () => this.show());
    for (const name of this.names) {
      const stop = document.createElement("span");
      stop.textContent = STOPS[name];
      byId("treatment-stops").append(stop);
    }
    this.bars = data.treatments[0].cosines.map((_, i) => {
      const bar = shape(byId("treatment-cosines"), "rect", "bar-chosen");
      place(bar, { x: i + 0.06, width: 0.88 });
      return bar;
    });
    this.describe(data.treatments[0]);
  }

  // Equal cosines, so equal neighbors, with and without unit rows.
  get treatment() {
    const name = this.names[this.slider.value];
    const find = (wanted) => this.data.treatments.find((treatment) => treatment.name === wanted);
    return { shown: find(this.unit.checked ? name + UNIT_ENDING : name), base: find(name) };
  }

  show() {
    const { shown, base } = this.treatment;
    const stored = shown === this.data.treatments[0];
    this.map.treated = base.name === "none" ? null : base;
    if (stored) this.showStored();
    else this.map.setView({ ...shown, labels: ["axis 1", "axis 2"] });
    this.describe(shown);
    if (this.store.pinned >= 0) this.store.pin(this.store.pinned);
  }

  // Another plane is one of the stored rows.
  reset() {
    this.slider.value = 0;
    this.unit.checked = false;
    this.map.treated = null;
    this.describe(this.data.treatments[0]);
  }

  describe(treatment) {
    const title = treatment.title + (treatment.name.endsWith(UNIT_ENDING) ? ", rows of norm 1" : "");
    byId("treatment-name").textContent = title;
    byId("treatment-code").textContent = treatment.code;
    byId("treatment-code").hidden = !treatment.code;
    this.slider.setAttribute("aria-valuetext", title);
    const cells = document.querySelectorAll("#treatment-numbers [data-number]");
    cells.forEach((cell, i) => {
      cell.textContent = treatment.exact[i] === null ? "none: no direction differs" : treatment.numbers[i];
    });
    const top = Math.max(...treatment.cosines);
    this.bars.forEach((bar, i) => {
      const height = (40 * treatment.cosines[i]) / top;
      place(bar, { y: 40 - height, height });
    });
  }
}

// Neighbors after a treatment: places on the page; a missing one has the place of the row.
function nearAfter(treatment, row) {
  const found = [];
  for (let i = row * treatment.k; i < (row + 1) * treatment.k; i++) {
    if (treatment.near[i] !== row) found.push({ row: treatment.near[i] });
  }
  return found;
}
