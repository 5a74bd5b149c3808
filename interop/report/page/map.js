// The map of the memory at the chosen moment: exact within windows, coarse elsewhere.
cistern.Map = class {
  constructor(body, view) {
    this.view = view;
    this.heat = view.recording.heat ? new cistern.Heat(view.recording.heat) : null;
    this.made = new Map();
    this.picture = new cistern.MapPicture();
    this.chosen = -1;
    this.height = 400;
    this.build(body);
    view.on("redraw", () => this.draw());
    view.on("colours", () => this.legend());
    view.on("position", () => this.draw());
    this.legend();
  }

  build(body) {
    const {el} = cistern;
    this.canvas = el("canvas", {"aria-hidden": "true"});
    this.box =
        el("div", {
          class: "map",
          id: "map-box",
          tabindex: 0,
          role: "application",
          "aria-roledescription": "map of the memory",
          "aria-label": "Map of the memory. Arrow keys go from block to block; plus and minus zoom."
        },
           this.canvas);
    this.about = el("p", {class: "soft", id: "map-about"});
    this.detail = el("p", {class: "detail", id: "map-block"});
    this.legendList = el("ul", {class: "legend plain"});
    const by = this.view.kinds();
    this.switcher = by.length > 0 ?
        cistern.choice(
            "Colour by", "colour-by", by.map((kind) => [kind, cistern.byName[kind]]), this.view.by,
            (kind) => this.view.colourBy(kind)) :
        null;
    const button = (text, act) => cistern.button(text, () => {
      act();
      this.draw();
    });
    this.zoomers =
        el("span", {class: "group"}, button("Zoom in", () => this.zoomBy(2)),
           button("Zoom out", () => this.zoomBy(0.5)), button("Show all", () => this.zoomBy(0)));
    this.tools = el("div", {class: "tools"}, this.switcher, this.zoomers);
    body.replaceChildren(
        ...[...(this.heat && !this.view.isMoment ? cistern.heatChart(this.heat, this.view) : []),
            this.about, this.tools, this.box, this.detail, this.legendList]
            .filter(Boolean));
    this.box.map = this;
    cistern.mapActs(this);
  }

  legend() {
    const {el} = cistern;
    const tinted = this.view.by === "pool" || this.view.by === "stream";
    const colours = cistern.colours.now();
    const entry = (colour, text) => el(
        "li", {}, el("span", {class: "swatch", style: {"--colour": colour}}), el("span", {text}));
    const ranks = this.view.ranks();
    const keys = [...ranks].map(
        ([key, rank]) =>
            entry(cistern.colours.ofRank(rank), this.view.names.key(this.view.by, key)));
    const series = colours.series.length;
    const others = [
      entry(colours.rest, "all others"),
      entry(colours.reserved, tinted ? "pale: reserved, free" : "reserved, free"),
      entry(colours.pending, "freed, waits for other streams"),
      entry(colours.asleep, "asleep: no memory until its pool wakes"),
      entry(colours.panel, "no memory there, or another segment begins further on")
    ];
    others[4].firstChild.classList.add("bordered");
    this.keys = [
      ...[...ranks.values()].map((rank, i) => [rank, keys[i]]), [series, others[0]],
      ["free", others[1]], ["pending", others[2]], ["asleep", others[3]], ["none", others[4]]
    ];
    this.legendList.replaceChildren(...keys, ...others);
    this.legendFor = null;
    const radio = this.switcher && this.switcher.querySelector(`input[value="${this.view.by}"]`);
    if (radio) radio.checked = true;
  }

  /** Leaves in the legend what the map shows now. */
  prune(layout, at) {
    if (this.legendFor === `${at} ${this.view.wanted}` || !this.keys) return;
    this.legendFor = `${at} ${this.view.wanted}`;
    const {window} = layout;
    const seen = new Uint8Array(256);  // by rank
    const {born, freed} = window;
    const away = cistern.asleep.blocks(window, at);
    for (let b = window.placed; b < window.blocks; b += 1)
      if (born[b] <= at && at < freed[b] && !away[b]) seen[layout.ranks[b]] = 1;
    const {free, waiting, asleep} = cistern.state.sums(window, at);
    const others = {none: true, free: free > 0, pending: waiting > 0, asleep: asleep > 0};
    this.keys.forEach(([key, node]) => {
      node.hidden = !(others[key] ?? seen[key] === 1);
    });
  }

  /**
   * What the map needs of a window, made once: the tape, and where its pieces and blocks lie on
   * it.
   */
  layout(index) {
    if (!this.made.has(index)) {
      const window = this.view.window(index);
      const extents = window.pieces.map((piece) => [piece.address, piece.bytes]);
      for (let b = window.placed; b < window.blocks; b += 1)
        extents.push([window.address[b], window.bytes[b]]);
      const tape = new cistern.Tape(extents);
      this.made.set(index, {
        window,
        tape,
        sight: new cistern.TapeView(tape.length),
        pieces: window.pieces.map((piece) => ({...piece, offset: tape.offset(piece.address)})),
        offsets: window.address.map((address) => tape.offset(address))
      });
    }
    return this.made.get(index);
  }

  /**
   * What is drawn at the position: { sight, layout } or { sight, heat }; null if nothing is known.
   */
  shown() {
    const {window} = this.view.position;
    if (window !== null) {
      const layout = this.layout(window);
      if (layout.tape.length > 0) return {layout, sight: layout.sight};
    }
    if (!this.heat) return null;
    this.heatSight =
        this.heatSight || new cistern.TapeView(this.heat.model.rows * this.heat.model.row_bytes);
    return {heat: this.heat, sight: this.heatSight};
  }

  draw() {
    if (!this.view.position) return;
    const shown = this.shown();
    [this.box, this.tools, this.detail, this.legendList].forEach((node) => {
      node.hidden = !shown;
    });
    if (!shown) {
      this.about.textContent = "The recording has no addresses here, so the map stays empty.";
      return;
    }
    const {context, width, height, ratio} = cistern.fitted(this.canvas, this.height);
    const left = width < 520 ? 8 : 116;
    shown.sight.fit(left, width - left - 12, height - 4);
    this.picture.begin(shown.sight, ratio);
    if (shown.layout)
      this.drawExact(context, shown);
    else
      this.drawCoarse(context, shown);
  }

  drawExact(context, {layout, sight}) {
    const {at} = this.view.position;
    const paint = cistern.mapPaint;
    paint.axis(
        context, sight, (offset) => "0x" + Math.round(layout.tape.address(offset)).toString(16));
    paint.exact(this.picture, layout, at, this.ranks(layout), paint.freeColours(this.view));
    this.prune(layout, at);
    this.picture.end(context);
    paint.ticks(context, sight, layout, at);
    if (this.chosen >= 0) this.drawChosen(context, layout, sight);
    const {units} = cistern;
    this.setAbout(
        `Exact: every block as of event ${units.count(layout.window.first + at)}. A row is ${
            units.bytes(sight.rowBytes)}.` +
        (this.view.wanted ? " Pale: what the search above does not look for." : ""));
  }

  /**
   * Each block's colour: the rank of its key, that of all others, or that of what the search does
   * not look for. Kept until the page colours or searches otherwise.
   */
  ranks(layout) {
    const {by, wanted} = this.view;
    const how = `${by} ${wanted}`;
    if (layout.ranked !== how) {
      const {window} = layout;
      const ranks = this.view.ranks();
      const rest = cistern.colours.now().series.length;
      const found = window.holders.map((holder) => !wanted || this.view.matches(...holder));
      layout.ranks = Uint8Array.from(
          window[by === "site" ? "stack" : by],
          (key, b) => (found[window.holder[b]] ? ranks.get(key) ?? rest : rest + 1));
      layout.ranked = how;
    }
    return layout.ranks;
  }

  drawChosen(context, layout, sight) {
    const b = this.chosen;
    const at = this.view.position.at;
    if (b >= layout.window.blocks || !(layout.window.lives(b, at) || layout.window.waits(b, at)))
      return;
    cistern.mapPaint.cursor(
        context, sight, layout.tape.offset(layout.window.address[b]), layout.window.bytes[b]);
  }

  drawCoarse(context, {heat, sight}) {
    cistern.mapPaint.axis(
        context, sight, (offset) => "0x" + Math.round(heat.address(offset)).toString(16));
    cistern.mapPaint.coarse(this.picture, heat, heat.column(this.view.position.us));
    this.picture.end(context);
    this.legendList.hidden = true;
    this.setAbout(
        `Coarse: the darker, the more of ${
            cistern.units.bytes(heat.model.row_bytes)} is allocated. ` +
        "Around the moments the map shows every block.");
  }

  setAbout(text) {
    if (this.about.textContent !== text) this.about.textContent = text;
  }

  zoomBy(factor) {
    const shown = this.shown();
    if (!shown) return;
    const {sight} = shown;
    if (factor === 0)
      [sight.zoomed, sight.top] = [1, 0];
    else
      sight.zoom(factor, sight.left + sight.width / 2, sight.height / 2);
  }
};
