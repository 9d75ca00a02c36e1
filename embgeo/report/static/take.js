// Every table and chart of the page to take along: copied, as CSV, as SVG.

function addTakers(described) {
  for (const table of document.querySelectorAll("table.data:not(.tokens), .headline-table")) {
    const lines = () => [...table.rows].map((row) => [...row.cells].map(cellText));
    const bar = takeBar(table, "after");
    addTaker(bar, fileName(table.caption?.textContent), lines);
  }
  for (const figure of document.querySelectorAll("figure.picture")) {
    const drawings = figure.querySelectorAll("svg.figure");
    const bar = takeBar(figure.querySelector("figcaption"), "append");
    const name = fileName(drawings[0].getAttribute("aria-label"));
    const charts = [...figure.querySelectorAll("[data-chart]")].map((element) => ({
      title: element.parentElement.querySelector("h3")?.textContent ?? "",
      chart: described[element.dataset.chart],
    }));
    const { table } = described[figure.dataset.name] ?? {};
    if (charts.length || table) addTaker(bar, name, () => table ?? charts.flatMap(chartLines));
    drawings.forEach((drawing, i) => {
      const text = drawings.length > 1 ? `SVG ${i + 1}` : "SVG";
      takeButton(bar, text, () => saveDrawing(drawing, fileName(`${name} ${text.slice(4)}`)));
    });
  }
}

function takeBar(element, where) {
  const bar = make("span", { className: "take" });
  element[where](bar);
  return bar;
}

function addTaker(bar, name, lines) {
  const copy = takeButton(bar, "Copy", () => copyText(copy, writeCsv(lines())));
  takeButton(bar, "CSV", () => save(new Blob([writeCsv(lines())], { type: "text/csv" }), `${name}.csv`));
}

function takeButton(bar, text, onClick) {
  const button = makeButton(text, onClick);
  bar.append(button);
  return button;
}

// The parts of a cell apart: a number, which a program can read, and its remark below it.
function cellText(cell) {
  const text = [...cell.childNodes].map((part) => part.textContent.trim()).filter(Boolean).join(" ");
  return /^−?[\d,]+(\.\d+)?$/.test(text) ? text.replaceAll(",", "").replace("−", "-") : text;
}

function chartLines({ title, chart }) {
  const head = [title || chart.labels[1], chart.labels[0], ...chart.lines.map(({ label }) => label || chart.labels[1])];
  return [head, ...Array.from(chart.x, (x, i) => ["", x, ...chart.lines.map(({ y }) => y[i])])];
}

// The drawing by itself, in its light colors, which are its attributes; texts stay texts.
function saveDrawing(drawing, name) {
  const copy = drawing.cloneNode(true);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("color", "#1b1b1f");
  save(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }), `${name}.svg`);
}

function fileName(text) {
  return (text ?? "table").toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 40).replace(/^-|-$/g, "") || "table";
}
