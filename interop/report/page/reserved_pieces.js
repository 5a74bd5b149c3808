// Which addresses were reserved from which event to which, in one window: pieces [address, bytes)
// with `from` <= events applied < `until`. A release that names a part of a piece cuts it.
cistern.reservedPieces = (ranges, events) => {
  const closed = [];
  const open = ranges.map(
      ([address, bytes, pool, stream, kind]) =>
          ({address, bytes, pool, stream, kind, from: 0, until: Infinity}));
  open.sort((a, b) => a.address - b.address);
  const firstAt =
      d3.bisector((piece) => piece.address + piece.bytes).right;  // the first that ends behind it

  function take(address, bytes, at) {
    const end = address + bytes;
    const first = firstAt(open, address);
    let last = first;
    const kept = [];
    while (last < open.length && open[last].address < end) {
      const piece = open[last];
      const pieceEnd = piece.address + piece.bytes;
      if (piece.from < at) closed.push({...piece, until: at});
      if (piece.address < address) kept.push({...piece, bytes: address - piece.address, from: at});
      if (pieceEnd > end) kept.push({...piece, address: end, bytes: pieceEnd - end, from: at});
      last += 1;
    }
    open.splice(first, last - first, ...kept);
  }

  function put(piece) {
    take(piece.address, piece.bytes, piece.from);
    open.splice(firstAt(open, piece.address), 0, piece);
  }

  events.forEach(({kind, address, bytes, pool, stream, at}) => {
    if (kind === 3 || kind === 5) {
      put({address, bytes, pool, stream, kind: kind === 3 ? 0 : 1, from: at, until: Infinity});
    } else {
      take(address, bytes, at);
    }
  });
  return closed.concat(open).sort((a, b) => a.address - b.address || a.from - b.from);
};
