// The way through the layer in blocks of their real numbers: x to q, k, v, strips of them to heads, heads to concat to
// out. Knows the state only as it is handed over.

// Magnitudes of a part of a matrix, columns [begin, begin + E) of rows of `stride`, on the colour scale: three
// deviations are its end.
function paintMagnitudes(canvas, values, S, E, stride, begin, colours) {
  const cells = new Float32Array(S * E);
  let squares = 0;
  for (let s = 0; s < S; ++s) {
    for (let e = 0; e < E; ++e) {
      const value = values[s * stride + begin + e];
      cells[s * E + e] = Math.abs(value);
      squares += value * value;
    }
  }
  const unit = 1 / (3 * Math.sqrt(squares / (S * E)) || 1);
  for (let i = 0; i < cells.length; ++i) cells[i] = Math.min(cells[i] * unit, 1);
  canvas.width = E;
  canvas.height = S;
  canvas.style.height = `${Math.min(Math.max(S * 4, 24), 84)}px`;
  canvas.getContext("2d").putImageData(pixelsOf(cells, S, E, colours, false), 0, 0);
}

function blockElement(name, dims) {
  const strips = element("div", {class: "strips", "data-block": name, "aria-hidden": "true"});
  const cells = name === "k" || name === "v" ? "cells" : "cells one-row-counts";
  const canvas = element("canvas", {"aria-hidden": "true"});
  return element("figure", {class: "block"}, element("div", {class: cells}, canvas, strips),
                 element("figcaption", {}, element("b", {}, name), ` [${dims}]`));
}

const stepElement = (text) => element("div", {class: "step"}, text);

// The strips of a block: as many as heads.
function cutInStrips(box, h, onHead) {
  box.classList.toggle("fine", h > 16);
  box.replaceChildren(...Array.from({length: h}, (_, head) => {
    const strip = element("span", {title: `head ${head}`});
    strip.onclick = () => onHead(head);
    return strip;
  }));
}

// Frames the chosen head, and the row that is chosen, if one is.
function choose(flow, {head, row, S}) {
  flow.toggleAttribute("data-row", row !== null);
  flow.style.setProperty("--row", row ?? 0);
  flow.style.setProperty("--rows", S);
  for (const box of flow.querySelectorAll(".strips")) {
    const strips = [...box.children];
    strips.forEach((strip, i) => strip.toggleAttribute("data-chosen", strips.length > 1 && i === head));
  }
  [...flow.querySelectorAll("#maps button")].forEach((button, i) => button.setAttribute("aria-pressed", i === head));
}

function fillFlow(flow, {layer, heads, colours, logarithmic, onHead}) {
  const {S, E, h} = layer, D = E / h;
  const dims = `${S} \u00d7 ${E}`, headDims = `${S} \u00d7 ${D}`;
  const blocks = Object.fromEntries(["x", "q", "k", "v", "concat", "out"].map((name) => [name, blockElement(name, dims)]));
  const maps = element("div", {id: "maps", role: "group", "aria-label": "Heads"});
  const rows = Math.ceil(h / (h > 32 ? 16 : 8));
  maps.style.setProperty("--columns", Math.max(Math.ceil(h / rows), 4));
  for (let head = 0; head < h; ++head) {
    const canvas = element("canvas");
    canvas.width = canvas.height = S;
    canvas.getContext("2d").putImageData(pixelsOf(heads.cells(head), S, S, colours, logarithmic), 0, 0);
    const button = element("button", {type: "button", "aria-label": `head ${head}`}, canvas, h <= 32 ? `${head}` : "");
    button.onclick = () => onHead(head);
    maps.append(button);
  }
  flow.replaceChildren(
    blocks.x, stepElement(`times Wq, Wk, Wv, each [${E} \u00d7 ${E}]`),
    element("div", {class: "blocks"}, blocks.q, blocks.k, blocks.v),
    stepElement(h === 1 ? `one head: all ${D} columns` :
      `cut into ${h} heads of ${D} columns each: three views [${headDims}] a head, no copy`),
    maps,
    stepElement(`softmax(q\u1d62 k\u1d62\u1d40 / \u221a${D}), ${h} \u00d7 [${S} \u00d7 ${S}], ` +
      `times v\u1d62: ${h} \u00d7 [${headDims}], side by side`),
    blocks.concat, stepElement(`times W\u2092 [${E} \u00d7 ${E}]`), blocks.out,
    element("p", {class: "quiet"}, "Darker: larger magnitude (lighter in the dark theme); rows are tokens."));
  const canvasOf = (name) => blocks[name].querySelector("canvas");
  const qkv = layer.view("qkv");
  ["q", "k", "v"].forEach((name, part) => paintMagnitudes(canvasOf(name), qkv, S, E, 3 * E, part * E, colours));
  for (const [name, buffer] of [["x", "x"], ["concat", "context"], ["out", "out"]]) {
    paintMagnitudes(canvasOf(name), layer.view(buffer), S, E, E, 0, colours);
  }
  for (const name of ["q", "k", "v", "concat"]) cutInStrips(blocks[name].querySelector(".strips"), h, onHead);
}
