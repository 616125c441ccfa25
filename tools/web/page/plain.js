// The same layer as anybody would write it in JavaScript: what the kernels are compared with.

// y[r, n] = Σ x[r, k]·w[n, k] + bias[n]
function plainProduct(x, rows, depth, weight, columns, bias) {
  const y = new Float32Array(rows * columns);
  for (let r = 0; r < rows; ++r) {
    for (let n = 0; n < columns; ++n) {
      let sum = 0;
      for (let k = 0, a = r * depth, b = n * depth; k < depth; ++k, ++a, ++b) sum += x[a] * weight[b];
      y[r * columns + n] = sum + bias[n];
    }
  }
  return y;
}

class PlainLayer {
  constructor(S, E) { Object.assign(this, {S, E, values: {}}); }
  view(name) { return this.values[name]; }
  setWeights(weights) { Object.assign(this.values, weights); }
  setX(x) { this.values.x = x; }
  split(h, causal = false) { Object.assign(this, {h, causal}); }
  project() {
    const {x, inWeight, inBias} = this.values;
    this.values.qkv = plainProduct(x, this.S, this.E, inWeight, 3 * this.E, inBias);
  }
  attend() {
    const {S, E, h, causal} = this, {qkv} = this.values, D = E / h, scale = 1 / Math.sqrt(D);
    const context = new Float32Array(S * E), p = new Float32Array(S);
    for (let head = 0; head < h; ++head) {
      for (let i = 0; i < S; ++i) {
        const keys = causal ? i + 1 : S, q = i * 3 * E + head * D;
        let most = -Infinity, sum = 0;
        for (let j = 0; j < keys; ++j) {
          let s = 0;
          for (let d = 0, k = j * 3 * E + E + head * D; d < D; ++d, ++k) s += qkv[q + d] * qkv[k];
          p[j] = s * scale;
          if (p[j] > most) most = p[j];
        }
        for (let j = 0; j < keys; ++j) sum += p[j] = Math.exp(p[j] - most);
        const to = i * E + head * D;
        for (let j = 0; j < keys; ++j) {
          const weight = p[j] / sum;
          for (let d = 0, v = j * 3 * E + 2 * E + head * D; d < D; ++d, ++v) context[to + d] += weight * qkv[v];
        }
      }
    }
    this.values.context = context;
  }
  output() {
    const {context, outWeight, outBias} = this.values;
    this.values.out = plainProduct(context, this.S, this.E, outWeight, this.E, outBias);
  }
  run() {
    this.project();
    this.attend();
    this.output();
  }
  free() { this.values = {}; }
}
