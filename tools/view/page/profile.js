// The page of a profile: sentence, time line, tables, roofline, controls.

const DEFINITIONS = [
  ["time line", "One run, the shortest of up to five: a track a worker, nodes above the phases inside them. Empty between them is waiting, or work that is not measured."],
  ["by layer", "Milliseconds of nodes, by the layer that their names tell. A node's time is split by the phases inside it in the run on the time line, a mean over the workers; waiting is what workers spent in none. Nodes without phases count whole as norms, other and the like."],
  ["worker ms", "Of one run, on average: time summed over workers."],
  ["GF/s, share of the peak", "Executed flops over the time of a worker, times the number of workers; the peak is that of an FMA loop on the same threads."],
  ["roofs", "The FMA peak, and the best plain read of memory beyond every cache, both measured when this page was made, the best of several tries. A phase above the slope works from caches."],
  ["intensity", "Executed flops over bytes of operands read and results written, once each."],
];
const state = {theme: null};  // and the time line's view: in the URL's hash
const theme = () => state.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const nodes = data.rows.filter((row) => row.category === "node"), phases = data.rows.filter((row) => row.category !== "node");
const shown = phases.length ? phases : nodes;
// Kinds of work of the same name are told apart by their category.
for (const row of phases) {
  row.label = phases.filter((other) => other.name === row.name).length > 1 ? `${row.category} ${row.name}` : row.name;
}
for (const row of nodes) row.label = row.name;
const operatorOf = new Map(nodes.map((row) => [row.name, row.operator ?? row.name]));

function colourOf(event) {
  const {name, category} = data.zones[event.zone];
  return colourOfPhase(category === "node" ? kindOf(operatorOf.get(name) ?? name) : name);
}
const sum = (rows) => rows.reduce((total, row) => total + row.seconds, 0);
const percent = (part, all) => `${(all > 0 ? 100 * part / all : 0).toFixed(1)} %`;
const rateOf = (row) => row.flops_executed * data.workers / row.seconds;

function drawTables() {
  const all = sum(shown);
  table($("numbers"), ["phase", "pieces", "worker ms", "time", "GFLOP", "Mexp", "MB", "GF/s", "% peak", "flops a byte"],
    shown.map((row) => [row.label, short(row.count), milliseconds(row.seconds).toFixed(4), percent(row.seconds, all),
      (row.flops_executed / 1e9).toFixed(4), (row.exps / 1e6).toFixed(3), (row.bytes / 1e6).toFixed(3), (rateOf(row) / 1e9).toFixed(1),
      (100 * rateOf(row) / data.peak_flops).toFixed(1), row.bytes > 0 ? short(row.flops_executed / row.bytes) : ""]));
  if (!nodes.length) return;
  $("layers").hidden = false;
  const layers = layersOf(data), longest = Math.max(...layers.map(({seconds}) => seconds));
  const parts = PARTS.filter((part) => layers.some((layer) => layer.parts.get(part) > 0));
  table($("layer-table"), ["layer", "nodes", "ms", "attention", "", ...parts],
    layers.map((layer) => {
      const bar = element("div", {class: "parts"});
      for (const part of parts) {
        const seconds = layer.parts.get(part) ?? 0, piece = element("span", {title: `${part}: ${milliseconds(seconds).toFixed(3)} ms`});
        piece.style.width = `${100 * seconds / longest}%`;
        piece.style.background = colourOfPhase(part);
        bar.append(piece);
      }
      return [layer.layer, `${layer.nodes}`, milliseconds(layer.seconds).toFixed(3), percent(layer.attention, layer.seconds), bar,
        ...parts.map((part) => milliseconds(layer.parts.get(part) ?? 0).toFixed(4))];
    }));
  drawKey($("layer-key"), parts.map((part) => [part, colourOfPhase(part)]));
}

function roofline() {
  const points = shown.filter((row) => row.flops_executed > 0 && row.bytes > 0 && row.seconds > 0).map((row) => (
    {label: row.label, colour: colourOfPhase(row.name), intensity: row.flops_executed / row.bytes, rate: rateOf(row)}));
  return drawRoofline($("roofline"), data, points, "Phases under the roofs that were measured; the numbers are in the table by kind of work");
}

function sentence() {
  const all = sum(shown), [most] = [...shown].sort((a, b) => b.seconds - a.seconds), busy = all / (data.wall_seconds * data.workers);
  const attention = nodes.filter(isAttention);
  const ofModel = nodes.length ? ` Attention takes ${percent(sum(attention), sum(nodes))} of the time in nodes.` : "";
  return `One run takes ${milliseconds(data.wall_seconds).toFixed(3)} ms; most of it is ${most.name}, ${percent(most.seconds, all)}.` +
    `${ofModel} Workers are in measured work ${percent(busy, 1)} of the time.` +
    (shown.some((row) => rateOf(row) > 1.05 * data.peak_flops) ? " Phases above the FMA peak: bf16 products, or a machine that had other work while its peak was measured." : "");
}

function start() {
  const what = `${data.what}; ${data.workers} worker${data.workers === 1 ? "" : "s"}, mean of ${data.runs} runs; ${data.machine}; ${data.date}`;
  fillPage(sentence(), what, DEFINITIONS);
  const line = new Timeline($("line"), data, colourOf, (event) => {
    $("live").textContent = event ? `${line.nameOf(event)} on worker ${event.worker}: ${short(event.length)} µs from ${short(event.begin)} µs on` : "";
  });
  const kinds = KINDS.map(([kind]) => kind).filter((kind) => nodes.some((row) => kindOf(row.operator ?? row.name) === kind));
  drawKey($("key"), [...kinds.map((kind) => [`nodes: ${kind}`, colourOfPhase(kind)]),
                     ...new Map(phases.map((row) => [row.name, colourOfPhase(row.name)]))]);
  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1)), theme = given.get("theme");
    state.theme = ["light", "dark"].includes(theme) ? theme : null;
    const [begin, end] = [Number(given.get("begin")), Number(given.get("end"))];
    if (end > begin && begin >= 0) line.view = {begin, end: Math.min(end, line.end)};
  };
  line.onView = () => {
    const hash = new URLSearchParams(state.theme ? {theme: state.theme} : {});
    if (line.span < line.end) for (const edge of ["begin", "end"]) hash.set(edge, line.view[edge].toFixed(1));
    history.replaceState(null, "", `#${hash}`);
  };
  const draw = () => {
    document.documentElement.dataset.theme = theme();
    line.draw();
    roofline();
  };
  drawTables();
  read();
  draw();
  addEventListener("hashchange", () => { read(); draw(); });
  $("theme").onclick = () => { state.theme = theme() === "dark" ? "light" : "dark"; line.onView(); draw(); };
  $("zoom-in").onclick = () => line.zoom(0.5);
  $("zoom-out").onclick = () => line.zoom(2);
  $("whole").onclick = () => line.whole();
  $("search").oninput = () => {
    const count = line.search($("search").value);
    $("live").textContent = $("search").value ? `${count} of ${line.events.length} pieces` : "";
  };
  $("save-csv").onclick = () => saveTable("profile.csv", $("numbers"));
  const saved = () => chartFile($("roofline").firstChild);
  $("save-svg").onclick = () => saveChart("roofline.svg", $("roofline").firstChild);
  $("save-png").onclick = () => line.canvas.toBlob((blob) => save("time-line.png", blob));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.tagName === "INPUT") {
      if (event.key === "Enter") line.next();
      if (event.key === "Escape") { $("search").value = ""; $("search").oninput(); $("search").blur(); }
      return;
    }
    const act = {ArrowLeft: () => line.move(-0.2), ArrowRight: () => line.move(0.2), "+": () => line.zoom(0.5), "-": () => line.zoom(2),
                 0: () => line.whole(), "/": () => $("search").focus()}[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.headway = {data, line, saved, drawn: () => new Promise((done) => requestAnimationFrame(() => done()))};  // for whoever scripts the page
}
start();
