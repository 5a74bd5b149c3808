// The timeline's zoom, brush, marks, cursor and hint: all that answers the pointer and the
// keyboard.
Object.assign(cistern.Timeline.prototype, {
  /** Wheel with Ctrl, drag, double click on the chart; the brush on the strip. */
  zoom() {
    this.zooming =
        d3.zoom()
            .filter(
                () => !d3.event.button &&
                    (d3.event.type !== "wheel" || d3.event.ctrlKey || d3.event.metaKey))
            .on("zoom", () => {
              if (d3.event.sourceEvent && this.frame)
                this.show(d3.event.transform.rescaleX(this.wholeScale()).domain(), "zoom");
            });
    this.brush = d3.brushX().on("brush end", () => {
      if (!d3.event.sourceEvent || !this.frame) return;
      const chosen = d3.event.selection;
      this.show(
          chosen ? chosen.map((place) => this.wholeScale().invert(place)) : this.whole(), "brush");
    });
    d3.select(this.chart)
        .call(this.zooming)
        .on("mousemove.hint", () => this.hint())
        .on("mouseleave.hint",
            () => {
              cistern.hint.hide();
            })
        .on("click.choose", () => {
          const [place] = d3.mouse(this.chart);
          if (!d3.event.defaultPrevented) this.view.goTime(this.clamp(this.x.invert(place)));
        });
    d3.select(this.chart).on("keydown.move", () => cistern.moveKeys(d3.event, this.view));
  },

  wholeScale() {
    return d3.scaleLinear().domain(this.whole()).range([this.frame.left, this.frame.right]);
  },

  clamp(us) {
    const [from, to] = this.whole();
    return Math.max(from, Math.min(to, us));
  },

  /** Shows a span of time; `by` is what asked for it, and is told no more. */
  show(span, by) {
    const [from, to] = this.whole();
    const least = Math.max((to - from) / 1e6, 1e-9);
    const width = Math.max(least, Math.min(to - from, span[1] - span[0]));
    const start = Math.max(from, Math.min(to - width, span[0]));
    this.shown = [start, start + width];
    this.redrawSoon = this.redrawSoon || cistern.onceAFrame(() => this.draw());
    this.redrawSoon();
    if (by !== "zoom") this.syncZoom();
    if (by !== "brush") this.brushStale = true;
  },

  syncZoom() {
    const whole = this.wholeScale();
    const k = (this.whole()[1] - this.whole()[0]) / (this.shown[1] - this.shown[0]);
    const transform =
        d3.zoomIdentity.translate(this.frame.left, 0).scale(k).translate(-whole(this.shown[0]), 0);
    d3.select(this.chart).call(this.zooming.transform, transform);
  },

  scaleBy(factor) {
    const middle = this.view.position && this.inside(this.view.position.us) ?
        this.view.position.us :
        d3.mean(this.shown);
    const width = (this.shown[1] - this.shown[0]) / factor;
    const part = (middle - this.shown[0]) / (this.shown[1] - this.shown[0]);
    this.show([middle - width * part, middle + width * (1 - part)]);
  },

  inside(us) { return us >= this.shown[0] && us <= this.shown[1]; },

  drawStrip() {
    const {context, width, height} = cistern.fitted(this.strip, 44);
    const x = this.wholeScale();
    const y = d3.scaleLinear().domain([0, d3.max(this.data.asked) || 1]).range([height - 1, 2]);
    cistern.timelinePaint.areas(
        context, this.data.edges, this.whole(), x, y, [["asked", this.data.asked]],
        () => cistern.colours.now().rest);
    const {left, right, bottom} = this.frame;
    this.zooming.extent([[left, 0], [right, bottom]])
        .translateExtent([[left, 0], [right, bottom]])
        .scaleExtent([1, 1e6]);
    d3.select(this.brushed).attr("width", width).attr("height", height);
    this.brush.extent([[left, 0], [right, height]]);
    const group =
        d3.select(this.brushed).selectAll("g.brush").data([0]).join("g").attr("class", "brush");
    if (this.brushWidth !== width) group.call(this.brush);
    if (this.brushWidth !== width || this.brushStale) {
      const all = this.shown[0] <= this.whole()[0] && this.shown[1] >= this.whole()[1];
      group.call(this.brush.move, all ? null : this.shown.map(x));
    }
    [this.brushWidth, this.brushStale] = [width, false];
  },

  /** Flags above the chart: moments to choose. Marks of many steps are ticks only. */
  placeFlags() {
    const {el, sentences} = cistern;
    const moments = this.view.recording.moments.map((moment, index) => ({...moment, index}))
                        .filter((moment) => this.inside(moment.at_us));
    const rank = {failure: 0, peak: 1, mark: 2, start: 3, end: 3};
    moments.sort((a, b) => rank[a.kind] - rank[b.kind]);
    const taken = [];
    const isFree = (place) => taken.every((other) => Math.abs(other - place) > 21);
    const placed = moments.filter((moment) => {
      const place = this.x(moment.at_us);
      // The peak stands beside a failure that is near, all others give way.
      const places = moment.kind === "peak" ? [place, place - 23, place + 23] : [place];
      moment.place = places.find(isFree);
      if (moment.place !== undefined) taken.push(moment.place);
      return moment.place !== undefined;
    });
    const signs = {failure: "✕", peak: "▲", mark: "◆", start: "●", end: "■"};
    this.placeSigns(placed, signs);
    const flags =
        placed.sort((a, b) => a.at_us - b.at_us)
            .map((moment) => el("button", {
                   type: "button",
                   class: `flag ${moment.kind}`,
                   text: signs[moment.kind] || "◆",
                   "data-moment": moment.index,
                   style: {left: `${moment.place}px`},
                   title: `${sentences.title(this.view, moment)}, ${this.view.time(moment.at_us)}`,
                   "aria-label":
                       `${sentences.title(this.view, moment)}, ${this.view.time(moment.at_us)}`,
                   on: {click: () => this.view.goMoment(moment.index)}
                 }));
    this.flags.replaceChildren(...flags);
  },

  /** What the signs above the chart mean, and the ticks at its foot. */
  placeSigns(placed, signs) {
    const {el} = cistern;
    const names = {
      failure: "failed request",
      peak: "peak",
      mark: "mark of the program",
      start: "start",
      end: "end"
    };
    const kinds =
        Object.keys(signs).filter((kind) => placed.some((moment) => moment.kind === kind));
    const items = kinds.map((kind) => [signs[kind], names[kind], kind]);
    if (this.ticks) items.push(["╵", "at the foot: marks of the program, such as steps", "tick"]);
    this.signs.replaceChildren(...items.map(
        ([sign, text, kind]) =>
            el("li", {}, el("span", {class: `sign ${kind}`, "aria-hidden": "true", text: sign}),
               el("span", {text}))));
  },

  placeCursor() {
    if (!this.frame || !this.view.position) return;
    const {us} = this.view.position;
    const place = this.x(us);
    const asked = this.data.asked[this.view.column(us)];
    const over = d3.select(this.over)
                     .attr("width", this.frame.right + 12)
                     .attr("height", this.frame.bottom + 26)
                     .style("display", this.inside(us) ? null : "none");
    const part = (tag) => over.selectAll(`${tag}.now`).data([0]).join(tag).attr("class", "now");
    part("line").attr("x1", place).attr("x2", place).attr("y1", 0).attr("y2", this.frame.bottom);
    // The line would hide a peak that is one pixel wide.
    part("circle").attr("cx", place).attr("cy", this.y(asked)).attr("r", 4);
    const [from, to] = this.whole();
    this.chart.setAttribute(
        "aria-valuenow", String(Math.round((1000 * (us - from)) / Math.max(1e-9, to - from))));
    this.chart.setAttribute(
        "aria-valuetext", `${this.view.time(us)}: ${cistern.units.bytes(asked)} in use`);
  },

  hint() {
    const {el, units} = cistern;
    const us = this.x.invert(d3.mouse(this.chart)[0]);
    if (!this.inside(us)) {
      cistern.hint.hide();
      return;
    }
    const column = this.view.column(us);
    const row = (name, value, colour) =>
        el("tr", {},
           el("th", {}, colour ? el("span", {class: "swatch", style: {"--colour": colour}}) : null,
              el("span", {text: name})),
           el("td", {text: units.bytes(value)}));
    const keys = this.stacked()
                     .map(([key, values]) => [key, values[column]])
                     .sort((a, b) => b[1] - a[1])
                     .slice(0, 6)
                     .filter(([, value]) => value > 0);
    const rows = keys.map(
        ([key, value]) =>
            row(key === "asked" ? "In use" : this.view.names.key(this.view.by, key), value,
                this.colourOf(key)));
    const sum = row("In use, in all", this.data.asked[column]);
    const lines = this.lines().map(({name, values, colour}) => row(name, values[column], colour));
    cistern.hint.show(
        [
          el("strong", {text: this.view.time(us) + cistern.sentences.during(this.view, us)}),
          el("table", {}, sum, ...lines.reverse(), ...rows)
        ],
        d3.event.clientX, d3.event.clientY);
  },
});
