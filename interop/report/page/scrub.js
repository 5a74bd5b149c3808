// The bar that chooses the moment: the moment before and after, a slider along the time, and one
// along the events of the window around it. It stays in sight while the sections below it scroll.
cistern.scrub = (() => {
  const {el, units} = cistern;
  const STEPS = 2000;

  function build(bar, view) {
    const edges = view.recording.timeline.edges;
    const [from, to] = [edges[0], edges[edges.length - 1]];
    const parts = {
      title: el("strong", {id: "scrub-title"}),
      time: el("span", {id: "scrub-time", class: "soft"}),
      along:
          el("input",
             {type: "range", id: "along-time", min: 0, max: STEPS, value: 0, "aria-label": "Time"}),
      events: el("input", {
        type: "range",
        id: "along-events",
        min: 0,
        max: 1,
        value: 0,
        "aria-label": "Events around this moment"
      }),
      about: el("span", {id: "scrub-about", class: "soft"}),
    };
    const button = (text, title, act) => cistern.button(text, act, {"aria-label": title, title});
    parts.along.addEventListener(
        "input", () => view.goTime(from + ((to - from) * Number(parts.along.value)) / STEPS));
    parts.events.addEventListener(
        "input", () => view.goEvent(view.position.window, Number(parts.events.value)));
    bar.replaceChildren(
        el("div", {class: "scrub-title"},
           button("◀", "The moment before", () => view.stepMoment(-1)), parts.title, parts.time,
           button("▶", "The moment after", () => view.stepMoment(1))),
        el("div", {class: "scrub-rows"}, el("label", {}, el("span", {text: "Time"}), parts.along),
           el("label", {}, el("span", {text: "Events"}), parts.events, parts.about)));
    view.on("position", () => place(parts, view, from, to));
  }

  function place(parts, view, from, to) {
    const {us, window, at, moment} = view.position;
    const model = moment === null ? null : view.recording.moments[moment];
    const title = model ? cistern.sentences.title(view, model) : "Between moments";
    cistern.setText(parts.title, title);
    cistern.setText(parts.time, view.time(us) + cistern.sentences.during(view, us));
    parts.along.value = Math.round((STEPS * (us - from)) / Math.max(1e-9, to - from));
    parts.along.setAttribute("aria-valuetext", view.time(us));
    parts.events.disabled = window === null;
    if (window === null) {
      cistern.setText(parts.about, "not one by one here");
      return;
    }
    const around = view.window(window);
    parts.events.max = around.count;
    parts.events.value = at;
    parts.events.setAttribute("aria-valuetext", `as of event ${units.count(around.first + at)}`);
    parts.about.textContent = `as of event ${units.count(around.first + at)}`;
  }
  return {build};
})();

/**
 * Arrow keys move the moment: one event or column, with Shift a hundred events; Page Up and Down
 * by moments.
 */
cistern.moveKeys = (event, view) => {
  const far = event.shiftKey ? 100 : 1;
  const acts = {
    ArrowLeft: () => view.step(-far),
    ArrowRight: () => view.step(far),
    PageUp: () => view.stepMoment(-1),
    PageDown: () => view.stepMoment(1),
    Home: () => view.goMoment(0),
    End: () => view.goMoment(view.recording.moments.length - 1)
  };
  if (!acts[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  acts[event.key]();
};

/** Chooses a moment and brings it into sight. */
cistern.goTo = (view, index) => {
  view.goMoment(index);
  document.getElementById("moment").scrollIntoView({block: "start"});
  cistern.say(cistern.sentences.title(view, view.recording.moments[index]));
};
