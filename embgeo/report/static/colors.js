// Colors of the map. The page's style sheet owns them, so that light and dark are decided once.

const RAMP_STEPS = 256;

function styleColor(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const value = parseInt(text.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

function makeRamp() {
  const stops = [0, 1, 2, 3, 4].map((i) => styleColor(`--ramp-${i}`));
  return Array.from({ length: RAMP_STEPS }, (_, step) => {
    const place = (step / (RAMP_STEPS - 1)) * (stops.length - 1);
    const from = Math.min(Math.floor(place), stops.length - 2);
    return stops[from].map((c, k) => c + (stops[from + 1][k] - c) * (place - from));
  });
}

// A coloring gives every row a level, and every level a color.
function makeColorings(data) {
  const colorings = [];
  if (data.popular) {
    colorings.push({
      key: "class",
      title: "rare or frequent",
      levels: data.popular,
      palette: () => [styleColor("--rare"), styleColor("--popular")],
      legend: [
        ["rare", "swatch-rare"],
        ["frequent", "swatch-popular"],
      ],
    });
  }
  for (const column of data.columns) {
    // Columns that stand next to each other share their range.
    const [low, high] = column.range ?? bulk(column.values);
    const scale = high > low ? (RAMP_STEPS - 1) / (high - low) : 0;
    colorings.push({
      key: column.key,
      title: columnTitle(column),
      levels: Uint8Array.from(column.values, (v) =>
        Math.max(0, Math.min(RAMP_STEPS - 1, (v - low) * scale)),
      ),
      palette: makeRamp,
      range: [low, high].map((v) => formatNumber(v, 3) + withBlank(column.unit)),
    });
  }
  if (!colorings.length) {
    colorings.push({
      key: "none",
      title: "one color",
      levels: new Uint8Array(data.rows),
      palette: () => [styleColor("--popular")],
      legend: [],
    });
  }
  return colorings;
}

// The range that holds 98% of the values: a single outlier must not take all the colors.
function bulk(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => sorted[Math.round(share * (sorted.length - 1))];
  return [at(0.01), at(0.99)];
}

function drawLegend(element, coloring) {
  element.textContent = "";
  const add = (text, className = "") => {
    element.append(make("span", { textContent: text, className }));
  };
  if (coloring.range) {
    add(coloring.title);
    add(coloring.range[0], "number-end");
    add("", "ramp");
    add(coloring.range[1], "number-end");
  } else {
    for (const [title, className] of coloring.legend) add(title, `swatch ${className}`);
  }
}
