// One run on a canvas: a track a worker, nodes above the phases inside them. Zoomed and moved in microseconds; knows no
// control but the pointer.

class Timeline {
  constructor(canvas, data, colourOf, onHover) {
    Object.assign(this, {canvas, data, colourOf, onHover});
    // Longest first, so that what lies inside is drawn over what holds it.
    this.events = data.events.map(([zone, worker, begin, length]) => ({zone, worker, begin, length}))
      .sort((a, b) => b.length - a.length);
    this.nodesHigh = data.zones.some((zone) => zone.category === "node") ? 22 : 0;
    this.trackHigh = 14 + this.nodesHigh + 38;
    this.end = Math.max(...this.events.map((event) => event.begin + event.length), 1);
    this.view = {begin: 0, end: this.end};
    this.found = "";
    canvas.addEventListener("pointermove", (event) => this.pointer(event));
    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); this.held = event.offsetX; });
    canvas.addEventListener("pointerup", () => { this.held = null; });
    canvas.addEventListener("pointerleave", () => onHover(null));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.move(event.deltaX / canvas.clientWidth);
      if (!event.ctrlKey && !event.shiftKey && this.view.begin === 0 && this.view.end === this.end && event.deltaY > 0) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / canvas.clientWidth);
    }, {passive: false});
  }
  get span() { return this.view.end - this.view.begin; }
  show(begin, span) {
    const length = Math.min(Math.max(span, 0.5), this.end), from = Math.min(Math.max(begin, 0), this.end - length);
    this.view = {begin: from, end: from + length};
    this.onView?.();
    this.draw();
  }
  zoom(factor, around = 0.5) {
    const span = this.span * factor;
    this.show(this.view.begin + (this.span - Math.min(span, this.end)) * around, span);
  }
  move(share) { this.show(this.view.begin + share * this.span, this.span); }
  whole() { this.show(0, this.end); }
  search(words) {
    this.found = words.toLowerCase();
    this.draw();
    return this.found ? this.events.filter((event) => this.matches(event)).length : 0;
  }
  // To the first piece that is found behind the middle of what is shown, or else to the first of all.
  next() {
    if (!this.found) return;
    const found = this.events.filter((event) => this.matches(event)).sort((a, b) => a.begin - b.begin);
    if (!found.length) return;
    const middle = this.view.begin + this.span / 2, whole = this.span >= this.end;
    const event = (whole ? null : found.find((one) => one.begin + one.length / 2 > middle + 1e-3)) ?? found[0];
    const span = Math.min(whole ? Math.max(event.length * 8, this.end / 8) : this.span, this.end);
    this.show(event.begin + event.length / 2 - span / 2, span);
    this.onHover(event);
  }
  nameOf(event) { return this.data.zones[event.zone].name; }
  isNode(event) { return this.data.zones[event.zone].category === "node"; }
  matches(event) { return this.nameOf(event).toLowerCase().includes(this.found); }
  top(worker) { return 22 + worker * this.trackHigh + 14; }
  box(event) {
    const scale = this.canvas.clientWidth / this.span, top = this.top(event.worker);
    return {x: (event.begin - this.view.begin) * scale, width: Math.max(event.length * scale, 0.6),
            y: this.isNode(event) ? top : top + this.nodesHigh, height: this.isNode(event) ? 20 : 30};
  }
  at(x, y) {
    // The shortest that is hit: it lies on top.
    for (let i = this.events.length - 1; i >= 0; --i) {
      const box = this.box(this.events[i]);
      if (x >= box.x && x <= box.x + Math.max(box.width, 2) && y >= box.y && y <= box.y + box.height) return this.events[i];
    }
    return null;
  }
  pointer(event) {
    if (this.held != null && event.buttons === 1) {
      this.move((this.held - event.offsetX) / this.canvas.clientWidth);
      this.held = event.offsetX;
    }
    this.onHover(this.at(event.offsetX, event.offsetY));
  }
  draw() {
    const {canvas} = this, style = getComputedStyle(document.documentElement), scale = devicePixelRatio;
    const colour = (name) => style.getPropertyValue(name.slice(4, -1)), width = canvas.clientWidth, height = 22 + this.data.workers * this.trackHigh;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const step = niceStep(this.span);
    for (let n = Math.ceil(this.view.begin / step); n * step <= this.view.end; ++n) {
      const x = (n * step - this.view.begin) / this.span * width;
      context.fillStyle = colour("var(--line)");
      context.fillRect(x, 0, 1, height);
      context.fillStyle = colour("var(--quiet)");
      context.fillText(`${short(n * step / 1e3)} ms`, x + 3, 10);
    }
    context.fillStyle = colour("var(--quiet)");
    for (let worker = 0; worker < this.data.workers; ++worker) context.fillText(`worker ${worker}`, 4, this.top(worker) - 7);
    for (const event of this.events) {
      const box = this.box(event);
      if (box.x > width || box.x + box.width < 0) continue;
      context.globalAlpha = this.found && !this.matches(event) ? 0.15 : 1;
      context.fillStyle = colour(this.colourOf(event));
      context.fillRect(box.x, box.y, box.width, box.height);
      if (box.width > 46) {
        context.save();
        context.beginPath();
        context.rect(Math.max(box.x, 0), box.y, Math.min(box.width, width), box.height);
        context.clip();
        context.fillStyle = colour("var(--page)");
        context.fillText(this.nameOf(event), Math.max(box.x, 0) + 4, box.y + box.height / 2);
        context.restore();
      }
    }
    context.globalAlpha = 1;
  }
}
