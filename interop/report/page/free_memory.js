// Free memory at the chosen moment, and why it is unused.
cistern.freeMemory = (() => {
  const {el, units, sentences} = cistern;

  function ofMoment(view, moment) {
    const most = d3.max(moment.unused, ({bytes}) => bytes);
    const rows = moment.unused.map(
        (entry) =>
            [sentences.unused(entry),
             cistern.table.bar(entry.bytes, most, units.bytes(entry.bytes)),
             units.bytes(entry.largest)]);
    const parts = [cistern.table.table(
        "Free memory, and why it is unused",
        [["Why", false], ["Bytes", true], ["Largest piece", true]], rows)];
    if (moment.advice.length > 0)
      parts.push(
          el("p", {},
             el("a", {href: "#answer", text: "The answer says what would have made it fit."})));
    if (moment.device_error) parts.push(cistern.soft(`The device said: ${moment.device_error}`));
    return parts;
  }

  /** A moment without an account of its own: what its window shows. */
  function ofWindow(window, at) {
    const sums = cistern.state.sums(window, at);
    if (sums.reserved === 0 && sums.asleep === 0)
      return [cistern.empty(
          "The recording does not say which memory was reserved, so what was free is not known.")];
    const waiting = sums.waiting > 0 ?
        ` ${units.bytes(sums.waiting)} is freed and waits for other streams’ work.` :
        "";
    const asleep = sums.asleep > 0 ?
        ` Pools are asleep: ${units.bytes(sums.asleep)} of blocks has no memory until they wake.` :
        "";
    const text = sums.pieces === 0 ?
        "No reserved memory is free." :
        `${units.bytes(sums.free)} of ${units.bytes(sums.reserved)} reserved is free, in ${
            units.counted(sums.pieces, "piece")}; ` +
            `the largest has ${units.bytes(sums.largest)}.`;
    return [el("p", {text: text + waiting + asleep})];
  }

  function parts(view) {
    const {window, at, moment, us} = view.position;
    const model = moment === null ? null : view.recording.moments[moment];
    if (model && model.unused.length > 0) return ofMoment(view, model);
    if (window !== null) return ofWindow(view.window(window), at);
    const {reserved, asked} = view.recording.timeline;
    if (!reserved)
      return [cistern.empty(
          "The recording does not say which memory was reserved, so what was free is not known.")];
    const column = view.column(us);
    return [el("p", {
      text: `About ${units.bytes(Math.max(0, reserved[column] - asked[column]))} of ${
                units.bytes(reserved[column])} reserved ` +
          "is free or lost to rounding. Its pieces are known around the moments only."
    })];
  }

  function draw(body, view) { view.on("position", () => body.replaceChildren(...parts(view))); }
  return {draw};
})();
