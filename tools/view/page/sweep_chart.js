// Charts over h as SVG, in the colours of the page's style: one sweep's time in stacked phases with its spread, above
// what is computed; and several sweeps as lines. Knows no control.

const milliseconds = (seconds) => seconds * 1e3;
const short = (value) => Number(value.toPrecision(3)).toString();
const extremes = (row) => [Math.min(...row.round_seconds), Math.max(...row.round_seconds)].map(milliseconds);

// Phases of a row, scaled to its median: they are of one profiled run, summed over workers.
function phasesOf(row) {
  const all = row.phases.reduce((sum, phase) => sum + phase.seconds, 0);
  return row.phases.map(({name, seconds}) => ({name, ms: all > 0 ? milliseconds(row.seconds_median) * seconds / all : 0}));
}

// The places of head counts on an axis of log2 h.
class HeadAxis {
  constructor(heads, left, right) {
    this.heads = [...new Set(heads)].sort((a, b) => a - b);
    const first = Math.log2(this.heads[0]), span = Math.max(Math.log2(this.heads.at(-1)) - first, 1);
    const gaps = this.heads.slice(1).map((h, i) => Math.log2(h / this.heads[i]));
    this.slot = (right - left) * Math.min(...gaps, span) / (span + Math.min(...gaps, span));
    this.at = (h) => left + this.slot / 2 + (Math.log2(h) - first) / span * (right - left - this.slot);
  }
}

class Picture {
  constructor(box, height, label) {
    this.width = Math.min(Math.max(box.clientWidth, 320), 1000);
    this.root = svg("svg", {viewBox: `0 0 ${this.width} ${height}`, role: "img", "aria-label": label});
    box.replaceChildren(this.root);
  }
  add(tag, attributes, ...children) {
    const made = svg(tag, attributes, ...children);
    this.root.append(made);
    return made;
  }
  text(x, y, words, attributes = {}) { return this.add("text", {x, y, ...attributes}, `${words}`); }
  // Grid and labels of a value axis.
  values(left, right, least, most, y) {
    const step = niceStep(most - least);
    for (let n = Math.ceil(least / step); n * step <= most; ++n) {
      this.add("line", {class: "grid", x1: left, x2: right, y1: y(n * step), y2: y(n * step)});
      this.text(left - 6, y(n * step) + 4, short(n * step), {"text-anchor": "end"});
    }
  }
  heads(axis, y, widths) {
    axis.heads.forEach((h) => {
      this.text(axis.at(h), y, h, {class: "strong", "text-anchor": "middle"});
      if (widths) this.text(axis.at(h), y + 16, widths.get(h), {"text-anchor": "middle"});
    });
  }
  line(axis, rows, value, y, attributes) {
    const d = rows.map((row, i) => `${i ? "L" : "M"}${axis.at(row.heads)} ${y(value(row))}`).join("");
    return this.add("path", {class: "line", d, ...attributes});
  }
}

// The top of an axis of times: one round that was interrupted does not make all the others small.
function highest(rows) {
  const medians = Math.max(...rows.map((row) => milliseconds(row.seconds_median)));
  return Math.min(1.06 * Math.max(...rows.map((row) => extremes(row)[1])), 1.7 * medians);
}

function drawSweep(box, sweep, colourOf, chosen, label) {
  const rows = [...sweep.rows].sort((a, b) => a.heads - b.heads);
  const left = 52, top = 26, high = 250, gap = 48, low = 130, height = top + high + gap + low + 46;
  const picture = new Picture(box, height, label), right = picture.width - 58;
  const axis = new HeadAxis(rows.map((row) => row.heads), left, right), wide = Math.min(axis.slot * 0.6, 58);
  const most = highest(rows), y = (ms) => top + high - ms / most * high;
  const {first, last, share} = sweep.sweet_spot;
  const from = axis.at(first) - axis.slot / 2, to = axis.at(last) + axis.slot / 2;
  picture.add("rect", {class: "sweet", x: from, y: top, width: to - from, height: high});
  picture.text(Math.min(Math.max((from + to) / 2, left + 80), right - 80), top - 9,
               `within ${100 * share} % of the fastest`, {"text-anchor": "middle"});
  picture.text(left - 6, top - 9, "ms", {"text-anchor": "end"});
  picture.values(left, right, 0, most, y);
  for (const row of rows) {
    const x = axis.at(row.heads), [least, greatest] = extremes(row);
    let base = 0;
    for (const {name, ms} of phasesOf(row)) {
      const bar = picture.add("rect", {x: x - wide / 2, y: y(base + ms), width: wide, height: y(base) - y(base + ms), fill: colourOf(name)});
      bar.append(svg("title", {}, `h = ${row.heads}, ${name}: ${short(ms)} ms`));
      base += ms;
    }
    picture.add("path", {class: "median", d: `M${x - wide / 2 - 3} ${y(base)}h${wide + 6}`});
    if (greatest <= most) {
      picture.add("path", {class: "whisker", d: `M${x - 5} ${y(greatest)}h10m-5 0V${y(least)}m-5 0h10`});
    } else {  // beyond the axis: an arrow, and how far
      picture.add("path", {class: "whisker", d: `M${x - 4} ${top + 7}l4 -6l4 6m-4 -6V${y(least)}m-5 0h10`});
      picture.text(x + 7, top + 10, `to ${short(greatest)}`);
    }
    if (row.heads === chosen) {
      picture.add("rect", {class: "chosen", x: x - wide / 2 - 5, y: top, width: wide + 10, height: high});
    }
  }
  const base = top + high + gap + low, few = rows[0], spread = Math.max(1, Math.log2(rows.at(-1).exps / Math.max(few.exps, 1)));
  const level = (times) => base - 8 - Math.log2(Math.max(times, 1)) / spread * (low - 30);
  const percent = (value) => base - 8 - value / 100 * (low - 30);
  picture.text(left, base - low - 6, "work, × the fewest heads");
  picture.text(right + 52, base - low - 6, "% of peak", {"text-anchor": "end"});
  picture.add("path", {class: "grid", d: `M${left} ${base}H${right}`});
  for (const times of new Set([1, Math.round(rows.at(-1).exps / Math.max(few.exps, 1))])) {
    picture.text(left - 6, level(times) + 4, `×${times}`, {"text-anchor": "end"});
  }
  for (const value of [0, 50, 100]) picture.text(right + 8, percent(value) + 4, value);
  const ratio = (field) => (row) => row[field] / Math.max(few[field], 1);
  picture.line(axis, rows, ratio("matmul_flops_nominal"), level, {stroke: "var(--phase0)"});
  picture.line(axis, rows, ratio("exps"), level, {stroke: "var(--phase2)"});
  picture.line(axis, rows, (row) => row.peak_percent, percent, {stroke: "var(--phase4)", "stroke-dasharray": "5 4"});
  picture.heads(axis, base + 20, new Map(rows.map((row) => [row.heads, row.head_dim])));
  picture.text(left - 6, base + 20, "h", {"text-anchor": "end"});
  picture.text(left - 6, base + 36, "D", {"text-anchor": "end"});
  return picture.root;
}

// Medians of all sweeps as lines with the band of their rounds; or their ratios to the first.
function drawSweeps(box, sweeps, colours, relative, label) {
  const left = 52, top = 26, high = relative ? 130 : 300, picture = new Picture(box, top + high + 44, label);
  const right = picture.width - 16, first = new Map(sweeps[0].rows.map((row) => [row.heads, row.seconds_median]));
  const shown = sweeps.map((sweep) => sweep.rows.filter((row) => !relative || first.has(row.heads)).sort((a, b) => a.heads - b.heads));
  const axis = new HeadAxis(shown.flat().map((row) => row.heads), left, right);
  const median = (row) => relative ? row.seconds_median / first.get(row.heads) : milliseconds(row.seconds_median);
  const all = shown.flat().map(median);
  const least = relative ? Math.min(0.9, ...all) - 0.02 : 0, most = relative ? Math.max(1.1, ...all) + 0.02 : highest(shown.flat());
  const y = (value) => top + high - (Math.min(value, most) - least) / (most - least) * high;
  picture.text(left - 6, top - 9, relative ? "×" : "ms", {"text-anchor": "end"});
  picture.values(left, right, least, most, y);
  shown.forEach((rows, i) => {
    if (rows.length === 0) return;
    if (!relative) {
      const edge = (which) => rows.map((row) => `${axis.at(row.heads)} ${y(extremes(row)[which])}`);
      picture.add("path", {d: `M${edge(1).join("L")}L${edge(0).reverse().join("L")}Z`, fill: colours[i], opacity: 0.18});
    }
    picture.line(axis, rows, median, y, {stroke: colours[i]});
    for (const row of rows) {
      picture.add("circle", {cx: axis.at(row.heads), cy: y(median(row)), r: 3.5, fill: colours[i]})
        .append(svg("title", {}, `${sweeps[i].name}, h = ${row.heads}: ${short(median(row))}${relative ? "" : " ms"}`));
    }
  });
  picture.heads(axis, top + high + 20);
  return picture.root;
}
