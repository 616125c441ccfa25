// The part of the page that measures this computer: a worker, so that the page goes on working; what it says is drawn
// by chart.js.

const BENCH_E = [64, 128, 256, 512, 1024], BENCH_S = [32, 64, 128, 256, 512];

function save(blob, name) {
  const link = element("a", {download: name, href: URL.createObjectURL(blob)});
  link.click();
  URL.revokeObjectURL(link.href);
}

class Machine {
  // `find` gives an element by its id; `module` a compiled module by its name; `changed` is told of every result.
  constructor(find, module, changed) {
    Object.assign(this, {find, module, changed, results: {}, worker: null, turn: 0});
    const options = (values) => values.map((value) => element("option", {value}, `${value}`));
    find("bench-E").append(...options(BENCH_E));
    find("bench-S").append(...options(BENCH_S));
    find("bench-E").value = 512;
    find("bench-S").value = 256;
    find("sweep").onclick = () => this.sweep();
    find("compare").onclick = () => this.compare();
    find("stop").onclick = () => this.end("stopped");
    const redraw = () => { if (this.results.sweep) drawChart(find("chart"), this.results.sweep); };
    new ResizeObserver(redraw).observe(find("machine"));
  }
  get sizes() { return {E: Number(this.find("bench-E").value), S: Number(this.find("bench-S").value)}; }

  async sweep() {
    const {find} = this, {E, S} = this.sizes, heads = [1, 2, 4, 8, 16, 32, 64].filter((h) => h <= E);
    const result = await this.run({kind: "sweep", E, S, heads}, ["simd"]);
    if (!result) return;
    this.results.sweep = result;
    find("verdict").textContent = sweepVerdict(result);
    drawChart(find("chart"), result);
    const copy = element("button", {type: "button"}, "copy CSV");
    copy.onclick = () => navigator.clipboard?.writeText(sweepCsv(result));
    const picture = element("button", {type: "button"}, "SVG");
    picture.onclick = () => {
      save(new Blob([chartFile(find("chart").firstChild)], {type: "image/svg+xml"}), "headway-sweep.svg");
    };
    const how = `E = ${E}, S = ${S}, ${result.target}, one thread; whiskers are the fastest and the slowest round. `;
    find("sweep-table").replaceChildren(sweepTable(result), element("p", {class: "quiet"}, how, copy, " ", picture));
    this.changed();
  }

  async compare() {
    const {E, S} = this.sizes, h = Math.min(8, E);
    const result = await this.run({kind: "compare", E, S, h}, ["simd", "scalar"]);
    if (!result) return;
    this.results.compare = result;
    const ms = Object.fromEntries(result.rows.map((row) => [row.way, row.total.median]));
    const faster = (way) => (ms[way] / ms.simd).toFixed(1);
    this.find("compare-verdict").textContent = `Here vectors make the layer ${faster("scalar")} times as fast as the ` +
      `same kernels without them, and ${faster("plain")} times as fast as plain JavaScript.`;
    this.find("compare-table").replaceChildren(compareTable(result), element("p", {class: "quiet"},
        `E = ${E}, S = ${S}, h = ${h}; plain JavaScript: the loops of the equations over Float32Array.`));
    this.changed();
  }

  // What the worker answers to a message, which gets these modules; null where it was stopped or failed.
  async run(message, names) {
    const {find} = this;
    this.end("");
    const turn = this.turn;
    for (const id of ["sweep", "compare"]) find(id).disabled = true;
    for (const id of ["progress", "stop"]) find(id).hidden = false;
    find("progress").value = 0;
    const modules = {};
    for (const name of names) modules[name] = await this.module(name);
    if (turn !== this.turn) return null;
    const source = URL.createObjectURL(new Blob([find("shared").textContent], {type: "text/javascript"}));
    this.worker = new Worker(source);
    URL.revokeObjectURL(source);
    return new Promise((resolve) => {
      this.resolve = resolve;
      this.worker.onmessage = ({data}) => {
        if (data.share !== undefined) {
          find("progress").value = data.share;
          find("progress-text").textContent = data.text;
        } else {
          this.end(data.error ?? "", data.result ?? null);
        }
      };
      this.worker.onerror = (event) => this.end(event.message ?? "this browser starts no worker from a file");
      this.worker.postMessage({...message, modules});
    });
  }
  end(words, result = null) {
    ++this.turn;
    this.worker?.terminate();
    this.worker = null;
    for (const id of ["sweep", "compare"]) this.find(id).disabled = false;
    for (const id of ["progress", "stop"]) this.find(id).hidden = true;
    this.find("progress-text").textContent = words;
    this.resolve?.(result);
    this.resolve = null;
  }
}
