// How large blocks are and how long they live: bars by powers of two, and both together.
cistern.histograms = (() => {
  const {el, units} = cistern;
  const size = (log) => units.bytes(2 ** log);
  const life = (view) => (log) =>
      (view.recording.has_times ? units.duration(2 ** log) : units.count(2 ** log));

  /** Bars of `rows` = [[log2, value], …]. */
  function bars(title, rows, name, text) {
    const [width, row, left] = [340, 18, 74];
    const most = d3.max(rows, ([, value]) => value) || 1;
    const x = d3.scaleLinear().domain([0, most]).range([0, width - left - 74]);
    const told = rows.map(([log, value]) => `${name(log)}: ${text(value)}`).join("; ");
    const svg = cistern.svg(
        {viewBox: `0 0 ${width} ${rows.length * row}`, "aria-label": `${title}. ${told}`});
    const group = svg.selectAll("g").data(rows).join("g").attr(
        "transform", (_, i) => `translate(0,${i * row})`);
    group.append("text")
        .call(cistern.attrs, {class: "name", x: left - 8, y: 13})
        .text(([log]) => name(log));
    group.append("rect").call(cistern.attrs, {
      x: left,
      y: 3,
      height: row - 5,
      rx: 2,
      width: ([, value]) => Math.max(value > 0 ? 1 : 0, x(value))
    });
    group.append("text")
        .call(cistern.attrs, {class: "value", x: ([, value]) => left + x(value) + 6, y: 13})
        .text(([, value]) => text(value));
    return el("figure", {class: "bars-chart"}, el("figcaption", {text: title}), svg.node());
  }

  /** Every power between the least and the most, so that a gap shows as one. */
  function filled(rows, column) {
    if (rows.length === 0) return [];
    const known = new Map(rows.map((row) => [row[0], row[column]]));
    return d3.range(d3.min(rows, ([log]) => log), d3.max(rows, ([log]) => log) + 1)
        .map((log) => [log, known.get(log) || 0]);
  }

  /** Sizes against lifetimes: the darker, the more allocations. */
  function both(view, cells) {
    const logs = (i) => [d3.min(cells, (cell) => cell[i]), d3.max(cells, (cell) => cell[i])];
    const [[low, high], [short, long]] = [logs(0), logs(1)];
    const [cell, left, bottom] = [16, 74, 62];
    const [width, height] =
        [left + (long - short + 1) * cell + 30, (high - low + 1) * cell + bottom];
    const strength =
        d3.scaleLog().domain([1, Math.max(2, d3.max(cells, ([, , n]) => n))]).range([0.15, 1]);
    const svg = cistern.svg({
      viewBox: `0 0 ${width} ${height}`,
      "aria-label":
          "Sizes against lifetimes: the darker a cell, the more allocations. The two charts beside it have the numbers."
    });
    svg.style("max-width", `${width}px`)
        .selectAll("rect")
        .data(cells)
        .join("rect")
        .call(cistern.attrs, {
          x: ([, l]) => left + (l - short) * cell,
          y: ([s]) => (high - s) * cell,
          width: cell - 1,
          height: cell - 1,
          rx: 2,
          "fill-opacity": ([, , n]) => strength(n)
        })
        .append("title")
        .text(([s, l, n]) => `${size(s)}, ${life(view)(l)}: ${units.counted(n, "allocation")}`);
    const place = (l) => `${left + (l - short) * cell + 11},${(high - low + 1) * cell + 8}`;
    svg.selectAll("text.size")
        .data(d3.range(low, high + 1))
        .join("text")
        .call(cistern.attrs, {class: "name", x: left - 8, y: (s) => (high - s) * cell + 12})
        .text(size);
    svg.selectAll("text.life")
        .data(d3.range(short, long + 1, 2))
        .join("text")
        .call(
            cistern.attrs, {class: "turned", transform: (l) => `translate(${place(l)}) rotate(50)`})
        .text(life(view));
    return el(
        "figure", {class: "bars-chart matrix"},
        el("figcaption", {text: "Sizes (up) and lifetimes (along)"}), svg.node());
  }

  function draw(body, view) {
    const {sizes, lifetimes, size_life: cells} = view.recording;
    if (sizes.length === 0) {
      body.replaceChildren(cistern.empty("Nothing was allocated, so there are no sizes."));
      return;
    }
    const charts = [
      bars("Allocations by size, from", filled(sizes, 1), size, units.count),
      bars("Bytes over all time by size, from", filled(sizes, 2), size, units.bytes)
    ];
    if (lifetimes.length > 0)
      charts.push(bars(
          view.recording.has_times ? "Allocations by lifetime, from" :
                                     "Allocations by lifetime in events, from",
          filled(lifetimes, 1), life(view), units.count));
    if (cells.length > 0) charts.push(both(view, cells));
    const parts = [el("div", {class: "charts"}, charts)];
    if (lifetimes.length === 0)
      parts.push(cistern.empty("Nothing was freed, so no lifetime is known."));
    body.replaceChildren(...parts);
  }
  return {draw};
})();
