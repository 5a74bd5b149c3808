// Each failed request as a card: what was asked for, why it did not fit, what would have made it
// fit.
cistern.failureCards = (() => {
  const {el, units, sentences} = cistern;
  const SHOWN = 3;  // in full; the others are folded away

  function room(moment) {
    const parts = [];
    if (moment.reserved !== null && moment.reserved !== undefined) {
      parts.push(
          `${units.bytes(moment.reserved)} was reserved, of which ${
              units.bytes(moment.allocated ?? moment.asked)} ` +
          "was allocated.");
    }
    if (moment.limit) {
      const left = Math.max(0, moment.limit - (moment.reserved ?? moment.asked));
      parts.push(`The limit was ${units.bytes(moment.limit)}, so ${
          units.bytes(left)} more could be reserved.`);
    }
    if (moment.asleep > 0)
      parts.push(`Blocks of ${units.bytes(moment.asleep)} were asleep, and had no memory.`);
    if ((moment.device_free ?? null) !== null)
      parts.push(`The device had ${units.bytes(moment.device_free)} free.`);
    return parts.join(" ");
  }

  /** Whether the memory would have been too little even in one piece. */
  function shortage(moment) {
    const lacking = sentences.lacking(moment);
    return lacking === null ?
        null :
        el("p", {class: "lacking"}, el("strong", {
             text: "All that is free and all that could still be reserved are " +
                 `${units.bytes(lacking)} too little.`
           }));
  }

  /** For a failure whose free memory nobody has accounted for. */
  function unexplained({reserved, allocated, asked}) {
    if (reserved === null) return "The recording does not say which memory was reserved.";
    return reserved > (allocated ?? asked) ?
        "The recording does not say why the rest of the reserved memory could not be used." :
        "No reserved memory was free.";
  }

  /** One failed request: what was asked, why it did not fit, what would have made it fit. */
  function failure(view, moment) {
    const index = view.recording.moments.indexOf(moment);
    const list = (texts) => el("ul", {}, texts.map((text) => el("li", {text})));
    const request = moment.request ? `${units.bytes(moment.request.bytes)} was asked for ${
                                         sentences.origin(view.names, moment.request)}.` :
                                     "A request failed.";
    const why = moment.unused.map(sentences.unused);
    const noLine = moment.request ? sentences.noLine(view.names, moment.request) : "";
    return el(
        "article", {class: "card failure"},
        el("h2",
           {text: `Failed at ${view.time(moment.at_us)}${sentences.during(view, moment.at_us)}`}),
        el("p", {text: request}), noLine ? cistern.soft(noLine) : null,
        moment.request && moment.request.stack > 0 ?
            cistern.stackElement(view.names, moment.request.stack) :
            null,
        el("h3", {text: "Why it did not fit"}), shortage(moment), el("p", {text: room(moment)}),
        why.length > 0 ? list(why) : el("p", {text: unexplained(moment)}),
        moment.device_error ? cistern.soft(`The device said: ${moment.device_error}`) : null,
        el("h3", {text: "What would have made it fit"}),
        moment.advice.length > 0 ? list(moment.advice.map(units.told)) :
                                   el("p", {text: "The recording does not say enough to tell."}),
        cistern.button(
            "Show this moment", () => cistern.goTo(view, index),
            {class: "go", "data-moment": index}));
  }

  /** A failure as a card, and those behind the first few folded away. */
  function all(view, failed) {
    const cards = failed.slice(0, SHOWN).map((moment) => failure(view, moment));
    const others = failed.slice(SHOWN);
    if (others.length === 0) return cards;
    return [
      ...cards,
      el("details", {class: "card"},
         el("summary", {text: `${units.count(others.length)} more failed requests`}),
         others.map((moment) => failure(view, moment)))
    ];
  }
  return all;
})();
