// A second recording beside the first: what grew, and what went.
cistern.comparison = (() => {
  const {el, units} = cistern;

  const signed = (difference) => (difference >= 0 ? "+" : "") + units.bytes(difference);

  const change = (before, after) =>
      (after === before ?
           "did not change" :
           `${after > before ? "grew" : "fell"} by ${units.bytes(Math.abs(after - before))}`);

  const name = (names, [before, after, label]) =>
      (after > 0      ? names.after.site(after) :
           before > 0 ? names.before.site(before) :
                        label || "no call stack");

  /** Both curves on one scale of bytes; each runs from its own start to its own end. */
  function curves(before, after) {
    const [width, height, left] = [900, 200, 70];
    const most = d3.max([...before.timeline.asked, ...after.timeline.asked]) || 1;
    const y = d3.scaleLinear().domain([0, most]).range([height - 6, 8]);
    const svg = cistern.svg({
      class: "curves",
      viewBox: `0 0 ${width} ${height}`,
      "aria-label": `Memory in use over time: ${before.name} dashed, ${after.name} drawn through`
    });
    cistern.byteTicks(most).forEach((tick) => {
      svg.append("line").call(
          cistern.attrs, {class: "grid", x1: left, x2: width, y1: y(tick), y2: y(tick)});
      svg.append("text").call(cistern.attrs, {x: left - 8, y: y(tick) + 4}).text(units.bytes(tick));
    });
    [[before, "before"], [after, "after"]].forEach(([recording, kind]) => {
      const {edges, asked} = recording.timeline;
      const x = d3.scaleLinear().domain([edges[0], edges[edges.length - 1]]).range([left, width]);
      svg.append("path")
          .attr("class", kind)
          .attr("d", d3.line().x((_, i) => x(edges[i])).y(y).curve(d3.curveStepAfter)(asked));
    });
    return svg.node();
  }

  function rows(names, entries) {
    const most = d3.max(entries, (row) => Math.abs(row[4] - row[3]));
    return entries.map(
        ([before, after, label, bytesBefore, bytesAfter, blocksBefore, blocksAfter]) => {
          const site = after > 0 ? cistern.stackElement(names.after, after) :
              before > 0         ? cistern.stackElement(names.before, before) :
                                   el("span", {text: label || "no call stack"});
          return [
            site, label || "", units.bytes(bytesBefore), units.bytes(bytesAfter),
            cistern.table.bar(
                Math.abs(bytesAfter - bytesBefore), most, signed(bytesAfter - bytesBefore)),
            `${units.count(blocksBefore)} → ${units.count(blocksAfter)}`
          ];
        });
  }

  function draw(body, view) {
    const {comparison, recordings} = view.model;
    if (!comparison) {
      body.replaceChildren(cistern.empty(
          "This page has one recording. A second file given to cistern report is compared with it here."));
      return;
    }
    const [before, after] = [recordings[comparison.before], recordings[comparison.after]];
    const names = {before: new cistern.Names(before), after: new cistern.Names(after)};
    const [least, most] = comparison.peak;
    const columns = [
      ["Call site", false], ["Label", false], ["Before", true], ["After", true],
      ["Difference", true], ["Blocks", true]
    ];
    const part = (title, entries, none) =>
        [el("h3", {text: title}),
         entries.length > 0 ? cistern.table.table(title, columns, rows(names, entries)) :
                              cistern.empty(none)];
    body.replaceChildren(
        el("p", {
          text: `Before: ${before.name}. After: ${after.name}. The peak ${
              change(least, most)}: from ${units.bytes(least)} to ${units.bytes(most)}.`
        }),
        curves(before, after),
        cistern.soft(`In use over time, each recording from its start to its end. Dashed: ${
            before.name}. Drawn through: ${after.name}.`),
        ...part("What grew", comparison.grew, "Nothing holds more than before."),
        ...part("What went", comparison.went, "Nothing holds less than before."));
  }
  return {change, draw, name};
})();
