// The page's first answer: the peak, who held most, why each request failed, and what keeps
// growing.
cistern.answer = (() => {
  const {el, units, sentences} = cistern;

  const failures = (recording) => recording.moments.filter((moment) => moment.kind === "failure");
  const peak = (recording) => recording.moments.find((moment) => moment.kind === "peak");

  function headline(view) {
    const {recording} = view;
    const failed = failures(recording);
    const top = peak(recording);
    if (failed.length > 0) {
      const first = failed[0];
      const size = first.request ? units.bytes(first.request.bytes) : "memory";
      const more =
          recording.failed > 1 ? `, the first of ${units.count(recording.failed)} that failed` : "";
      return `A request for ${size} found no memory at ${view.time(first.at_us)}${
          sentences.during(view, first.at_us)}${more}`;
    }
    if (!top) return "Nothing was allocated";
    if (view.isMoment) return `${units.bytes(top.asked)} was in use when the snapshot was taken`;
    const {comparison, recordings} = view.model;
    if (comparison && recordings[comparison.after] === recording) {
      const [before, after] = comparison.peak;
      return `The peak ${cistern.comparison.change(before, after)}: from ${
          units.bytes(before)} to ${units.bytes(after)}`;
    }
    return `Memory peaked at ${units.bytes(top.asked)} at ${view.time(top.at_us)}${
        sentences.during(view, top.at_us)}`;
  }

  /** A sentence on the recording itself. */
  function origin(view) {
    const {recording} = view;
    const from = {
      trace: "a trace",
      dump: "a dump of a failure",
      snapshot: "a snapshot",
      pytorch: "a PyTorch snapshot",
      rmm: "an RMM log"
    }[recording.source] ||
        recording.source;
    const facts = [
      recording.file || recording.name, from, recording.device,
      units.counted(recording.allocations, "allocation")
    ];
    if (recording.has_times && recording.duration_us > 0)
      facts.push(units.duration(recording.duration_us));
    return facts.filter(Boolean).join(" · ");
  }

  function figures(view) {
    const top = peak(view.recording);
    const limit = view.recording.timeline.limit;
    const reserved = d3.max(view.recording.timeline.reserved || []);
    const rows = [
      ["Peak in use", top ? units.bytes(top.asked) : "0 B", top && `at ${view.time(top.at_us)}`],
      [
        "Peak reserved", reserved === undefined ? "not known" : units.bytes(reserved),
        reserved && top ? `${units.percent(top.asked, reserved)} of it in use` : ""
      ],
      ["Limit", limit === null ? "not known" : units.bytes(limit), ""],
      ["Failed requests", units.count(view.recording.failed), ""],
      ["Places that grow", units.count(view.recording.leaks.length), ""]
    ];
    return el(
        "dl", {class: "figures"},
        rows.map(
            ([name, value, note]) =>
                el("div", {}, el("dt", {text: name}),
                   el("dd", {}, el("strong", {text: value}),
                      note ? el("small", {text: note}) : null))));
  }

  /**
   * The largest holders of a moment by the line of the program: [name, what belongs to it, bytes].
   * Without names, by the blocks' sizes.
   */
  function largest(view, moment) {
    if (view.nameless && moment.window !== null) {
      return cistern.state.sizes(view.window(moment.window), moment.at)
          .map(
              (size) =>
                  [sentences.sizes(size.log), units.counted(size.blocks, "block"), size.bytes]);
    }
    const lines = new Map();
    moment.holders.filter(([stack]) => stack !== -1).forEach((holder) => {
      const name = view.names.holder(holder);
      const line = lines.get(name) || {bytes: 0, belonging: new Set()};
      line.bytes += holder[5];
      line.belonging.add(sentences.belonging(view.names, holder));
      lines.set(name, line);
    });
    const rows = Array.from(
        lines,
        ([name, {bytes, belonging}]) =>
            [name,
             belonging.size === 1 ? [...belonging][0] : units.counted(belonging.size, "call path"),
             bytes]);
    return rows.sort((a, b) => b[2] - a[2]);
  }

  /** The largest holders of a moment as bars. */
  function held(view, moment, title) {
    const rows = largest(view, moment).slice(0, 5);
    const bars = rows.map(
        ([name, label, bytes]) =>
            el("li", {}, el("span", {class: "name", text: name}),
               el("span", {class: "soft", text: label}), el("span", {
                 class: "value",
                 text: `${units.bytes(bytes)} · ${units.percent(bytes, moment.asked)}`
               }),
               el("span", {class: "share", "aria-hidden": "true"},
                  el("span", {style: {width: `${(100 * bytes) / Math.max(1, moment.asked)}%`}}))));
    return el(
        "div", {class: "card"}, el("h2", {text: title}),
        rows.length > 0 ? el("ol", {class: "bars"}, bars) : cistern.empty("No block lived then."),
        view.nameless ? cistern.soft(
                            "The recording has no call stacks and no labels. Recorded with them, " +
                            "it would name the lines of the program here.") :
                        null);
  }

  function growing(view) {
    const {leaks, moments} = view.recording;
    const then = failures(view.recording)[0] || moments.find(({kind}) => kind === "end");
    if (leaks.length === 0) return null;
    const items = leaks.slice(0, 3).map(
        (leak) =>
            el("li", {}, el("strong", {text: view.names.holder([leak.stack, leak.label, 0, 0])}),
               ` ${sentences.holds(view, leak, then)}. It grows by ${sentences.growth(leak)}.`));
    return el(
        "div", {class: "card"}, el("h2", {text: "What keeps growing"}), el("ul", {}, items),
        el("p", {}, el("a", {href: "#leaks", text: "All places that grow, with their stacks"})));
  }

  /** What changed most from the first file to the second. */
  function compared(view) {
    const {comparison, recordings} = view.model;
    if (!comparison) return null;
    const names = {
      before: new cistern.Names(recordings[comparison.before]),
      after: new cistern.Names(recordings[comparison.after])
    };
    const line = (row) =>
        el("li", {}, el("strong", {text: cistern.comparison.name(names, row)}),
           ` ${cistern.comparison.change(row[3], row[4])}, to ${units.bytes(row[4])}.`);
    return el(
        "div", {class: "card"}, el("h2", {
          text: `${recordings[comparison.after].name} beside ${recordings[comparison.before].name}`
        }),
        el("p", {text: `The peak ${cistern.comparison.change(...comparison.peak)}.`}),
        el("ul", {}, [...comparison.grew.slice(0, 3), ...comparison.went.slice(0, 3)].map(line)),
        el("p", {}, el("a", {href: "#comparison", text: "All that grew and went"})));
  }

  /** Who held the memory: when the first request failed, else at the peak. */
  function heldCard(view, failed) {
    const [first] = failed;
    const top = peak(view.recording);
    if (first && first.holders.length > 0) {
      const which = failed.length > 1 ? "the first request" : "it";
      return held(view, first, `Who held the memory when ${which} failed`);
    }
    return top ? held(view, top, "Who held the memory at the peak") : null;
  }

  function placing(view) {
    const {placed_by: policy} = view.recording;
    return policy ? cistern.soft(`The recording has no addresses. A replay under the policy “${
                        policy}” placed the blocks.`) :
                    null;
  }

  function draw(body, view) {
    document.getElementById("answer-title").textContent = units.unbroken(headline(view));
    const failed = failures(view.recording);
    const [first, ...others] = cistern.failureCards(view, failed);
    const cards = [first, heldCard(view, failed), growing(view), compared(view), ...others];
    body.replaceChildren(...[cistern.soft(origin(view)), figures(view), placing(view),
                             el("div", {class: "cards"}, cards)]
                             .filter(Boolean));
  }
  return {draw, failures, headline, peak};
})();
