// The module of kernels, and a layer in its memory. Knows neither the page nor what the numbers mean.

const BUFFERS = ["x", "inWeight", "inBias", "outWeight", "outBias", "qkv", "context", "out", "probabilities"];

class Engine {
  // A compiled module, or its bytes.
  static async load(module) {
    const engine = new Engine();
    // Nothing is written and nothing read: of the system the kernels ask for an empty environment and the time.
    const none = () => 0;
    const view = () => new DataView(engine.calls.memory.buffer);
    const system = {
      environ_get: none,
      environ_sizes_get(count, bytes) {
        view().setUint32(count, 0, true);
        view().setUint32(bytes, 0, true);
        return 0;
      },
      clock_time_get(_clock, _precision, at) {
        view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
        return 0;
      },
      proc_exit(code) { throw new Error(`the kernels ended with ${code}`); },
    };
    const imports = {wasi_snapshot_preview1: system, env: {emscripten_notify_memory_growth: none}};
    const made = await WebAssembly.instantiate(module, imports);
    engine.calls = (made.instance ?? made).exports;
    engine.calls._initialize();
    return engine;
  }
  text(address) {
    const bytes = new Uint8Array(this.calls.memory.buffer, address);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
  get target() { return this.text(this.calls.live_target()); }
  check(failed) {
    if (failed) throw new Error(this.text(this.calls.live_error()));
  }
}

// S tokens of width E; the number of heads changes with split(), nothing else does.
class WasmLayer {
  constructor(engine, S, E) {
    Object.assign(this, {engine, S, E, h: 0});
    this.at = engine.calls.live_layer(S, E);
    engine.check(this.at === 0);
  }
  // A view of the module's memory, good until the next call.
  view(name) {
    const {S, E, h} = this;
    const lengths = {x: S * E, inWeight: 3 * E * E, inBias: 3 * E, outWeight: E * E, outBias: E, qkv: 3 * S * E,
                     context: S * E, out: S * E, probabilities: h * S * S};
    const {calls} = this.engine, at = calls.live_buffer(this.at, BUFFERS.indexOf(name));
    return new Float32Array(calls.memory.buffer, at, lengths[name]);
  }
  // {inWeight [3E, E], inBias [3E], outWeight [E, E], outBias [E]}
  setWeights(weights) {
    for (const name of ["inWeight", "inBias", "outWeight", "outBias"]) this.view(name).set(weights[name]);
    this.call("live_pack");
  }
  setX(x) { this.view("x").set(x); }
  split(h, causal = false, probabilities = false) {
    this.h = h;
    this.call("live_split", h, Number(causal), Number(probabilities));
  }
  project() { this.call("live_project"); }
  attend() { this.call("live_attend"); }
  output() { this.call("live_output"); }
  run() {
    this.project();
    this.attend();
    this.output();
  }
  explain() { return this.engine.text(this.engine.calls.live_explain(this.at)); }
  free() {
    this.engine.calls.live_free(this.at);
    this.at = 0;
  }
  call(name, ...args) { this.engine.check(this.engine.calls[name](this.at, ...args)); }
}
