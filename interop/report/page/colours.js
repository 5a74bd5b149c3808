// The page's colours. The style sheet owns them, once for light and once for dark; canvases read
// them here.
cistern.colours = (() => {
  const SERIES = 14;  // as many keys as the timeline names
  let known = null;

  function read() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(`--${name}`).trim();
    const series = Array.from({length: SERIES}, (_, i) => get(`series-${i + 1}`));
    const names = [
      "page", "panel", "ink", "soft", "line", "accent", "bad", "warn", "reserved", "rest", "dim",
      "pending", "asleep", "cursor"
    ];
    return {series, ...Object.fromEntries(names.map((name) => [name, get(name)]))};
  }

  /** All of them, as the page is now. */
  const now = () => (known = known || read());
  const forget = () => {
    known = null;
  };

  /**
   * Which colour each key has: its rank among the keys that the timeline names. Others share one.
   */
  function ranks(recording, by) {
    const keys =
        (recording.timeline.stacked[by] || []).map(([key]) => key).filter((key) => key !== -1);
    return new Map(keys.map((key, rank) => [key, rank % SERIES]));
  }

  const ofRank = (rank) => (rank === undefined || rank < 0 ? now().rest : now().series[rank]);
  return {now, forget, ranks, ofRank};
})();
