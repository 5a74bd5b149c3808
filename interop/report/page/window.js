// A window: every event around one moment. Each block has the numbers of events after which it
// lives (`born`), is freed (`freed`) and is complete (`gone`), so any moment's state is one pass
// over arrays: block b lives after `at` events if born[b] <= at < freed[b], and waits for other
// streams' work if freed[b] <= at < gone[b].
cistern.Window = class {
  constructor(model) {
    this.first = model.first;
    this.count = model.count;
    this.startUs = model.start_us;
    const events = model.events;
    this.kind = Uint8Array.from(events.kind);
    this.eventBlock = Int32Array.from(events.block);
    this.times = this.sums(events.dt_us, this.startUs);
    const addresses = this.sums(events.address, 0);
    this.makeBlocks(model.blocks, events, addresses);
    this.applyEvents();
    this.sleeps = model.sleeps || [];
    (model.waiting || []).forEach((b) => {
      this.gone[b] = cistern.Window.NEVER;
    });  // freed in the window, complete after it
    this.pieces = cistern.reservedPieces(model.ranges, this.reservations(events, addresses));
    this.renumber();
    this.groupBlocks();
  }

  sums(differences, start) {
    const sums = new Float64Array(differences.length);
    let sum = start;
    for (let i = 0; i < differences.length; i += 1) {
      sum += differences[i];
      sums[i] = sum;
    }
    return sums;
  }

  /** The blocks of the window's start, then those of its allocations, in order. */
  makeBlocks(start, events, addresses) {
    const before = start.bytes.length;
    const made = d3.range(this.count).filter((i) => this.kind[i] === 0);
    const join = (array, old, fresh) => {
      array.set(old);
      made.forEach((event, i) => {
        array[before + i] = fresh[event];
      });
      return array;
    };
    this.blocks = before + made.length;
    this.address = join(new Float64Array(this.blocks), start.address, addresses);
    this.bytes = join(new Float64Array(this.blocks), start.bytes, events.bytes);
    this.since = join(new Float64Array(this.blocks), start.since_us, this.times);
    ["stack", "label", "pool", "stream"].forEach((name) => {
      this[name] = join(new Int32Array(this.blocks), start[name], events[name]);
    });
    this.born = new Int32Array(this.blocks);
    made.forEach((event, i) => {
      this.born[before + i] = event + 1;
    });
    this.pendingAtStart = start.pending;
  }

  applyEvents() {
    this.freed = new Int32Array(this.blocks).fill(cistern.Window.NEVER);
    this.gone = new Int32Array(this.blocks).fill(-1);
    this.pendingAtStart.forEach((pending, b) => {
      if (pending) [this.freed[b], this.gone[b]] = [0, cistern.Window.NEVER];
    });
    for (let i = 0; i < this.count; i += 1) {
      if (this.kind[i] === 1) this.freed[this.eventBlock[i]] = i + 1;
      if (this.kind[i] === 2) this.gone[this.eventBlock[i]] = i + 1;
    }
  }

  /**
   * Numbers the blocks by address, so that passes over them read memory in order. Those without
   * come first.
   */
  renumber() {
    const {address} = this;
    const order =
        Uint32Array.from(address, (_, b) => b).sort((a, b) => address[a] - address[b] || a - b);
    const numbers = new Int32Array(this.blocks);
    order.forEach((old, b) => {
      numbers[old] = b;
    });
    ["address", "bytes", "since", "stack", "label", "pool", "stream", "born", "freed", "gone"]
        .forEach((name) => {
          const values = this[name];
          this[name] = values.slice();
          order.forEach((old, b) => {
            this[name][b] = values[old];
          });
        });
    for (let i = 0; i < this.count; i += 1) {
      if (this.kind[i] <= 2) this.eventBlock[i] = numbers[this.eventBlock[i]];
    }
    this.sleeps = this.sleeps.map(([b, at, sleeps]) => [numbers[b], at, sleeps]);
    this.placed = d3.bisectRight(this.address, 0);  // the first with an address
  }

  reservations(events, addresses) {
    return d3.range(this.count)
        .filter((i) => this.kind[i] >= 3 && this.kind[i] <= 6)
        .map((i) => ({
               kind: this.kind[i],
               address: addresses[i],
               bytes: events.bytes[i],
               pool: events.pool[i],
               stream: events.stream[i],
               at: i + 1
             }));
  }

  /** Numbers the blocks' holders: those with the same stack, label, pool and stream are one. */
  groupBlocks() {
    const numbers = new Map();
    this.holders = [];
    this.holder = new Int32Array(this.blocks);
    for (let b = 0; b < this.blocks; b += 1) {
      const key = `${this.stack[b]} ${this.label[b]} ${this.pool[b]} ${this.stream[b]}`;
      let number = numbers.get(key);
      if (number === undefined) {
        number = this.holders.length;
        numbers.set(key, number);
        this.holders.push([this.stack[b], this.label[b], this.pool[b], this.stream[b]]);
      }
      this.holder[b] = number;
    }
  }

  lives(b, at) { return this.born[b] <= at && at < this.freed[b]; }

  waits(b, at) { return this.freed[b] <= at && at < this.gone[b]; }

  /** When the state after `at` events began. */
  timeAt(at) { return at > 0 ? this.times[Math.min(at, this.count) - 1] : this.startUs; }

  /** Bytes in use after each number of events. */
  get asked() {
    if (!this.askedAfter) {
      const sums = new Float64Array(this.count + 1);
      for (let b = 0; b < this.blocks; b += 1) {
        if (this.freed[b] === 0) continue;  // freed before the window began
        sums[this.born[b]] += this.bytes[b];
        if (this.freed[b] <= this.count) sums[this.freed[b]] -= this.bytes[b];
      }
      this.sleeps.forEach(([b, at, sleeps]) => {
        sums[at] += sleeps ? -this.bytes[b] : this.bytes[b];
      });
      for (let at = 1; at <= this.count; at += 1) sums[at] += sums[at - 1];
      this.askedAfter = sums;
    }
    return this.askedAfter;
  }

  /** How many events have happened at a time. */
  atTime(us) { return d3.bisectRight(this.times, us); }
};

/** The number of an event that never comes. */
cistern.Window.NEVER = 0x7fffffff;
