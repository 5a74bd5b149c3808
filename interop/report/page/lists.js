// The page's shorter tables: what grows, labels, device calls, and two recordings compared.
cistern.lists = (() => {
  const {el, units} = cistern;
  const {bar, table} = cistern.table;

  /** A small line of bytes at even moments. */
  function sparkline(values) {
    const [width, height] = [120, 28];
    const x = d3.scaleLinear().domain([0, values.length - 1]).range([2, width - 2]);
    const y = d3.scaleLinear().domain([0, d3.max(values) || 1]).range([height - 2, 2]);
    const line = d3.line().x((_, i) => x(i)).y((value) => y(value));
    const area = d3.area().x((_, i) => x(i)).y0(height - 2).y1((value) => y(value));
    const label = `from ${units.bytes(values[0])} to ${units.bytes(values[values.length - 1])}`;
    const svg = cistern.svg({class: "spark", width, height, "aria-label": label});
    svg.append("path").call(cistern.attrs, {class: "area", d: area(values)});
    svg.append("path").call(cistern.attrs, {class: "line", d: line(values)});
    return svg.node();
  }

  function leaks(body, view) {
    const {leaks: found} = view.recording;
    if (found.length === 0) {
      body.replaceChildren(cistern.empty(
          "No call site keeps growing: what is allocated is freed again, or stays as it is."));
      return;
    }
    const hasLabels = view.recording.labels.length > 1;
    const growth = (leak) => leak.bytes_per_step > 0 ?
        `${units.bytes(leak.bytes_per_step)} a step` :
        leak.bytes_per_second > 0 ? `${units.bytes(leak.bytes_per_second)}/s` :
                                    "not known";
    const row = (leak) =>
        [leak.stack > 0 ? cistern.stackElement(view.names, leak.stack) :
                          view.names.holder([0, leak.label, 0, 0]),
         ...(hasLabels ? [leak.label > 0 ? view.names.label(leak.label) : ""] : []),
         sparkline(leak.growth), growth(leak), units.count(leak.blocks), units.bytes(leak.bytes),
         view.time(leak.first_us)];
    const columns = [
      ["Call site", false], ...(hasLabels ? [["Label", false]] : []), ["Since then", false],
      ["Grows by", true], ["Blocks at the end", true], ["Bytes at the end", true],
      ["Oldest block from", true]
    ];
    body.replaceChildren(
        el("p", {
          text: "These places allocate again and again, and almost nothing of it is ever freed."
        }),
        table("What keeps growing", columns, found.map(row)));
  }

  function labels(body, view) {
    const rows = view.recording.labels_peak;
    if (rows.length === 0) {
      body.replaceChildren(cistern.empty(
          "The recording has no labels. A scope such as cistern.label(\"forward\") names what is allocated in it."));
      return;
    }
    const most = d3.max(rows, ({peak}) => peak);
    const sorted = rows.slice().sort((a, b) => b.peak - a.peak);
    const jump = (us) => cistern.button(view.time(us), () => {
      view.goTime(us);
      document.getElementById("moment").scrollIntoView({block: "start"});
    }, {class: "link"});
    body.replaceChildren(
        cistern.soft("A label’s bytes include those of the labels inside it."),
        table(
            "Peaks of labels",
            [["Label", false], ["Peak", true], ["At", true], ["At the end", true]],
            sorted.map(
                ({label, peak, at_us: at, end}) =>
                    [view.names.label(label), bar(peak, most, units.bytes(peak)), jump(at),
                     units.bytes(end)])));
  }

  function calls(body, view) {
    const names = {
      segment_alloc: "Segments taken from the device",
      segment_free: "Segments given back to the device",
      map: "Pages mapped",
      unmap: "Pages unmapped"
    };
    const rows = view.recording.calls.filter(([, count]) => count > 0);
    if (rows.length === 0) {
      body.replaceChildren(cistern.empty("The recording does not tell of calls to the device."));
      return;
    }
    body.replaceChildren(
        el("p", {text: cistern.sentences.rest(view)}),
        table(
            "Device calls", [["Call", false], ["Times", true], ["Bytes", true]],
            rows.map(([name, count,
                       bytes]) => [names[name] || name, units.count(count), units.bytes(bytes)])));
  }
  return {calls, labels, leaks};
})();
