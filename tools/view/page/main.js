// The page at work: one state, which the hash of the address holds; every change goes through update().

const about = readPage();
const $ = (id) => document.getElementById(id);
const map = new HeadMap($("map"));
const state = {layer: 0, head: 0, row: null, pin: null, log: false, zoom: 1, theme: null, sort: {column: "head", down: false}};
const ZOOMS = [1, 2, 4, 8, 16, 32];
const layerNow = () => about.layers[state.layer];
const theme = () => state.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const colours = {light: colourTable("light"), dark: colourTable("dark")};

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (name, length) => {
    const n = Number.parseInt(given.get(name), 10);
    return n >= 0 && n < length ? n : null;
  };
  state.layer = number("layer", about.layers.length) ?? 0;
  state.head = number("head", layerNow().heads.length) ?? 0;
  state.row = number("row", layerNow().queries);
  state.log = given.get("scale") === "log";
  state.zoom = ZOOMS.includes(Number(given.get("zoom"))) ? Number(given.get("zoom")) : 1;
  state.theme = ["light", "dark"].includes(given.get("theme")) ? given.get("theme") : null;
}

function writeHash() {
  const hash = new URLSearchParams({layer: state.layer, head: state.head});
  if (state.row !== null) hash.set("row", state.row);
  if (state.log) hash.set("scale", "log");
  if (state.zoom !== 1) hash.set("zoom", state.zoom);
  if (state.theme) hash.set("theme", state.theme);
  history.replaceState(null, "", `#${hash}`);
}

function pageStyle() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {accent: of("accent"), accentText: of("accent-text"), text: of("text"), quiet: of("quiet"), hatch: of("hatch"), cell: of("cell")};
}

const press = (button, on) => button.setAttribute("aria-pressed", on);

function drawLayers() {
  const chosen = [...$("layers").children];
  if (chosen.length === 0) {
    about.layers.forEach((layer, index) => {
      const button = element("button", {type: "button", title: layer.name}, element("canvas"), `${index}`);
      button.onclick = () => update({layer: index});
      $("layers").append(button);
    });
    $("layers").parentElement.hidden = about.layers.length < 2;
  }
  [...$("layers").children].forEach((button, index) => press(button, index === state.layer));
}

function paintLayers() {
  about.layers.forEach((layer, index) => {
    layer.mean ??= meanThumbnail(layer);
    paintThumbnail($("layers").children[index].firstChild, layer.mean, layer.thumbnail_cells, colours[theme()], state.log);
  });
}

function drawHeads() {
  const layer = layerNow();
  $("heads").replaceChildren(...layer.heads.map((head, index) => {
    const canvas = element("canvas");
    paintThumbnail(canvas, layer.thumbnail(index), layer.thumbnail_cells, colours[theme()], state.log);
    const entropy = element("span", {class: "entropy", title: `entropy, of ln n: ${shownNumber(head.entropy_share)}`}, element("span"));
    entropy.firstChild.style.width = `${100 * (head.entropy_share ?? 0)}%`;
    const button = element("button", {type: "button", "aria-label": `head ${index}`}, canvas,
                           element("span", {class: "name"}, element("b", {}, `${index}`), element("span", {}, shownNumber(head.entropy_share))),
                           entropy, ...badgesOf(head, about.roles));
    button.onclick = () => update({head: index});
    press(button, index === state.head);
    return button;
  }));
}

function drawLegend() {
  const canvas = $("legend"), context = canvas.getContext("2d");
  for (let x = 0; x < 256; ++x) {
    context.fillStyle = `rgb(${colours[theme()][Math.round(x / 255 * 254)]})`;
    context.fillRect(x, 0, 1, 1);
  }
  const ticks = state.log ? ["0 to 0.0001", "0.001", "0.01", "0.1", "1"] : ["0", "0.25", "0.5", "0.75", "1"];
  $("legend-ticks").replaceChildren(...ticks.map((tick) => element("span", {}, tick)));
  $("legend-error").textContent = state.log ? "Colours in 255 steps of a logarithm; below 0.0001 all are the first." :
                                              "Colours in 255 steps: within 1/508 of the probability; numbers are exact.";
}

function drawRow() {
  if (!layerNow().loaded) return $("row").replaceChildren(element("p", {class: "quiet"}, "Reading the file\u2026"));
  const parts = [];
  const now = state.row === null ? null : {layer: layerNow(), head: state.head, query: state.row};
  if (now) parts.push(rowElement({...now, title: "Query", compared: state.pin}));
  if (state.pin) parts.push(rowElement({...state.pin, title: "Pinned query"}));
  if (!now) parts.push(element("p", {class: "quiet"}, "Point at a query of the map, or press the arrow keys, to see what it attends to."));
  $("row").replaceChildren(...parts);
  if (now) {
    const row = now.layer.row(now.head, now.query);
    $("live").textContent = rowSentence(now.layer, now.head, now.query, row, figuresOf(row));
  }
}

function drawTitles() {
  const layer = layerNow(), head = layer.heads[state.head];
  $("map-title").replaceChildren(`Layer ${state.layer}, head ${state.head} `, ...badgesOf(head, about.roles));
  const {step} = windowOf(layer, state.zoom, state.row);
  const kind = layer.self ? "self-attention" : "attention to other keys";
  $("map-note").textContent = `${layer.name}: ${kind}, ${layer.queries} queries down, ${layer.keys} keys across` +
    (step > 1 ? `; every ${step}th query is drawn, zoom in for all` : "");
  $("map").setAttribute("aria-label", `Probabilities of layer ${state.layer}, head ${state.head}. Up and down choose a query, whose numbers are read.`);
  $("layer").value = state.layer;
  $("head").replaceChildren(...layer.heads.map((_, h) => element("option", {value: h}, `${h}`)));
  $("head").value = state.head;
  $("zoom").textContent = `${state.zoom}\u00d7`;
  press($("linear"), !state.log);
  press($("log"), state.log);
}

function drawRoles() {
  fillRoles($("roles-table"), {
    layer: layerNow(), head: state.head, roles: about.roles, sort: state.sort,
    onSort: (column) => update({sort: {column, down: state.sort.column === column ? !state.sort.down : column !== "head"}}),
    onHead: (head) => update({head}),
  });
}

async function drawMap() {
  const layer = layerNow();
  if (!layer.loaded) {
    await layer.load();
    if (layer !== layerNow()) return drawn;
    drawRow();
  }
  return map.show({layer: layerNow(), head: state.head, row: state.row, zoom: state.zoom, logarithmic: state.log,
                   colours: colours[theme()], style: pageStyle()});
}

let drawn = Promise.resolve();
function update(change, all = false) {
  const before = {...state};
  Object.assign(state, change);
  const layer = layerNow();
  if (state.layer !== before.layer && before.layer in about.layers) {
    about.layers[before.layer].decoded = undefined;  // a layer's arrays are decoded again when it is looked at
    about.layers[before.layer].keysOf.clear();
  }
  state.head = Math.min(Math.max(state.head, 0), layer.heads.length - 1);
  if (state.row !== null) state.row = Math.min(Math.max(state.row, 0), layer.queries - 1);
  const differs = (...names) => all || names.some((name) => state[name] !== before[name]);
  document.documentElement.dataset.theme = theme();
  if (differs("layer", "head", "zoom", "log")) drawTitles();
  if (differs("layer")) drawLayers();
  if (differs("layer", "log", "theme")) drawHeads();
  else if (differs("head")) [...$("heads").children].forEach((button, index) => press(button, index === state.head));
  if (differs("log", "theme")) {
    drawLegend();
    paintLayers();
  }
  if (differs("layer", "head", "sort")) drawRoles();
  if (differs("layer", "head", "row", "pin")) drawRow();
  writeHash();
  if (differs("layer", "head", "row", "log", "theme", "zoom")) drawn = drawMap();
  return drawn;
}

function findToken(text) {
  const layer = layerNow();
  for (let n = 1; n <= layer.queries && text; ++n) {
    const query = ((state.row ?? -1) + n) % layer.queries;
    if (layer.queryToken(query).toLowerCase().includes(text.toLowerCase())) return update({row: query});
  }
}

const pinned = () => state.row === null ? null : {layer: layerNow(), head: state.head, query: state.row};
const zoomBy = (steps) => update({zoom: ZOOMS[Math.min(Math.max(ZOOMS.indexOf(state.zoom) + steps, 0), ZOOMS.length - 1)]});
const moveLayer = (by) => update({layer: Math.min(Math.max(state.layer + by, 0), about.layers.length - 1)});

const KEYS = {
  ArrowUp: () => update({row: state.row === null ? 0 : state.row - 1}),
  ArrowDown: () => update({row: state.row === null ? 0 : state.row + 1}),
  ArrowLeft: () => update({head: state.head - 1}),
  ArrowRight: () => update({head: state.head + 1}),
  "[": () => moveLayer(-1),
  "]": () => moveLayer(1),
  Enter: () => update({pin: pinned()}),
  Escape: () => update({pin: null}),
  l: () => update({log: !state.log}),
  "+": () => zoomBy(1),
  "-": () => zoomBy(-1),
  0: () => update({zoom: 1}),
  "/": () => $("search").focus(),
  "?": () => $("help-box").showModal(),
};

function listen() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help-box").open) return;
    const typing = event.target.matches?.("input, select");
    if (typing && event.key === "Escape") event.target.blur();
    if (typing || event.key === "Enter" && event.target.matches?.("button, summary")) return;
    if (!KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  const canvas = $("map");
  let down = null;
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const at = map.at(event.clientX, event.clientY);
    if (at && at.query !== state.row && state.zoom === 1) update({row: at.query});
  });
  canvas.addEventListener("pointerdown", (event) => { down = {x: event.clientX, y: event.clientY}; });
  canvas.addEventListener("pointerup", (event) => {
    if (!down) return;
    const across = event.clientX - down.x, along = event.clientY - down.y;
    down = null;
    if (event.pointerType === "touch" && Math.abs(across) > 60 && Math.abs(along) < 40) {
      return update({head: state.head + (across < 0 ? 1 : -1)});
    }
    const at = map.at(event.clientX, event.clientY);
    if (!at) return;
    const same = at.query === state.row;
    update({row: at.query});
    if (event.pointerType !== "touch" || same) update({pin: pinned()});
  });
  $("layer").onchange = () => update({layer: Number($("layer").value)});
  $("head").onchange = () => update({head: Number($("head").value)});
  $("linear").onclick = () => update({log: false});
  $("log").onclick = () => update({log: true});
  $("zoom-in").onclick = () => zoomBy(1);
  $("zoom-out").onclick = () => zoomBy(-1);
  $("theme").onclick = () => update({theme: theme() === "dark" ? "light" : "dark"});
  $("help").onclick = () => $("help-box").showModal();
  $("search").onkeydown = (event) => { if (event.key === "Enter") findToken($("search").value); };
  $("copy-command").onclick = () => navigator.clipboard?.writeText(about.command);
  $("save-picture").onclick = () => canvas.toBlob((picture) => {
    const link = element("a", {download: `layer-${state.layer}-head-${state.head}.png`, href: URL.createObjectURL(picture)});
    link.click();
    URL.revokeObjectURL(link.href);
  });
  new ResizeObserver(() => { if (map.computed) map.draw(); }).observe($("map-section"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => update({}, true));
  addEventListener("hashchange", () => {
    readHash();
    update({}, true);
  });
}

function fillPage() {
  document.title = `Heads: ${about.source}`;
  $("what").textContent = `What each query of ${about.source} attends to`;
  $("made").textContent = `${about.date}, headway ${about.version}, ${about.machine}; batch entry ${about.batch}`;
  $("command").textContent = about.command;
  $("notes").lastElementChild.append(...about.notes.map((note) => element("li", {}, note)));
  $("layer").append(...about.layers.map((layer, l) => element("option", {value: l}, `${l} ${layer.name}`)));
  fillDefinitions($("badge-rule"), $("definitions"), about.roles);
  const computed = about.layers.some((layer) => layer.encoding !== "rows");
  $("methods").textContent = "Probabilities are those of the run: softmax(scale \u00b7 q\u00b7k, capped where the model caps, + masks). " +
    (computed ? "Query and key are kept in 24 bits a number, with an exponent a row, from which rows are computed in double " +
      "precision when they are looked at: within 1e-6 of the run. " : "They are kept in f32. ") +
    "Colours have 255 steps; thumbnails of more than 48 positions show the largest of the cells that they join, in 254 steps. " +
    "Nothing is asked of any server; there is nothing in this file but what headway wrote, under the Apache License 2.0.";
}

readHash();
fillPage();
listen();
update({}, true);
// For a console, and for tests.
globalThis.headway = {about, state, map, colours, drawn: () => drawn, row: (layer, head, query) => about.layers[layer].row(head, query)};
