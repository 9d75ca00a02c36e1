// Start of an analysis: read the data, show the interactive parts, connect the panels.

async function startAnalysis() {
  const data = await readData();
  showInteractive();
  const store = new Store(data.rows);
  const maps = new LinkedMaps([{ ...data, place: 0, name: "" }], [], store);
  const [map] = maps.maps;
  map.captioned = (text) => {
    byId("map-caption").textContent = text;
  };
  wireMaps(maps, store, (key) => {
    // A lasso was drawn in the other plane: the tokens stay selected.
    map.setView(data.views.find((v) => v.key === key));
  });
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
  new Board(data, store, new Card(maps.panels, store), [map]);
  new Share(data, store, [map]).restore(brushes, search);
  finishPage(map);
  return { data, store, map };
}
