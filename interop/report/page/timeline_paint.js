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

  /** Areas on top of each other, the first key lowest. */
  function areas(context, edges, shown, x, y, stacked, colourOf) {
    const [first, last] = columns(edges, shown);
    const base = new Float64Array(last - first);
    stacked.forEach(([key, values]) => {
      context.fillStyle = colourOf(key);
      context.beginPath();
      for (let c = first; c < last; c += 1) {
        const top = y(base[c - first] + values[c]);
        context.lineTo(x(edges[c]), top);
        context.lineTo(x(edges[c + 1]), top);
      }
      for (let c = last - 1; c >= first; c -= 1) {
        context.lineTo(x(edges[c + 1]), y(base[c - first]));
        context.lineTo(x(edges[c]), y(base[c - first]));
        base[c - first] += values[c];
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
