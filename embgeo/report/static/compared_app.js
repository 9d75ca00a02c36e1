// Start of a comparison: connect the maps of the same tokens in several matrices.

function wireComparison(maps, boxes, store) {
  const same = byId("same-scale");
  same.checked = boxes[maps.panels[0].data.views[0].key].same;
  const show = (key) => {
    for (const { data, map } of maps.panels) {
      const view = data.views.find((v) => v.key === key);
      map.setView(same.checked ? { ...view, box: boxes[key].box } : view);
    }
  };
  wireMaps(maps, store, show);
  same.addEventListener("change", () => show(byId("view").value));
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

async function startComparison() {
  const { members, shared, boxes, moved, film } = await readCompared();
  const [first] = members;
  showInteractive();
  const store = new Store(first.rows);
  const maps = new LinkedMaps(members, shared, store);
  if (film) maps.addFilm(new Film(film, members, shared, store));
  wireComparison(maps, boxes, store);
  const brushes = addBrushes(maps, shared, store);
  if (!first.hasTokens) byId("search").closest("label").hidden = true;
  const search = new Search(first, store, maps);
  const table = tableData(members, shared);
  new TokenTable(table, store, maps);
  new Card(maps.panels, store, shared);
  new Share(table, store, maps.maps).restore(brushes, search);
  wireMoved(moved, store, first.rows);
  wireWords({ ...first, columns: shared }, store);
  finishPage(maps);
  return { data: first, members, store, maps, map: maps.maps[0], film: maps.film };
}

begin();
