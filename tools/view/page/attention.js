// The data of the page, and the probabilities that it stands for: read where they are stored in f32, else computed from
// query and key. Knows nothing of how they are drawn.

const HIDDEN = 255;
const LOWEST = -1e30;  // a finite mask as low as this hides, unless it does so for the whole row

function bytesOf(id) {
  const encoded = document.getElementById(id).textContent;
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(encoded);
  const text = atob(encoded);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// A mask: a byte that says its kind, then rows of keys.
class Bias {
  constructor(bytes, keys) {
    const adds = bytes[0] === 1;
    this.values = adds ? new Float32Array(bytes.slice(1).buffer) :
                         Float32Array.from(bytes.subarray(1), (hides) => hides ? -Infinity : 0);
    this.keys = keys;
    this.rows = this.values.length / keys;
  }
  row(query) {
    const begin = (this.rows === 1 ? 0 : query) * this.keys;
    return this.values.subarray(begin, begin + this.keys);
  }
}

class Layer {
  constructor(info, index, biases) {
    Object.assign(this, info);
    this.index = index;
    this.sharedBiases = biases;
    this.keysOf = new Map();
  }
  get bytes() { return this.decoded ??= bytesOf(`layer-${this.index}`); }
  // Large arrays stand behind the script: whether this layer's have been parsed.
  get loaded() {
    return this.here ||= document.readyState !== "loading" || Boolean(document.getElementById(`layer-${this.index}`)?.nextElementSibling);
  }
  async load() {
    while (!this.loaded) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  part(name, Type = Uint8Array) {
    const {offset, bytes} = this.parts[name];
    return new Type(this.bytes.buffer, offset, bytes / Type.BYTES_PER_ELEMENT);
  }
  // Rows [begin, end) of width head_dim in fixed point: 24 bits and an exponent for each row.
  fixedRows(name, begin, end) {
    const width = this.head_dim, bytes = this.part(name), exponents = this.part(`${name}_exponents`, Int8Array);
    const rows = new Float32Array((end - begin) * width);
    for (let row = begin, to = 0; row < end; ++row) {
      const unit = 2 ** (exponents[row] - 23);
      for (let from = 3 * row * width; from < 3 * (row + 1) * width; from += 3) {
        rows[to++] = ((bytes[from] | bytes[from + 1] << 8 | bytes[from + 2] << 16) << 8 >> 8) * unit;
      }
    }
    return rows;
  }
  keyRows(head) {
    const group = Math.floor(head * this.kv_heads / this.heads.length);
    if (!this.keysOf.has(group)) {
      this.keysOf.set(group, this.fixedRows("key", group * this.keys, (group + 1) * this.keys));
    }
    return this.keysOf.get(group);
  }
  biasRow(head, query) {
    return this.biases ? this.sharedBiases(this.biases[head], this.keys).row(query) : null;
  }
  // Keys that the query may see by causality, window and length; from `tail` on all see them.
  visible(query) {
    const range = this.part("visible", Int32Array);
    return {begin: range[2 * query], end: range[2 * query + 1], tail: this.keys_with_positions};
  }

  // One row: {p: probabilities, hidden: 1 where a mask hides, logSumExp}. In double precision.
  row(head, query) {
    const p = new Float64Array(this.keys), hidden = new Uint8Array(this.keys);
    const {begin, end, tail} = this.visible(query), bias = this.biasRow(head, query);
    const biasOf = (j) => j >= tail ? 0 : j < begin || j >= end ? -Infinity : bias ? bias[j] : 0;
    let logSumExp = null;
    if (this.encoding === "rows") {
      const at = (head * this.queries + query) * this.keys;
      p.set(this.part("rows", Float32Array).subarray(at, at + this.keys));
    } else {
      const at = head * this.queries + query, width = this.head_dim, keys = this.keyRows(head);
      const q = this.fixedRows("query", at, at + 1);
      let most = -Infinity, sum = 0;
      for (let j = 0; j < this.keys; ++j) {
        const b = biasOf(j);
        p[j] = -Infinity;
        if (b === -Infinity) continue;
        let s = 0;
        for (let d = 0, k = j * width; d < width; ++d, ++k) s += q[d] * keys[k];
        if (this.softcap > 0) s = this.softcap * Math.tanh(s / this.softcap);
        p[j] = s + b;
        most = Math.max(most, p[j]);
      }
      for (let j = 0; j < this.keys; ++j) sum += p[j] = most === -Infinity ? 0 : Math.exp(p[j] - most);
      for (let j = 0; j < this.keys && sum > 0; ++j) p[j] /= sum;
      logSumExp = most + Math.log(sum);
    }
    for (let j = 0; j < this.keys; ++j) hidden[j] = biasOf(j) === -Infinity || biasOf(j) <= LOWEST && p[j] === 0;
    return {p, hidden, logSumExp};
  }

  // Probabilities of queries, each `step`-th from `query` on, against keys [keyBegin, keyEnd) for a map: −1 where
  // hidden. Written to `to` from `at` on. By the run's log-sum-exp, so that a row is passed over once.
  mapRow(head, query, keyBegin, keyEnd, to, at) {
    const {begin, end, tail} = this.visible(query), bias = this.biasRow(head, query);
    const index = head * this.queries + query;
    const stored = this.encoding === "rows" ? this.part("rows", Float32Array) : null;
    const width = this.head_dim, keys = stored ? null : this.keyRows(head);
    const q = stored ? null : this.fixedRows("query", index, index + 1);
    const sum = stored ? 0 : this.part("log_sum_exp", Float32Array)[index];
    for (let j = keyBegin; j < keyEnd; ++j, ++at) {
      const b = j >= tail ? 0 : j < begin || j >= end ? -Infinity : bias ? bias[j] : 0;
      if (b === -Infinity) {
        to[at] = -1;
      } else if (stored) {
        const p = stored[index * this.keys + j];
        to[at] = b <= LOWEST && p === 0 ? -1 : p;
      } else {
        let s = 0;
        for (let d = 0, k = j * width; d < width; ++d, ++k) s += q[d] * keys[k];
        if (this.softcap > 0) s = this.softcap * Math.tanh(s / this.softcap);
        const p = Math.exp(s + b - sum);
        to[at] = b <= LOWEST && p === 0 ? -1 : p;
      }
    }
  }

  thumbnail(head) {
    const [rows, columns] = this.thumbnail_cells;
    this.thumbnails ??= bytesOf(`thumbnails-${this.index}`);
    return this.thumbnails.subarray(head * rows * columns, (head + 1) * rows * columns);
  }

  queryToken(i) { return this.query_tokens ? this.query_tokens[i] : String(i); }
  keyToken(j) {
    if (this.key_tokens && j < this.key_tokens.length) return this.key_tokens[j];
    return j >= this.keys_with_positions ? `+${j - this.keys_with_positions + 1}` : String(j);
  }
}

function readPage() {
  const about = JSON.parse(document.getElementById("headway-data").textContent);
  const biases = new Map();
  const bias = (number, keys) => {
    if (!biases.has(number)) biases.set(number, new Bias(bytesOf(`bias-${number}`), keys));
    return biases.get(number);
  };
  about.layers = about.layers.map((info, i) => new Layer(info, i, bias));
  return about;
}

// Sum, entropy in nats, its share of ln(visible keys), and the keys from the largest probability down.
function figuresOf({p, hidden}) {
  let sum = 0, entropy = 0, visible = 0;
  p.forEach((x, j) => {
    sum += x;
    if (x > 0) entropy -= x * Math.log(x);
    if (x > 0) ++visible;
  });
  const order = Array.from(p.keys()).filter((j) => !hidden[j]).sort((a, b) => p[b] - p[a]);
  return {sum, entropy, share: visible > 1 ? entropy / Math.log(visible) : null, order};
}
