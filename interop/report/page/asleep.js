// Blocks that live and have no memory: their pool sleeps (docs/sleep.md). Recordings of Cistern's
// own alone tell of all memory, and so of its absence.
cistern.asleep = (() => {
  const SOURCES = ["trace", "dump", "snapshot"];

  /** Whether the recording would tell of all memory that its blocks have. */
  const isTold = (recording) => SOURCES.includes(recording.source);

  /** The reserved memory after `at` events: [address, end), where it is without a gap. */
  function reserved(window, at) {
    const runs = [];
    window.pieces.forEach((piece) => {
      if (at < piece.from || piece.until <= at) return;
      const last = runs[runs.length - 1];
      if (last && piece.address <= last[1])
        last[1] = Math.max(last[1], piece.address + piece.bytes);
      else
        runs.push([piece.address, piece.address + piece.bytes]);
    });
    return runs;
  }

  function find(window, at) {
    const asleep = new Uint8Array(window.blocks);
    if (!window.tellsMemory || window.pieces.length === 0) return asleep;
    const {address, bytes} = window;
    const runs = reserved(window, at);
    let run = 0;
    for (let b = window.placed; b < window.blocks; b += 1) {
      while (run < runs.length && runs[run][1] <= address[b]) run += 1;
      const backed =
          run < runs.length && runs[run][0] <= address[b] && address[b] + bytes[b] <= runs[run][1];
      asleep[b] = backed || bytes[b] === 0 || !window.lives(b, at) ? 0 : 1;
    }
    return asleep;
  }

  let known = {};  // several sections ask for the same moment

  /** By block: 1 if it is asleep after `at` events. */
  function blocks(window, at) {
    if (known.window !== window || known.at !== at) known = {window, at, asleep: find(window, at)};
    return known.asleep;
  }
  return {blocks, isTold};
})();
