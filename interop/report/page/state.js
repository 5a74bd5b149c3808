// Sums over one moment of a window: who holds what, and which reserved memory is free.
cistern.state = (() => {
  const MOST = 200;  // holders that are told apart

  /**
   * Holders as the model has them: [stack, label, pool, stream, blocks, bytes, largest], by bytes.
   */
  function holders(window, at) {
    const {born, freed, bytes, holder} = window;
    const n = window.holders.length;
    const [count, sum, largest] = [new Uint32Array(n), new Float64Array(n), new Float64Array(n)];
    const asleep = cistern.asleep.blocks(window, at);
    for (let b = 0; b < window.blocks; b += 1) {
      if (born[b] > at || at >= freed[b] || asleep[b]) continue;
      const h = holder[b];
      count[h] += 1;
      sum[h] += bytes[b];
      if (bytes[b] > largest[h]) largest[h] = bytes[b];
    }
    return rows(window, count, sum, largest);
  }

  /** The MOST largest holders, and the rest as one row. */
  function rows(window, count, sum, largest) {
    const sorted = sum.slice().sort();
    const least = sorted.length > MOST ? sorted[sorted.length - MOST] : 0;
    const shown = [];
    const rest = [-1, 0, 0, 0, 0, 0, 0];
    for (let h = 0; h < sum.length; h += 1) {
      if (count[h] === 0) continue;
      if (sum[h] >= least && shown.length < MOST)
        shown.push([...window.holders[h], count[h], sum[h], largest[h]]);
      else {
        rest[4] += count[h];
        rest[5] += sum[h];
        rest[6] = Math.max(rest[6], largest[h]);
      }
    }
    shown.sort((a, b) => b[5] - a[5]);
    return rest[4] > 0 ? [...shown, rest] : shown;
  }

  /**
   * The same by powers of two of the blocks' sizes, for recordings that know no stacks and no
   * labels.
   */
  function sizes(window, at) {
    const classes = new Map();
    const asleep = cistern.asleep.blocks(window, at);
    for (let b = 0; b < window.blocks; b += 1) {
      if (!window.lives(b, at) || asleep[b]) continue;
      const log = Math.floor(Math.log2(Math.max(1, window.bytes[b])));
      const row = classes.get(log) || {log, blocks: 0, bytes: 0, largest: 0};
      row.blocks += 1;
      row.bytes += window.bytes[b];
      row.largest = Math.max(row.largest, window.bytes[b]);
      classes.set(log, row);
    }
    return Array.from(classes.values()).sort((a, b) => b.bytes - a.bytes);
  }

  const piecesAt = (window, at) =>
      window.pieces.filter((piece) => piece.from <= at && at < piece.until);

  /**
   * Joins pieces that touch and serve the same pool and stream; separate segments stay separate.
   */
  function runs(pieces) {
    const joined = [];
    pieces.forEach((piece) => {
      const last = joined[joined.length - 1];
      const touches = last && piece.kind === 1 && last.kind === 1 && last.end === piece.address &&
          last.pool === piece.pool && last.stream === piece.stream;
      if (touches)
        last.end += piece.bytes;
      else
        joined.push({...piece, end: piece.address + piece.bytes});
    });
    return joined;
  }

  /** Free pieces of reserved memory, in order of address: [address, bytes, run] to `act`. */
  function eachFree(window, at, act) {
    const {address, bytes, blocks} = window;
    let next = window.placed;
    runs(piecesAt(window, at)).forEach((run) => {
      let reached = run.address;
      while (next < blocks && address[next] < run.address) next += 1;
      for (; next < blocks && address[next] < run.end; next += 1) {
        if (!window.lives(next, at) && !window.waits(next, at)) continue;
        if (address[next] > reached) act(reached, address[next] - reached, run);
        reached = Math.max(reached, address[next] + bytes[next]);
      }
      if (run.end > reached) act(reached, run.end - reached, run);
    });
  }

  /**
   * The free piece that holds an address: [address, bytes, pool, stream]; null if there is none.
   */
  function freeAt(window, at, place) {
    let found = null;
    eachFree(window, at, (address, bytes, {pool, stream}) => {
      if (address <= place && place < address + bytes) found = [address, bytes, pool, stream];
    });
    return found;
  }

  /** What is reserved, living, waiting and free; all in bytes. */
  function sums(window, at) {
    if (known.window === window && known.at === at) return known.sums;
    known = {window, at, sums: summed(window, at)};
    return known.sums;
  }

  let known = {};  // two sections ask for the same moment

  function summed(window, at) {
    const found =
        {asked: 0, blocks: 0, asleep: 0, waiting: 0, reserved: 0, free: 0, pieces: 0, largest: 0};
    const asleep = cistern.asleep.blocks(window, at);
    for (let b = 0; b < window.blocks; b += 1) {
      if (window.lives(b, at)) {
        found[asleep[b] ? "asleep" : "asked"] += window.bytes[b];
        found.blocks += 1;
      } else if (window.waits(b, at)) {
        found.waiting += window.bytes[b];
      }
    }
    piecesAt(window, at).forEach((piece) => {
      found.reserved += piece.bytes;
    });
    eachFree(window, at, (_, size) => {
      found.free += size;
      found.pieces += 1;
      found.largest = Math.max(found.largest, size);
    });
    return found;
  }
  return {eachFree, freeAt, holders, piecesAt, sizes, sums};
})();
