// What the reader chose: its rules, and the hash of the address, which holds it.

const WIDTHS = [16, 32, 64, 128, 192, 256, 384, 512, 768];
const MAX_HEADS = 64;
const headCounts = (E) => Array.from({length: Math.min(E, MAX_HEADS)}, (_, i) => i + 1).filter((h) => E % h === 0);
const nearest = (values, wanted) => values.reduce((a, b) => Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a);

const START = {E: 256, S: wordCount(DEFAULT_TEXT), h: 8, text: DEFAULT_TEXT, weights: "random", sentence: 0, seed: 1,
               causal: false, head: 0, row: null, log: false, theme: null};
const state = {...START};

// Puts right what cannot be together.
function settle() {
  if (state.weights === "trained") {
    state.E = built.trained.E;
    state.S = built.trained.tokens[state.sentence].length;
  }
  state.h = nearest(headCounts(state.E), state.h);
  state.head = Math.min(Math.max(state.head, 0), state.h - 1);
  if (state.row !== null) state.row = Math.min(Math.max(state.row, 0), state.S - 1);
}

// Takes the hash; returns a line for each thing in it that cannot be.
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1)), wrong = [];
  const take = (name, good, expected, of = Number) => {
    if (!given.has(name)) return START[name];
    const value = of(given.get(name));
    if (good(value)) return value;
    wrong.push(`${name} is '${given.get(name).slice(0, 40)}', expected ${expected}; taken: ${START[name] ?? "none"}.`);
    return START[name];
  };
  const whole = (begin, end) => (n) => Number.isInteger(n) && n >= begin && n <= end;
  const text = (t) => t;
  state.weights = take("weights", (w) => w === "random" || w === "trained", "random or trained", text);
  state.text = take("text", (t) => t.length <= 400, "400 characters at most", text);
  state.E = take("E", (n) => WIDTHS.includes(n), `one of ${WIDTHS.join(", ")}`);
  state.S = given.has("S") ? take("S", whole(1, MAX_TOKENS), `1 to ${MAX_TOKENS}`) : wordCount(state.text);
  const trained = state.weights === "trained", last = built.trained.tokens.length - 1;
  const E = trained ? built.trained.E : state.E;
  state.h = take("h", (n) => headCounts(E).includes(n), `a divisor of ${E} up to ${MAX_HEADS}`);
  if (trained && !given.has("h")) state.h = built.trained.heads;
  state.sentence = take("sentence", whole(0, last), `0 to ${last}`);
  state.seed = take("seed", whole(1, 2 ** 31), "a whole number from 1");
  state.causal = take("causal", whole(0, 1), "0 or 1") === 1;
  state.head = take("head", whole(0, state.h - 1), `0 to ${state.h - 1}`);
  state.row = take("row", whole(0, MAX_TOKENS - 1), `0 to ${state.S - 1}`);
  state.log = take("scale", (t) => t === "log", "log", text) === "log";
  state.theme = take("theme", (t) => t === "light" || t === "dark", "light or dark", text) ?? null;
  settle();
  return wrong;
}

function writeHash() {
  const hash = new URLSearchParams();
  const own = state.weights === "trained" ? ["weights", "sentence", "h", "head"] : ["E", "S", "h", "head", "seed", "text"];
  for (const name of own) hash.set(name, state[name]);
  if (state.causal) hash.set("causal", 1);
  if (state.row !== null) hash.set("row", state.row);
  if (state.log) hash.set("scale", "log");
  if (state.theme) hash.set("theme", state.theme);
  history.replaceState(null, "", `#${hash}`);
}
