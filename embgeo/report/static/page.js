// The start of every page: show the interactive parts, fill in choices and words.

function byId(id) {
  return document.getElementById(id);
}

// A new element with these properties, such as its text and its class.
function make(tag, properties) {
  return Object.assign(document.createElement(tag), properties);
}

function makeButton(text, onClick) {
  const button = make("button", { type: "button", textContent: text });
  button.addEventListener("click", onClick);
  return button;
}

function fillSelect(select, choices, onChoice) {
  for (const [value, title] of choices) select.append(new Option(title, value));
  select.addEventListener("change", () => onChoice(select.value));
}

function showInteractive() {
  document.documentElement.classList.add("scripted");
  for (const element of document.querySelectorAll(".interactive")) element.hidden = false;
  for (const button of document.querySelectorAll("[data-more]")) {
    button.addEventListener("click", () => {
      const table = button.parentElement.previousElementSibling;
      for (const line of table.querySelectorAll(".more")) line.classList.remove("more");
      button.parentElement.remove();
    });
  }
  byId("print-all").addEventListener("change", (event) => {
    document.documentElement.classList.toggle("print-all", event.target.checked);
  });
}

function wireWords(data, store) {
  const say = () => {
    byId("selection-count").textContent = selectionText(data, store);
    byId("clear").hidden = store.mask === null;
  };
  store.on("selection", say);
  say();
  // Pointing with a mouse is not read aloud; stepping with keys is.
  store.on("hover", (row, from) => {
    if (row >= 0 && from === "keys") {
      byId("announcer").textContent = `${data.label(row)}, ${describe(data, row)}`;
    }
  });
}

// Draw the line charts, let tables and charts be taken along, follow a change to a dark page.
function finishPage(map) {
  const described = readJson("embgeo-charts");
  const charts = new Charts(described);
  addTakers(described);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    map.retint();
    charts.retint();
  });
}

// Run the start of the page; show failures on the page.
async function begin() {
  try {
    if (typeof DecompressionStream === "undefined") {
      throw new Error("this browser cannot unpack the data (no DecompressionStream)");
    }
    const compared = readJson("embgeo-meta").members !== undefined;
    const state = await (compared ? startComparison() : startAnalysis());
    document.documentElement.dataset.ready = "true";
    // For tests and for debugging: read the state, call the map.
    window.embgeo = state;
  } catch (error) {
    const failure = byId("failure");
    failure.hidden = false;
    failure.textContent = `The interactive map is not available: ${error.message}. Figures and tables are complete without it.`;
  }
}
