// The page of a profile: sentence, time line, tables, roofline, controls.

const data = JSON.parse(document.getElementById("headway-data").textContent);
const $ = (id) => document.getElementById(id);
const COLOURS = ["var(--phase0)", "var(--phase1)", "var(--phase2)", "var(--phase3)", "var(--phase4)", "var(--phase5)"];
// The same colour for the same phase on every page.
const KNOWN = {projections: 0, pack: 1, scores: 2, softmax: 3, context: 4, output: 5};
const KINDS = [["attention", 2, /attention/i], ["products", 0, /matmul|gemm|linear/i], ["norms", 3, /norm/i], ["other", 4, /./]];
const DEFINITIONS = [
  ["time line", "One run: a track a worker, nodes above the phases inside them. White between them is waiting, or work that is not measured."],
  ["worker ms", "Of one run, on average: time summed over workers."],
  ["GF/s, share of the peak", "Executed flops over the time of a worker, times the number of workers; the peak is that of an FMA loop on the same threads."],
  ["roofs", "The FMA peak, and the best plain read of memory beyond every cache, both measured when this page was made. A phase above the slope works from caches."],
  ["intensity", "Executed flops over bytes of operands read and results written, once each."],
];
const state = {theme: null};  // and the time line's view: in the URL's hash
const theme = () => state.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const nodes = data.rows.filter((row) => row.category === "node"), phases = data.rows.filter((row) => row.category !== "node");
const shown = phases.length ? phases : nodes;
const kindOf = (operator) => KINDS.find(([, , pattern]) => pattern.test(operator));
// Kinds of work of the same name are told apart by their category.
for (const row of phases) {
  const twins = phases.filter((other) => other.name === row.name);
  row.label = twins.length > 1 ? `${row.category} ${row.name} ${twins.indexOf(row) + 1}` : row.name;
}
for (const row of nodes) row.label = row.name;
const operatorOf = new Map(nodes.map((row) => [row.name, row.operator ?? row.name]));
const indexOf = (name) => KNOWN[name] ?? (phases.findIndex((row) => row.name === name) + 2) % COLOURS.length;

function colourOf(event) {
  const {name, category} = data.zones[event.zone];
  return category === "node" ? COLOURS[kindOf(operatorOf.get(name) ?? name)[1]] : COLOURS[indexOf(name)];
}
const sum = (rows) => rows.reduce((total, row) => total + row.seconds, 0);
const percent = (part, all) => `${(all > 0 ? 100 * part / all : 0).toFixed(1)} %`;
const rateOf = (row) => row.flops_executed * data.workers / row.seconds;

function table(target, names, rows) {
  target.replaceChildren(element("tr", {}, ...names.map((name) => element("th", {}, name))));
  for (const cells of rows) target.append(element("tr", {}, ...cells.map((cell) => element("td", {}, cell))));
}

// "encoder 3", "3", or "none": the number that the node's name has, and its side where a model has two.
function layerOf({name, layer}) {
  if ((layer ?? -1) < 0) return "none";
  return `${/decoder/i.test(name) ? "decoder " : /encoder/i.test(name) ? "encoder " : ""}${layer}`;
}
function byLayer(a, b) {
  const [sideA, sideB] = [a, b].map((layer) => layer === "none" ? "~" : layer.replace(/\d+$/, ""));
  return sideA === sideB ? parseInt(a.match(/\d*$/)) - parseInt(b.match(/\d*$/)) : (sideA > sideB) - (sideA < sideB) || 0;
}

function drawTables() {
  const all = sum(shown);
  table($("numbers"), ["phase", "pieces", "worker ms", "time", "GFLOP", "Mexp", "MB", "GF/s", "% peak", "flops a byte"],
    shown.map((row) => [row.label, short(row.count), milliseconds(row.seconds).toFixed(4), percent(row.seconds, all),
      (row.flops_executed / 1e9).toFixed(4), (row.exps / 1e6).toFixed(3), (row.bytes / 1e6).toFixed(3), (rateOf(row) / 1e9).toFixed(1),
      (100 * rateOf(row) / data.peak_flops).toFixed(1), row.bytes > 0 ? short(row.flops_executed / row.bytes) : ""]));
  if (!nodes.length) return;
  $("layers").hidden = false;
  const layers = new Map();
  for (const row of nodes) layers.set(layerOf(row), [...(layers.get(layerOf(row)) ?? []), row]);
  const order = [...layers.keys()].sort(byLayer), longest = Math.max(...[...layers.values()].map(sum));
  table($("layer-table"), ["layer", "nodes", "ms", "attention", ...KINDS.slice(1).map(([kind]) => kind), ""], order.map((layer) => {
    const rows = layers.get(layer), whole = sum(rows);
    const of = (kind) => sum(rows.filter((row) => kindOf(row.operator ?? row.name)[0] === kind));
    const parts = element("div", {class: "parts"});
    for (const [kind, colour] of KINDS) {
      const part = element("span", {title: `${kind}: ${milliseconds(of(kind)).toFixed(3)} ms`});
      part.style.width = `${100 * of(kind) / longest}%`;
      part.style.background = COLOURS[colour];
      parts.append(part);
    }
    return [layer, `${rows.length}`, milliseconds(whole).toFixed(3), ...KINDS.map(([kind]) => percent(of(kind), whole)), parts];
  }));
}

function drawRoofline() {
  const points = shown.filter((row) => row.flops_executed > 0 && row.bytes > 0 && row.seconds > 0);
  const picture = new Picture($("roofline"), 330, "Roofline"), left = 60, right = picture.width - 20, top = 20, bottom = 290;
  const log = Math.log10, knee = data.peak_flops / data.read_bandwidth;
  const intensities = points.map((row) => row.flops_executed / row.bytes), rates = points.map(rateOf);
  const xs = [Math.min(0.1, ...intensities), Math.max(100, knee * 4, ...intensities) * 1.5];
  const ys = [Math.min(data.peak_flops / 300, ...rates) / 1.5, Math.max(data.peak_flops, ...rates) * 1.6];
  const x = (value) => left + (log(value) - log(xs[0])) / (log(xs[1]) - log(xs[0])) * (right - left);
  const y = (value) => bottom - (log(value) - log(ys[0])) / (log(ys[1]) - log(ys[0])) * (bottom - top);
  for (let power = Math.ceil(log(xs[0])); 10 ** power <= xs[1]; ++power) {
    picture.add("line", {class: "grid", x1: x(10 ** power), x2: x(10 ** power), y1: top, y2: bottom});
    picture.text(x(10 ** power), bottom + 16, short(10 ** power), {"text-anchor": "middle"});
  }
  for (let power = Math.ceil(log(ys[0])); 10 ** power <= ys[1]; ++power) {
    picture.add("line", {class: "grid", x1: left, x2: right, y1: y(10 ** power), y2: y(10 ** power)});
    picture.text(left - 6, y(10 ** power) + 4, short(10 ** power / 1e9), {"text-anchor": "end"});
  }
  picture.text(left, top - 6, "GFLOP/s");
  picture.text(right, bottom + 32, "flops a byte", {"text-anchor": "end"});
  const from = Math.max(xs[0], ys[0] / data.read_bandwidth);
  picture.add("path", {class: "roof", d: `M${x(from)} ${y(from * data.read_bandwidth)}L${x(knee)} ${y(data.peak_flops)}H${right}`});
  picture.text(right, y(data.peak_flops) - 7, `${(data.peak_flops / 1e9).toFixed(0)} GFLOP/s`, {"text-anchor": "end"});
  picture.text(x(from) + 8, y(from * data.read_bandwidth) + 14, `${(data.read_bandwidth / 1e9).toFixed(1)} GB/s`);
  const labels = [];
  points.forEach((row, i) => {
    const dot = picture.add("circle", {cx: x(intensities[i]), cy: y(rates[i]), r: 5.5, fill: COLOURS[indexOf(row.name)]});
    dot.append(svg("title", {}, `${row.label}: ${(rates[i] / 1e9).toFixed(1)} GFLOP/s, ${short(intensities[i])} flops a byte`));
    // Labels give way downwards to those that are there.
    const at = {x: x(intensities[i]), y: y(rates[i]) + 4}, beyond = at.x > right - 90;
    while (labels.some((label) => Math.abs(label.x - at.x) < 80 && Math.abs(label.y - at.y) < 13)) at.y += 13;
    labels.push(at);
    picture.text(at.x + (beyond ? -9 : 9), at.y, row.label, beyond ? {"text-anchor": "end"} : {});
  });
}

function sentence() {
  const all = sum(shown), [most] = [...shown].sort((a, b) => b.seconds - a.seconds), busy = all / (data.wall_seconds * data.workers);
  const attention = nodes.filter((row) => kindOf(row.operator ?? row.name)[0] === "attention");
  const ofModel = nodes.length ? ` Attention takes ${percent(sum(attention), sum(nodes))} of the time in nodes.` : "";
  return `One run takes ${milliseconds(data.wall_seconds).toFixed(3)} ms; most of it is ${most.name}, ${percent(most.seconds, all)}.` +
    `${ofModel} Workers are in measured work ${percent(busy, 1)} of the time.`;
}

function start() {
  $("sentence").textContent = sentence();
  $("what").textContent = `${data.what}; ${data.workers} worker${data.workers === 1 ? "" : "s"}, mean of ${data.runs} runs; ${data.machine}; ${data.date}`;
  $("command").textContent = data.command;
  $("copy-command").onclick = () => navigator.clipboard?.writeText(data.command);
  $("made").textContent = `headway ${data.version}. This page asks for nothing; its data are in the element headway-data.`;
  for (const [term, meaning] of DEFINITIONS) $("definitions").append(element("dt", {}, term), element("dd", {}, meaning));
  const line = new Timeline($("line"), data, colourOf, (event) => {
    $("live").textContent = event ? `${line.nameOf(event)} on worker ${event.worker}: ${short(event.length)} µs from ${short(event.begin)} µs on` : "";
  });
  const names = nodes.length ? KINDS.map(([kind, colour]) => [`nodes: ${kind}`, colour]) : [];
  for (const [name, colour] of [...names, ...phases.map((row) => [row.label, indexOf(row.name)])]) {
    const swatch = element("span", {class: "swatch-phase"});
    swatch.style.background = COLOURS[colour];
    $("key").append(element("span", {}, swatch, name));
  }
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
    drawRoofline();
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
  $("save-csv").onclick = () => {
    const text = [...$("numbers").rows].map((row) => [...row.cells].map((cell) => cell.textContent).join(",")).join("\n") + "\n";
    const link = element("a", {download: "profile.csv", href: URL.createObjectURL(new Blob([text], {type: "text/csv"}))});
    link.click();
    URL.revokeObjectURL(link.href);
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.tagName === "INPUT") {
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
  window.headway = {data, line, drawn: () => new Promise((done) => requestAnimationFrame(() => done()))};  // for whoever scripts the page
}
start();
