// The address space over time, coarse: a picture whose columns are times and whose rows are
// stretches of addresses.
cistern.Heat = class {
  constructor(model) {
    this.model = model;
    this.used = cistern.data.fromBase64(model.used);
    this.mapped = model.mapped ? cistern.data.fromBase64(model.mapped) : null;
    this.columns = model.edges.length - 1;
  }

  column(us) {
    return Math.max(0, Math.min(this.columns - 1, d3.bisectRight(this.model.edges, us) - 1));
  }

  /** The address at a byte of the coarse tape. */
  address(offset) {
    const row = Math.floor(offset / this.model.row_bytes);
    const segment =
        this.model.segments.find(([, , first, rows]) => row >= first && row < first + rows);
    return segment ? segment[0] + offset - segment[2] * this.model.row_bytes : 0;
  }

  /** The picture in the page's colours, one pixel a value. */
  picture() {
    const colours = cistern.colours.now();
    const [nothing, reserved, used] =
        [colours.panel, colours.reserved, colours.accent].map((colour) => d3.rgb(colour));
    const rows = Math.max(1, this.model.rows);
    const canvas = cistern.el("canvas");
    [canvas.width, canvas.height] = [this.columns, rows];
    const context = canvas.getContext("2d");
    const image = context.createImageData(this.columns, rows);
    for (let column = 0; column < this.columns; column += 1) {
      for (let row = 0; row < rows; row += 1) {
        const u = this.used[column * rows + row] / 255;
        const m = this.mapped ? this.mapped[column * rows + row] / 255 : 0;
        const at = 4 * (row * this.columns + column);
        ["r", "g", "b"].forEach((part, i) => {
          const base = nothing[part] + (reserved[part] - nothing[part]) * m;
          image.data[at + i] = base + (used[part] - base) * u;
        });
        image.data[at + 3] = 255;
      }
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }
};

/** The picture as a chart above the map, and what it shows: a click chooses the time. */
cistern.heatChart = (heat, view) => {
  const {el} = cistern;
  const canvas = el("canvas", {"aria-hidden": "true"});
  const line = el("span", {class: "now-line"});
  const box =
      el("div", {
        class: "heat",
        role: "img",
        "aria-label": "Addresses over time: the darker, the more of them is allocated"
      },
         canvas, line);
  let picture = null;
  let frame = null;
  const {edges} = heat.model;
  const scale = () =>
      d3.scaleLinear().domain([edges[0], edges[heat.columns]]).range([frame.left, frame.right]);

  function draw() {
    picture = picture || heat.picture();
    const {context, width, height} = cistern.fitted(canvas, 120);
    frame = {left: width < 520 ? 60 : 76, right: width - 12};
    context.imageSmoothingEnabled = false;
    const x = scale();
    for (let column = 0; column < heat.columns; column += 1) {
      const from = x(edges[column]);
      context.drawImage(
          picture, column, 0, 1, heat.model.rows, from, 0, x(edges[column + 1]) - from + 0.5,
          height);
    }
    place();
  }

  function place() {
    if (frame && view.position) line.style.left = `${scale()(view.position.us)}px`;
  }
  box.addEventListener("click", (event) => {
    const us = scale().invert(event.clientX - box.getBoundingClientRect().left);
    view.goTime(Math.max(edges[0], Math.min(edges[heat.columns], us)));
  });
  view.on("redraw", () => {
    picture = null;
    draw();
  });
  view.on("position", place);
  const {bytes} = cistern.units;
  const about =
      `All addresses, from top to bottom, over time: blue is allocated, grey is reserved, ${
          bytes(heat.model.row_bytes)} a row. Click to choose a time.`;
  return [cistern.soft(about), box];
};
