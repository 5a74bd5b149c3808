// Puts the page together: unpacks the data, shows a recording, and shows another when it is chosen.
(() => {
  const {el} = cistern;
  let view = null;
  const body = (id) => document.querySelector(`#${id} > .body`);

  function notes(recording, model) {
    const texts = [...recording.notes, `Made by ${model.made_by}, with: ${model.command}`];
    return el("ul", {}, texts.map((text) => el("li", {text})));
  }

  const keys = () => el(
      "details", {}, el("summary", {text: "Keys"}), el("dl", {class: "keys-list"}, [
        [
          "← →", "on the chart: one event, or one column of the chart. With Shift: a hundred events"
        ],
        ["Page Up, Page Down", "on the chart: the moment before, the moment after"],
        ["← → ↑ ↓", "on the map: from block to block. On the flame graph: from frame to frame"],
        ["+ − 0", "on the map: zoom in, zoom out, show all"],
        ["Enter, Esc", "on the flame graph: zoom into a frame, show all"],
        ["/", "go to the search of holders"]
      ].map(([key, text]) => [el("dt", {text: key}), el("dd", {text})])));

  /** Each part draws for itself: one that fails leaves the others, and says so. */
  function part(id, act) {
    try {
      act(body(id));
    } catch (error) {
      body(id).replaceChildren(cistern.empty(`This part could not be drawn: ${error.message}`));
      console.error(error);
    }
  }

  /** A recording of one moment has no curve. */
  function overTime(node, shown) {
    if (shown.isMoment) {
      node.replaceChildren(cistern.empty(
          "The recording is of one moment, so nothing changes over time. The parts below show it."));
      return;
    }
    new cistern.Timeline(node, shown);
  }

  function show(model, index) {
    const recording = model.recordings[index];
    cistern.hint.hide();
    view = new cistern.View(recording, model);
    cistern.view = view;
    const shown = view;
    part("answer", (node) => cistern.answer.draw(node, shown));
    part("time", (node) => overTime(node, shown));
    cistern.scrub.build(document.getElementById("scrub"), shown);
    part("moment", (node) => cistern.moment.draw(node, shown));
    part("holders", (node) => new cistern.Holders(node, shown));
    part("free", (node) => cistern.freeMemory.draw(node, shown));
    part("map", (node) => new cistern.Map(node, shown));
    part("flame", (node) => new cistern.Flame(node, shown));
    part("sizes", (node) => cistern.histograms.draw(node, shown));
    part("leaks", (node) => cistern.lists.leaks(node, shown));
    part("labels", (node) => cistern.lists.labels(node, shown));
    part("calls", (node) => cistern.lists.calls(node, shown));
    part("comparison", (node) => cistern.comparison.draw(node, shown));
    hideEmpty(recording, model);
    contents();
    body("notes").replaceChildren(notes(recording, model), keys());
    document.title = `${recording.name}: ${cistern.answer.headline(shown)}`;
    first(shown);
    shown.redraw();
  }

  /** The moment that the page opens with: the first failure, else the peak. */
  function first(shown) {
    const {moments, timeline} = shown.recording;
    const kinds =
        ["failure", "peak"].map((kind) => moments.findIndex((moment) => moment.kind === kind));
    const index = kinds.find((found) => found >= 0);
    if (index !== undefined)
      shown.goMoment(index);
    else
      shown.goTime(timeline.edges[0]);
  }

  /** Sections that a recording has nothing for leave no card and no entry. */
  function hideEmpty(recording, model) {
    const empty = {
      labels: recording.labels_peak.length === 0,
      calls: recording.calls.every(([, count]) => count === 0),
      comparison: !model.comparison
    };
    Object.entries(empty).forEach(([id, isEmpty]) => {
      document.getElementById(id).hidden = isEmpty;
    });
  }

  /** The menu has the sections' headings; the answer's heading is a sentence. */
  function contents() {
    const name = (section) =>
        section.id === "answer" ? "Answer" : section.querySelector("h2").textContent;
    const entries =
        Array.from(document.querySelectorAll("main section"))
            .filter((section) => !section.hidden)
            .map((section) => el("li", {}, el("a", {href: `#${section.id}`, text: name(section)})));
    document.getElementById("contents").replaceChildren(...entries);
  }

  function chooser(model) {
    const select = document.getElementById("recording");
    select.replaceChildren(
        ...model.recordings.map(({name}, i) => el("option", {value: i, text: name})));
    select.value = String(model.comparison ? model.comparison.after : 0);
    document.getElementById("recording-chooser").hidden = model.recordings.length < 2;
    select.addEventListener("change", () => show(model, Number(select.value)));
  }

  function listen() {
    let width = 0;
    new ResizeObserver(cistern.onceAFrame(() => {
      const now = document.getElementById("main").clientWidth;
      if (now !== width && view) view.redraw();
      width = now;
    })).observe(document.getElementById("main"));
    const bar = document.querySelector(".bar");
    new ResizeObserver(() => {
      document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`);
    }).observe(bar);
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") cistern.hint.hide();
      if (event.key !== "/" || /INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) return;
      event.preventDefault();
      document.getElementById("holders-search").focus();
    });
  }

  function start() {
    const model = cistern.data.read();
    document.querySelectorAll("main > section, #now").forEach((section) => {
      section.hidden = false;
    });
    document.getElementById("loading").hidden = true;
    cistern.theme.start((printing) => {
      if (view) view.repaint(printing);
    });
    chooser(model);
    listen();
    show(model, model.comparison ? model.comparison.after : 0);
    document.documentElement.dataset.ready = "yes";
    cistern.readyAt = performance.now();
  }

  try {
    start();
  } catch (error) {
    document.getElementById("loading").hidden = false;
    document.getElementById("loading").textContent = view ?
        `A part of the page could not be drawn: ${error.message}` :
        `The page's data cannot be read: ${error.message}`;
    console.error(error);
  }
})();
