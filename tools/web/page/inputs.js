// What goes into the layer: tokens, their vectors, weights; random ones for a typed sentence, or a trained layer with
// the sentences that it has vectors of.

const built = JSON.parse(document.getElementById("headway-data").textContent);

const DEFAULT_TEXT = "the cat sat on the mat and the dog sat on the cat";
const MAX_TOKENS = 64;

const floatsOf = (id) => new Float32Array(bytesOf(id).buffer);

// Weights that were asked for last: decoding or drawing them takes longer than the layer.
const weightsNow = {key: null, weights: null};
function weightsOf(state) {
  const key = state.weights === "trained" ? "trained" : `${state.E} ${state.seed}`;
  if (weightsNow.key !== key) {
    weightsNow.weights = state.weights === "trained" ? trainedWeights() : randomWeights(state.E, state.seed);
    weightsNow.key = key;
  }
  return weightsNow;
}

function trainedWeights() {
  const {E} = built.trained, all = floatsOf("trained-weights");
  let at = 0;
  const next = (length) => all.subarray(at, at += length);
  return {inWeight: next(3 * E * E), inBias: next(3 * E), outWeight: next(E * E), outBias: next(E)};
}

// The tokens of a sentence, from the start again where S asks for more.
function tokensOf(state) {
  if (state.weights === "trained") return built.trained.tokens[state.sentence];
  const words = wordsOf(state.text);
  if (words.length === 0) return Array.from({length: state.S}, () => "\u00b7");
  return Array.from({length: state.S}, (_, i) => words[i % words.length]);
}

const wordCount = (text) => Math.min(Math.max(wordsOf(text).length, 1), MAX_TOKENS);

// The chosen sentence's rows [S, E] of what is kept of all of them.
function sentenceRows(id, {sentence}) {
  const {E, tokens} = built.trained;
  const before = tokens.slice(0, sentence).reduce((sum, words) => sum + words.length, 0);
  return floatsOf(id).subarray(before * E, (before + tokens[sentence].length) * E);
}

function vectorsOf(state, tokens) {
  return state.weights === "trained" ? sentenceRows("trained-x", state) : embeddings(tokens, state.E);
}

// How far a pass is from others: {plain: the same layer in JavaScript, or null where that would take long; torch: for
// the trained layer as it was trained}.
const PLAIN_FLOPS = 1e8;
function errorsOf(state, layer, weights) {
  const {S, E, h, causal} = state, out = layer.view("out").slice();
  const errors = {plain: null, torch: null};
  if (layerFlops(S, E) <= PLAIN_FLOPS) {
    const plain = new PlainLayer(S, E);
    plain.setWeights(weights);
    plain.setX(layer.view("x").slice());
    plain.split(h, causal);
    plain.run();
    errors.plain = farthest(out, plain.view("out"));
  }
  const asTrained = state.weights === "trained" && h === built.trained.heads && !causal;
  if (asTrained) errors.torch = farthest(out, sentenceRows("trained-out", state));
  return errors;
}

function errorSentence({plain, torch}) {
  const parts = [];
  if (torch !== null) parts.push(`${torch.toExponential(1)} of torch in double precision`);
  if (plain !== null) parts.push(`${plain.toExponential(1)} of plain JavaScript, which adds up in double precision`);
  return parts.length === 0 ? "" : `out is within ${parts.join(", and within ")}.`;
}

// The last forward pass as the map and the row show it; see the view page's Layer.
class LiveHeads extends Layer {
  constructor(layer, tokens, causal) {
    const {S, E, h} = layer;
    super({queries: S, keys: S, heads: Array(h).fill({}), kv_heads: h, head_dim: E / h, encoding: "rows", biases: null,
           keys_with_positions: S, self: true, offset: 0, query_tokens: tokens, key_tokens: tokens}, null, null);
    this.arrays = {
      rows: Float32Array.from(layer.view("probabilities")),
      visible: Int32Array.from({length: 2 * S}, (_, n) => n % 2 === 0 ? 0 : causal ? (n + 1) / 2 : S),
    };
  }
  part(name) { return this.arrays[name]; }
  cells(head) {
    const {queries: S} = this, cells = new Float32Array(S * S);
    for (let i = 0; i < S; ++i) this.mapRow(head, i, 0, S, cells, i * S);
    return cells;
  }
}
