// Paints the map: reserved memory, then the blocks that live, then those that wait for other streams.
cistern.mapPaint = (() => {
  function axis(context, view, label) {
    const colours = cistern.colours.now();
    context.fillStyle = colours.soft;
    context.font = "10px ui-monospace, monospace";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let row = 0; row < view.rows; row += view.left > 60 ? 2 : 4) {
      const offset = view.top + row * view.rowBytes;
      if (offset < view.length && view.left > 20) context.fillText(label(offset), view.left - 8, row * view.pitch + view.rowHeight / 2);
    }
  }

  function reserved(context, view, map, at) {
    const colours = cistern.colours.now();
    context.fillStyle = colours.reserved;
    map.pieces.forEach((piece) => {
      if (piece.from > at || at >= piece.until) return;
      view.spans(piece.offset, piece.bytes, (x, y, width) => context.fillRect(x, y, Math.max(0.5, width), view.rowHeight));
    });
    context.fillStyle = colours.soft;
    map.pieces.forEach((piece) => {
      if (piece.kind !== 0 || piece.from > at || at >= piece.until) return;
      if (piece.offset < view.top || piece.offset > view.top + view.rows * view.rowBytes) return;
      view.spans(piece.offset, 1, (x, y) => context.fillRect(x, y - 1, 1, view.rowHeight + 2));
    });
  }

  /** Blocks that are narrower than a pixel are painted once a pixel: the level of detail follows the zoom. */
  function blocks(context, view, map, at, rankOf) {
    const { window, offsets } = map;
    const { byAddress, bytes, born, freed, gone } = window;
    const colours = cistern.colours.now();
    const end = view.top + view.rows * view.rowBytes;
    const pixel = view.rowBytes / view.width / 2;  // bytes of half a pixel
    let painted = -1;  // the tape is painted up to here
    let colour = null;
    let gap = 0;
    const paint = (x, y, width) => {
      gap = width > 4 ? 1 : 0;
      context.fillRect(x, y, Math.max(0.6, width - gap), view.rowHeight);
    };
    for (let i = 0; i < byAddress.length; i += 1) {
      const b = byAddress[i];
      if (born[b] > at) continue;
      const lives = at < freed[b];
      if (!lives && at >= gone[b]) continue;
      const from = offsets[i];
      if (from < 0 || from + bytes[b] <= view.top || from >= end || from + bytes[b] < painted + pixel) continue;
      const wanted = lives ? cistern.colours.ofRank(rankOf(b)) : colours.pending;
      if (wanted !== colour) context.fillStyle = colour = wanted;
      view.spans(from, bytes[b], paint);
      painted = from + bytes[b];
    }
  }

  function cursor(context, view, offset, bytes) {
    const colours = cistern.colours.now();
    context.strokeStyle = colours.cursor;
    context.lineWidth = 2;
    view.spans(offset, bytes, (x, y, width) => context.strokeRect(x, y - 1, Math.max(2, width), view.rowHeight + 2));
  }

  /** The coarse map of one column: how much of each stretch is allocated. */
  function heat(context, view, heat, column) {
    const colours = cistern.colours.now();
    const { rows, row_bytes: rowBytes } = heat.model;
    for (let row = 0; row < rows; row += 1) {
      const used = heat.used[column * rows + row] / 255;
      const mapped = heat.mapped ? heat.mapped[column * rows + row] / 255 : used > 0 ? 1 : 0;
      if (mapped === 0 && used === 0) continue;
      const paint = (x, y, width) => context.fillRect(x, y, width, view.rowHeight);
      context.globalAlpha = 0.25 + 0.75 * mapped;
      context.fillStyle = colours.reserved;
      view.spans(row * rowBytes, rowBytes, paint);
      context.globalAlpha = used;
      context.fillStyle = colours.accent;
      view.spans(row * rowBytes, rowBytes, paint);
      context.globalAlpha = 1;
    }
  }
  return { axis, blocks, cursor, heat, reserved };
})();
