// Timing, for a worker: the layer at every number of heads, and the same layer in other ways. Reports how far it is.

const ROUNDS = 5, ROUND_MILLISECONDS = 20, WARM_MILLISECONDS = 400;
const PHASES = ["project", "attend", "output"];

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), n = sorted.length;
  return (sorted[(n - 1) >> 1] + sorted[n >> 1]) / 2;
}
const statistics = (values) => ({median: median(values), min: Math.min(...values), max: Math.max(...values)});

const farthest = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);

// Flops of a layer: four products with weights, then scores and context.
const projectionFlops = (S, E) => 8 * S * E * E;
const attentionFlops = (S, E) => 4 * S * S * E;
const layerFlops = (S, E) => projectionFlops(S, E) + attentionFlops(S, E);

// Milliseconds of a step. The clock of a browser is coarse, so that short steps are repeated.
function timed(step, repeats) {
  const begin = performance.now();
  for (let i = 0; i < repeats; ++i) step();
  return (performance.now() - begin) / repeats;
}

function filled(layer, S, E) {
  layer.setWeights(randomWeights(E, 1));
  layer.setX(fillNormal(new Float32Array(S * E), 7, 1));
  return layer;
}

// Until the browser has compiled what runs often a second time.
function warmUp(run) {
  const end = performance.now() + WARM_MILLISECONDS;
  do run(); while (performance.now() < end);
}

// Rounds over all head counts, so that a drift of the machine touches all of them alike.
async function measureSweep({modules, E, S, heads}, report) {
  const layer = filled(new WasmLayer(await Engine.load(modules.simd), S, E), S, E);
  const rows = heads.map((h) => ({h, D: E / h, flops: layerFlops(S, E), exps: h * S * S, times: []}));
  warmUp(() => heads.forEach((h) => {
    layer.split(h);
    layer.run();
  }));
  for (let round = 0; round < ROUNDS; ++round) {
    for (const [i, row] of rows.entries()) {
      layer.split(row.h);
      layer.run();
      const once = timed(() => layer.run(), 1);
      const repeats = Math.max(1, Math.ceil(ROUND_MILLISECONDS / Math.max(once, 0.05)));
      row.times.push(Object.fromEntries(PHASES.map((phase) => [phase, timed(() => layer[phase](), repeats)])));
      row.implementation = layer.explain().split(":")[0];
      report((round * rows.length + i + 1) / (ROUNDS * rows.length), `round ${round + 1} of ${ROUNDS}, h = ${row.h}`);
    }
  }
  for (const row of rows) {
    row.total = statistics(row.times.map((t) => t.project + t.attend + t.output));
    for (const phase of PHASES) row[phase] = statistics(row.times.map((t) => t[phase]));
    delete row.times;
  }
  return {E, S, target: layer.engine.target, rows};
}

// The same numbers by vectors, by the same kernels without vectors, and by plain JavaScript.
async function compareWays({modules, E, S, h}, report) {
  const engines = {simd: await Engine.load(modules.simd), scalar: await Engine.load(modules.scalar)};
  const wasm = (way, name) => {
    const engine = engines[way];
    return {way, name: `WebAssembly, ${name} (Highway's ${engine.target})`, layer: new WasmLayer(engine, S, E)};
  };
  const ways = [wasm("simd", "128-bit vectors"), wasm("scalar", "the same kernels a float at a time"),
                {way: "plain", name: "plain JavaScript", layer: new PlainLayer(S, E)}];
  for (const {layer} of ways) {
    filled(layer, S, E).split(h);
    warmUp(() => layer.run());
  }
  const plain = ways[2].layer.view("out");
  const rows = ways.map(({name, way, layer}) => ({name, way, times: [], apart: farthest(layer.view("out"), plain)}));
  for (let round = 0; round < ROUNDS; ++round) {
    ways.forEach(({way, layer}, i) => {
      const once = rows[i].times[0] ?? timed(() => layer.run(), 1);
      rows[i].times.push(timed(() => layer.run(), Math.max(1, Math.ceil(ROUND_MILLISECONDS / Math.max(once, 0.05)))));
      report((round * ways.length + i + 1) / (ROUNDS * ways.length), `round ${round + 1} of ${ROUNDS}, ${way}`);
    });
  }
  for (const row of rows) {
    row.total = statistics(row.times);
    delete row.times;
  }
  return {E, S, h, flops: layerFlops(S, E), rows};
}

// In a worker: one message asks, others tell.
if (typeof document === "undefined" && typeof postMessage === "function") {
  onmessage = async ({data}) => {
    const report = (share, text) => postMessage({share, text});
    try {
      postMessage({result: await (data.kind === "sweep" ? measureSweep : compareWays)(data, report)});
    } catch (error) {
      postMessage({error: error.message});
    }
  };
}
