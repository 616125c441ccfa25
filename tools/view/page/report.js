// What the pages of a report share: their data, header, tables, keys and files.

const data = JSON.parse(document.getElementById("headway-data").textContent);
const $ = (id) => document.getElementById(id);

function fillPage(sentence, what, definitions) {
  $("sentence").textContent = sentence;
  $("what").textContent = what;
  $("command").textContent = data.command;
  $("copy-command").onclick = () => navigator.clipboard?.writeText(data.command);
  $("made").textContent = `headway ${data.version}. This page asks for nothing; its data are in the element headway-data.`;
  for (const [term, meaning] of definitions) $("definitions").append(element("dt", {}, term), element("dd", {}, meaning));
}

// `rows` of cells, texts or elements; that of index `current` is marked.
function table(target, names, rows, current = -1) {
  target.replaceChildren(element("tr", {}, ...names.map((name) => element("th", {}, name))));
  rows.forEach((cells, i) => {
    target.append(element("tr", i === current ? {"aria-current": "true"} : {}, ...cells.map((cell) => element("td", {}, cell))));
  });
}

// Entries are [name, colour].
function drawKey(target, entries) {
  target.replaceChildren(...entries.map(([name, colour]) => {
    const swatch = element("span", {class: "swatch-phase"});
    swatch.style.background = colour;
    return element("span", {}, swatch, name);
  }));
}

function save(name, blob) {
  const link = element("a", {download: name, href: URL.createObjectURL(blob)});
  link.click();
  URL.revokeObjectURL(link.href);
}

// A table as it is shown, without the spaces between groups of digits.
function saveTable(name, shown) {
  const lineOf = (row) => [...row.cells].map((cell) => cell.textContent.replaceAll("\u202f", "")).join(",");
  save(name, new Blob([[...shown.rows].map(lineOf).join("\n") + "\n"], {type: "text/csv"}));
}

const saveChart = (name, picture) => save(name, new Blob([chartFile(picture)], {type: "image/svg+xml"}));
