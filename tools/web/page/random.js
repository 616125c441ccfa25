// Numbers that are the same on every machine: weights from a seed, a vector for every word from its letters, and where
// a token stands as Vaswani et al. 2017, 3.5, have it.

// 32 bits at a time, by mulberry32.
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6d2b79f5 >>> 0;
    let t = Math.imul(state ^ state >>> 15, state | 1);
    t = t + Math.imul(t ^ t >>> 7, t | 61) ^ t;
    return (t ^ t >>> 14) >>> 0;
  };
}

// About normal: the sum of four uniform numbers, with this standard deviation.
function fillNormal(to, seed, deviation) {
  const next = generator(seed), unit = deviation * Math.sqrt(3) / 2 ** 32;
  for (let i = 0; i < to.length; ++i) to[i] = (next() + next() + next() + next() - 2 ** 33) * unit;
  return to;
}

// FNV-1a.
function hashOf(text) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

// Deviations that make scores differ enough to see: those of a head have a deviation of 2.
function randomWeights(E, seed) {
  const deviation = Math.sqrt(2 / E);
  return {
    inWeight: fillNormal(new Float32Array(3 * E * E), seed, deviation), inBias: new Float32Array(3 * E),
    outWeight: fillNormal(new Float32Array(E * E), seed + 1, deviation), outBias: new Float32Array(E),
  };
}

const wordsOf = (sentence) => sentence.match(/[\p{L}\p{N}'’-]+|[^\s\p{L}\p{N}]/gu) ?? [];

// x [S, E]: three quarters of a token's variance are its word, a quarter is its place.
function embeddings(tokens, E) {
  const x = new Float32Array(tokens.length * E), word = new Float32Array(E);
  tokens.forEach((token, s) => {
    fillNormal(word, hashOf(token.toLowerCase()), Math.sqrt(0.75));
    for (let e = 0; e < E; ++e) {
      const angle = s / 10000 ** (2 * Math.floor(e / 2) / E);
      x[s * E + e] = word[e] + Math.sqrt(0.5) * (e % 2 === 0 ? Math.sin(angle) : Math.cos(angle));
    }
  });
  return x;
}
