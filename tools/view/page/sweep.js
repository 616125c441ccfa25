// The page of a sweep: what is shown, the controls, the tables. The state is in the URL's hash.

const DEFINITIONS = [
  ["time", "Median over the rounds of one call of the layer: four projections and attention. Whiskers and bands run from the fastest round to the slowest."],
  ["phases", "Of one profiled call, summed over workers and scaled to the median: a bar's parts add up to its median."],
  ["matrix work", "Multiplications and additions of projections, scores and context by formula: it is the same at every h, as D = E / h."],
  ["exps", "Exponentials of the softmax, as counted: one for each head, query and visible key."],
  ["share of the peak", "Matrix work a second over the FMA peak that the same threads reached right before and after each round."],
  ["sweet spot", "The head counts around the fastest whose median is within 3 % of its own."],
  ["at equal peak", "Every round's time times the FMA peak around it, so that a clock that has changed is not taken for a change of the code. The interval holds 99 % of 4,000 bootstrap resamples of both sweeps' rounds."],
];
const state = {of: "0", h: null, theme: null};

const several = data.sweeps.length > 1;
const sweep = () => data.sweeps[state.of === "all" ? 0 : Number(state.of)];
const rowsOf = (one) => [...one.rows].sort((a, b) => a.heads - b.heads);
const phaseNames = [...new Set(data.sweeps.flatMap((one) => one.rows.flatMap((row) => row.phases.map((phase) => phase.name))))];
const theme = () => state.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
const grouped = (count) => count.toLocaleString("en").replaceAll(",", "\u202f");

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const of = given.get("of");
  state.of = of === "all" && several || data.sweeps[of] ? of : several ? "all" : "0";
  state.h = rowsOf(sweep()).some((row) => row.heads === Number(given.get("h"))) ? Number(given.get("h")) : null;
  state.theme = ["light", "dark"].includes(given.get("theme")) ? given.get("theme") : null;
}
function update(change) {
  Object.assign(state, change);
  const hash = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) if (value !== null) hash.set(name, value);
  history.replaceState(null, "", `#${hash}`);
  draw();
}

function numbers() {
  const names = ["h", "D", "parameters", "matrix GFLOP", "exps", "ms", "min", "max", "GF/s", "% peak", ...phaseNames.map((name) => `${name} ms`)];
  const rows = rowsOf(sweep());
  table($("numbers"), names, rows.map((row) => {
    const phases = new Map(phasesOf(row).map(({name, ms}) => [name, ms]));
    const [least, most] = extremes(row);
    return [
      row.heads, row.head_dim, grouped(row.parameters), (row.matmul_flops_nominal / 1e9).toFixed(3), grouped(row.exps),
      milliseconds(row.seconds_median).toFixed(3), least.toFixed(3), most.toFixed(3), row.gflops.toFixed(1), row.peak_percent.toFixed(1),
      ...phaseNames.map((name) => (phases.get(name) ?? 0).toFixed(3))];
  }), rows.findIndex(({heads}) => heads === state.h));
}

function say() {
  const row = rowsOf(sweep()).find(({heads}) => heads === state.h);
  if (!row) return $("live").replaceChildren();
  const parts = phasesOf(row).filter(({ms}) => ms > 0).map(({name, ms}) => `${name} ${short(ms)}`).join(", ");
  $("live").textContent = `h = ${row.heads}, D = ${row.head_dim}: ${milliseconds(row.seconds_median).toFixed(3)} ms (${parts}), ` +
    `${row.peak_percent.toFixed(1)} % of the peak, ${grouped(row.exps)} exps`;
}

function draw() {
  document.documentElement.dataset.theme = theme();
  $("of").value = state.of;
  if (state.of === "all") {
    const colours = data.sweeps.map((_, i) => PHASE_COLOURS[i % PHASE_COLOURS.length]);
    drawSweeps($("chart"), data.sweeps, colours, false, "Time of every sweep over the head count");
    $("ratios").hidden = false;
    drawSweeps($("ratio-chart"), data.sweeps, colours, true, "Time over that of the first sweep");
    drawKey($("key"), data.sweeps.map((one, i) => [`${one.name}: ${one.machine.cpu}, ${one.machine.simd}, ${one.version}, ${one.date}`, colours[i]]));
  } else {
    $("ratios").hidden = true;
    drawSweep($("chart"), sweep(), colourOfPhase, state.h, data.sentence);
    drawKey($("key"), [...phaseNames.map((name) => [name, colourOfPhase(name)]), ["matrix work", "var(--phase0)"], ["exps", "var(--phase2)"],
         ["share of the peak (dashed)", "var(--phase4)"]]);
  }
  numbers();
  say();
}

function start() {
  const config = data.sweeps[0].config;
  const what = `E = ${config.embed_dim}, S = ${config.seq}, B = ${config.batch}${config.causal ? ", causal" : ""}, ${config.type}; ` +
    `${config.rounds} rounds; FMA peak ${data.sweeps[0].machine.fma_peak_gflops.toFixed(1)} GFLOP/s; ${data.machine}; ${data.sweeps[0].date}`;
  fillPage(data.sentence, what, DEFINITIONS);
  if (several) $("of").append(element("option", {value: "all"}, "all sweeps"));
  data.sweeps.forEach((one, i) => $("of").append(element("option", {value: `${i}`}, one.name)));
  $("of").onchange = () => update({of: $("of").value, h: null});
  $("theme").onclick = () => update({theme: theme() === "dark" ? "light" : "dark"});
  $("save-svg").onclick = () => saveChart("sweep.svg", $("chart").firstChild);
  $("save-csv").onclick = () => saveTable("sweep.csv", $("numbers"));
  if (data.comparison) {
    $("compared").hidden = false;
    table($("comparison"), ["h", "before ms", "now ms", "ratio", "at equal peak", "99 % from", "to", ""], data.comparison.heads.map((head) => [
      head.heads, milliseconds(head.old_seconds).toFixed(3), milliseconds(head.new_seconds).toFixed(3), head.ratio_of_times.toFixed(3),
      head.ratio.toFixed(3), head.low.toFixed(3), head.high.toFixed(3), head.slower ? "slower" : head.faster ? "faster" : ""]));
  }
  document.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.target.tagName === "SELECT" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") return update({h: null});
    if (step === undefined) return;
    event.preventDefault();
    const heads = rowsOf(sweep()).map((row) => row.heads), at = heads.indexOf(state.h);
    update({h: heads[at < 0 ? (step > 0 ? 0 : heads.length - 1) : Math.min(Math.max(at + step, 0), heads.length - 1)]});
  });
  $("chart").addEventListener("click", (event) => {
    const title = event.target.querySelector?.("title")?.textContent.match(/h = (\d+)/);
    if (title) update({h: Number(title[1])});
  });
  addEventListener("hashchange", () => { readHash(); draw(); });
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  readHash();
  draw();
}
start();
window.headway = {state, drawn: () => new Promise((done) => requestAnimationFrame(() => done()))};  // for whoever scripts the page
