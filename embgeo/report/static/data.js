// The block of columns that the page carries: base64 of gzip of aligned little-endian arrays.

const ARRAYS = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
};

function readJson(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

async function unpack(text) {
  const bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// Whole numbers of `bits` bits each, the highest bit first.
function readBits(bytes, bits, count) {
  const found = new Uint32Array(count);
  let held = 0;
  let known = 0;
  for (let i = 0, at = 0; i < count; i++) {
    for (; known < bits; known += 8) held = (held << 8) | bytes[at++];
    known -= bits;
    found[i] = held >>> known;
    held &= (1 << known) - 1;
  }
  return found;
}

function readColumn(buffer, { at, length, type, low, high, bits, count }) {
  const stored = new ARRAYS[type](buffer, at, length);
  if (bits !== undefined) return readBits(stored, bits, count);
  if (low === undefined) return stored;
  const step = (high - low) / 65535;
  // `Float32Array.from` takes ten times as long.
  const values = new Float32Array(length);
  for (let i = 0; i < length; i++) values[i] = low + stored[i] * step;
  return values;
}

function readTokens(buffer, described, rows) {
  if (!described) return null;
  const lengths = readColumn(buffer, described.lengths);
  const units = readColumn(buffer, described.units);
  const tokens = new Array(rows);
  for (let i = 0, at = 0; i < rows; i++) {
    tokens[i] = String.fromCharCode.apply(null, units.subarray(at, at + lengths[i]));
    at += lengths[i];
  }
  return tokens;
}

async function readData() {
  const meta = readJson("embgeo-meta");
  const buffer = await unpack(byId("embgeo-block").textContent);
  return readRows(meta, meta, buffer, readTokens(buffer, meta.tokens, meta.rows));
}

// The rows of one matrix: `part` says where they lie, `meta` what their tokens are.
function readRows(part, meta, buffer, tokens) {
  const number = readColumn(buffer, part.number);
  const visible = makeVisible(meta);
  return {
    rows: meta.rows,
    total: meta.total,
    search: meta.search,
    number,
    hasTokens: tokens !== null,
    token: (i) => (tokens ? tokens[i] : `row ${number[i]}`),
    label: (i) =>
      tokens
        ? visible(tokens[i], meta.tokens.true_length[i])
        : `row ${number[i].toLocaleString("en")}`,
    visible,
    count: meta.count && readColumn(buffer, meta.count),
    popular: meta.popular && readColumn(buffer, meta.popular),
    views: part.views.map((view) => ({
      ...view,
      x: readColumn(buffer, view.x),
      y: readColumn(buffer, view.y),
    })),
    columns: readColumns(part.columns, buffer),
    nearest: readNearest(part.nearest, buffer),
    listed: part.listed,
    states: part.states.map(({ word, rows }) => ({ word, rows: new Set(readColumn(buffer, rows)) })),
    leftOut: part.left_out,
    first: part.first ?? [],
    suspects: (part.suspects ?? []).map((own) => {
      const read = (column) => column && readColumn(buffer, column);
      const [rows, serious, norms, values, group] = [own.rows, own.serious, own.norms, own.values, own.group].map(read);
      return { ...own, rows, serious, norms, values, group, tokens: readTokens(buffer, own.tokens, rows.length) };
    }),
    treated: part.treatments && {
      ...part.treatments,
      columns: part.treatments.columns.map((column) => readColumn(buffer, column)),
      list: part.treatments.list.map((treatment) => ({
        ...treatment,
        near: treatment.near && readColumn(buffer, treatment.near),
      })),
    },
  };
}

// The nearest rows by cosine that are on the page, each with its cosine, of the rows that have them.
function readNearest(described, buffer) {
  if (!described) return { size: 0, has: () => false, get: () => undefined };
  const { k } = described;
  const near = readColumn(buffer, described.near);
  const cosines = readColumn(buffer, described.cosines);
  const asked = described.rows && new Map([...readColumn(buffer, described.rows)].map((row, at) => [row, at]));
  const size = near.length / k;
  return {
    size,
    has: (row) => (asked ? asked.has(row) : true),
    get: (row) => {
      const at = asked ? asked.get(row) : row;
      return at === undefined ? undefined : listNear(near, k, at, row, cosines);
    },
  };
}

// A neighbor that is not on the page has the place of the row itself.
function listNear(near, k, at, row, cosines = null) {
  const found = [];
  for (let i = at * k; i < (at + 1) * k; i++) {
    if (near[i] !== row) found.push({ row: near[i], cosine: cosines?.[i] });
  }
  return found;
}

function readColumns(columns, buffer) {
  return columns.map((column) => ({ ...column, values: readColumn(buffer, column.values) }));
}

// A short label that a reader understands: "angle to mean (°)", but "norm (‖w‖)" for a bare sign.
function columnTitle({ title, label, unit }) {
  const measured = unit ? `${label} (${unit})` : label;
  const name = title[0].toLowerCase() + title.slice(1);
  return /\p{L}{3}/u.test(label) ? measured : `${name} (${measured})`;
}

// A unit behind its number: "3 decades", "41°".
function withBlank(unit) {
  return !unit || unit === "°" ? unit || "" : ` ${unit}`;
}

// A number of a column: as many decimals as give the largest of its bulk four digits, and more only
// for one that would read as 0 or 1 and is not.
function columnFormat(values) {
  const [low, high] = bulk(values.filter(Number.isFinite));
  const largest = Math.max(-low, high);
  if (!(largest >= 1e-3 && largest < 1e6)) return (v) => formatNumber(v);
  const usual = Math.max(0, 3 - Math.floor(Math.log10(largest)));
  return (v) => {
    if (!Number.isFinite(v)) return "–";
    const hides = (digits) => [0, 1, -1].includes(Number(v.toFixed(digits))) && v !== Number(v.toFixed(digits));
    let digits = usual;
    while (digits < 8 && hides(digits)) digits++;
    const form = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    return v.toLocaleString("en", form).replace("-", "−");
  };
}

// A cosine with two decimals, or as many as show that it is not 1.
function formatCosine(value) {
  const digits = [2, 3, 4].find((n) => Number(value.toFixed(n)) < 1);
  if (!digits) return value < 1 ? "≈ 1" : "1";
  return value.toFixed(digits).replace("-", "−");
}

// Numbers as the tables print them: four digits, thousands apart.
function formatNumber(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en").replace("-", "−");
  const size = Math.abs(value);
  const text =
    size >= 1e6 || size < 1e-4
      ? value.toExponential(digits - 2)
      : value.toLocaleString("en", { maximumSignificantDigits: digits });
  return text.replace("-", "−");
}
