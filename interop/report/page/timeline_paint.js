// Paints memory over time: areas of what was asked for, lines of what was allocated and reserved.
cistern.timelinePaint = (() => {
  /** The first and the last column that [from, to] shows. */
  function columns(edges, [from, to]) {
    return [
      Math.max(0, d3.bisectRight(edges, from) - 1),
      Math.min(edges.length - 1, d3.bisectLeft(edges, to))
    ];
  }

  function axes(context, frame, x, y, view) {
    const colours = cistern.colours.now();
    context.font = "11px system-ui, sans-serif";
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    cistern.byteTicks(y.domain()[1]).forEach((tick) => {
      const at = Math.round(y(tick)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(frame.left, at);
      context.lineTo(frame.right, at);
      context.stroke();
      context.fillStyle = colours.soft;
      context.fillText(cistern.units.bytes(tick), frame.left - 8, at);
    });
    context.textBaseline = "top";
    context.textAlign = "center";
    const wide = Math.max(2, Math.floor((frame.right - frame.left) / 130));
    const ticks =
        x.ticks(wide).filter((tick) => view.recording.has_times || Number.isInteger(tick));
    ticks.forEach((tick) => {
      if (x(tick) > frame.left + 20 && x(tick) < frame.right - 20)
        context.fillText(view.time(tick), x(tick), frame.bottom + 6);
    });
  }

  /**
   * Whole pixels, each with the column that has most there: one narrower than a pixel would be
   * pale. {column, from, to}
   */
  function pixels(edges, shown, x, stacked) {
    const [first, last] = columns(edges, shown);
    const sum = (column) => d3.sum(stacked, ([, values]) => values[column]);
    const found = [];
    for (let column = first; column < last; column += 1) {
      const from = Math.round(x(edges[column]));
      const to = Math.max(from + 1, Math.round(x(edges[column + 1])));
      const before = found[found.length - 1];
      if (!before || before.from !== from) {
        found.push({column, from, to});
      } else {
        before.to = Math.max(before.to, to);
        if (sum(column) > sum(before.column)) before.column = column;
      }
    }
    return found;
  }

  /** Areas on top of each other, the first key lowest. */
  function areas(context, edges, shown, x, y, stacked, colourOf) {
    const drawn = pixels(edges, shown, x, stacked);
    const base = new Float64Array(drawn.length);
    stacked.forEach(([key, values]) => {
      context.fillStyle = colourOf(key);
      context.beginPath();
      drawn.forEach(({column, from, to}, i) => {
        const top = y(base[i] + values[column]);
        context.lineTo(from, top);
        context.lineTo(to, top);
      });
      for (let i = drawn.length - 1; i >= 0; i -= 1) {
        context.lineTo(drawn[i].to, y(base[i]));
        context.lineTo(drawn[i].from, y(base[i]));
        base[i] += values[drawn[i].column];
      }
      context.fill();
    });
  }

  function line(context, edges, shown, x, y, values, {colour, width = 1.5, dash = []}) {
    const [first, last] = columns(edges, shown);
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    for (let c = first; c < last; c += 1) {
      context.lineTo(x(edges[c]), y(values[c]));
      context.lineTo(x(edges[c + 1]), y(values[c]));
    }
    context.stroke();
    context.setLineDash([]);
  }
  /**
   * What was asked for after each event of a window; several events in one pixel are one upright
   * line.
   */
  function exact(context, window, [from, to], x, y, colour) {
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.beginPath();
    const last = Math.min(window.count, window.atTime(to) + 1);
    let pixel = null;
    for (let at = window.atTime(from); at <= last; at += 1) {
      const place = x(window.timeAt(at));
      const top = y(window.asked[at]);
      if (pixel !== Math.round(2 * place)) {
        if (pixel !== null) context.lineTo(place, y(window.asked[at - 1]));
        context.moveTo(place, y(window.asked[Math.max(0, at - 1)]));
        pixel = Math.round(2 * place);
      }
      context.lineTo(place, top);
    }
    context.stroke();
  }
  return {areas, axes, exact, line};
})();

/** Even places on an axis of bytes: powers of two, and halves between them. */
cistern.byteTicks = (most) => {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, most) / 6));
  return d3.range(0, most + 1, step);
};
