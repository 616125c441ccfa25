// The page at work: every change goes through update(), which computes the layer anew where it has to.

const $ = (id) => document.getElementById(id);
const map = new HeadMap($("map"));
const theme = () => state.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const colours = {light: colourTable("light"), dark: colourTable("dark")};
const modules = {};
const module = (name) => modules[name] ??= WebAssembly.compile(bytesOf(`${name}-module`));
let engine = null;
const now = {layer: null, heads: null, weights: null, milliseconds: null, errors: null, timer: 0,
             drawn: Promise.resolve()};

function pageStyle() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return {accent: of("accent"), accentText: of("accent-text"), text: of("text"), quiet: of("quiet"), hatch: of("hatch"),
          cell: of("cell")};
}

function compute() {
  const {E, S, h, causal} = state, tokens = tokensOf(state), {weights} = weightsOf(state);
  if (now.layer?.E !== E || now.layer.S !== S) {
    now.layer?.free();
    now.layer = new WasmLayer(engine, S, E);
    now.weights = null;
  }
  if (now.weights !== weights) {
    now.layer.setWeights(weights);
    now.weights = weights;
  }
  now.layer.setX(vectorsOf(state, tokens));
  now.layer.split(h, causal, true);
  now.layer.run();
  now.heads = new LiveHeads(now.layer, tokens, causal);
  map.computed = null;
}

// How long a pass takes, once the reader has stopped moving things: a browser compiles what runs often a second time,
// and its clock is coarse.
function measureSoon() {
  clearTimeout(now.timer);
  now.milliseconds = now.errors = null;
  $("errors").textContent = "";
  now.timer = setTimeout(() => {
    const once = timed(() => now.layer.run(), 1), repeats = Math.max(1, Math.ceil(5 / Math.max(once, 0.05)));
    now.milliseconds = Math.min(...Array.from({length: 3}, () => timed(() => now.layer.run(), repeats)));
    fillCosts($("costs"), state, headCounts(state.E), now.milliseconds);
    now.errors = errorsOf(state, now.layer, now.weights);
    $("errors").textContent = errorSentence(now.errors);
    writeJson();
  }, 250);
}

function drawControls() {
  const {E, S, h} = state, trained = state.weights === "trained", counts = headCounts(E);
  const press = (id, on) => $(id).setAttribute("aria-pressed", on);
  press("random", !trained);
  press("trained", trained);
  press("log", state.log);
  $("typed").hidden = $("reseed").hidden = trained;
  $("chosen").hidden = !trained;
  if (document.activeElement !== $("text")) $("text").value = state.text;
  $("sentence").value = state.sentence;
  $("causal").checked = state.causal;
  const slider = (id, index, most, shown) => {
    Object.assign($(id), {max: most, value: index});
    $(id).setAttribute("aria-valuetext", shown);
    $(`${id}-shown`).textContent = shown;
  };
  slider("E", WIDTHS.indexOf(E), WIDTHS.length - 1, E);
  slider("S", S, MAX_TOKENS, S);
  slider("h", counts.indexOf(h), counts.length - 1, h);
  $("E").disabled = $("S").disabled = trained;
  $("D-shown").textContent = E / h;
  $("weights-note").textContent = !trained ?
    "Drawn from a seed; a word's vector comes from its letters. Untrained heads look everywhere and nowhere, each " +
      "differently." :
    h === built.trained.heads ? `Layer 0 of all-MiniLM-L6-v2 with the ${h} heads that it was trained with.` :
    `Trained with ${built.trained.heads} heads. Cut into ${h}, the same weights are other heads, which nobody trained.`;
}

function drawLegend() {
  const context = $("legend").getContext("2d");
  for (let x = 0; x < 256; ++x) {
    context.fillStyle = `rgb(${colours[theme()][Math.round(x / 255 * 254)]})`;
    context.fillRect(x, 0, 1, 1);
  }
  const ticks = state.log ? ["0 to 0.0001", "0.001", "0.01", "0.1", "1"] : ["0", "0.25", "0.5", "0.75", "1"];
  $("legend-ticks").replaceChildren(...ticks.map((tick) => element("span", {}, tick)));
}

function drawRow() {
  if (state.row === null) {
    const hint = "Point at a row of the map, or tap it: what that token attends to, in numbers.";
    $("row").replaceChildren(element("p", {class: "quiet"}, hint));
    return;
  }
  const {heads} = now;
  $("row").replaceChildren(rowElement({layer: heads, head: state.head, query: state.row, title: "Row"}));
  const row = heads.row(state.head, state.row);
  $("live").textContent = rowSentence(heads, state.head, state.row, row, figuresOf(row));
}

// What the page shows, for whoever reads it by a program.
function writeJson() {
  const {results} = machine, {theme: _, ...chosen} = state;
  const row = state.row === null ? null : Array.from(now.heads.row(state.head, state.row).p);
  const {milliseconds, errors} = now, {target} = engine;
  const shown = {...built, state: chosen, D: state.E / state.h, tokens: now.heads.query_tokens, costs: costsOf(state), row,
                 milliseconds, errors, target, ...results};
  $("headway-live").textContent = JSON.stringify(shown).replaceAll("<", "\\u003c");
}

function update(change, all = false) {
  const before = {...state};
  Object.assign(state, change);
  settle();
  const differs = (...names) => all || names.some((name) => state[name] !== before[name]);
  document.documentElement.dataset.theme = theme();
  const anew = differs("E", "S", "h", "text", "weights", "sentence", "seed", "causal");
  if (anew) {
    compute();
    fillCosts($("costs"), state, headCounts(state.E), null);
    fillStory(state);
    measureSoon();
  }
  if (anew || differs("log")) drawControls();
  if (anew || differs("log", "theme")) {
    fillFlow($("flow"), {layer: now.layer, heads: now.heads, colours: colours[theme()], logarithmic: state.log,
                         onHead: (head) => update({head})});
    drawLegend();
  }
  choose($("flow"), state);
  const {head, row, log, h} = state, D = state.E / h;
  $("map-title").textContent = `Head ${head} of ${h}: columns ${head * D} to ${(head + 1) * D - 1}`;
  $("map").setAttribute("aria-label", `Probabilities of head ${head}. Up and down choose a row, whose numbers are read.`);
  if (anew || differs("row", "head")) drawRow();
  writeHash();
  writeJson();
  return now.drawn = map.show({layer: now.heads, head, row, zoom: 1, logarithmic: log, colours: colours[theme()],
                               style: pageStyle()});
}

const moveHeads = (by) => {
  const counts = headCounts(state.E);
  return update({h: counts[Math.min(Math.max(counts.indexOf(state.h) + by, 0), counts.length - 1)]});
};
const setWeights = (weights) => update(weights === "trained" ? {weights, h: built.trained.heads, head: 0} : {weights});

const KEYS = {
  ArrowUp: () => update({row: state.row === null ? 0 : state.row - 1}),
  ArrowDown: () => update({row: state.row === null ? 0 : state.row + 1}),
  ArrowLeft: () => update({head: state.head - 1}),
  ArrowRight: () => update({head: state.head + 1}),
  "[": () => moveHeads(-1),
  "]": () => moveHeads(1),
  c: () => update({causal: !state.causal}),
  l: () => update({log: !state.log}),
  "/": () => $("text").focus(),
  Escape: () => update({row: null}),
  "?": () => $("help-box").showModal(),
};

function listen() {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help-box").open) return;
    const typing = event.target.matches?.("input, select");
    if (typing && event.key === "Escape") event.target.blur();
    if (typing || !KEYS[event.key]) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  $("E").oninput = () => update({E: WIDTHS[$("E").value]});
  $("S").oninput = () => update({S: Number($("S").value)});
  $("h").oninput = () => update({h: headCounts(state.E)[$("h").value]});
  $("text").oninput = () => update({text: $("text").value, S: wordCount($("text").value)});
  $("sentence").onchange = () => update({sentence: Number($("sentence").value)});
  $("causal").onchange = () => update({causal: $("causal").checked});
  $("random").onclick = () => setWeights("random");
  $("trained").onclick = () => setWeights("trained");
  $("reseed").onclick = () => update({seed: state.seed + 2});
  $("save-picture").onclick = () => $("map").toBlob((picture) => save(picture, `head-${state.head}-of-${state.h}.png`));
  $("log").onclick = () => update({log: !state.log});
  $("theme").onclick = () => update({theme: theme() === "dark" ? "light" : "dark"});
  $("help").onclick = () => $("help-box").showModal();
  for (const button of document.querySelectorAll("[data-try]")) {
    const change = JSON.parse(button.dataset.try);
    button.onclick = () => change.weights ? setWeights(change.weights) : update(change);
  }
  let down = null;
  $("map").addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const at = map.at(event.clientX, event.clientY);
    if (at && at.query !== state.row) update({row: at.query});
  });
  $("map").addEventListener("pointerdown", (event) => { down = {x: event.clientX, y: event.clientY}; });
  $("map").addEventListener("pointerup", (event) => {
    const across = event.clientX - down?.x, along = event.clientY - down?.y;
    down = null;
    if (event.pointerType === "touch" && Math.abs(across) > 60 && Math.abs(along) < 40) {
      return update({head: state.head + (across < 0 ? 1 : -1)});
    }
    const at = map.at(event.clientX, event.clientY);
    if (at) update({row: at.query});
  });
  new ResizeObserver(() => { if (map.computed) map.draw(); }).observe($("map-section"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => update({}, true));
  addEventListener("hashchange", () => {
    $("complaint").textContent = readHash().join(" ");
    update({}, true);
  });
}

function fillPage() {
  $("made").textContent = `headway ${built.version}, built ${built.date} by ${built.compiler}; command: ${built.command}`;
  $("sentence").append(...built.trained.sentences.map((text, i) => element("option", {value: i}, text)));
  $("methods").textContent = "Methods. Kernels: ops/simd and ops/attention of Headway with Highway's " +
    `${engine.target} target; one thread. Random weights: normal with variance 2/E, so that scores have a deviation of ` +
    "2; biases are 0. A token's vector: three quarters of its variance from a hash of the word, one quarter the sines " +
    "and cosines of its place. Flops: 8\u00b7S\u00b7E\u00b2 for the four products, 4\u00b7S\u00b2\u00b7E for scores and " +
    "their sums of values, masks not subtracted. Colours have 255 steps, within 1/508 of the probability; numbers are " +
    `exact. Nothing is asked of any server. Licence: ${built.licence}`;
}

const machine = new Machine($, module, writeJson);
const ready = (async () => {
  engine = await Engine.load(await module("simd"));
  fillPage();
  listen();
  $("complaint").textContent = readHash().join(" ");
  await update({}, true);
})().catch((error) => { $("complaint").textContent = `This browser cannot run the kernels: ${error.message}`; });
// For a console, and for tests.
globalThis.headway = {built, state, map, colours, machine, update, now, ready,
                      drawn: () => ready.then(() => now.drawn)};
