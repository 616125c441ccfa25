// What every chart is made of.

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A round step that cuts [0, most] in three to six.
function niceStep(most) {
  const power = 10 ** Math.floor(Math.log10(most / 3));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => most / step <= 5.5);
}

// The chart as a file of its own: the colours that the page's style gives it, written into it.
function chartFile(picture) {
  const copy = picture.cloneNode(true), parts = [...copy.querySelectorAll("*")];
  [...picture.querySelectorAll("*")].forEach((part, i) => {
    const style = getComputedStyle(part);
    const ofText = ["fill", "font-size", "font-family", "font-weight"];
    const ofShapes = ["fill", "stroke", "stroke-width", "stroke-dasharray"];
    for (const name of part.tagName === "text" ? ofText : ofShapes) parts[i].setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}
