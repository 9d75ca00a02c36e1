// A histogram of one column that can be brushed: gray for all tokens, color for the selection.

const BINS = 48;
const BAR_HEIGHT = 64;

// Bars of a histogram; their shares of the height follow.
function makeBars(svg, count, className = "bar-chosen") {
  return Array.from({ length: count }, (_, i) => {
    const bar = shape(svg, "rect", className);
    place(bar, { x: i + 0.06, width: 0.88 });
    return bar;
  });
}

function setBars(bars, shares, full = 40) {
  bars.forEach((bar, i) => place(bar, { y: full * (1 - shares[i]), height: full * shares[i] }));
}

class BrushHistogram {
  constructor(parent, column, store) {
    Object.assign(this, { column, store });
    const [low, high] = column.extent ?? extent(column.values);
    this.low = low;
    this.high = high > low ? high : low + BINS;
    // One long row would leave all others in one bar.
    this.log = low > 0 && high >= 100 * low;
    this.bin = Uint8Array.from(column.values, (v) => Math.min(BINS - 1, Math.floor(this.x(v))));
    this.range = null;
    this.build(parent);
    this.total = this.tally(null);
    this.top = Math.max(...this.total, 1);
    this.bars(this.all, this.total);
    this.update();
    store.on("selection", () => this.update());
    store.on("hover", (row) => this.point(row));
  }

  // The place of a number between the ends, in bars, and the number at a place.
  x(v) {
    const share = this.log
      ? Math.log(v / this.low) / Math.log(this.high / this.low)
      : (v - this.low) / (this.high - this.low);
    return BINS * Math.max(0, Math.min(1, share));
  }

  at(x) {
    if (x === BINS) return this.high; // which a product of rounded numbers may miss
    const share = x / BINS;
    return this.log
      ? this.low * (this.high / this.low) ** share
      : this.low + share * (this.high - this.low);
  }

  build(parent) {
    const box = make("fieldset", { className: "brush" });
    const scale = this.log ? ", log scale" : "";
    const title = make("legend", { textContent: columnTitle(this.column) + scale });
    this.svg = document.createElementNS(SVG, "svg");
    place(this.svg, { viewBox: `0 0 ${BINS} ${BAR_HEIGHT}`, preserveAspectRatio: "none" });
    place(this.svg, { class: "brush-chart", "aria-hidden": "true" });
    this.window = shape(this.svg, "rect", "brush-window");
    this.all = makeBars(this.svg, BINS, "bar-all");
    this.chosen = makeBars(this.svg, BINS, "bar-chosen");
    this.needle = shape(this.svg, "line", "needle");
    place(this.window, { y: 0, height: BAR_HEIGHT });
    const ends = make("div", { className: "brush-ends" });
    this.inputs = ["from", "to"].map((name) => this.input(ends, name));
    box.append(title, this.svg, ends);
    parent.append(box);
    this.listen();
  }

  input(parent, name) {
    const placeholder = formatNumber(name === "from" ? this.low : this.high, 3);
    const input = make("input", { type: "number", step: "any", placeholder });
    input.setAttribute("aria-label", `${this.column.title}, ${name}`);
    input.addEventListener("change", () => this.typed());
    parent.append(input);
    return input;
  }

  typed() {
    const [from, to] = this.inputs.map((input) =>
      input.value === "" ? null : Number(input.value),
    );
    this.select(from === null && to === null ? null : [from ?? this.low, to ?? this.high]);
  }

  listen() {
    const where = (event) => {
      const box = this.svg.getBoundingClientRect();
      return BINS * Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    };
    let anchor = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.svg.setPointerCapture(event.pointerId);
      anchor = where(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (anchor === null) return;
      const now = where(event);
      this.select([this.at(Math.min(anchor, now)), this.at(Math.max(anchor, now))]);
    });
    this.svg.addEventListener("pointerup", (event) => {
      // A click without a drag removes the brush.
      if (anchor !== null && Math.abs(where(event) - anchor) < 1 / 4) this.select(null);
      anchor = null;
    });
    this.svg.addEventListener("pointercancel", () => {
      anchor = null;
    });
  }

  select(range) {
    this.range = range;
    this.inputs.forEach((input, end) => {
      input.value = range ? Number(range[end].toPrecision(4)) : "";
    });
    const { values } = this.column;
    this.store.filter(
      `brush:${this.column.key}`,
      range && Uint8Array.from(values, (v) => (v >= range[0] && v <= range[1] ? 1 : 0)),
      range,
    );
  }

  // The store was cleared from outside.
  forget() {
    this.range = null;
    for (const input of this.inputs) input.value = "";
  }

  tally(mask) {
    const counts = new Float64Array(BINS);
    for (let i = 0; i < this.bin.length; i++) if (!mask || mask[i]) counts[this.bin[i]]++;
    return counts;
  }

  // Heights by the square root, so that a few selected tokens still show among many.
  bars(row, counts) {
    setBars(row, counts.map((count) => Math.sqrt(count / this.top)), BAR_HEIGHT);
  }

  update() {
    if (!this.store.filters.has(`brush:${this.column.key}`)) this.forget();
    this.bars(this.chosen, this.tally(this.store.mask));
    const [from, to] = this.range ?? [this.low, this.low];
    place(this.window, { x: this.x(from), width: this.x(to) - this.x(from) });
  }

  point(row) {
    const x = row < 0 ? -1 : this.x(this.column.values[row]);
    place(this.needle, { x1: x, x2: x, y1: 0, y2: BAR_HEIGHT });
  }
}

function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values) {
    if (v < low) low = v;
    if (v > high) high = v;
  }
  return [low, high];
}
