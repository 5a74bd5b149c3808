// The rows of the table of holders, for the chosen moment. Each row: {key, title() makes the
// element that names it, label, place, blocks, bytes, largest}. What is not known is null.
cistern.holderRows = (() => {
  const {el} = cistern;

  /** Holders as the model has them; those of a moment, or those that its window adds up. */
  function told(view) {
    const {window, at, moment} = view.position;
    const known = moment === null ? [] : view.recording.moments[moment].holders;
    if (known.length > 0) return known;
    return window === null ? null : cistern.state.holders(view.window(window), at);
  }

  /** The line of a stack, and its caller where others have the same line and library. */
  function apartFrom(names, stack, stacks) {
    const twins = stacks.filter(
        (other) => other !== stack && names.throughName(other) === names.throughName(stack));
    const difference = twins.length > 0 ? names.difference(stack, twins) : "";
    return difference ? `${names.site(stack)}, ${difference}` : names.site(stack);
  }

  function ofHolder(names, [stack, label, pool, stream, blocks, bytes, largest], stacks) {
    const isRest = stack === -1;
    return {
      key: `${stack} ${label} ${pool} ${stream}`,
      title: () => stack > 0 ? cistern.stackElement(names, stack, apartFrom(names, stack, stacks)) :
                               el("span", {text: names.holder([stack, label, pool, stream])}),
      label: !isRest && label > 0 ? names.label(label) : "",
      place: isRest ? "" : `${names.pool(pool)}, ${names.stream(stream)}`,
      blocks,
      bytes,
      largest
    };
  }

  const named = (name, {blocks = null, bytes, largest = null}) => ({
    key: name,
    title: () => el("span", {text: name}),
    label: "",
    place: "",
    blocks,
    bytes,
    largest
  });

  /** Holders with one line of the program, or one label, as one. */
  function merged(names, holders, by) {
    const sums = new Map();
    holders.forEach(([stack, label, , , blocks, bytes, largest]) => {
      const name = by === "line" || stack === -1 ? names.site(stack) : names.label(label);
      const sum = sums.get(name) || {blocks: 0, bytes: 0, largest: 0, paths: new Map()};
      if (by === "line" && stack > 0) sum.paths.set(stack, (sum.paths.get(stack) || 0) + bytes);
      sum.blocks += blocks;
      sum.bytes += bytes;
      sum.largest = Math.max(sum.largest, largest);
      sums.set(name, sum);
    });
    return Array
        .from(sums, ([name, sum]) => ({
                      ...named(name, sum),
                      key: `${by} ${name} ${[...sum.paths].join()}`,
                      title: () => callPaths(names, name, sum.paths)
                    }))
        .sort((a, b) => b.bytes - a.bytes);
  }

  /** A line that unfolds into the call paths that reach it, each with its bytes. */
  function callPaths(names, name, paths) {
    const sorted = [...paths].sort((a, b) => b[1] - a[1]);
    if (sorted.length === 0) return el("span", {text: name});
    if (sorted.length === 1) return cistern.stackElement(names, sorted[0][0]);
    const stacks = sorted.map(([stack]) => stack);
    const items = () => sorted.map(
        ([stack, bytes]) =>
            el("li", {},
               cistern.stackElement(
                   names, stack,
                   `${cistern.units.bytes(bytes)}, ${apartFrom(names, stack, stacks)}`)));
    const list = el("ul", {class: "paths"});
    const fill = () => {
      if (list.childElementCount === 0) list.append(...items());
    };
    return el(
        "details", {class: "site", on: {toggle: fill}},
        el("summary", {}, name,
           el("small", {text: cistern.units.counted(sorted.length, "call path")})),
        list);
  }

  /** Outside windows the timeline knows the largest only, by one thing at a time. */
  function ofColumn(view) {
    const kinds = view.kinds();
    const by = ["site", "label", "stream", "pool"].find((kind) => kinds.includes(kind)) || "pool";
    const column = view.column(view.position.us);
    const rows = (view.recording.timeline.stacked[by] || [])
                     .map(([key, values]) => ({
                            ...named(view.names.key(by, key), {bytes: values[column]}),
                            title: () => by === "site" && key > 0 ?
                                cistern.stackElement(view.names, key) :
                                el("span", {text: view.names.key(by, key)}),
                            key: `${by} ${key}`
                          }))
                     .filter(({bytes}) => bytes > 0)
                     .sort((a, b) => b.bytes - a.bytes);
    return {
      rows,
      about:
          `Events are kept one by one around the moments only. Here the largest are told apart by ${
              cistern.byName[by].toLowerCase()}.`
    };
  }

  function ofSizes(view) {
    const {window, at} = view.position;
    const sizes = cistern.state.sizes(view.window(window), at);
    return {
      rows: sizes.map((size) => named(cistern.sentences.sizes(size.log), size)),
      about: "The recording has no call stacks and no labels: blocks of one size stand together."
    };
  }

  /**
   * The rows, by "stack", "line" or "label"; `about` says what they are; `sum` is what all hold.
   */
  function at(view, by) {
    const holders = told(view);
    const coarse = holders === null ? ofColumn(view) : null;
    const found = coarse || (view.nameless && view.position.window !== null ? ofSizes(view) : null);
    if (found) return {...found, sum: d3.sum(found.rows, ({bytes}) => bytes)};
    const sum = d3.sum(holders, (holder) => holder[5]);
    const wanted = view.wanted ?
        holders.filter((holder) => holder[0] >= 0 && view.matches(...holder.slice(0, 4))) :
        holders;
    const stacks = [...new Set(wanted.map(([stack]) => stack).filter((stack) => stack > 0))];
    const rows = by === "stack" ? wanted.map((holder) => ofHolder(view.names, holder, stacks)) :
                                  merged(view.names, wanted, by);
    return {rows, sum, about: ""};
  }
  return {at, told};
})();
