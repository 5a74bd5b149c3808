// The timeline as a table of twenty even spans, for readers who do not see the chart.
cistern.timelineTable = (view) => {
  const {el, units} = cistern;
  const {edges, asked, allocated, reserved, policies} = view.recording.timeline;
  const columns = [
    ["From", false], ["In use", true], ["Allocated", true], ["Reserved", true],
    ...policies.map(({name}) => [`Under ${name}`, true])
  ];
  const n = Math.min(20, asked.length);
  const most = (values, i) => values ?
      units.bytes(d3.max(values.slice(
          Math.floor((i * asked.length) / n), Math.floor(((i + 1) * asked.length) / n)))) :
      "not known";
  const rows = () => d3.range(n).map(
      (i) =>
          [view.time(edges[Math.floor((i * asked.length) / n)]),
           ...[asked, allocated, reserved, ...policies.map((policy) => policy.reserved)].map(
               (values) => most(values, i))]);
  const details = el("details", {class: "as-table"}, el("summary", {text: "The same as a table"}));
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1)
      details.append(
          cistern.table.table("Memory over time, the most in each span", columns, rows()));
  });
  return details;
};
