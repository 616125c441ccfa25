// A model's layers: what each of their milliseconds went to. A node's time is split by the phases inside it in the run on
// the time line; what its workers did not spend in any is waiting.

// [kind, pattern of operators]: of a node that no phase lies in.
const KINDS = [["attention", /attention/i], ["matmul", /matmul|gemm|linear|conv/i], ["norms", /norm/i], ["other", /./]];
const kindOf = (operator) => KINDS.find(([, pattern]) => pattern.test(operator))[0];
const isAttention = (row) => kindOf(row.operator ?? row.name) === "attention";
const PARTS = ["projections", "pack", "scores", "softmax", "context", "few queries", "query tiles", "fold splits", "reference", "output",
  "matmul", "attention", "norms", "other", "waiting"];
const partOf = (phase) => phase === "packed matmul" ? "matmul" : PARTS.includes(phase) ? phase : "other";

// For each node's name: its time in the traced run by part, as shares that add up to 1.
function sharesOfNodes(data) {
  const isNode = ([zone]) => data.zones[zone].category === "node";
  const nodes = data.events.filter(isNode).sort((a, b) => a[2] - b[2]), found = new Map();
  const of = (name) => found.get(name) ?? found.set(name, {whole: 0, parts: new Map()}).get(name);
  for (const [zone, , , length] of nodes) of(data.zones[zone].name).whole += length;
  for (const event of data.events) {
    if (isNode(event)) continue;
    const [zone, , begin, length] = event, middle = begin + length / 2;
    let low = 0, high = nodes.length;  // the last node that begins before it
    while (high - low > 1) {
      const at = (low + high) >> 1;
      if (nodes[at][2] <= middle) low = at; else high = at;
    }
    const node = nodes[low];
    if (!node || middle < node[2] || middle > node[2] + node[3]) continue;
    const {parts} = of(data.zones[node[0]].name), part = partOf(data.zones[zone].name);
    parts.set(part, (parts.get(part) ?? 0) + length / data.workers);
  }
  const shares = new Map();
  for (const [name, {whole, parts}] of found) {
    const measured = [...parts.values()].reduce((sum, length) => sum + length, 0), all = Math.max(whole, measured);
    const split = new Map([...parts].map(([part, length]) => [part, length / all]));
    if (parts.size) split.set("waiting", 1 - measured / all);
    shares.set(name, split);
  }
  return shares;
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

// [{layer, nodes, seconds, attention, parts}], seconds of one run by part.
function layersOf(data) {
  const shares = sharesOfNodes(data), layers = new Map();
  for (const row of data.rows) {
    if (row.category !== "node") continue;
    const name = layerOf(row);
    if (!layers.has(name)) layers.set(name, {layer: name, nodes: 0, seconds: 0, attention: 0, parts: new Map()});
    const layer = layers.get(name), split = shares.get(row.name);
    layer.nodes++;
    layer.seconds += row.seconds;
    if (isAttention(row)) layer.attention += row.seconds;
    for (const [part, share] of split?.size ? split : [[kindOf(row.operator ?? row.name), 1]]) {
      layer.parts.set(part, (layer.parts.get(part) ?? 0) + share * row.seconds);
    }
  }
  return [...layers.values()].sort((a, b) => byLayer(a.layer, b.layer));
}
