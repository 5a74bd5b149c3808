// The chosen moment: which moments there are, and how the memory was divided then.
cistern.moment = (() => {
  const {el, units, sentences} = cistern;
  const MARKS = 200;  // of the program's marks, as many stand as chips

  function chips(view) {
    const {moments} = view.recording;
    if (moments.length === 0)
      return cistern.empty("The recording has no events, so there is no moment to choose.");
    const chip = (moment, index) =>
        el("button", {
          type: "button",
          class: `chip ${moment.kind}`,
          "data-moment": index,
          "aria-pressed": "false",
          on: {click: () => view.goMoment(index)}
        },
           el("span", {text: sentences.title(view, moment)}),
           el("small", {text: `${view.time(moment.at_us)} · ${sentences.asked(moment)}`}));
    const marks = moments.filter(({kind}) => kind === "mark").length;
    const every = Math.ceil(marks / MARKS);
    let seen = 0;
    const shown = moments.map((moment, index) => {
      if (moment.kind !== "mark") return chip(moment, index);
      seen += 1;
      return (seen - 1) % every === 0 ? chip(moment, index) : null;
    });
    const list =
        el("div", {class: "chips", role: "group", "aria-label": "Moments", tabindex: 0}, shown);
    return every > 1 ?
        el("div", {}, el("p", {
             class: "soft",
             text: `One in ${every} of the program’s ${units.count(marks)} marks stands here; ` +
                 "the arrows below go to all of them."
           }),
           list) :
        list;
  }

  /**
   * What is known of the position: from its moment, else its window, else the timeline's column.
   */
  function figures(view) {
    const {us, window, at, moment} = view.position;
    const {timeline, moments} = view.recording;
    const column = view.column(us);
    const of = (values) => (values ? values[column] : null);
    const coarse = {
      asked: timeline.asked[column],
      allocated: of(timeline.allocated),
      reserved: of(timeline.reserved),
      limit: timeline.limit,
      request: null
    };
    if (moment !== null) {
      const {asked, allocated, reserved, limit, request} = moments[moment];
      return {asked, allocated, reserved, limit: limit || timeline.limit, request};
    }
    if (window === null) return coarse;
    const sums = cistern.state.sums(view.window(window), at);
    const reserved = sums.reserved > 0 ? sums.reserved : null;
    return {...coarse, asked: sums.asked, reserved, allocated: null};
  }

  /** The parts of the memory, from what the program asked for to what nobody took. */
  function parts({asked, allocated, reserved, limit}) {
    const used = Math.max(asked, allocated ?? asked);
    const held = Math.max(used, reserved ?? used);
    return [
      ["asked", "Asked for by the program", asked], ["rounding", "Rounding", used - asked],
      ["free", "Reserved, but free", held - used],
      ["beyond", "Not reserved, up to the limit", limit ? Math.max(0, limit - held) : 0]
    ].filter(([, , size]) => size > 0);
  }

  function balance(known) {
    const divided = parts(known);
    const sum = d3.sum(divided, ([, , size]) => size);
    const request = known.request ? known.request.bytes : 0;
    const beyond = divided.find(([name]) => name === "beyond");
    const start = sum - (beyond ? beyond[2] : 0);
    const scale = Math.max(sum, start + request, 1);
    const width = (size) => ({width: `${(100 * size) / scale}%`});
    const bars = el(
        "div", {
          class: "balance",
          role: "img",
          "aria-label":
              divided.map(([, name, size]) => `${name}: ${units.bytes(size)}`).join("; ") ||
              "Nothing is in use"
        },
        divided.map(([name, , size]) => el("span", {class: `part ${name}`, style: width(size)})));
    const short = known.limit ? request - (beyond ? beyond[2] : 0) : 0;
    const ask = request > 0 ? el("div", {
      class: "balance request",
      role: "img",
      "aria-label": `The request: ${units.bytes(request)}, beside ${
          units.bytes(beyond ? beyond[2] : 0)} that was not reserved`
    },
                                 el("span", {style: width(start)}),
                                 el("span", {class: "part asked-for", style: width(request)})) :
                              null;
    const keys = divided.map(
        ([name, text, size]) =>
            el("li", {}, el("span", {class: `swatch part ${name}`}), el("span", {text}),
               el("strong", {text: units.bytes(size)})));
    if (request > 0)
      keys.push(
          el("li", {}, el("span", {class: "swatch part asked-for"}),
             el("span", {text: "The failed request"}), el("strong", {text: units.bytes(request)}),
             short > 0 ?
                 el("span", {class: "soft", text: `${units.bytes(short)} more than was left`}) :
                 null));
    return [bars, ask, el("ul", {class: "legend plain"}, keys)].filter(Boolean);
  }

  function draw(body, view) {
    const list = chips(view);
    const where = el("div", {class: "where", id: "balance"});
    body.replaceChildren(list, where);
    view.on("position", () => {
      list.querySelectorAll("button").forEach((chip) => {
        const pressed = String(Number(chip.dataset.moment) === view.position.moment);
        if (chip.getAttribute("aria-pressed") === pressed) return;
        chip.setAttribute("aria-pressed", pressed);
        const row = chip.parentElement;
        if (pressed === "true")
          row.scrollLeft = chip.offsetLeft - (row.clientWidth - chip.clientWidth) / 2;
      });
      where.replaceChildren(...balance(figures(view)));
    });
  }
  return {draw};
})();
