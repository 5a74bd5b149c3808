// The map's geometry. All addresses that a window used, without the gaps between them, are one long
// tape; the map winds it into rows like lines of text. A view says which byte of the tape is at the
// top left, and how many bytes a row has.
cistern.Tape = class {
  /**
   * `extents`: [[address, bytes], …] in any order; those that touch or overlap become one stretch.
   */
  constructor(extents) {
    const sorted = extents.filter(([, bytes]) => bytes > 0).sort((a, b) => a[0] - b[0]);
    this.starts = [];  // addresses of the stretches
    this.ends = [];
    sorted.forEach(([address, bytes]) => {
      const last = this.ends.length - 1;
      if (last >= 0 && address <= this.ends[last])
        this.ends[last] = Math.max(this.ends[last], address + bytes);
      else {
        this.starts.push(address);
        this.ends.push(address + bytes);
      }
    });
    this.offsets = [];
    this.length = 0;
    this.starts.forEach((start, i) => {
      this.offsets.push(this.length);
      this.length += this.ends[i] - start;
    });
  }

  /** Where an address lies on the tape; -1 if it lies outside. */
  offset(address) {
    const i = d3.bisectRight(this.starts, address) - 1;
    return i >= 0 && address < this.ends[i] ? this.offsets[i] + address - this.starts[i] : -1;
  }

  /** The address at a place of the tape. */
  address(offset) {
    const i = Math.max(0, d3.bisectRight(this.offsets, offset) - 1);
    return this.starts[i] + offset - this.offsets[i];
  }
};

/** What of a tape is in sight. */
cistern.TapeView = class {
  constructor(length) {
    this.length = Math.max(1, length);
    this.rowHeight = 13;
    this.pitch = 16;  // a row and the gap below it
    this.left = 0;
    this.top = 0;  // the tape's byte at the top left
    this.zoomed = 1;
  }

  fit(left, width, height) {
    this.left = left;
    this.width = Math.max(1, width);
    this.height = height;
    this.rows = Math.max(1, Math.floor((height + this.pitch - this.rowHeight) / this.pitch));
    this.clampTop();
  }

  get rowBytes() { return this.length / this.rows / this.zoomed; }

  clampTop() {
    const most = Math.max(0, this.length - this.rows * this.rowBytes);
    this.top = Math.max(0, Math.min(most, this.top));
  }

  /** The tape's byte at a point, or -1. */
  at(x, y) {
    const row = Math.floor(y / this.pitch);
    if (x < this.left || x > this.left + this.width || row < 0 || row >= this.rows) return -1;
    const offset = this.top + (row + (x - this.left) / this.width) * this.rowBytes;
    return offset < this.length ? offset : -1;
  }

  /** Zooms so that the byte at a point stays there. */
  zoom(factor, x, y) {
    const place = Math.floor(y / this.pitch) + (x - this.left) / this.width;
    const held = this.top + place * this.rowBytes;
    this.zoomed = Math.max(1, Math.min(this.length / this.rows / 4096, 1e7, this.zoomed * factor));
    if (this.zoomed < 1) this.zoomed = 1;
    this.top = held - place * this.rowBytes;
    this.clampTop();
  }

  /** Moves by pixels: sideways within the tape, up and down by rows. */
  pan(dx, dy) {
    this.top -= (dx / this.width + Math.round(dy / this.pitch)) * this.rowBytes;
    this.clampTop();
  }

  /** Calls `paint(x, y, width)` for each row that [offset, offset + bytes) crosses in sight. */
  spans(offset, bytes, paint) {
    const rowBytes = this.rowBytes;
    let from = Math.max(offset, this.top);
    const end = Math.min(offset + bytes, this.top + this.rows * rowBytes);
    while (from < end) {
      const row = Math.min(this.rows - 1, Math.floor((from - this.top) / rowBytes + 1e-9));
      const rowStart = this.top + row * rowBytes;
      const to = Math.min(end, rowStart + rowBytes);
      paint(
          this.left + ((from - rowStart) / rowBytes) * this.width, row * this.pitch,
          ((to - from) / rowBytes) * this.width);
      if (to <= from) break;
      from = to;
    }
  }
};
