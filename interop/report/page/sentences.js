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
      (text && cistern.units.told(text)) || `${bytes(size)} ${WHY[why] || why.replace(/_/g, " ")}.`;

  /**
   * Where a request came from: "on stream 0, labelled train / forward, from model.py:42 in
   * forward".
   */
  function origin(names, request) {
    const parts = [`on ${names.stream(request.stream)}`];
    if (request.pool > 0) parts.push(`of ${names.pool(request.pool)}`);
    if (request.label > 0) parts.push(`labelled “${names.label(request.label)}”`);
    if (request.stack > 0 && names.hasProgram(request.stack))
      parts.push(`from ${names.site(request.stack)}`);
    return parts.join(", ");
  }

  /** A sentence on a request whose call stack does not lead to the program; empty for others. */
  function noLine(names, request) {
    if (!(request.stack > 0)) return "The recording has no call stack for this request.";
    return names.hasProgram(request.stack) ?
        "" :
        `No line of the program is in its call stack, which ends in ${names.site(request.stack)}.`;
  }

  /** By how much all free memory is too little; null if it is enough, or not known. */
  function lacking({request, reserved, allocated, asked, available, limit}) {
    if (!request || reserved === null || reserved === undefined) return null;
    const left = available ?? (limit ? Math.max(0, limit - reserved) : null);
    if (left === null) return null;
    const free = Math.max(0, reserved - (allocated ?? asked));
    return request.bytes > free + left ? request.bytes - free - left : null;
  }

  /**
   * When the last page or segment was made, moved or given back, and whether that still goes on.
   */
  function rest(view) {
    const {rest: found, has_times: hasTimes} = view.recording;
    if (!found || found.last_us === null) return "";
    const event = hasTimes ? `, event ${cistern.units.count(found.last_event)}` : "";
    const last = `${view.time(found.last_us)}${event}${during(view, found.last_us)}`;
    const seconds = hasTimes ? found.later_us / 1e6 : 0;
    const rate = seconds > 0 && found.later_calls > 0 ?
        `, ${cistern.units.digits(found.later_calls / seconds)} a second` :
        "";
    const later = `${counted(found.later_calls, "call")} came in the last half${rate}`;
    return found.rested ? `The program came to rest: the last call was at ${last}. ${later}.` :
                          `The program has not come to rest: ${later}. The last was at ${last}.`;
  }

  /** A moment's name, with its place in the recording. */
  function title(view, moment) {
    const fallback =
        {peak: "Peak", failure: "Failed request", mark: "Mark", end: "End", start: "Start"};
    return cistern.units.told(moment.title) || fallback[moment.kind] || moment.kind;
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

  /** What a leaking place holds at a moment: { blocks, bytes }. One known by size: at the end. */
  function heldBy(leak, moment) {
    const known = (leak.size ?? null) === null && moment ?
        moment.holders.filter(([stack, label]) => stack === leak.stack && label === leak.label) :
        [];
    return known.length === 0 ? {blocks: leak.blocks, bytes: leak.bytes, when: "at the end"} : {
      blocks: d3.sum(known, (holder) => holder[4]),
      bytes: d3.sum(known, (holder) => holder[5]),
      when: moment.kind === "failure" ? "at the failure" : "at the end"
    };
  }

  /** "holds 2.2 GiB in 13 blocks at the failure. The oldest of these was allocated at 6.4 s". */
  function holds(view, leak, moment) {
    const held = heldBy(leak, moment);
    return `holds ${bytes(held.bytes)} in ${counted(held.blocks, "block")} ${
        held.when}. The oldest of them was allocated at ${view.time(leak.first_us)}`;
  }

  /** "about 196 MiB in each step", or by second. */
  function growth(leak) {
    if (leak.bytes_per_step > 0) return `about ${bytes(leak.bytes_per_step)} in each step`;
    return leak.bytes_per_second > 0 ? `about ${bytes(leak.bytes_per_second)} a second` :
                                       `${bytes(leak.bytes)} in all`;
  }

  return {
    asked,
    belonging,
    during,
    growth,
    heldBy,
    holds,
    lacking,
    noLine,
    origin,
    rest,
    sizes,
    title,
    unused
  };
})();
