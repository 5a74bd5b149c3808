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
        el("div", {},
           cistern.soft(
               `One in ${every} of the program’s ${units.count(marks)} marks stands here; ` +
               "the arrows below go to all of them."),
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

  /** Marks the chip of the chosen moment, and brings it into sight. */
  function mark(list, chosen) {
    const before = list.querySelector("[aria-pressed=\"true\"]");
    const now = chosen === null ? null : list.querySelector(`[data-moment="${chosen}"]`);
    if (before === now) return;
    if (before) before.setAttribute("aria-pressed", "false");
    if (!now) return;
    now.setAttribute("aria-pressed", "true");
    const row = now.parentElement;
    row.scrollLeft = now.offsetLeft - (row.clientWidth - now.clientWidth) / 2;
  }

  function draw(body, view) {
    const list = chips(view);
    const balance = new cistern.Balance();
    body.replaceChildren(list, balance.node);
    view.on("position", () => {
      mark(list, view.position.moment);
      balance.update(figures(view));
    });
  }
  return {draw};
})();
