// The maps: cells to pixels, labels, the chosen row; and thumbnails. Knows the state only as it is handed over.

const NOT_A_NUMBER = 0xffff00ff;  // a colour that no scale has

// Paints cells, values in [0, 1] or −1 where hidden, a pixel each; hidden ones stay clear, so that what lies below shows.
function pixelsOf(cells, rows, columns, colours, logarithmic) {
  const image = new ImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
  const packed = Uint32Array.from(colours, ([r, g, b]) => r | g << 8 | b << 16 | 255 << 24);
  for (let n = 0; n < rows * columns; ++n) {
    if (cells[n] >= 0) pixels[n] = packed[stepOf(cells[n], logarithmic)];
    else if (cells[n] !== -1) pixels[n] = NOT_A_NUMBER;
  }
  return image;
}

function paintThumbnail(canvas, bytes, [rows, columns], colours, logarithmic) {
  canvas.width = columns;
  canvas.height = rows;
  const cells = Float32Array.from(bytes, (b) => b === HIDDEN ? -1 : b / 254);
  canvas.getContext("2d").putImageData(pixelsOf(cells, rows, columns, colours, logarithmic), 0, 0);
}

// The mean over the heads of a layer, hidden where it is for all of them.
function meanThumbnail(layer) {
  const sums = new Float64Array(layer.thumbnail(0).length), seen = new Uint16Array(sums.length);
  layer.heads.forEach((_, h) => layer.thumbnail(h).forEach((b, n) => {
    if (b === HIDDEN) return;
    sums[n] += b;
    ++seen[n];
  }));
  return Uint8Array.from(sums, (sum, n) => seen[n] ? Math.round(sum / layer.heads.length) : HIDDEN);
}

// What part of a head the map shows. Beyond MAP_ROWS queries each so many-th is computed.
const MAP_ROWS = 1024;
function windowOf(layer, zoom, row) {
  const along = (length, centre) => {
    const size = Math.max(Math.min(length, 8), Math.ceil(length / zoom));
    const begin = Math.min(Math.max(Math.round(centre - size / 2), 0), length - size);
    return {begin, end: begin + size};
  };
  const queries = along(layer.queries, row ?? 0);
  const centre = layer.self ? (row ?? 0) + layer.offset : (row ?? 0) * layer.keys / layer.queries;
  return {queries, keys: along(layer.keys, centre), step: Math.ceil((queries.end - queries.begin) / MAP_ROWS)};
}

class HeadMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.computed = null;  // {key, window, rows, columns, cells, done}
    this.turn = 0;
  }

  // Computes in slices of a few milliseconds, drawing in between; resolves when all is drawn.
  async show(view) {
    this.view = view;
    const {layer, head, zoom, row} = view;
    const window = windowOf(layer, zoom, row);
    const key = JSON.stringify([layer.index, head, window]);
    if (this.computed?.key !== key) {
      const rows = Math.ceil((window.queries.end - window.queries.begin) / window.step);
      const columns = window.keys.end - window.keys.begin;
      this.computed = {key, window, rows, columns, cells: new Float32Array(rows * columns), done: 0};
    }
    const turn = ++this.turn, map = this.computed;
    while (map.done < map.rows) {
      const end = performance.now() + 10;
      while (map.done < map.rows && performance.now() < end) {
        const query = window.queries.begin + map.done * window.step;
        layer.mapRow(head, query, window.keys.begin, window.keys.end, map.cells, map.done * map.columns);
        ++map.done;
      }
      if (map.done < map.rows) await new Promise((resolve) => setTimeout(resolve));
      if (turn !== this.turn) return;
      if (map.done < map.rows && this.lastDraw + 120 > performance.now()) continue;
      this.draw();
    }
    this.draw();
  }

  // Where the cells lie, in CSS pixels.
  geometry() {
    const {window} = this.computed, width = this.canvas.clientWidth;
    const columns = window.keys.end - window.keys.begin, queries = window.queries.end - window.queries.begin;
    const {left: gutter, top: above} = this.gutters(Math.min(width * 0.22, 96));
    const cell = (width - gutter) / columns;
    const labelled = cell >= 9;
    const top = labelled ? above : 22;
    const height = Math.min(Math.max(queries * cell, 120), labelled ? 760 : Math.max(width - gutter, 240));
    return {left: gutter, top, width: width - gutter, height, cellWidth: cell, cellHeight: height / queries, labelled};
  }

  // Room for the longest label of each axis, and no more than `most`.
  gutters(most) {
    const {layer} = this.view, map = this.computed, {window} = map;
    if (window.keys.end - window.keys.begin > 100) return {left: 44, top: 22};
    const context = this.canvas.getContext("2d");
    context.font = "13px system-ui, sans-serif";
    const longest = (range, name) => {
      let width = 20;
      for (let i = range.begin; i < range.end; ++i) width = Math.max(width, context.measureText(name(i)).width);
      return Math.round(Math.min(width + 12, most));
    };
    map.gutters ??= {left: longest(window.queries, (i) => layer.queryToken(i)), top: longest(window.keys, (j) => layer.keyToken(j))};
    return {left: Math.min(map.gutters.left, Math.round(most)), top: map.gutters.top};
  }

  draw() {
    this.lastDraw = performance.now();
    const {layer, row, colours, logarithmic, style} = this.view;
    const {window, rows, columns, cells} = this.computed, g = this.geometry(), scale = devicePixelRatio || 1;
    this.canvas.style.height = `${g.top + g.height}px`;
    this.canvas.width = Math.round(this.canvas.clientWidth * scale);
    this.canvas.height = Math.round((g.top + g.height) * scale);
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.hatch(context, g, style);
    const map = this.computed;
    if (map.painted !== map.done || map.colours !== colours || map.logarithmic !== logarithmic) {
      map.picture = new OffscreenCanvas(columns, rows);
      map.picture.getContext("2d").putImageData(pixelsOf(cells, rows, columns, colours, logarithmic), 0, 0);
      Object.assign(map, {painted: map.done, colours, logarithmic});
    }
    context.imageSmoothingEnabled = g.cellWidth * scale < 1;
    context.drawImage(map.picture, g.left, g.top, g.width, g.height);
    this.labels(context, g, style);
    if (row !== null && row >= window.queries.begin && row < window.queries.end) {
      context.strokeStyle = style.accent;
      context.lineWidth = 2;
      const y = g.top + (row - window.queries.begin) * g.cellHeight;
      context.strokeRect(g.left, Math.round(y) + 0.5, g.width - 1, Math.max(g.cellHeight, 2));
      if (!g.labelled) this.rowLabel(context, g, style, layer.queryToken(row), y + g.cellHeight / 2);
    }
  }

  hatch(context, g, style) {
    const tile = new OffscreenCanvas(5, 5), t = tile.getContext("2d");
    t.fillStyle = style.cell;
    t.fillRect(0, 0, 5, 5);
    t.strokeStyle = style.hatch;
    t.beginPath();
    for (const shift of [-5, 0, 5]) {
      t.moveTo(shift, 5);
      t.lineTo(shift + 5, 0);
    }
    t.stroke();
    context.fillStyle = context.createPattern(tile, "repeat");
    context.fillRect(g.left, g.top, g.width, g.height);
  }

  labels(context, g, style) {
    const {layer, row} = this.view, {window} = this.computed;
    const size = Math.min(13, g.labelled ? Math.max(g.cellWidth - 2, 8) : 11);
    context.font = `${size}px system-ui, sans-serif`;
    context.fillStyle = style.quiet;
    const fit = (text, room) => {
      let shown = text;
      while (shown.length > 1 && context.measureText(shown).width > room) shown = shown.slice(0, -2) + "\u2026";
      return shown;
    };
    context.textBaseline = "middle";
    if (g.labelled) {
      for (let i = window.queries.begin; i < window.queries.end; ++i) {
        context.textAlign = "right";
        context.fillStyle = i === row ? style.text : style.quiet;
        context.fillText(fit(layer.queryToken(i), g.left - 8), g.left - 5,
                         g.top + (i - window.queries.begin + 0.5) * g.cellHeight);
      }
      context.fillStyle = style.quiet;
      context.textAlign = "left";
      for (let j = window.keys.begin; j < window.keys.end; ++j) {
        context.save();
        context.translate(g.left + (j - window.keys.begin + 0.5) * g.cellWidth, g.top - 5);
        context.rotate(-Math.PI / 2);
        context.fillText(fit(layer.keyToken(j), g.top - 8), 0, 0);
        context.restore();
      }
      return;
    }
    // Places only: about eight along each axis.
    const place = (range, pixels, put) => {
      const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find(
          (s) => (range.end - range.begin) / s * 46 <= pixels) ?? 10000;
      for (let i = Math.ceil(range.begin / step) * step; i < range.end; i += step) put(i);
    };
    context.textAlign = "center";
    place(window.keys, g.width, (j) => context.fillText(j, g.left + (j - window.keys.begin + 0.5) * g.cellWidth, g.top - 9));
    context.textAlign = "right";
    place(window.queries, g.height, (i) => context.fillText(i, g.left - 6, g.top + (i - window.queries.begin + 0.5) * g.cellHeight));
  }

  rowLabel(context, g, style, text, y) {
    context.font = "12px system-ui, sans-serif";
    const width = Math.min(context.measureText(text).width, g.left - 8);
    context.fillStyle = style.accent;
    context.fillRect(g.left - width - 8, y - 9, width + 8, 18);
    context.fillStyle = style.accentText;
    context.textAlign = "right";
    context.fillText(text, g.left - 4, y, g.left - 8);
  }

  // {query, key} under a point of the page, or null beside the cells.
  at(x, y) {
    if (!this.computed) return null;
    const box = this.canvas.getBoundingClientRect(), g = this.geometry(), {window} = this.computed;
    const query = window.queries.begin + Math.floor((y - box.top - g.top) / g.cellHeight);
    const key = window.keys.begin + Math.floor((x - box.left - g.left) / g.cellWidth);
    if (query < window.queries.begin || query >= window.queries.end) return null;
    return {query, key: key >= window.keys.begin && key < window.keys.end ? key : null};
  }
}
