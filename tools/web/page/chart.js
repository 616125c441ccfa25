// The sweep as a chart over h: time in stacked phases with its spread, and below what is computed, flat flops and
// rising exps, both relative to one head. And the tables of what was measured.

const PHASE_NAMES = {project: "q, k, v", attend: "heads", output: "output"};

// The range of h around the fastest whose time is within 3 % of it.
const CLOSE = 1.03;
function sweetSpot(rows) {
  const best = rows.reduce((a, b) => b.total.median < a.total.median ? b : a), limit = CLOSE * best.total.median;
  let begin = rows.indexOf(best), end = begin;
  while (begin > 0 && rows[begin - 1].total.median <= limit) --begin;
  while (end + 1 < rows.length && rows[end + 1].total.median <= limit) ++end;
  return {best, begin, end};
}

function sweepVerdict({rows}) {
  const first = rows[0], last = rows.at(-1), {best, begin, end} = sweetSpot(rows);
  const more = Math.round(100 * (last.total.median / first.total.median - 1));
  const time = more === 0 ? "the same time as" : more > 0 ? `${more} % more time than` : `${-more} % less time than`;
  const rising = last.attend.median - first.attend.median, all = last.total.median - first.total.median;
  const share = rising > 0.9 * all ? "all" : rising > 0.5 * all ? "most" : "less than half";
  const why = more <= 0 ? "" : `, ${share} of it in the heads' part, where the exps are`;
  const range = begin === end ? `h = ${best.h}` : `h = ${rows[begin].h} to ${rows[end].h}`;
  return `Matrix work is the same at every h. Here ${last.h} heads take ${time} ` +
    `${first.h === 1 ? "one" : first.h}${why}. Fastest, within 3 %: ${range}.`;
}

function drawChart(box, sweep) {
  const {rows} = sweep, width = Math.min(Math.max(box.clientWidth, 320), 900), narrow = width < 560;
  const left = 46, right = narrow ? 12 : 96, top = 28, high = 210, gap = 44, low = 96, bottom = 46;
  const height = top + high + gap + low + bottom, slot = (width - left - right) / rows.length;
  const centre = (i) => left + (i + 0.5) * slot, wide = Math.min(slot * 0.62, 54);
  const most = Math.max(...rows.map((row) => row.total.max)) * 1.06, y = (ms) => top + high - ms / most * high;
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": sweepVerdict(sweep)});
  const text = (x, at, words, attributes = {}) => picture.append(svg("text", {x, y: at, ...attributes}, `${words}`));

  const {begin, end} = sweetSpot(rows);
  const sweet = {class: "sweet", x: left + begin * slot, y: top, width: (end - begin + 1) * slot, height: high};
  picture.append(svg("rect", sweet));
  const label = Math.min(Math.max(left + (begin + end + 1) / 2 * slot, left + 76), width - right - 76);
  text(label, top - 8, "within 3 % of the fastest", {"text-anchor": "middle"});
  text(left - 6, top - 8, "ms", {"text-anchor": "end"});
  const step = niceStep(most);
  for (let n = 0; n * step < most; ++n) {
    picture.append(svg("line", {class: "grid", x1: left, x2: width - right, y1: y(n * step), y2: y(n * step)}));
    text(left - 6, y(n * step) + 4, Number((n * step).toPrecision(6)), {"text-anchor": "end"});
  }
  rows.forEach((row, i) => {
    let from = 0;
    for (const phase of PHASES) {
      const to = from + row[phase].median;
      const bar = svg("rect", {class: phase, x: centre(i) - wide / 2, y: y(to), width: wide,
                               height: Math.max(y(from) - y(to), 0)});
      bar.append(svg("title", {}, `h = ${row.h}, ${PHASE_NAMES[phase]}: ${row[phase].median.toFixed(2)} ms`));
      picture.append(bar);
      if (!narrow && i === rows.length - 1) {
        text(centre(i) + slot / 2 + 6, (y(from) + y(to)) / 2 + 4, PHASE_NAMES[phase]);
      }
      from = to;
    }
    const {min, max} = row.total, x = centre(i);
    picture.append(svg("path", {class: "whisker", d: `M${x - 5} ${y(max)}h10m-5 0V${y(min)}m-5 0h10`}));
  });

  const base = top + high + gap + low, decades = Math.max(1, Math.log2(rows.at(-1).h / rows[0].h));
  const level = (times) => base - Math.log2(times) / decades * (low - 14) - 6;
  text(left, base - low - 8, "work, next to that of one head", {"text-anchor": "start"});
  for (const times of [1, rows.at(-1).h / rows[0].h]) {
    text(left - 6, level(times) + 4, `×${times}`, {"text-anchor": "end"});
  }
  const lineOf = (of) => rows.map((row, i) => `${i ? "L" : "M"}${centre(i)} ${level(row[of] / rows[0][of])}`).join("");
  picture.append(svg("path", {class: "axis", d: `M${left} ${base}H${width - right}`}));
  for (const [of, name] of [["flops", "flops"], ["exps", "exps"]]) {
    picture.append(svg("path", {class: of, d: lineOf(of)}));
    const at = level(rows.at(-1)[of] / rows[0][of]);
    if (narrow) text(centre(rows.length - 1), at - 8, name, {class: "strong", "text-anchor": "end"});
    else text(centre(rows.length - 1) + slot / 2 + 6, at + 4, name, {class: "strong"});
  }
  rows.forEach((row, i) => {
    text(centre(i), base + 17, row.h, {class: "strong", "text-anchor": "middle"});
    text(centre(i), base + 33, row.D, {"text-anchor": "middle"});
  });
  text(left - 6, base + 17, "h", {"text-anchor": "end"});
  text(left - 6, base + 33, "D", {"text-anchor": "end"});
  box.replaceChildren(picture);
  if (narrow) box.append(element("p", {class: "quiet"}, "From below: q, k, v; heads; output."));
}

function tableOf(names) {
  return element("table", {}, element("tr", {}, ...names.map((name) => element("th", {}, name))));
}
const cells = (values) => values.map((value) => element("td", {}, `${value}`));
const gigaflops = (flops, milliseconds) => (flops / milliseconds / 1e6).toFixed(1);
const timesOf = (row) => [row.total.median, row.total.min, row.total.max, ...PHASES.map((phase) => row[phase].median)];

function sweepTable({rows}) {
  const table = tableOf(["h", "D", "ms", "min", "max", ...PHASES.map((phase) => PHASE_NAMES[phase]), "GF/s", "exps"]);
  for (const row of rows) {
    const times = timesOf(row).map((ms) => ms.toFixed(2));
    table.append(element("tr", {}, ...cells([row.h, row.D, ...times, gigaflops(row.flops, row.total.median), grouped(row.exps)])));
  }
  return table;
}

function sweepCsv({rows}) {
  const lines = rows.map((row) => [row.h, row.D, ...timesOf(row), row.flops, row.exps].join(","));
  return ["h,D,ms,ms_min,ms_max,project_ms,attend_ms,output_ms,flops,exps", ...lines].join("\n") + "\n";
}

function compareTable({rows, flops}) {
  const times = rows.map((row) => row.total.median), fastest = Math.min(...times), slowest = Math.max(...times);
  const table = tableOf(["computed by", "ms", "GF/s", "time", "farthest from plain", ""]);
  table.querySelector("th").className = "text";
  for (const {way, name, total, apart} of rows) {
    const meter = element("span", {class: "meter"});
    meter.style.width = `${100 * total.median / slowest}%`;
    const numbers = [total.median.toFixed(2), gigaflops(flops, total.median), `× ${(total.median / fastest).toFixed(1)}`,
                     way === "plain" ? "" : apart.toExponential(1)];
    table.append(element("tr", {"data-way": way}, element("td", {class: "text"}, name), ...cells(numbers),
                         element("td", {class: "bar"}, meter)));
  }
  return table;
}
