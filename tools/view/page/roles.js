// The table of roles: a row a head, a column a measure; sorts by a click on a head of a column, opens a head by one on a
// row. Every definition and threshold stands below it.

const MEASURES = [
  {key: "entropy", name: "entropy", definition: "\u2212\u03a3 p ln p of a row, in nats; mean over the rows that see a key"},
  {key: "entropy_share", name: "of ln n", definition: "the entropy as a share of ln(visible keys); mean over the rows that see two or more"},
  {key: "distance", name: "distance", definition: "\u03a3 p \u00b7 |position \u2212 key|; mean over rows"},
];
const valueOf = (head, column) => column === "head" ? head.head : head.roles[column]?.score ?? head[column];
const shownNumber = (x) => x === null || x === undefined ? "\u2013" : x.toFixed(3);

function badgesOf(head, roles) {
  return roles.filter((role) => head.roles[role.key].badge).map((role) => element("span", {class: "badge"}, role.badge));
}

function fillRoles(table, {layer, head, roles, sort, onSort, onHead}) {
  const columns = [{key: "head", name: "head"}, ...MEASURES, ...roles];
  const top = element("tr");
  for (const column of columns) {
    const sorted = sort.column === column.key;
    const cell = element("th", {scope: "col", "aria-sort": sorted ? sort.down ? "descending" : "ascending" : "none"});
    const button = element("button", {type: "button"}, column.name + (sorted ? sort.down ? " \u2193" : " \u2191" : ""));
    button.onclick = () => onSort(column.key);
    cell.append(button);
    top.append(cell);
  }
  top.append(element("th", {scope: "col", class: "text"}, "badges"));
  const body = element("tbody");
  const order = [...layer.heads].sort((a, b) => {
    const [x, y] = [a, b].map((h) => valueOf(h, sort.column) ?? -Infinity);
    return (sort.down ? y - x : x - y) || a.head - b.head;
  });
  for (const one of order) {
    const line = element("tr", {"aria-selected": one.head === head});
    line.onclick = () => onHead(one.head);
    for (const column of columns) {
      const value = valueOf(one, column.key), role = one.roles[column.key];
      const cell = element("td", {class: role?.badge ? "reached" : ""});
      cell.append(column.key === "head" ? `${value}` : shownNumber(value));
      if (role && role.score !== null) cell.title = `${role.rows} rows; even rows would give ${role.uniform.toFixed(3)}; threshold ${role.threshold.toFixed(3)}`;
      line.append(cell);
    }
    line.append(element("td", {class: "text"}, ...badgesOf(one, roles)));
    body.append(line);
  }
  table.replaceChildren(element("thead", {}, top), body);
}

function fillDefinitions(rule, list, roles) {
  const [{threshold, threshold_over_uniform: over, threshold_rows: rows, random_heads: heads}] = roles;
  rule.textContent = `A head earns the badge of a role when its mean over the rows where the role is defined, ${rows} or more, ` +
    `reaches ${threshold} and ${over} times what even rows would give. Beside each role: how many of ${heads} random heads do. Queries of padding, whose own key is hidden, do not count.`;
  for (const {name, definition} of MEASURES) list.append(element("dt", {}, name), element("dd", {}, `${definition}; no badge`));
  for (const role of roles) {
    list.append(element("dt", {}, role.name), element("dd", {}, `${role.definition}; random heads: ${role.random_badges} of ${heads}`));
  }
}
