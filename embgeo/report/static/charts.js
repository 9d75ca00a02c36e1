// Line charts and step charts with a reading under the pointer (uPlot), in place of the figures.

const CHART_HEIGHT = 200;
const LINE_DASHES = [undefined, [8, 4], [2, 3]];
const LEGEND_DASHES = ["solid", "dashed", "dotted"];

function cssText(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

class Charts {
  constructor(described) {
    this.charts = [];
    for (const element of document.querySelectorAll("[data-chart]")) {
      const chart = described[element.dataset.chart];
      if (chart) this.charts.push(makeChart(element, chart));
    }
    const resize = new ResizeObserver((entries) => {
      for (const { target, contentRect } of entries) {
        const chart = this.charts.find((c) => c.element === target);
        const width = Math.floor(contentRect.width);
        if (width > 0 && width !== chart.plot.width) {
          chart.plot.setSize({ width, height: CHART_HEIGHT });
        }
      }
    });
    for (const chart of this.charts) resize.observe(chart.element);
  }

  // Colors are read when a chart is drawn.
  retint() {
    for (const { plot } of this.charts) plot.redraw(false);
  }
}

function makeChart(element, chart) {
  const steps = chart.kind === "steps" ? uPlot.paths.stepped({ align: 1 }) : undefined;
  const axis = (label, log) => ({
    label,
    labelSize: 20,
    size: label === chart.labels[1] ? 52 : 34,
    stroke: () => cssText("--text"),
    grid: { stroke: () => cssText("--grid"), width: 1 },
    ticks: { stroke: () => cssText("--grid"), width: 1 },
    labelFont: "12px system-ui, sans-serif",
    font: "11px system-ui, sans-serif",
    values: (_plot, splits) => (log ? splits.map(writePower) : tickTexts(splits)),
    // uPlot's own filter would leave out labels of these ticks.
    ...(log ? { splits: (_plot, _axis, low, high) => decades(low, high), filter: (_plot, splits) => splits } : {}),
  });
  const options = {
    width: Math.max(200, Math.floor(element.clientWidth)),
    height: CHART_HEIGHT,
    padding: [chart.mark ? 20 : 8, null, null, null],
    scales: {
      x: {
        time: false,
        distr: chart.log[0] ? 3 : 1,
        // A logarithmic axis would reach to the next power of ten.
        range: (_plot, low, high) => chart.range ?? [low, high],
      },
      y: { distr: chart.log[1] ? 3 : 1, range: chart.log[1] ? chart.heights : steps ? fromZero : (_plot, low, high) => showing(chart, low, high) },
    },
    axes: [axis(chart.labels[0], chart.log[0]), axis(chart.labels[1], chart.log[1])],
    hooks: { draw: [(plot) => drawErrors(plot, chart), (plot) => drawMark(plot, chart.mark)] },
    legend: { markers: { dash: (_plot, i) => LEGEND_DASHES[chart.lines[i - 1]?.dash ?? 0] } },
    cursor: { drag: { x: false, y: false } },
    series: [
      { label: chart.labels[0], value: (_plot, v) => (v == null ? "" : formatNumber(v)) },
      ...chart.lines.map((line) => ({
        label: line.label,
        stroke: () => cssText(line.color),
        fill: line.fill ? () => `${cssText(line.color)}44` : undefined,
        dash: LINE_DASHES[line.dash],
        width: 2,
        paths: line.hollow ? () => null : steps,
        points: line.hollow
          ? { show: true, size: 9, width: 1.5, fill: "transparent" }
          : { show: chart.kind === "line" && chart.x.length <= 40, size: 5 },
        value: (_plot, v) => (v == null ? "" : formatNumber(v)),
      })),
    ],
  };
  // The heading above it names a lone line.
  if (chart.lines.length === 1 && !steps) element.classList.add("alone");
  const plot = new uPlot(options, [chart.x, ...chart.lines.map((line) => line.y)], element);
  return { element, plot };
}

// A vertical line at a value, and its name: dotted for isotropic rows, as in all charts.
function drawMark(plot, mark) {
  if (!mark) return;
  const [value, name, dotted] = mark;
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(value, "x", true));
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  const dots = window.devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = cssText("--text");
  ctx.fillStyle = cssText("--text");
  ctx.setLineDash((dotted ? LINE_DASHES[2] : [5, 4]).map((length) => length * dots));
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.font = `${11 * dots}px system-ui, sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "bottom";
  ctx.fillText(name, x, bbox.top - 3 * dots);
  ctx.restore();
}

function fromZero(_plot, _low, high) {
  return [0, high > 0 ? high * 1.05 : 1];
}

// The range of the data with their bars, and what the axis shows at least.
function showing({ shows, lines }, low, high) {
  const ends = lines.flatMap(({ y, error }) =>
    error ? y.flatMap((v, i) => (v == null ? [] : [v - error[i], v + error[i]])) : [],
  );
  const [least, most] = [Math.min(low, ...ends), Math.max(high, ...ends)];
  if (shows) {
    const [bottom, top] = [Math.min(least, shows[0]), Math.max(most, shows[1])];
    const room = (top - bottom) * 0.04;
    return [bottom === 0 ? 0 : bottom - room, top + room];
  }
  return least === 0 && most === 0 ? [0, 1] : uPlot.rangeNum(least, most, 0.1, true);
}

// Error bars of the lines that have some.
function drawErrors(plot, chart) {
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = 1.5 * (window.devicePixelRatio || 1);
  for (const { y, error, color } of chart.lines) {
    if (!error) continue;
    ctx.strokeStyle = cssText(color);
    ctx.beginPath();
    y.forEach((value, i) => {
      if (value == null || !error[i]) return;
      const x = plot.valToPos(chart.x[i], "x", true);
      ctx.moveTo(x, plot.valToPos(value - error[i], "y", true));
      ctx.lineTo(x, plot.valToPos(value + error[i], "y", true));
    });
    ctx.stroke();
  }
  ctx.restore();
}

// With the digits of a step between two of them.
function tickTexts(values) {
  const known = values.filter((v) => v != null);
  const largest = Math.max(...known.map(Math.abs));
  const digits = Math.ceil(Math.log10(largest / Math.abs(known[1] - known[0]))) + 2;
  return values.map((v) => (v == null ? "" : formatNumber(v, digits > 3 ? Math.min(digits, 15) : 3)));
}

// Ticks of a logarithmic axis, as `set_log_ticks` has them: decades, every n-th of many; within a
// decade and a half 2 and 5, too. uPlot's own ticks of many decades merge into a slab.
function decades(low, high) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const step = Math.ceil((last - first) / 8) || 1;
  const parts = Math.log10(high / low) < 1.5 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = first; power <= last; power += step) {
    for (const part of parts) ticks.push(part * 10 ** power);
  }
  return ticks.filter((tick) => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
}

// 0.001 to 1,000 as numbers, others as powers of ten: 10⁻⁶.
function writePower(value) {
  if (value >= 1e-3 * (1 - 1e-9) && value < 1e4 * (1 - 1e-9)) return formatNumber(value, 3);
  const [mantissa, exponent] = value.toExponential(0).split("e");
  const power = [...String(Number(exponent))].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  return `${mantissa === "1" ? "" : `${mantissa}·`}10${power.join("")}`;
}
