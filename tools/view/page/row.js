// One query in numbers: what it attends to over the tokens, its largest keys, its sum and entropy.

const LARGEST = 5, MOST_TOKENS = 80;
const exact = (x) => x.toFixed(7);

// The keys whose tokens are shown, in their order: all, or of a long sequence those with the largest weights.
function shownKeys(layer, figures) {
  if (layer.keys <= MOST_TOKENS) return Array.from({length: layer.keys}, (_, j) => j);
  return figures.order.slice(0, MOST_TOKENS / 2).sort((a, b) => a - b);
}

// All keys of a long sequence side by side, as bars.
function barsElement(layer, row, most) {
  const canvas = element("canvas", {class: "bars", "aria-hidden": "true", width: Math.min(layer.keys, 2048), height: 44});
  const context = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  const width = canvas.width / layer.keys;
  const [accent, cell] = ["--accent", "--cell"].map((name) => style.getPropertyValue(name));
  for (let j = 0; j < layer.keys; ++j) {
    if (row.hidden[j]) continue;  // the hatching below shows
    context.fillStyle = cell;
    context.fillRect(j * width, 0, width, 44);
    const height = 44 * row.p[j] / most;
    context.fillStyle = accent;
    context.fillRect(j * width, 44 - height, Math.max(width, 1), height);
  }
  return canvas;
}

// A layer that is alone on its page has no number.
const headName = (layer, head) => layer.index === null ? `head ${head}` : `layer ${layer.index}, head ${head}`;

function rowSentence(layer, head, query, row, figures) {
  const largest = figures.order.slice(0, 3).map((j) => `${layer.keyToken(j)} ${row.p[j].toFixed(3)}`);
  return `${headName(layer, head).replace(/^./, (c) => c.toUpperCase())}, query ${query} ${layer.queryToken(query)}: ${largest.join(", ")}`;
}

function rowElement({layer, head, query, title, compared}) {
  const row = layer.row(head, query), figures = figuresOf(row);
  const box = element("div", {class: "one-row"});
  const copy = element("button", {type: "button"}, "copy CSV");
  copy.onclick = () => navigator.clipboard?.writeText(rowCsv(layer, row));
  box.append(element("header", {}, element("h2", {},
    `${title} ${query}: \u201c${layer.queryToken(query)}\u201d, ${headName(layer, head)}`), copy));
  const hidden = row.hidden.reduce((a, b) => a + b, 0);
  const facts = element("div", {class: "figures"});
  const fact = (name, value) => facts.append(element("span", {}, `${name} `, element("b", {}, value)));
  fact("sum", exact(figures.sum));
  fact("entropy", `${figures.entropy.toFixed(4)} nats`);
  if (figures.share !== null) fact("of ln(visible keys)", figures.share.toFixed(4));
  fact("keys", `${layer.keys - hidden} visible, ${hidden} hidden`);
  if (compared) {
    const other = compared.layer.row(compared.head, compared.query).p;
    const apart = other.length === row.p.length ? row.p.reduce((sum, x, j) => sum + Math.abs(x - other[j]), 0) / 2 : null;
    if (apart !== null) fact("differs from the pinned in", apart.toFixed(4));
  }
  const most = Math.max(...figures.order.slice(0, 1).map((j) => row.p[j]), 1e-12);
  const tokens = element("div", {class: "tokens", "aria-hidden": "true"});
  const keys = shownKeys(layer, figures);
  keys.forEach((j, n) => {
    if (j > (n > 0 ? keys[n - 1] + 1 : 0)) tokens.append(element("span", {class: "gap"}, "\u2026"));
    const classes = ["token", row.hidden[j] ? "hidden" : "", layer.self && j === query + layer.offset ? "own" : ""];
    const token = element("span", {class: classes.join(" ").trim(), title: row.hidden[j] ? "hidden" : exact(row.p[j])});
    const bar = element("span", {class: "bar"});
    bar.style.setProperty("--share", row.p[j] / most);
    token.append(bar, element("span", {class: "text"}, layer.keyToken(j)));
    tokens.append(token);
  });
  const table = element("table", {class: "largest"}, element("caption", {}, `the ${LARGEST} largest`));
  for (const j of figures.order.slice(0, LARGEST)) {
    table.append(element("tr", {"data-key": j}, element("td", {class: "text"}, layer.keyToken(j)), element("td", {}, `${j}`),
                         element("td", {class: "p"}, exact(row.p[j]))));
  }
  const drawn = element("div", {}, tokens);
  if (keys.length < layer.keys) {
    drawn.prepend(barsElement(layer, row, most));
    drawn.append(element("p", {class: "quiet"}, `Above all ${layer.keys} keys in their order, below the ${keys.length} with the largest weights.`));
  }
  box.append(facts, element("div", {class: "row-parts"}, drawn, table));
  return box;
}

function rowCsv(layer, row) {
  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const lines = Array.from(row.p, (x, j) => `${j},${quoted(layer.keyToken(j))},${row.hidden[j] ? "" : x},${row.hidden[j]}`);
  return ["key,token,probability,hidden", ...lines].join("\n") + "\n";
}
