// What if: the map, numbers and neighbors after a treatment.

const UNIT_FIRST = "unit+";
const UNIT_AFTER = "+unit";
const STOPS = { none: "stored", mean: "mean off", standardize: "scaled", "top-1": "1 off", whiten: "whitened" };
const APPROXIMATE = "With rows of norm 1, places are approximate: in the plane of the top directions of the rows as stored.";

class WhatIf {
  constructor(data, store, map, showStored) {
    Object.assign(this, { data, store, map, showStored });
    this.slider = byId("treatment");
    this.unit = byId("treatment-unit");
    this.known = new Map(data.treated.list.map((treatment) => [treatment.name, treatment]));
    this.names = [...this.known.keys()].filter((name) => !name.includes("unit"));
    this.slider.max = this.names.length - 1;
    this.slider.addEventListener("input", () => this.show());
    this.unit.addEventListener("change", () => this.show());
    for (const name of this.names) {
      byId("treatment-stops").append(make("span", { textContent: STOPS[name] ?? name.slice(4) }));
    }
    this.stored = this.known.get("none");
    this.bars = makeBars(byId("treatment-cosines"), this.stored.cosines.length);
    this.describe(this.stored);
  }

  // Rows that are stored are divided by their norms before and after alike.
  get shown() {
    const name = this.names[this.slider.value];
    const when = name === "none" && this.unit.value ? "after" : this.unit.value;
    return this.known.get((when === "first" ? UNIT_FIRST : "") + name + (when === "after" ? UNIT_AFTER : ""));
  }

  show() {
    const { shown, map } = this;
    // Equal cosines, so equal neighbors, with and without unit rows afterwards.
    const base = this.known.get(shown.name.replace(UNIT_AFTER, ""));
    map.treated = base === this.stored ? null : base;
    if (shown === this.stored) this.showStored();
    else {
      const caption = shown.name.includes("unit") ? APPROXIMATE : "";
      const places = placeTreated(this.data.treated, this.data.views[0], shown.name);
      map.setView({ ...shown, ...places, labels: ["axis 1", "axis 2"], caption });
    }
    this.describe(shown);
    if (this.store.pinned >= 0) this.store.pin(this.store.pinned);
  }

  // Another plane is one of the stored rows.
  reset() {
    this.slider.value = 0;
    this.unit.value = "";
    this.map.treated = null;
    this.describe(this.stored);
  }

  describe(treatment) {
    const when = this.unit.value ? `, ${this.unit.selectedOptions[0].textContent}` : "";
    byId("treatment-name").textContent = treatment.title + when;
    byId("treatment-code").textContent = treatment.code;
    byId("treatment-code").hidden = !treatment.code;
    this.slider.setAttribute("aria-valuetext", treatment.title + when);
    const cells = document.querySelectorAll("#treatment-numbers [data-number]");
    cells.forEach((cell, i) => (cell.textContent = treatment.numbers[i]));
    const top = Math.max(...treatment.cosines);
    setBars(this.bars, treatment.cosines.map((share) => share / top));
  }
}

// The rows in the plane of their two strongest directions, as `place_treated` of embgeo finds them.
function placeTreated({ columns, mean, deviations, unit }, stored, name) {
  const axes = mean.length;
  const [norms, ...treatedNorms] = columns.slice(axes);
  const base = name.replace(UNIT_FIRST, "").replace(UNIT_AFTER, "");
  const first = name.startsWith(UNIT_FIRST);
  const off = base.startsWith("top-") ? Number(base.slice(4)) : 0;
  const along = (axis) => {
    if (!first) return columns[axis];
    const out = new Float32Array(norms.length).fill(-unit.shift[axis]);
    for (let c = 0; c < axes; c++) {
      const part = unit.turn[c][axis];
      if (part) for (let i = 0; i < out.length; i++) out[i] += (part * (columns[c][i] + mean[c])) / norms[i];
    }
    return out;
  };
  const at = base === "standardize" ? axes - 2 : off;
  let places = base === "none" ? [stored.x, stored.y] : [along(at), along(at + 1)];
  if (base === "whiten") {
    const scales = first ? unit.deviations : deviations;
    places = places.map((values, j) => values.map((v) => v / scales[j]));
  }
  if (name.endsWith(UNIT_AFTER)) {
    const own = base === "none" ? norms : treatedNorms[{ standardize: 1, whiten: 2 }[base] ?? 0];
    const lengths = own.map((length, i) => {
      let square = length * length;
      for (let c = 0; c < off; c++) square -= columns[c][i] ** 2;
      // Rounding may leave less than the plane holds.
      return Math.sqrt(Math.max(square, places[0][i] ** 2 + places[1][i] ** 2));
    });
    places = places.map((values) => values.map((v, i) => v / lengths[i]));
  }
  return { x: places[0], y: places[1] };
}
