// Phases under the two roofs of the machine, both axes logarithmic. `points`: {label, colour, intensity, rate}.

// A place for each label that no other label and no point is in: beside its point, else above or below it.
class LabelPlaces {
  constructor(points, left, right, top, bottom) {
    Object.assign(this, {left, right, top, bottom});
    this.taken = points.map(({x, y}) => ({x: x - 7, y: y - 7, width: 14, height: 14}));
  }
  // Keeps labels off a line.
  avoid(x1, y1, x2, y2) {
    const steps = Math.ceil(Math.hypot(x2 - x1, y2 - y1) / 6);
    for (let i = 0; i <= steps; ++i) {
      this.taken.push({x: x1 + (x2 - x1) * i / steps - 2, y: y1 + (y2 - y1) * i / steps - 2, width: 4, height: 4});
    }
  }
  find({x, y}, label) {
    const width = label.length * 6.6 + 4;
    for (let away = 0; away < 16; ++away) {
      for (const side of [1, -1]) {
        for (const up of away ? [1, -1] : [1]) {
          const box = {x: side > 0 ? x + 10 : x - 10 - width, y: y - 7 - up * away * 9, width, height: 14};
          if (box.x < this.left || box.x + width > this.right || box.y < this.top || box.y + 14 > this.bottom) continue;
          if (this.taken.some((other) => box.x < other.x + other.width && other.x < box.x + box.width &&
                              box.y < other.y + other.height && other.y < box.y + box.height)) continue;
          this.taken.push(box);
          return {...box, side, away};
        }
      }
    }
    return null;
  }
}

function drawRoofline(box, data, points, label) {
  const picture = new Picture(box, 340, label), left = 60, right = picture.width - 20, top = 24, bottom = 296;
  const log = Math.log10, knee = data.peak_flops / data.read_bandwidth;
  const intensities = points.map((point) => point.intensity), rates = points.map((point) => point.rate);
  const xs = [Math.min(knee / 8, ...intensities) / 1.6, Math.max(knee * 4, ...intensities) * 1.6];
  const ys = [Math.min(data.peak_flops / 20, ...rates) / 1.6, Math.max(data.peak_flops, ...rates) * 1.5];
  const x = (value) => left + (log(value) - log(xs[0])) / (log(xs[1]) - log(xs[0])) * (right - left);
  const y = (value) => bottom - (log(value) - log(ys[0])) / (log(ys[1]) - log(ys[0])) * (bottom - top);
  // Powers of ten, and 2 and 5 times them where there are few.
  const ticks = ([least, most], room) => {
    const every = log(most / least) < room ? [1, 2, 5] : [1];
    const found = [];
    for (let power = Math.floor(log(least)); power <= log(most); ++power) {
      for (const times of every) if (times * 10 ** power >= least && times * 10 ** power <= most) found.push(times * 10 ** power);
    }
    return found;
  };
  for (const tick of ticks(xs, picture.width / 260)) {
    picture.add("line", {class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom});
    picture.text(x(tick), bottom + 16, short(tick), {"text-anchor": "middle"});
  }
  for (const tick of ticks(ys, 2.4)) {
    picture.add("line", {class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick)});
    picture.text(left - 6, y(tick) + 4, short(tick / 1e9), {"text-anchor": "end"});
  }
  picture.text(left, top - 10, "GFLOP/s");
  picture.text(right, bottom + 34, "flops a byte", {"text-anchor": "end"});
  const from = Math.max(xs[0], ys[0] / data.read_bandwidth);
  picture.add("path", {class: "roof", d: `M${x(from)} ${y(from * data.read_bandwidth)}L${x(knee)} ${y(data.peak_flops)}H${right}`});
  picture.text(right, y(data.peak_flops) - 8, `peak ${(data.peak_flops / 1e9).toFixed(0)} GFLOP/s`, {"text-anchor": "end"});
  picture.text(x(from) + 16, y(from * data.read_bandwidth) + 8, `memory ${(data.read_bandwidth / 1e9).toFixed(1)} GB/s`);
  const at = points.map((point) => ({x: x(point.intensity), y: y(point.rate)}));
  const places = new LabelPlaces(at, left, right, top, bottom);
  places.avoid(x(from), y(from * data.read_bandwidth), x(knee), y(data.peak_flops));
  places.avoid(x(knee), y(data.peak_flops), right, y(data.peak_flops));
  places.taken.push({x: right - 130, y: y(data.peak_flops) - 20, width: 130, height: 16});
  const order = points.map((_, i) => i).sort((a, b) => at[a].y - at[b].y);
  for (const i of order) {
    const place = places.find(at[i], points[i].label);
    if (!place) continue;  // its point still has a title
    const end = place.side > 0 ? place.x : place.x + place.width;
    if (place.away) picture.add("path", {class: "leader", d: `M${at[i].x} ${at[i].y}L${end} ${place.y + 7}`});
    picture.text(end + 2 * place.side, place.y + 11, points[i].label, place.side > 0 ? {} : {"text-anchor": "end"});
  }
  points.forEach((point, i) => {
    const dot = picture.add("circle", {cx: at[i].x, cy: at[i].y, r: 5.5, fill: point.colour, stroke: "var(--page)"});
    dot.append(svg("title", {}, `${point.label}: ${(point.rate / 1e9).toFixed(1)} GFLOP/s, ${short(point.intensity)} flops a byte`));
  });
  return picture.root;
}
