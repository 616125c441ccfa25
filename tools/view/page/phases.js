// The colour of a phase: the same on every page, whatever else is drawn beside it.

const PHASE_COLOURS = ["var(--phase0)", "var(--phase1)", "var(--phase2)", "var(--phase3)", "var(--phase4)", "var(--phase5)",
  "var(--phase6)", "var(--phase7)", "var(--phase8)", "var(--phase9)"];
const KNOWN_PHASES = {projections: 0, pack: 1, scores: 2, softmax: 3, other: 4, output: 5, context: 6, matmul: 7, "packed matmul": 7,
  "few queries": 6, "query tiles": 6, "fold splits": 1, reference: 6, norms: 8, attention: 9, waiting: 10};

function colourOfPhase(name) {
  return PHASE_COLOURS[KNOWN_PHASES[name] ?? KNOWN_PHASES.other] ?? "var(--line)";
}
