// A line drawn around tokens on the map, and which tokens lie inside it.

class Lasso {
  constructor(map) {
    this.map = map;
    this.armed = false;
    this.path = null;
  }

  get drawing() {
    return this.path !== null;
  }

  begin(at) {
    this.path = [at];
  }

  extend(at) {
    this.path.push(at);
    this.map.marks.lasso(this.path);
  }

  drop() {
    this.path = null;
    this.map.marks.lasso([]);
  }

  finish() {
    const outline = this.path.map(([px, py]) => this.map.toValue(px, py));
    this.drop();
    if (outline.length < 3) return;
    const { store, place = 0 } = this.map;
    for (const name of [...store.filters.keys()]) {
      if (name.startsWith("lasso")) store.filter(name, null);
    }
    store.filter(`lasso${place}`, rowsInside(this.map, outline), outline);
  }
}

function rowsInside(map, outline) {
  const { x, y } = map.view;
  const mask = new Uint8Array(x.length);
  const xs = outline.map((p) => p[0]);
  const ys = outline.map((p) => p[1]);
  const index = map.index ?? map.buildIndex();
  const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  for (const row of index.range(...box)) if (inside(outline, x[row], y[row])) mask[row] = 1;
  return mask;
}

// Even-odd rule: a ray to the left crosses the outline an odd number of times.
function inside(outline, x, y) {
  let odd = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [xi, yi] = outline[i];
    const [xj, yj] = outline[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}
