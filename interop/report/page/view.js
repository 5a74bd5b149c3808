// One recording as the page shows it: its names, windows and colours, and the chosen moment.
// Sections subscribe.
cistern.View = class {
  constructor(recording, model) {
    this.recording = recording;
    this.isMoment = recording.events > 0 && recording.duration_us === 0;
    recording.timeline.edges = cistern.widened(recording.timeline.edges);
    if (recording.heat) recording.heat.edges = cistern.widened(recording.heat.edges);
    this.model = model;
    this.names = new cistern.Names(recording);
    this.windows = recording.windows.map(() => null);
    this.by = ["label", "site", "pool", "stream"].find(
                  (by) => this.kinds().includes(by) && this.keys(by).length > 1) ||
        "pool";
    this.listeners = {position: [], colours: [], redraw: []};
    this.position = null;
    this.printing = false;
    this.wanted = "";  // what the search of holders looks for; the map dims all else
    this.tell = {
      position: cistern.onceAFrame(() => this.listeners.position.forEach((act) => act()))
    };
  }

  keys(by) { return (this.recording.timeline.stacked[by] || []).map(([key]) => key); }

  /** Whether nothing tells who allocated: no stack and no label. */
  get nameless() { return this.recording.stacks.length < 2 && this.recording.labels.length < 2; }

  /** By what memory can be told apart: by labels and call sites only where there are some. */
  kinds() {
    return ["pool", "stream", "label", "site"].filter(
        (by) => this.keys(by).some((key) => key > 0 || /pool|stream/.test(by)));
  }

  on(event, act) { this.listeners[event].push(act); }

  redraw() { this.listeners.redraw.forEach((act) => act()); }

  /** Draws everything again, at once, in the colours and the width that the page has now. */
  repaint(printing) {
    this.printing = printing;
    document.querySelectorAll(".failure details.site").forEach((stack) => {
      stack.fill();
      stack.open = printing;
    });
    ["colours", "redraw", "position"].forEach(
        (event) => this.listeners[event].forEach((act) => act()));
  }

  colourBy(by) {
    this.by = by;
    this.listeners.colours.forEach((act) => act());
    this.redraw();
  }

  search(text) {
    this.wanted = text.trim().toLowerCase();
    this.tell.position();
  }

  /** Whether a holder is one that the search looks for. */
  matches(stack, label, pool, stream) {
    this.texts = this.texts || new Map();
    const key = `${stack} ${label} ${pool} ${stream}`;
    if (!this.texts.has(key)) this.texts.set(key, this.names.text(stack, label, pool, stream));
    return this.texts.get(key).includes(this.wanted);
  }

  /** The colour's rank of each key, as the page colours now. */
  ranks() { return cistern.colours.ranks(this.recording, this.by); }

  time(us) { return cistern.units.moment(us, this.recording.has_times); }

  /** A window, made when it is first needed. */
  window(index) {
    if (index === null || index === undefined || !this.recording.windows[index]) return null;
    if (!this.windows[index]) {
      this.windows[index] = new cistern.Window(this.recording.windows[index]);
    }
    return this.windows[index];
  }

  /** When a window begins and ends, without making it. */
  span(index) {
    this.spans = this.spans || [];
    if (!this.spans[index]) {
      const {start_us: start, events} = this.recording.windows[index];
      this.spans[index] = [start, start + d3.sum(events.dt_us)];
    }
    return this.spans[index];
  }

  goMoment(index) {
    const moment = this.recording.moments[index];
    if (!moment) return;
    this.go({
      us: moment.at_us,
      window: moment.window,
      at: moment.window === null ? 0 : moment.at,
      moment: index
    });
  }

  /** The state after `at` events of a window, at a time at which it holds: `us`, or its first. */
  goEvent(index, at, us = null) {
    const window = this.window(index);
    const within = Math.max(0, Math.min(window.count, at));
    const time = us ?? window.timeAt(within);
    const moment = this.recording.moments.findIndex(
        (m) => m.window === index && m.at === within && (us === null || m.at_us === us));
    this.go({us: time, window: index, at: within, moment: moment < 0 ? null : moment});
  }

  goTime(us) {
    const covering = this.recording.windows.map((_, i) => i).filter((i) => {
      const [start, end] = this.span(i);
      return us >= start && us <= end;
    });
    const here = this.position && covering.includes(this.position.window) ? this.position.window :
                                                                            covering[0];
    if (here === undefined)
      this.go({us, window: null, at: 0, moment: null});
    else
      this.goEvent(here, this.window(here).atTime(us), us);
  }

  go(position) {
    this.position = position;
    this.tell.position();
  }

  /** One event on in a window, else one column of the timeline. */
  step(by) {
    const {us, window, at} = this.position;
    if (window !== null && at + by >= 0 && at + by <= this.window(window).count) {
      this.goEvent(window, at + by);
      return;
    }
    const edges = this.recording.timeline.edges;
    const column = Math.max(0, Math.min(edges.length - 2, this.column(us) + Math.sign(by)));
    this.goTime((edges[column] + edges[column + 1]) / 2);
  }

  /** The timeline's column that holds a time. */
  column(us) {
    const edges = this.recording.timeline.edges;
    return Math.max(0, Math.min(edges.length - 2, d3.bisectRight(edges, us) - 1));
  }

  /** The moment before or after the position: -1 or 1. */
  stepMoment(by) {
    const times = this.recording.moments.map((moment) => moment.at_us);
    const {moment, us} = this.position;
    let next = moment === null ?
        (by > 0 ? d3.bisectRight(times, us) : d3.bisectLeft(times, us) - 1) :
        moment + by;
    next = Math.max(0, Math.min(times.length - 1, next));
    if (times.length > 0) this.goMoment(next);
  }
};

/** Edges of columns; those of a recording of one moment are set apart, so that there is an axis. */
cistern.widened = (edges) => {
  const parts = Math.max(1, edges.length - 1);
  return edges.length < 2 || edges[parts] > edges[0] ? edges :
                                                       edges.map((_, i) => edges[0] + i / parts);
};
