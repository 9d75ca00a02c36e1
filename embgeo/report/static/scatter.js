// The map of tokens: every point is written into one pixel buffer, without a graphics card.

const SVG = "http://www.w3.org/2000/svg";
const GOLDEN = 0.6180339887498949;
// Pixels between two tokens below which they share a name.
const CLUMP = 24;

class Scatter {
  constructor(canvas, overlay, tooltip, data, store) {
    Object.assign(this, { canvas, overlay, tooltip, data, store });
    this.context = canvas.getContext("2d", { alpha: false });
    this.order = scrambled(data.rows);
    this.pending = 0;
    this.frames = 0;
    this.marks = new Marks(overlay);
    store.on("selection", () => {
      this.spreadMask();
      this.redraw();
    });
    store.on("hover", () => this.showHover());
    store.on("pin", () => this.redraw());
    new ResizeObserver(() => {
      this.resize();
      this.flush();
    }).observe(canvas);
  }

  // --- what is shown ---

  setView(view) {
    this.moveTo(view);
    // The index is needed at the first hover, not at the first picture.
    clearTimeout(this.indexing);
    this.indexing = setTimeout(() => this.buildIndex(), 0);
    this.resize();
    this.fit();
    this.captioned?.([view.caption, this.tellOutside()].filter(Boolean).join(" "));
  }

  tellOutside() {
    const far = this.view.x.filter((x, row) => !Number.isNaN(x) && !this.isInView(row)).length;
    return far ? `Tokens outside the first view: ${far.toLocaleString("en")}. Zoom out to see them.` : "";
  }

  isInView(row) {
    const [x, y] = this.toPixel(this.view.x[row], this.view.y[row]);
    return x >= 0 && y >= 0 && x <= this.cssWidth && y <= this.cssHeight;
  }

  // The same tokens at other places, without a change of what is in view.
  moveTo(view) {
    this.view = view;
    this.x = this.inOrder(view.x, Float32Array);
    this.y = this.inOrder(view.y, Float32Array);
    this.index = null;
    this.redraw();
  }

  setColoring(coloring) {
    this.coloring = coloring;
    this.levels = this.inOrder(coloring.levels, Uint8Array);
    this.retint();
  }

  retint() {
    this.palette = this.coloring.palette();
    this.redraw();
  }

  inOrder(values, Type) {
    const out = new Type(values.length);
    for (let i = 0; i < out.length; i++) out[i] = values[this.order[i]];
    return out;
  }

  spreadMask() {
    const { mask, found } = this.store;
    this.mask = mask && this.inOrder(mask, Uint8Array);
    this.found = found && this.inOrder(found, Uint8Array);
  }

  buildIndex() {
    clearTimeout(this.indexing);
    const { x, y } = this.view;
    const index = new KDBush(x.length, 64, Float32Array);
    // A row without a place is out of reach.
    for (let i = 0; i < x.length; i++) index.add(...(Number.isNaN(x[i]) ? [1e30, 1e30] : [x[i], y[i]]));
    this.index = index.finish();
    return this.index;
  }

  // --- where it is shown: pixel = (value − center)·scale + half the size, the same for x and y ---

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width || !box.height) return;
    this.dots = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.round(box.width * this.dots);
    const height = Math.round(box.height * this.dots);
    const changed = width !== this.width || height !== this.height;
    if (!changed) return;
    const first = this.width === undefined;
    Object.assign(this, { width, height, cssWidth: box.width, cssHeight: box.height });
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.overlay.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    if (first || this.fitted) this.fit();
    else this.redraw();
  }

  fit() {
    if (!this.view || !this.cssWidth) return;
    const [left, right, bottom, top] = this.view.cloud ?? this.view.box;
    this.scale = Math.min(this.cssWidth / (right - left), this.cssHeight / (top - bottom));
    this.home = this.scale;
    this.center = [(left + right) / 2, (bottom + top) / 2];
    this.fitted = true;
    this.redraw();
  }

  toPixel(x, y) {
    return [
      (x - this.center[0]) * this.scale + this.cssWidth / 2,
      (this.center[1] - y) * this.scale + this.cssHeight / 2,
    ];
  }

  toValue(px, py) {
    return [
      (px - this.cssWidth / 2) / this.scale + this.center[0],
      this.center[1] - (py - this.cssHeight / 2) / this.scale,
    ];
  }

  pan(dx, dy) {
    this.center = [this.center[0] - dx / this.scale, this.center[1] + dy / this.scale];
    this.fitted = false;
    this.redraw();
  }

  zoom(factor, px = this.cssWidth / 2, py = this.cssHeight / 2) {
    const [x, y] = this.toValue(px, py);
    this.scale = Math.max(this.home / 20, Math.min(this.home * 1e5, this.scale * factor));
    const [nx, ny] = this.toValue(px, py);
    this.center = [this.center[0] + x - nx, this.center[1] + y - ny];
    this.fitted = false;
    this.redraw();
  }

  // Brings a token into view without a change of the magnification.
  reveal(row) {
    if (this.isInView(row)) return;
    this.center = [this.view.x[row], this.view.y[row]];
    this.fitted = false;
    this.redraw();
  }

  // --- drawing ---

  redraw() {
    if (!this.pending) this.pending = requestAnimationFrame(() => this.draw());
  }

  // A canvas that changed its size is black until it is drawn: not one frame later.
  flush() {
    if (!this.pending) return;
    cancelAnimationFrame(this.pending);
    this.draw();
  }

  draw() {
    this.pending = 0;
    if (!this.pixels || !this.view || !this.palette) return;
    const [r, g, b] = styleColor("--map");
    this.pixels.fill(pack(r, g, b));
    const size = this.dotSize();
    const crowd = Math.max(0.3, Math.min(0.9, 60 / Math.sqrt(this.data.rows)));
    const alpha = Math.min(0.95, crowd * Math.sqrt(Math.max(1, this.scale / this.home)));
    if (this.mask) {
      this.splat(size, 0, alpha * 0.6, [styleColor("--dim")], true, this.mask);
      this.splat(this.chosenSize(size, this.store.count), 1, Math.max(alpha, 0.85), this.palette, false, this.mask);
    } else {
      this.splat(size, -1, alpha, this.palette, false);
    }
    if (this.found) {
      const large = this.chosenSize(size, this.found.reduce((a, b) => a + b, 0));
      this.splat(large + 2 * this.dots, 1, 0.9, [styleColor("--map")], true, this.found);
      this.splat(large, 1, 0.95, [styleColor("--text")], true, this.found);
    }
    this.context.putImageData(this.image, 0, 0);
    this.marks.axes(this);
    this.marks.pinned(this, this.store.pinned);
    this.marks.named(this, this.named ?? []);
    this.showHover();
    this.frames++;
  }

  dotSize() {
    const zoomed = Math.log2(Math.max(1, this.scale / this.home));
    const base = this.data.rows > 40000 ? 1.2 : this.data.rows > 4000 ? 1.8 : 3;
    return Math.max(1, Math.round(Math.min(6, base + zoomed * 0.5) * this.dots));
  }

  // A few chosen tokens must be found among many dimmed ones.
  chosenSize(size, count) {
    return count > 300 ? size : Math.max(size, Math.round(4 * this.dots));
  }

  // Blend a square for each point; `wanted` is the mask value to draw, −1 for all.
  splat(size, wanted, alpha, palette, single, mask = null) {
    const { x, y, levels, pixels, width, height } = this;
    const a = Math.round(alpha * 256);
    const keep = 256 - a;
    const redBlue = Float64Array.from(palette, ([r, , b]) => ((Math.round(b) << 16) | Math.round(r)) * a);
    const green = Float64Array.from(palette, ([, g]) => (Math.round(g) << 8) * a);
    const scale = this.scale * this.dots;
    // Half a pixel more, so that cutting off the decimals rounds: several times as fast as Math.round.
    const offsetX = (width - size + 1) / 2 - this.center[0] * scale;
    const offsetY = (height - size + 1) / 2 + this.center[1] * scale;
    const right = width - size + 1;
    const bottom = height - size + 1;
    for (let i = 0; i < x.length; i++) {
      if (wanted >= 0 && mask[i] !== wanted) continue;
      const left = x[i] * scale + offsetX;
      const top = offsetY - y[i] * scale;
      if (!(left >= 0 && top >= 0 && left < right && top < bottom)) continue;
      const px = left | 0;
      const py = top | 0;
      const level = single ? 0 : levels[i];
      const sourceRedBlue = redBlue[level];
      const sourceGreen = green[level];
      for (let row = py * width + px, end = row + size * width; row < end; row += width) {
        for (let at = row; at < row + size; at++) {
          const old = pixels[at];
          pixels[at] =
            0xff000000 |
            (((sourceRedBlue + (old & 0xff00ff) * keep) / 256) & 0xff00ff) |
            (((sourceGreen + (old & 0x00ff00) * keep) / 256) & 0x00ff00);
        }
      }
    }
  }

  // --- pointing ---

  nearest(px, py, reach = 12) {
    const index = this.index ?? this.buildIndex();
    const [x, y] = this.toValue(px, py);
    let best = -1;
    let bestDistance = Infinity;
    for (const row of index.within(x, y, reach / this.scale)) {
      // A selected token has priority over a dimmed one next to it.
      const dimmed = this.store.mask && !this.store.mask[row] ? 4 : 1;
      const distance = dimmed * ((this.view.x[row] - x) ** 2 + (this.view.y[row] - y) ** 2);
      if (distance < bestDistance) [best, bestDistance] = [row, distance];
    }
    return best;
  }

  // The nearest tokens by cosine; none where they were not searched. Tokens that are close in this
  // plane are no neighbors: most of the distance lies outside of it.
  nearestTo(row) {
    if (this.treated) return this.treated.near ? listNear(this.treated.near, this.treated.k, row, row) : [];
    return this.data.nearest.get(row) ?? [];
  }

  // The closest token to the given side of the one pointed at (or of the center).
  neighbor(dx, dy) {
    const index = this.index ?? this.buildIndex();
    const { x: xs, y: ys } = this.view;
    const at = this.store.hover;
    const [x, y] = at >= 0 ? [xs[at], ys[at]] : this.center;
    for (let reach = 16; reach < 4096; reach *= 2) {
      let best = -1;
      let bestDistance = Infinity;
      for (const row of index.within(x, y, reach / this.scale)) {
        const ox = xs[row] - x;
        const oy = ys[row] - y;
        const along = ox * dx + oy * dy;
        const across = Math.abs(ox * dy - oy * dx);
        const distance = ox * ox + oy * oy;
        const usable = row !== at && (along > 0 || at < 0) && (across <= along || at < 0);
        if (usable && distance < bestDistance) [best, bestDistance] = [row, distance];
      }
      if (best >= 0) return best;
    }
    return at;
  }

  showHover() {
    const row = this.store.hover;
    const place = row >= 0 && this.view && this.cssWidth ? this.toPixel(this.view.x[row], this.view.y[row]) : null;
    this.marks.ring(place);
    const inside =
      place && place[0] >= 0 && place[1] >= 0 && place[0] <= this.cssWidth && place[1] <= this.cssHeight;
    // Of several maps, the one pointed at (else the first) has the tooltip; the others a ring and the token.
    const { from } = this.store;
    const elsewhere = from instanceof Scatter ? from !== this : (this.place ?? 0) > 0;
    this.marks.label(elsewhere && inside ? place : null, row >= 0 ? this.data.label(row) : "");
    this.tooltip.hidden = !inside || elsewhere;
    if (this.tooltip.hidden) return;
    this.tooltip.firstElementChild.textContent = this.data.label(row);
    this.tooltip.lastElementChild.textContent = describeShortly(this.data, row);
    const { offsetWidth: w, offsetHeight: h } = this.tooltip;
    const left = place[0] + 14 + w > this.cssWidth ? place[0] - w - 14 : place[0] + 14;
    const top = place[1] + 14 + h > this.cssHeight ? place[1] - h - 14 : place[1] + 14;
    this.tooltip.style.left = `${Math.max(2, Math.min(left, this.cssWidth - w - 2))}px`;
    this.tooltip.style.top = `${Math.max(2, top)}px`;
  }
}

// Lines through the origin, ticks, the ring around a token: shapes above the pixels.
class Marks {
  constructor(overlay) {
    this.horizontal = shape(overlay, "line", "axis");
    this.vertical = shape(overlay, "line", "axis");
    this.origin = shape(overlay, "path", "origin");
    this.ticks = shape(overlay, "g", "ticks");
    this.names = [shape(overlay, "text", "axis-name"), shape(overlay, "text", "axis-name")];
    this.outline = shape(overlay, "polygon", "lasso");
    this.isotropic = shape(overlay, "circle", "isotropic");
    this.mean = shape(overlay, "path", "mean");
    this.meanName = shape(overlay, "text", "tick");
    this.near = shape(overlay, "path", "near");
    this.labelled = shape(overlay, "g", "named");
    this.inset = new Inset(overlay);
    this.hovered = shape(overlay, "text", "axis-name");
    this.circle = this.hiddenRing(overlay, "ring", 7);
    this.pinnedCircle = this.hiddenRing(overlay, "ring pinned", 9);
    this.widths = new Map();
  }

  hiddenRing(overlay, className, radius) {
    const circle = shape(overlay, "circle", className);
    place(circle, { r: radius, visibility: "hidden" });
    return circle;
  }

  // A text that names of tokens must not cover.
  write(element, text, x, y, anchor = "middle") {
    element.textContent = text;
    place(element, { x, y, "text-anchor": anchor });
    if (text) this.taken.push(this.box(element, x, y, anchor));
  }

  // Left, right, top and bottom of a text, whose width is measured once.
  box(element, x, y, anchor) {
    const text = element.textContent;
    const width = this.widths.get(text) || element.getComputedTextLength();
    this.widths.set(text, width);
    const left = x - { start: 0, middle: width / 2, end: width }[anchor];
    return [left - 2, left + width + 2, y - 10, y + 3];
  }

  axes(map) {
    const { cssWidth: w, cssHeight: h } = map;
    const [x, y] = map.toPixel(0, 0);
    place(this.horizontal, { x1: 0, x2: w, y1: y, y2: y });
    place(this.vertical, { x1: x, x2: x, y1: 0, y2: h });
    this.origin.setAttribute("d", `M${x - 6} ${y}h12M${x} ${y - 6}v12`);
    this.taken = this.inset.draw(map);
    this.write(this.names[0], `${map.view.labels[0]} →`, w - 6, h - 20, "end");
    this.write(this.names[1], `↑ ${map.view.labels[1]}`, 6, 16, "start");
    this.reference(map);
    this.ticks.textContent = "";
    const step = niceStep(90 / map.scale);
    const [left, top] = map.toValue(0, 0);
    const [right, bottom] = map.toValue(w, h);
    for (let v = Math.ceil(left / step) * step; v < right; v += step) {
      // At an edge a number would lose its sign.
      const px = map.toPixel(v, 0)[0];
      if (px > 16 && px < w - 16) this.tick(v, step, { x: px, y: h - 5, "text-anchor": "middle" });
    }
    for (let v = Math.ceil(bottom / step) * step; v < top; v += step) {
      const py = map.toPixel(0, v)[1];
      if (py > 30 && py < h - 34) this.tick(v, step, { x: 5, y: py + 4 });
    }
  }

  // Where isotropic rows of the same norms would lie, and an arrow to the mean row.
  reference(map) {
    const { isotropic, mean } = map.view;
    const [x, y] = map.toPixel(0, 0);
    const r = (isotropic ?? 0) * map.scale;
    place(this.isotropic, { cx: x, cy: y, r });
    const [mx, my] = map.toPixel(...(mean ?? [0, 0]));
    const long = Math.hypot(mx - x, my - y);
    const shown = mean && long > 12;
    this.write(this.meanName, shown ? "mean" : "", mx, my - 8);
    if (!shown) return this.mean.setAttribute("d", "");
    const [ux, uy] = [(mx - x) / long, (my - y) / long];
    const side = (s) => `L${mx - 8 * ux - s * 4 * uy} ${my - 8 * uy + s * 4 * ux}`;
    this.mean.setAttribute("d", `M${x} ${y}L${mx} ${my}${side(1)}M${mx} ${my}${side(-1)}`);
  }

  // Lines from the pinned token to those nearest to it.
  pinned(map, row) {
    const at = (i) => map.toPixel(map.view.x[i], map.view.y[i]).join(" ");
    const lines = row < 0 ? [] : map.nearestTo(row).map((near) => `M${at(row)}L${at(near.row)}`);
    this.near.setAttribute("d", lines.join(""));
    this.ring(row >= 0 ? map.toPixel(map.view.x[row], map.view.y[row]) : null, this.pinnedCircle);
  }

  label(at, text) {
    this.hovered.textContent = at ? text : "";
    if (at) place(this.hovered, { x: at[0], y: at[1] - 11, "text-anchor": "middle" });
  }

  // Tokens with their names on the first free side; one without room for its name, or beside a
  // token with a name, has a ring alone.
  named(map, tokens) {
    this.labelled.textContent = "";
    const { cssWidth: w, cssHeight: h } = map;
    const apart = (a, b) => a[0] > b[1] || a[1] < b[0] || a[2] > b[3] || a[3] < b[2];
    const places = tokens.map(([row]) => map.toPixel(map.view.x[row], map.view.y[row]));
    const taken = [...this.taken, ...places.map(([x, y]) => [x - 4, x + 4, y - 4, y + 4])];
    const having = [];
    tokens.forEach(([, name], i) => {
      const [x, y] = places[i];
      place(shape(this.labelled, "circle", "ring"), { cx: x, cy: y, r: 3.5 });
      if (having.some((other) => Math.hypot(x - other[0], y - other[1]) < CLUMP)) return;
      const text = shape(this.labelled, "text", "axis-name");
      text.textContent = name;
      const sides = [[x + 8, y + 4, "start"], [x - 8, y + 4, "end"], [x, y - 9, "middle"], [x, y + 17, "middle"]];
      const free = sides.find((side) => {
        const box = this.box(text, ...side);
        const inside = box[0] >= 0 && box[1] <= w && box[2] >= 0 && box[3] <= h;
        return inside && taken.every((other) => apart(box, other));
      });
      if (!free) return text.remove();
      place(text, { x: free[0], y: free[1], "text-anchor": free[2] });
      taken.push(this.box(text, ...free));
      having.push(places[i]);
    });
  }

  tick(value, step, attributes) {
    const label = shape(this.ticks, "text", "tick");
    const rounded = Math.abs(value) < step / 2 ? 0 : value;
    label.textContent = formatNumber(Number(rounded.toPrecision(6)), 6);
    place(label, attributes);
  }

  ring(at, circle = this.circle) {
    circle.setAttribute("visibility", at ? "visible" : "hidden");
    if (at) place(circle, { cx: at[0], cy: at[1] });
  }

  lasso(points) {
    this.outline.setAttribute("points", points.map((p) => p.join(",")).join(" "));
  }
}

// Where the picture lies between the origin and all tokens, in a corner of a picture without the origin.
class Inset {
  constructor(overlay) {
    this.root = shape(overlay, "svg", "inset");
    this.isotropic = shape(this.root, "circle", "isotropic");
    this.cloud = shape(this.root, "rect", "inset-cloud");
    this.mean = shape(this.root, "path", "mean");
    this.origin = shape(this.root, "path", "origin");
    this.window = shape(this.root, "rect", "inset-window");
  }

  // Draw it where the origin is out of the picture; return the room that it takes.
  draw(map) {
    const [x, y] = map.toPixel(0, 0);
    const { cssWidth: w, cssHeight: h } = map;
    const [left, right, bottom, top] = map.view.box ?? [0, 0, 0, 0];
    const inside = x >= 0 && y >= 0 && x <= w && y <= h;
    this.root.setAttribute("visibility", inside ? "hidden" : "visible");
    if (inside) return [];
    const scale = Math.min(120 / (right - left), 90 / (top - bottom));
    const [wide, high] = [(right - left) * scale, (top - bottom) * scale];
    const at = (px, py) => [(px - left) * scale, (top - py) * scale];
    place(this.root, { x: w - wide - 6, y: 6, width: wide, height: high });
    const [ox, oy] = at(0, 0);
    place(this.isotropic, { cx: ox, cy: oy, r: (map.view.isotropic ?? 0) * scale });
    this.origin.setAttribute("d", `M${ox - 4} ${oy}h8M${ox} ${oy - 4}v8`);
    this.mean.setAttribute("d", map.view.mean ? `M${ox} ${oy}L${at(...map.view.mean).join(" ")}` : "");
    const box = (element, [a, b, c, d]) => {
      const [x0, y0] = at(a, d);
      place(element, { x: x0, y: y0, width: (b - a) * scale, height: (d - c) * scale });
    };
    box(this.cloud, map.view.cloud ?? map.view.box);
    const [a, d] = map.toValue(0, 0);
    const [b, c] = map.toValue(w, h);
    box(this.window, [a, b, c, d]);
    return [[w - wide - 8, w, 0, high + 8]];
  }
}

function shape(parent, tag, className) {
  const element = document.createElementNS(SVG, tag);
  element.setAttribute("class", className);
  parent.append(element);
  return element;
}

function place(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

function pack(r, g, b) {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

// 1, 2 or 5 times a power of ten, at least `least`.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((m) => m * power >= least);
}

// An order in which no class is always drawn on top: steps of the golden ratio through all rows.
function scrambled(n) {
  const keys = Float64Array.from({ length: n }, (_, i) => (i * GOLDEN) % 1);
  return Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) => keys[a] - keys[b]);
}

// The first two numbers of a row: the rest is in the card.
function describeShortly(data, row) {
  const own = data.columns.filter((column) => column.unit || !/log/.test(column.label)).slice(0, 2);
  return own.map((c) => `${c.label} ${formatNumber(c.values[row], 3)}${withBlank(c.unit)}`).join(" · ");
}

function describe(data, row) {
  const parts = [`row ${data.number[row].toLocaleString("en")}`];
  if (data.count) parts.push(`count ${formatNumber(data.count[row])}`);
  if (data.popular) parts.push(data.popular[row] ? "frequent" : "rare");
  for (const column of data.columns) {
    const value = formatNumber(column.values[row]);
    parts.push(`${column.label} ${value}${withBlank(column.unit)}`);
  }
  return parts.join(" · ");
}
