// forward.mjs PAGE FOLDER LAYERS.PY: the kernels of a live page without a browser. Takes its scripts and both modules out of
// the page, computes layers, and has layers.py write them, with layers.json saying which.
import {spawnSync} from "node:child_process";
import {readFileSync, writeFileSync} from "node:fs";

const [page, folder, python] = process.argv.slice(2);
const html = readFileSync(page, "utf8");
const contents = (id) => {
  const begin = html.indexOf(`id="${id}">`) + id.length + 6;
  return html.slice(begin, html.indexOf("</script>", begin));
};
const names = ["Engine", "WasmLayer", "PlainLayer", "randomWeights", "embeddings", "wordsOf"];
const shared = new Function("document", `${contents("shared")}; return {${names.join(", ")}};`)({});
const words = shared.wordsOf("one small layer, twice: the same numbers with vectors and without");

const layers = [];
for (const way of ["simd", "scalar"]) {
  const engine = await shared.Engine.load(Buffer.from(contents(`${way}-module`), "base64"));
  for (const [E, h, causal] of [[64, 4, false], [192, 64, true]]) {
    const S = words.length, layer = new shared.WasmLayer(engine, S, E);
    layer.setWeights(shared.randomWeights(E, 3));
    layer.setX(shared.embeddings(words, E));
    layer.split(h, causal, true);
    layer.run();
    const arrays = ["x", "inWeight", "inBias", "outWeight", "outBias", "out", "probabilities"];
    const name = `${way}-${E}-${h}`;
    layers.push({name, target: engine.target, E, S, heads: h, causal,
                 arrays: Object.fromEntries(arrays.map((of) => [of, Buffer.from(Float32Array.from(layer.view(of)).buffer).toString("base64")]))});
    layer.free();
  }
}
const script = `import base64, json, sys; sys.path.insert(0, ${JSON.stringify(python)}); import layers
for l in json.load(sys.stdin): layers.save_layer(${JSON.stringify(folder)}, l["name"], l["E"], l["S"], l["heads"],
    {n: base64.b64decode(t) for n, t in l["arrays"].items()})`;
const written = spawnSync("python3", ["-c", script], {input: JSON.stringify(layers), stdio: ["pipe", "inherit", "inherit"]});
writeFileSync(`${folder}/layers.json`, JSON.stringify(layers.map(({arrays, ...rest}) => rest)));
process.exit(written.status ?? 1);
