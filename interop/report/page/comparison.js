// A second recording beside the first: what grew, and what went.
cistern.comparison = (() => {
  const { el, units } = cistern;

  const signed = (difference) => (difference >= 0 ? "+" : "") + units.bytes(difference);

  function rows(names, entries) {
    const most = d3.max(entries, (row) => Math.abs(row[4] - row[3]));
    return entries.map(([before, after, label, bytesBefore, bytesAfter, blocksBefore, blocksAfter]) => {
      const site = after > 0 ? cistern.stackElement(names.after, after) : before > 0 ? cistern.stackElement(names.before, before)
        : el("span", { text: label || "no call stack" });
      return [site, label || "", units.bytes(bytesBefore), units.bytes(bytesAfter),
              cistern.table.bar(Math.abs(bytesAfter - bytesBefore), most, signed(bytesAfter - bytesBefore)),
              `${units.count(blocksBefore)} → ${units.count(blocksAfter)}`];
    });
  }

  function draw(body, view) {
    const { comparison, recordings } = view.model;
    if (!comparison) {
      body.replaceChildren(cistern.empty("This page has one recording. A second file given to cistern report is compared with it here."));
      return;
    }
    const [before, after] = [recordings[comparison.before], recordings[comparison.after]];
    const names = { before: new cistern.Names(before), after: new cistern.Names(after) };
    const [least, most] = comparison.peak;
    const change = most === least ? "did not change" : `${most > least ? "grew" : "fell"} by ${units.bytes(Math.abs(most - least))}`;
    const columns = [["Call site", false], ["Label", false], ["Before", true], ["After", true], ["Difference", true], ["Blocks", true]];
    const part = (title, entries, none) => [el("h3", { text: title }), entries.length > 0
      ? cistern.table.table(title, columns, rows(names, entries)) : cistern.empty(none)];
    body.replaceChildren(
      el("p", { text: `Before: ${before.name}. After: ${after.name}. The peak ${change}: from ${units.bytes(least)} to ${units.bytes(most)}.` }),
      ...part("What grew", comparison.grew, "Nothing holds more than before."),
      ...part("What went", comparison.went, "Nothing holds less than before."));
  }
  return { draw };
})();
