// Blocks that live and have no memory: their pool sleeps (docs/sleep.md). They are not in use.
cistern.asleep = (() => {
  function find(window, at) {
    const asleep = new Uint8Array(window.blocks);
    window.sleeps.forEach(([block, after, sleeps]) => {
      if (after <= at) asleep[block] = sleeps;
    });
    return asleep;
  }

  let known = {};  // several sections ask for the same moment

  /** By block: 1 if it is asleep after `at` events. */
  function blocks(window, at) {
    if (known.window !== window || known.at !== at) known = {window, at, asleep: find(window, at)};
    return known.asleep;
  }
  return {blocks};
})();
