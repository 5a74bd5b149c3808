// Paints the map. A row of the map is one line of a small picture, stretched to the row's height.
// The picture's lines follow one another in memory as the rows do on the tape, so a block is one
// run of pixels, wherever rows end.
cistern.MapPicture = class {
  constructor() {
    this.canvas = cistern.el("canvas");
    this.width = 0;
  }

  /** Empties the picture for a view: a pixel of the screen is a pixel of a line. */
  begin(view, ratio) {
    this.view = view;
    const width = Math.max(1, Math.round(view.width * ratio));
    if (width !== this.width || view.rows !== this.canvas.height) {
      [this.canvas.width, this.canvas.height] = [width, view.rows];
      this.width = width;
      this.context = this.canvas.getContext("2d");
      this.image = this.context.createImageData(width, view.rows);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(0);
    this.scale = width / view.rowBytes;  // pixels a byte
    this.wide = 6 * ratio;
  }

  /** Paints bytes of the tape; a wide run leaves its last pixel to the gap before its neighbour. */
  run(offset, bytes, colour, gap) {
    let from = Math.round((offset - this.view.top) * this.scale);
    let to = Math.round((offset + bytes - this.view.top) * this.scale);
    if (to < 0 || from >= this.pixels.length) return;
    if (to === from)
      to += 1;
    else if (gap && to - from > this.wide)
      to -= 1;
    from = Math.max(0, from);
    to = Math.min(this.pixels.length, to);
    if (to - from > 16)
      this.pixels.fill(colour, from, to);
    else
      for (let i = from; i < to; i += 1) this.pixels[i] = colour;
  }

  end(context) {
    const {view} = this;
    this.context.putImageData(this.image, 0, 0);
    context.imageSmoothingEnabled = false;
    for (let row = 0; row < view.rows; row += 1) {
      context.drawImage(
          this.canvas, 0, row, this.width, 1, view.left, row * view.pitch, view.width,
          view.rowHeight);
    }
  }
};

cistern.mapPaint = (() => {
  /** A colour as a pixel; `part` of it over `under`. */
  function pixel(colour, part = 1, under = "#ffffff") {
    const {r, g, b} = d3.rgb(part === 1 ? colour : d3.interpolateRgb(under, colour)(part));
    return (0xff000000 | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
  }

  function axis(context, view, label) {
    if (view.left < 60) return;
    context.fillStyle = cistern.colours.now().soft;
    context.font = "10px ui-monospace, monospace";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let row = 0; row < view.rows; row += 2) {
      const offset = view.top + row * view.rowBytes;
      if (offset < view.length)
        context.fillText(label(offset), view.left - 8, row * view.pitch + view.rowHeight / 2);
    }
  }

  const isReserved = (piece, at) => piece.from <= at && at < piece.until;

  /**
   * The colour of a piece's free memory: pale, and tinted by whose it is where the map tells pools
   * or streams apart, since a request takes no memory of another.
   */
  function freeColours(view) {
    const colours = cistern.colours.now();
    const [ranks, made] = [view.ranks(), new Map()];
    const tinted = view.by === "pool" || view.by === "stream";
    return (piece) => {
      const rank = tinted ? ranks.get(piece[view.by]) ?? -1 : -1;
      if (!made.has(rank)) {
        made.set(
            rank,
            rank < 0 ? pixel(colours.reserved) :
                       pixel(colours.series[rank], 0.3, colours.reserved));
      }
      return made.get(rank);
    };
  }

  /**
   * Reserved memory, then the blocks that live, with memory or asleep, then those that wait for
   * other streams.
   */
  function exact(picture, layout, at, ranks, free) {
    const {window, offsets} = layout;
    const {blocks, bytes, born, freed, gone} = window;
    const colours = cistern.colours.now();
    const [pending, away] = [pixel(colours.pending), pixel(colours.asleep)];
    const asleep = cistern.asleep.blocks(window, at);
    const series = [...colours.series, colours.rest, colours.dim].map((colour) => pixel(colour));
    layout.pieces.forEach((piece) => {
      if (isReserved(piece, at)) picture.run(piece.offset, piece.bytes, free(piece), false);
    });
    for (let b = window.placed; b < blocks; b += 1) {
      if (born[b] > at) continue;
      if (at < freed[b])
        picture.run(offsets[b], bytes[b], asleep[b] ? away : series[ranks[b]], true);
      else if (at < gone[b])
        picture.run(offsets[b], bytes[b], pending, true);
    }
  }

  /** A tick where each segment begins, as long as they can be told apart. */
  function ticks(context, view, layout, at) {
    const shown = layout.pieces.filter((piece) => piece.kind === 0 && isReserved(piece, at));
    if (shown.length > view.rows * 20 * view.zoomed) return;
    context.fillStyle = cistern.colours.now().ink;
    shown.forEach(
        (piece) => view.spans(
            piece.offset, 1, (x, y) => context.fillRect(x - 0.5, y - 2, 1, view.rowHeight + 4)));
  }

  function cursor(context, view, offset, bytes) {
    context.strokeStyle = cistern.colours.now().cursor;
    context.lineWidth = 2;
    view.spans(
        offset, bytes,
        (x, y, width) => context.strokeRect(x, y - 1, Math.max(2, width), view.rowHeight + 2));
  }

  /** The coarse map of one column: how much of each stretch is allocated. */
  function coarse(picture, heat, column) {
    const colours = cistern.colours.now();
    const {rows, row_bytes: rowBytes} = heat.model;
    for (let row = 0; row < rows; row += 1) {
      const used = heat.used[column * rows + row] / 255;
      const mapped = heat.mapped ? heat.mapped[column * rows + row] / 255 : used > 0 ? 1 : 0;
      if (mapped === 0 && used === 0) continue;
      const under = d3.interpolateRgb(colours.panel, colours.reserved)(mapped);
      picture.run(row * rowBytes, rowBytes, pixel(colours.accent, used, under), false);
    }
  }
  return {axis, coarse, cursor, exact, freeColours, ticks};
})();
