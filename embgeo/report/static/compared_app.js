// Start of a comparison: connect the maps of the same tokens in several matrices.

function wireComparison(maps, store) {
  const [{ data, colorings }] = maps.panels;
  const state = { view: data.views[0].key, same: maps.boxes[data.views[0].key].same };
  const show = () => maps.setView(state.view, state.same);
  fillSelect(byId("view"), data.views.map((v) => [v.key, v.title]), (key) => {
    state.view = key;
    show();
  });
  const color = (key) => {
    maps.setColoring(key);
    drawLegend(byId("legend"), colorings.find((c) => c.key === key));
  };
  fillSelect(byId("color"), colorings.map((c) => [c.key, c.title]), color);
  byId("same-scale").checked = state.same;
  byId("same-scale").addEventListener("change", (event) => {
    state.same = event.target.checked;
    show();
  });
  show();
  color(colorings[0].key);
  byId("lasso").addEventListener("click", () => maps.arm(!maps.armed));
  byId("zoom-in").addEventListener("click", () => maps.zoom(1.5));
  byId("zoom-out").addEventListener("click", () => maps.zoom(1 / 1.5));
  byId("reset").addEventListener("click", () => maps.fit());
  byId("clear").addEventListener("click", () => store.clear());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    maps.drop();
    store.point(-1, "keys");
    store.clear();
    store.pin(-1);
  });
}

// A line of the table of moved tokens selects the token and its neighbors, old and new.
function wireMoved(moved, store, rows) {
  for (const line of document.querySelectorAll("tr[data-moved]")) {
    const chosen = moved[line.dataset.member]?.[Number(line.dataset.moved)] ?? [];
    if (!chosen.length) continue;
    line.tabIndex = 0;
    const select = () => {
      const mask = new Uint8Array(rows);
      for (const row of chosen) mask[row] = 1;
      store.filter("moved", mask);
      store.point(chosen[0], "table");
      byId("maps").scrollIntoView({ block: "nearest" });
    };
    line.addEventListener("click", select);
    line.addEventListener("keydown", (event) => {
      if (event.key === "Enter") select();
    });
  }
}

function addBrushes(maps, shared, store) {
  const brushes = [];
  const few = maps.panels.length <= MOST_SIDES;
  for (const member of few ? maps.members : []) {
    const parent = document.querySelector(`[data-brushes="${member.place}"]`);
    for (const column of member.columns) {
      const key = `${column.key}:${member.place}`;
      brushes.push(new BrushHistogram(parent, { ...column, key }, store));
    }
  }
  for (const column of shared) brushes.push(new BrushHistogram(byId("brushes"), column, store));
  return brushes;
}

async function start() {
  const { members, shared, boxes, moved, film } = await readCompared();
  const [first] = members;
  showInteractive();
  const store = new Store(first.rows);
  const maps = new LinkedMaps(members, shared, boxes, store);
  if (film) maps.addFilm(new Film(film, members, shared, store));
  wireComparison(maps, store);
  const brushes = addBrushes(maps, shared, store);
  if (!first.hasTokens) byId("search").closest("label").hidden = true;
  const search = new Search(first, store, maps);
  const table = tableData(members, shared);
  new TokenTable(table, store, maps);
  new Card(maps.panels, store, shared);
  new Share(table, store, maps.maps).restore(brushes, search);
  wireMoved(moved, store, first.rows);
  wireWords({ ...first, columns: shared }, store);
  const described = readJson("embgeo-charts");
  const charts = new Charts(described);
  addTakers(described);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    maps.retint();
    charts.retint();
  });
  return { data: first, members, store, maps, map: maps.maps[0], film: maps.film };
}

begin(start);
