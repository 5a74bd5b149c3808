// Call stacks as elements: the program's line, and behind it every frame.

/** A run of so many frames of libraries is folded where the program has a frame, too. */
cistern.FOLDED_FROM = 4;

/** The frames of a stack as items of a list; long runs of libraries' frames unfold by a click. */
cistern.stackItems = (frames) => {
  const {el, units, Names} = cistern;
  const item = (frame) => el(
      "li", {class: Names.isLibrary(frame) ? "library" : "program", text: Names.frameText(frame)});
  if (frames.every(Names.isLibrary)) return frames.map(item);
  const items = [];
  for (let from = 0; from < frames.length;) {
    let to = from;
    while (to < frames.length && Names.isLibrary(frames[to])) to += 1;
    const run = frames.slice(from, to).map(item);
    if (run.length >= cistern.FOLDED_FROM) {
      const about = `${units.counted(run.length, "frame")} of libraries`;
      items.push(
          el("li", {class: "library"},
             el("details", {}, el("summary", {text: about}), el("ol", {class: "stack"}, run))));
    } else {
      items.push(...run);
    }
    if (to < frames.length) items.push(item(frames[to]));
    from = to + 1;
  }
  return items;
};

/** A stack as an expandable element: its line, and behind it every frame. */
cistern.stackElement = (names, stack, title = names.site(stack)) => {
  const el = cistern.el;
  const frames = stack > 0 ? names.frames(stack) : [];
  if (frames.length === 0) return el("span", {class: "site", text: title});
  const list = el("ol", {class: "stack"});
  const fill = () => {
    if (list.childElementCount === 0) list.append(...cistern.stackItems(frames));
  };
  const through = names.through(stack);
  const details = el(
      "details", {class: "site", on: {toggle: fill}},
      el("summary", {}, title, through ? el("small", {text: `through ${through}`}) : null), list);
  details.fill = fill;  // for paper, which does not wait for the event
  return details;
};
