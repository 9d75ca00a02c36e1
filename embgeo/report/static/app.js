// Start: read the data, show the interactive parts, connect the panels.

function wireControls(data, store, map, lasso) {
  const colorings = makeColorings(data);
  const color = (key) => {
    const chosen = colorings.find((c) => c.key === key);
    map.setColoring(chosen);
    drawLegend(byId("legend"), chosen);
  };
  fillSelect(byId("view"), data.views.map((v) => [v.key, v.title]), (key) => {
    // A lasso was drawn in the other plane: the tokens stay selected.
    map.setView(data.views.find((v) => v.key === key));
  });
  fillSelect(byId("color"), colorings.map((c) => [c.key, c.title]), color);
  map.setView(data.views[0]);
  color(colorings[0].key);
  const arm = (on) => {
    lasso.armed = on;
    byId("lasso").setAttribute("aria-pressed", String(on));
    map.canvas.classList.toggle("armed", on);
  };
  byId("lasso").addEventListener("click", () => arm(!lasso.armed));
  byId("zoom-in").addEventListener("click", () => map.zoom(1.5));
  byId("zoom-out").addEventListener("click", () => map.zoom(1 / 1.5));
  byId("reset").addEventListener("click", () => map.fit());
  byId("clear").addEventListener("click", () => store.clear());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    arm(false);
    lasso.drop();
    store.point(-1, "keys");
    store.clear();
    store.pin(-1);
  });
  return () => arm(!lasso.armed);
}

async function start() {
  const data = await readData();
  showInteractive();
  const store = new Store(data.rows);
  const map = new Scatter(byId("scatter"), byId("overlay"), byId("tooltip"), data, store);
  const lasso = new Lasso(map);
  map.captioned = (text) => {
    byId("map-caption").textContent = text;
  };
  const toggleLasso = wireControls(data, store, map, lasso);
  new Gestures(map, lasso, toggleLasso);
  if (data.treated) {
    const stored = () => map.setView(data.views.find((v) => v.key === byId("view").value));
    const whatIf = new WhatIf(data, store, map, stored);
    byId("view").addEventListener("change", () => whatIf.reset());
  }
  const brushes = data.columns.map((c) => new BrushHistogram(byId("brushes"), c, store));
  if (!data.hasTokens) byId("search").closest("label").hidden = true;
  const search = new Search(data, store, map);
  new TokenTable(data, store, map);
  wireWords(data, store);
  new Board(data, store, new Card([{ name: "", data, map }], store), [map]);
  new Share(data, store, [map]).restore(brushes, search);
  const described = readJson("embgeo-charts");
  const charts = new Charts(described);
  addTakers(described);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    map.retint();
    charts.retint();
  });
  return { data, store, map };
}

begin(start);
