// Memory over time: the chart, its legend, its marks, and the strip below it that chooses what it
// shows.
cistern.Timeline = class {
  constructor(body, view) {
    this.view = view;
    this.data = view.recording.timeline;
    this.hidden = new Set();
    this.shown = [this.data.edges[0], this.data.edges[this.data.edges.length - 1]];
    this.build(body);
    view.on("redraw", () => this.draw());
    view.on("colours", () => this.legend());
    view.on("position", () => this.placeCursor());
    this.legend();
    this.zoom();
    this.openBusy();
  }

  /** Opens at the part where nearly all events are, with the failure and peak, if it is small. */
  openBusy() {
    const {busy} = this.data;
    const [from, to] = this.whole();
    if (!busy) return;
    const told = this.view.recording.moments.filter(({kind}) => /failure|peak/.test(kind));
    const times = [...busy, ...told.map((moment) => moment.at_us)];
    const [first, last] = d3.extent(times);
    if (last - first > (to - from) / 3 || last <= first) return;
    const room = (last - first) / 20;
    this.shown = [Math.max(from, first - room), Math.min(to, last + room)];
    this.brushStale = true;
    this.part.hidden = false;
    this.opened = true;
  }

  build(body) {
    const {el} = cistern;
    this.canvas = el("canvas", {"aria-hidden": "true"});
    this.over = d3.create("svg").attr("class", "over").attr("aria-hidden", "true").node();
    this.flags = el("div", {class: "flags"});
    this.chart =
        el("div", {
          class: "chart",
          id: "chart",
          tabindex: 0,
          role: "slider",
          "aria-label": "Memory over time",
          "aria-valuemin": 0,
          "aria-valuemax": 1000
        },
           this.canvas, this.over);
    this.chart.timeline = this;
    this.strip = el("canvas", {"aria-hidden": "true"});
    this.brushed = d3.create("svg").attr("class", "over").attr("aria-hidden", "true").node();
    this.legendList = el("ul", {class: "legend", "aria-label": "What the chart shows"});
    const by = this.view.kinds();
    const switcher = by.length > 0 ?
        cistern.choice(
            "Stack by", "stack-by", by.map((kind) => [kind, cistern.byName[kind]]), this.view.by,
            (kind) => this.view.colourBy(kind)) :
        null;
    const {button} = cistern;
    this.signs = el("ul", {class: "legend plain signs", "aria-label": "The signs above the chart"});
    this.part = cistern.soft(
        "The chart opens at the part in which nine of ten events happen. " +
            "“Show all” shows the whole recording.",
        {id: "chart-part", hidden: true});
    body.replaceChildren(
        el("div", {class: "tools"}, switcher,
           el("span", {class: "group"}, button("Zoom in", () => this.scaleBy(2)),
              button("Zoom out", () => this.scaleBy(0.5)),
              button("Show all", () => this.show(this.whole())))),
        this.part, el("div", {class: "with-flags"}, this.flags, this.chart),
        el("div", {class: "strip"}, this.strip, this.brushed), this.legendList, this.signs,
        this.policyText(),
        cistern.soft(
            "Click to choose a moment. Drag the strip to zoom, or turn " +
                "the wheel with Ctrl held: around the moments, a line then shows every event. Arrow keys move the moment.",
            {class: "soft keys"}),
        cistern.timelineTable(this.view));
    if (by.length === 0)
      body.append(cistern.empty(
          "The recording does not say which pool, stream, label or call site memory belongs to."));
  }

  /** A sentence on the lines of other policies; null where there are none. */
  policyText() {
    return this.data.policies.length === 0 ?
        "" :
        cistern.soft(
            "“Reserved under …” is a model: what that allocator would have reserved for the " +
                "same requests, found by replaying them.",
            {id: "policies-about"});
  }

  whole() { return [this.data.edges[0], this.data.edges[this.data.edges.length - 1]]; }

  /** The series of the chart: [name, values, how they are drawn]. */
  lines() {
    const {allocated, reserved, policies} = this.data;
    const colours = cistern.colours.now();
    const made = [];
    if (allocated)
      made.push({name: "Allocated", values: allocated, colour: colours.soft, width: 1});
    if (reserved) made.push({name: "Reserved", values: reserved, colour: colours.ink, width: 1.75});
    policies.forEach((policy, i) => made.push({
      name: `Reserved under ${policy.name}`,
      values: policy.reserved,
      width: 1.5,
      dash: i % 2 === 0 ? [6, 3] : [2, 3],
      colour: [colours.accent, colours.warn][i % 2],
      policy
    }));
    return made;
  }

  stacked() {
    const stacked = this.data.stacked[this.view.by];
    return stacked && stacked.length > 0 ? stacked : [["asked", this.data.asked]];
  }

  colourOf(key) {
    if (key === "asked") return cistern.colours.now().series[0];
    return cistern.colours.ofRank(this.view.ranks().get(key));
  }

  legend() {
    const {el, units} = cistern;
    const swatch = (colour, dash) => dash ? cistern.dashedSwatch(colour, dash) : null;
    const entry = (id, name, colour, mark, detail, dash) =>
        el("li", {},
           el("button", {
             type: "button",
             "aria-pressed": String(!this.hidden.has(id)),
             on: {click: (event) => this.toggle(id, event.currentTarget)}
           },
              swatch(colour, dash) ||
                  el("span", {class: `swatch ${mark}`, style: {"--colour": colour}}),
              el("span", {text: name}), detail ? el("small", {text: detail}) : null));
    const keys = this.stacked().map(
        ([key, values]) => entry(
            `${this.view.by} ${key}`,
            key === "asked" ? "In use" : this.view.names.key(this.view.by, key), this.colourOf(key),
            "", `peak ${units.bytes(d3.max(values))}`));
    const lines = this.lines().map(
        (line) =>
            entry(line.name, line.name, line.colour, "drawn", this.policyNote(line), line.dash));
    if (this.data.limit !== null)
      lines.push(entry(
          "Limit", "Limit", cistern.colours.now().bad, "drawn", units.bytes(this.data.limit),
          [8, 4]));
    this.legendList.replaceChildren(...keys, ...lines);
  }

  policyNote({values, policy}) {
    if (policy && policy.failed_at !== null) return `fails at ${this.view.time(policy.failed_at)}`;
    return `peak ${cistern.units.bytes(policy ? policy.peak : d3.max(values))}`;
  }

  toggle(id, button) {
    if (!this.hidden.delete(id)) this.hidden.add(id);
    button.setAttribute("aria-pressed", String(!this.hidden.has(id)));
    this.draw();
  }

  draw() {
    const narrow = this.chart.clientWidth < 520;
    const {context, width, height} = cistern.fitted(this.canvas, narrow ? 240 : 340);
    this.frame = {left: narrow ? 60 : 76, right: width - 12, top: 8, bottom: height - 26};
    this.x = d3.scaleLinear().domain(this.shown).range([this.frame.left, this.frame.right]);
    const visible = this.stacked().filter(([key]) => !this.hidden.has(`${this.view.by} ${key}`));
    const lines = this.lines().filter(({name}) => !this.hidden.has(name));
    this.y = d3.scaleLinear().domain([0, this.most(visible, lines) * 1.04]).range([
      this.frame.bottom, this.frame.top
    ]);
    const paint = cistern.timelinePaint;
    paint.axes(context, this.frame, this.x, this.y, this.view);
    context.save();
    context.beginPath();
    context.rect(this.frame.left, 0, this.frame.right - this.frame.left, this.frame.bottom);
    context.clip();
    paint.areas(
        context, this.data.edges, this.shown, this.x, this.y, visible, (key) => this.colourOf(key));
    lines.forEach(
        (line) =>
            paint.line(context, this.data.edges, this.shown, this.x, this.y, line.values, line));
    this.drawExact(context);
    this.drawLimit(context);
    this.drawMarks(context);
    context.restore();
    this.drawStrip();
    this.placeFlags();
    this.placeCursor();
  }

  /** Where few columns are in sight, the windows' events show what happened within them. */
  drawExact(context) {
    const columns = this.view.column(this.shown[1]) - this.view.column(this.shown[0]);
    const [from, to] = this.whole();
    if (columns > 200 || this.shown[1] - this.shown[0] > (to - from) / 2) return;
    this.view.recording.windows.forEach((_, index) => {
      const [start, end] = this.view.span(index);
      const span = [Math.max(start, this.shown[0]), Math.min(end, this.shown[1])];
      if (span[0] >= span[1]) return;
      cistern.timelinePaint.exact(
          context, this.view.window(index), span, this.x, this.y, cistern.colours.now().cursor);
    });
  }

  most(stacked, lines) {
    const {limit, asked} = this.data;
    const tops = lines.map(({values}) => d3.max(values) || 0);
    const highest = Math.max(1, ...tops, stacked.length > 0 ? d3.max(asked) || 0 : 0);
    // A limit far above all that happened would press the chart flat.
    return limit !== null && !this.hidden.has("Limit") && limit < 4 * highest ?
        Math.max(limit, highest) :
        highest;
  }

  /** The program's own marks as ticks at the foot, as long as they can be told apart. */
  drawMarks(context) {
    const {marks = []} = this.view.recording;
    const places = marks.map(([us]) => this.x(us))
                       .filter((place) => place >= this.frame.left && place <= this.frame.right);
    this.ticks = places.length > 0 && places.length <= (this.frame.right - this.frame.left) / 4;
    if (!this.ticks) return;
    context.fillStyle = cistern.colours.now().cursor;
    places.forEach((place) => context.fillRect(Math.round(place), this.frame.bottom - 7, 1, 7));
  }

  drawLimit(context) {
    const {limit} = this.data;
    if (limit === null || this.hidden.has("Limit")) return;
    context.strokeStyle = cistern.colours.now().bad;
    context.lineWidth = 1.5;
    context.setLineDash([8, 4]);
    context.beginPath();
    context.moveTo(this.frame.left, this.y(limit));
    context.lineTo(this.frame.right, this.y(limit));
    context.stroke();
    context.setLineDash([]);
  }
};

/** A line of the legend, dashed as the chart's. */
cistern.dashedSwatch = (colour, dash) => {
  const svg = d3.create("svg").call(
      cistern.attrs, {class: "dash", width: 28, height: 6, "aria-hidden": "true"});
  svg.append("line").call(cistern.attrs, {
    x1: 0,
    x2: 28,
    y1: 3,
    y2: 3,
    stroke: colour,
    "stroke-width": 2,
    "stroke-dasharray": dash.join(" ")
  });
  return svg.node();
};

cistern.byName = {
  pool: "Pool",
  stream: "Stream",
  label: "Label",
  site: "Call site"
};
