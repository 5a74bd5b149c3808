// The flame graph, upside down: the program's entry on top, what it calls below. A click zooms; a
// search marks.
cistern.Flame = class {
  constructor(body, view) {
    this.view = view;
    this.kinds = [
      ["failure", "At the failure"], ["peak", "At the peak"], ["end", "At the end"],
      ["longest", "Longest lived"], ["moment", "At the chosen moment"]
    ].filter(([kind]) => kind === "moment" || this.rows(kind).length > 0);
    if (this.kinds.length === 1) this.kinds = [];  // no moment has anything
    if (this.kinds.length === 0) {
      body.replaceChildren(cistern.empty("Nothing lived at the peak, so there is no flame graph."));
      return;
    }
    if (!this.kinds.some(([kind]) => this.rows(kind).some(([stack]) => stack > 0))) {
      body.replaceChildren(
          cistern.empty("The recording has no call stacks, so there is no flame graph."));
      return;
    }
    this.build(body);
    this.load(this.kinds[0][0]);
    view.on("redraw", () => this.draw());
    view.on("position", () => {
      if (this.kind === "moment") this.load("moment");
    });
  }

  /** [stack, bytes, blocks, …] of a choice. */
  rows(kind) {
    const {flame, moments} = this.view.recording;
    if (flame[kind]) return flame[kind];
    const ofHolders = (holders) =>
        holders.map(([stack, , , , blocks, bytes]) => [Math.max(0, stack), bytes, blocks]);
    if (kind === "moment")
      return this.view.position ? ofHolders(cistern.holderRows.told(this.view) || []) : [];
    const failed = moments.find((moment) => moment.kind === "failure");
    return failed ? ofHolders(failed.holders) : [];
  }

  build(body) {
    const {el} = cistern;
    this.search = el("input", {
      type: "search",
      id: "flame-search",
      placeholder: "function or file",
      on: {input: () => this.draw()}
    });
    this.found = el("span", {class: "soft", id: "flame-found", role: "status"});
    this.back = cistern.button("Show all", () => this.zoomTo(this.root));
    this.svg = cistern.svg({
      role: "group",
      "aria-label": "Flame graph. Arrow keys go from frame to frame; Enter zooms."
    });
    this.detail = el("p", {class: "detail", id: "flame-detail"});
    body.replaceChildren(
        el("div", {class: "tools"},
           cistern.choice(
               "Bytes", "flame-kind", this.kinds, this.kinds[0][0], (kind) => this.load(kind)),
           el("label", {}, el("span", {text: "Search"}), this.search), this.found, this.back),
        this.detail, el("div", {class: "flame", id: "flame-box"}, this.svg.node()),
        cistern.soft(
            "Blue: the program’s own frames. Grey: libraries’. Click a frame to zoom into it.",
            {class: "soft keys"}));
    this.svg.on("keydown", () => this.key(d3.event));
  }

  load(kind) {
    this.root = cistern.flameTree(this.view.names, this.rows(kind));
    this.kind = kind;
    this.zoomTo(this.root);
  }

  zoomTo(node) {
    this.top = node;
    this.current = node;
    this.describe(node);
    this.draw();
  }

  describe(node) {
    const {units} = cistern;
    const life = this.kind === "longest" && node.blocks > 0 && this.view.recording.has_times ?
        `, living ${units.duration(node.life / node.blocks)} on average` :
        "";
    const name = node === this.root ? "All call stacks" : node.data.name;
    if (this.root.value === 0) {
      this.detail.textContent =
          "Between the parts that are kept one by one, the call stacks of a moment are not known.";
      return;
    }
    this.detail.textContent =
        `${name}: ${units.bytes(node.value)} in ${units.counted(node.blocks, "block")}, ` +
        `${units.percent(node.value, this.root.value)} of all${life}`;
  }

  /** The nodes wide enough to see: those around the zoomed one fill the width. */
  visible(width) {
    const {x0, x1} = this.top;
    const scale = d3.scaleLinear().domain([x0, x1]).range([0, width]);
    const above = new Set(this.top.ancestors());
    return this.root.descendants()
        .filter(
            (node) => above.has(node) ||
                (node.x0 >= x0 && node.x1 <= x1 && scale(node.x1) - scale(node.x0) >= 1.5))
        .map((node) => {
          const from = above.has(node) ? 0 : scale(node.x0);
          return {node, from, width: (above.has(node) ? width : scale(node.x1)) - from};
        });
  }

  draw() {
    const ROW = 20;
    const width = Math.max(200, this.svg.node().parentElement.clientWidth);
    const cells = this.visible(width);
    const wanted = this.search.value.trim().toLowerCase();
    this.svg.attr("width", width).attr("height", (d3.max(cells, ({node}) => node.depth) + 1) * ROW);
    const groups = this.svg.selectAll("g")
                       .data(cells, ({node}) => this.id(node))
                       .join((enter) => this.enter(enter));
    groups.call(cistern.attrs, {
      transform: ({node, from}) => `translate(${from},${node.depth * ROW})`,
      class: ({node}) => this.classOf(node, wanted),
      tabindex: ({node}) => (node === this.current ? 0 : -1)
    });
    groups.select("rect").call(
        cistern.attrs, {width: ({width: w}) => Math.max(0.5, w - 1), height: ROW - 1});
    groups.select("text").text(({node, width: w}) => this.fitText(node, w));
    this.back.hidden = this.top === this.root;
    this.report(wanted);
  }

  id(node) {
    if (node.mark === undefined) node.mark = this.marks = (this.marks || 0) + 1;
    return node.mark;
  }

  enter(enter) {
    const group =
        enter.append("g").attr("role", "button").attr("aria-label", ({node}) => this.labelOf(node));
    group.append("rect").attr("rx", 2);
    group.append("text").call(cistern.attrs, {x: 5, y: 14});
    group.on("click", ({node}) => this.zoomTo(node))
        .on("focus", ({node}) => this.describe(node))
        .on("mousemove", ({node}) => this.hint(node))
        .on("mouseleave", cistern.hint.hide);
    return group;
  }

  labelOf(node) { return `${node.data.name}, ${cistern.units.bytes(node.value)}`; }

  classOf(node, wanted) {
    const kind = node.data.frame === null        ? "root" :
        cistern.Names.isLibrary(node.data.frame) ? "library" :
                                                   "program";
    const found = wanted && node.data.name.toLowerCase().includes(wanted);
    return `frame ${kind}${wanted ? (found ? " found" : " dim") : ""}`;
  }

  fitText(node, width) {
    if (width < 30) return "";
    const name =
        node === this.root ? `all, ${cistern.units.bytes(node.value)}` : this.shortName(node);
    const most = Math.floor((width - 10) / 6.6);
    return name.length <= most ? name : most < 3 ? "" : name.slice(0, most - 1) + "…";
  }

  shortName(node) {
    const name = cistern.Names.functionOf(node.data.frame);
    const place = cistern.Names.place(node.data.frame);
    return name && place !== name ? `${name} (${place})` : place;
  }

  report(wanted) {
    if (!wanted) {
      this.found.textContent = "";
      return;
    }
    let bytes = 0;  // a frame below one that matches counts once
    const walk = (node) => {
      if (node !== this.root && node.data.name.toLowerCase().includes(wanted))
        bytes += node.value;
      else
        (node.children || []).forEach(walk);
    };
    walk(this.root);
    this.found.textContent = `${cistern.units.bytes(bytes)} match, ${
        cistern.units.percent(bytes, this.root.value)} of all`;
  }

  hint(node) {
    const {el, units} = cistern;
    cistern.hint.show(
        [
          el("p", {text: node === this.root ? "All call stacks" : node.data.name}),
          cistern.soft(`${units.bytes(node.value)} in ${units.counted(node.blocks, "block")}, ${
              units.percent(node.value, this.root.value)} of all`)
        ],
        d3.event.clientX, d3.event.clientY);
  }

  key(event) {
    const siblings = this.current.parent ? this.current.parent.children : [this.current];
    const here = siblings.indexOf(this.current);
    const next = {
      ArrowDown: (this.current.children || [])[0],
      ArrowUp: this.current.parent,
      ArrowLeft: siblings[here - 1],
      ArrowRight: siblings[here + 1]
    }[event.key];
    if (event.key === "Enter" || event.key === " ")
      this.zoomTo(this.current);
    else if (event.key === "Escape")
      this.zoomTo(this.root);
    else if (next)
      this.current = next;
    else
      return;
    event.preventDefault();
    this.draw();
    const target = this.svg.selectAll("g").filter(({node}) => node === this.current).node();
    if (target) target.focus();
  }
};
