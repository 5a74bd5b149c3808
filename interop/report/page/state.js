// Sums over one moment of a window: who holds what, and which reserved memory is free.
cistern.state = (() => {
  /** Holders as the model has them: [stack, label, pool, stream, blocks, bytes, largest], by bytes. */
  function holders(window, at) {
    const { born, freed, bytes, holder } = window;
    const n = window.holders.length;
    const [count, sum, largest] = [new Uint32Array(n), new Float64Array(n), new Float64Array(n)];
    for (let b = 0; b < window.blocks; b += 1) {
      if (born[b] > at || at >= freed[b]) continue;
      const h = holder[b];
      count[h] += 1;
      sum[h] += bytes[b];
      if (bytes[b] > largest[h]) largest[h] = bytes[b];
    }
    const rows = [];
    for (let h = 0; h < n; h += 1) {
      if (count[h] > 0) rows.push([...window.holders[h], count[h], sum[h], largest[h]]);
    }
    return rows.sort((a, b) => b[5] - a[5]);
  }

  const piecesAt = (window, at) => window.pieces.filter((piece) => piece.from <= at && at < piece.until);

  /** Joins pieces that touch and serve the same pool and stream; separate segments stay separate. */
  function runs(pieces) {
    const joined = [];
    pieces.forEach((piece) => {
      const last = joined[joined.length - 1];
      const touches = last && piece.kind === 1 && last.kind === 1 && last.end === piece.address &&
                      last.pool === piece.pool && last.stream === piece.stream;
      if (touches) last.end += piece.bytes;
      else joined.push({ ...piece, end: piece.address + piece.bytes });
    });
    return joined;
  }

  /** Free pieces of reserved memory, in order of address: [address, bytes, run] to `act`. */
  function eachFree(window, at, act) {
    const { byAddress, address, bytes } = window;
    let next = 0;
    runs(piecesAt(window, at)).forEach((run) => {
      let reached = run.address;
      while (next < byAddress.length && address[byAddress[next]] < run.address) next += 1;
      for (; next < byAddress.length && address[byAddress[next]] < run.end; next += 1) {
        const b = byAddress[next];
        if (!window.lives(b, at) && !window.waits(b, at)) continue;
        if (address[b] > reached) act(reached, address[b] - reached, run);
        reached = Math.max(reached, address[b] + bytes[b]);
      }
      if (run.end > reached) act(reached, run.end - reached, run);
    });
  }

  /** What is reserved, living, waiting and free; all in bytes. */
  function sums(window, at) {
    const found = { asked: 0, blocks: 0, waiting: 0, reserved: 0, free: 0, pieces: 0, largest: 0 };
    for (let b = 0; b < window.blocks; b += 1) {
      if (window.lives(b, at)) {
        found.asked += window.bytes[b];
        found.blocks += 1;
      } else if (window.waits(b, at)) {
        found.waiting += window.bytes[b];
      }
    }
    piecesAt(window, at).forEach((piece) => { found.reserved += piece.bytes; });
    eachFree(window, at, (_, size) => {
      found.free += size;
      found.pieces += 1;
      found.largest = Math.max(found.largest, size);
    });
    return found;
  }
  return { eachFree, holders, piecesAt, sums };
})();
