// What does not depend on h, and what does, in numbers and words.

const grouped = (n) => n.toLocaleString("en-US").replaceAll(",", "\u202f");

function costsOf({E, S, h}) {
  return {
    parameters: 4 * E * E + 4 * E,
    projection_flops: projectionFlops(S, E),
    attention_flops: attentionFlops(S, E),
    exps: h * S * S,
  };
}

function fillCosts(table, state, heads, milliseconds) {
  const now = costsOf(state), one = costsOf({...state, h: 1}), most = Math.max(...heads);
  const line = (name, of) => {
    const times = now[of] / one[of], grows = of === "exps";
    const meter = element("span", {class: "meter"});
    meter.style.width = `${100 * (grows ? state.h / most : 1)}%`;
    return element("tr", {class: grows ? "grows" : "", "data-cost": of}, ...cells([name, grouped(now[of])]),
                   element("td", {class: grows ? "grows" : "same"}, times === 1 ? "as with 1" : `\u00d7 ${times}`),
                   element("td", {}, meter));
  };
  table.replaceChildren(
    element("tr", {}, ...["cost", `h = ${state.h}`, "to h = 1", ""].map((name) => element("th", {}, name))),
    line("parameters", "parameters"), line("flops, products", "projection_flops"),
    line("flops, attention", "attention_flops"), line("exponentials", "exps"),
    element("tr", {}, ...cells(["time, here", milliseconds === null ? "\u2026" : `${milliseconds.toFixed(2)} ms`, "", ""])));
}

// The numbers inside of the story.
function fillStory(state) {
  const {E, S, h} = state, costs = costsOf(state);
  const words = {
    E, S, h, D: E / h, SxE: `${S} \u00d7 ${E}`,
    flops: grouped(costs.projection_flops + costs.attention_flops), exps: grouped(costs.exps),
    "heads-patterns": h === 1 ? "here is only one" : `here are ${h}, each free to look elsewhere`,
  };
  for (const place of document.querySelectorAll("[data-live]")) place.textContent = words[place.dataset.live];
}
