// What happened, in words.
cistern.sentences = (() => {
  const {bytes, counted} = cistern.units;
  const WHY = {
    too_small: "lies in pieces that are smaller than the request",
    kept_whole: "is kept whole for large requests",
    other_stream: "belongs to another stream",
    incomplete: "waits for work of other streams that is not complete",
    other_pool: "belongs to another pool",
    held_in_place: "is held in place by a graph",
    freed_since: "was freed after the request had looked there",
  };

  const unused = ({why, text, bytes: size}) =>
      text || `${bytes(size)} ${WHY[why] || why.replace(/_/g, " ")}.`;

  /**
   * Where a request came from: "on stream 0, labelled train / forward, from model.py:42 in
   * forward".
   */
  function origin(names, request) {
    const parts = [`on ${names.stream(request.stream)}`];
    if (request.pool > 0) parts.push(`of ${names.pool(request.pool)}`);
    if (request.label > 0) parts.push(`labelled “${names.label(request.label)}”`);
    if (request.stack > 0) parts.push(`from ${names.site(request.stack)}`);
    return parts.join(", ");
  }

  /** A moment's name, with its place in the recording. */
  function title(view, moment) {
    const fallback =
        {peak: "Peak", failure: "Failed request", mark: "Mark", end: "End", start: "Start"};
    return moment.title || fallback[moment.kind] || moment.kind;
  }

  /** The program's own mark that a time follows, such as a step: ", after “step 412”". */
  function during(view, us) {
    const {marks = []} = view.recording;
    const last = d3.bisectRight(marks.map(([time]) => time), us) - 1;
    return last >= 0 ? `, after “${marks[last][2]}”` : "";
  }

  const sizes = (log) => `blocks of ${bytes(2 ** log)} to ${bytes(2 ** (log + 1))}`;

  function asked(moment) {
    return moment.request ? `${bytes(moment.request.bytes)} asked for` :
                            `${bytes(moment.asked)} in use`;
  }

  /** A holder's label, and the library that its line reached. */
  const belonging =
      (names, [stack, label]) => [stack > 0 && label > 0 ? names.label(label) : "",
                                  names.through(stack) && `through ${names.through(stack)}`]
                                     .filter(Boolean)
                                     .join(", ");

  /** What a place has kept: "has kept 13 blocks, 2.2 GiB, since 6.4 s". */
  const kept = (view, leak) => `has kept ${counted(leak.blocks, "block")}, ${
      bytes(leak.bytes)}, since ${view.time(leak.first_us)}`;

  const growth = (leak) => leak.bytes_per_second > 0 ? `${bytes(leak.bytes_per_second)} a second` :
                                                       `${bytes(leak.bytes)} in all`;

  return {asked, belonging, during, growth, kept, origin, sizes, title, unused};
})();
