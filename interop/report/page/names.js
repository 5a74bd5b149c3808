// Names of what a recording counts: frames, stacks, labels, pools and streams.

/**
 * Files that are no program's own: installed packages, the system's, shared libraries, PyTorch's.
 */
cistern.LIBRARIES = [
  /(^|\/)(site|dist)-packages\//, /^\/usr\/(?!local\/)/, /\/lib\/python[\d.]+\//, /^</,
  /\.so(\.|\+|$)/, /(^|\/)(aten|c10|torch\/csrc)\//
];

cistern.Names = class {
  constructor(recording) {
    this.recording = recording;
    this.paths = new Map();
    this.lines = new Map();
    this.throughNames = new Map();
  }

  /** The stack's frames, the innermost first: each [function, file, line]. */
  frames(stack) {
    const frames = [];
    for (let at = stack; at > 0; at = this.recording.stacks[at][0]) {
      frames.push(this.recording.frames[this.recording.stacks[at][1]]);
    }
    return frames;
  }

  /**
   * Whether the frame is of a library rather than of the program. A frame of a program without
   * lines has a place in its file instead: "/srv/app+0x1234".
   */
  static isLibrary([name, file, line]) {
    const hasPlace = line > 0 || /\+0x[0-9a-f]+$/.test(file);
    return !hasPlace || cistern.LIBRARIES.some((pattern) => pattern.test(file)) ||
        /^(std|__gnu_cxx)::|^operator new|^__libc_start|^_start$|^start_thread$|^clone/.test(name);
  }

  /** A file's name; recorders write "??" where they know none. */
  static fileOf([, file]) { return file === "??" ? "" : file; }

  /** A function without its parameters and template arguments, which fill lines in C++. */
  static functionOf([name]) {
    let short = name.replace(/\(anonymous namespace\)::/g, "").replace(/(?<!operator)\(.*$/, "");
    for (let before = ""; before !== short;) {
      before = short;
      short = short.replace(/<[^<>]*>/g, "");
    }
    return short.length > 60 ? `${short.slice(0, 59)}…` : short || name;
  }

  /** "train.py:42", or the function where the line is not known. */
  static place(frame) {
    const file = cistern.Names.fileOf(frame).split("/").pop();
    if (frame[2] > 0) return `${file}:${frame[2]}`;
    return cistern.Names.functionOf(frame) || file || "unknown function";
  }

  static frameText(frame) {
    const [name, , line] = frame;
    const file = cistern.Names.fileOf(frame);
    const where = line ? `${file}:${line}` : file;
    if (!where) return name || "unknown function";
    return name ? `${name}  ${where}` : where;
  }

  /** "train.py:42 in forward", or "forward in app" where the line is not known. */
  static lineOf(frame) {
    const [place, name] = [cistern.Names.place(frame), cistern.Names.functionOf(frame)];
    const file = cistern.Names.fileOf(frame).split("/").pop().replace(/\+0x[0-9a-f]+$/, "");
    if (frame[2] > 0) return name && name !== "<module>" ? `${place} in ${name}` : place;
    return file && !place.startsWith(file) ? `${place} in ${file}` : place;
  }

  /**
   * The innermost frame of the program itself, or the innermost that is known; null for stack 0.
   */
  programFrame(stack) {
    if (!(stack > 0)) return null;
    if (!this.lines.has(stack)) {
      const frames = this.frames(stack);
      const own = frames.find((frame) => !cistern.Names.isLibrary(frame));
      this.lines.set(stack, own || frames.find(cistern.Names.fileOf) || frames[0]);
    }
    return this.lines.get(stack);
  }

  /** Whether a line of the program itself is in a stack. */
  hasProgram(stack) { return this.frames(stack).some((f) => !cistern.Names.isLibrary(f)); }

  /** The line of the program that a stack comes from: "train.py:42 in forward". */
  site(stack) {
    if (stack === -1) return "all others";
    const frame = this.programFrame(stack);
    if (!frame) return "no call stack";
    return cistern.Names.lineOf(frame);
  }

  /**
   * The line of a library that the program's line reached, if one is known: "adam.py:121 in step".
   * Most stacks end in the same few lines of PyTorch, so a line of another library says more.
   */
  through(stack) {
    if (!(stack > 0)) return "";
    const frames = this.frames(stack);
    const within = frames.slice(0, frames.indexOf(this.programFrame(stack)))
                       .filter((frame) => cistern.Names.fileOf(frame) && frame[2] > 0);
    const telling = within.find(([, file]) => !/-packages\/torch\//.test(file)) || within[0];
    return telling ? cistern.Names.lineOf(telling) : "";
  }

  /** A nested label as a path: "train / forward". */
  label(label) {
    if (label === -1) return "all others";
    if (!(label > 0)) return "no label";
    if (!this.paths.has(label)) {
      const [name, parent] = this.recording.labels[label];
      this.paths.set(label, parent > 0 ? `${this.label(parent)} / ${name}` : name);
    }
    return this.paths.get(label);
  }

  pool(pool) {
    if (pool === -1) return "all others";
    const text = this.recording.pools[pool] ?? String(pool);
    return /pool/i.test(text) ? text : `pool ${text}`;
  }

  stream(stream) {
    if (stream === -1) return "all others";
    const text = this.recording.streams[stream] ?? String(stream);
    return /stream/i.test(text) ? text : `stream ${text}`;
  }

  /** The name of a key by which memory is stacked and coloured. */
  key(by, key) {
    if (by !== "site") return this[by](key);
    if (!(key > 0)) return this.site(key);
    const keys = (this.recording.timeline.stacked.site || []).map(([other]) => other);
    return this.apart(key, keys);
  }

  /** A stack's line with the library's line that it reached. */
  throughName(stack) {
    if (!this.throughNames.has(stack)) {
      const through = this.through(stack);
      this.throughNames.set(
          stack, through ? `${this.site(stack)} through ${through}` : this.site(stack));
    }
    return this.throughNames.get(stack);
  }

  /** A stack's name that tells it from the others: its line, then more of its frames as needed. */
  apart(stack, others) {
    const twins = (name) =>
        others.filter((other) => other > 0 && other !== stack && name(other) === name(stack));
    const bySite = twins((s) => this.site(s));
    if (bySite.length === 0) return this.site(stack);
    const name = this.throughName(stack);
    const left = bySite.filter((other) => this.throughName(other) === name);
    const difference = left.length > 0 ? this.difference(stack, left) : "";
    return difference ? `${name}, ${difference}` : name;
  }

  /**
   * The frame at which a stack differs from others: "called from a.py:2 in f", the first from the
   * program's line outward, or "by way of b.py:7", the first inward. Empty if none does.
   */
  difference(stack, others) {
    const parts = (s) => {
      const frames = this.frames(s);
      const own = Math.max(0, frames.indexOf(this.programFrame(s)));
      return [frames.slice(own), frames.slice(0, own).reverse()];
    };
    const own = parts(stack);
    const theirs = others.map(parts);
    const [caller, called] = own.map(
        (frames, side) =>
            frames.find((frame, i) => theirs.some((other) => other[side][i] !== frame)));
    if (caller) return `called from ${cistern.Names.lineOf(caller)}`;
    return called ? `by way of ${cistern.Names.lineOf(called)}` : "";
  }

  /** What a holder is called: its line, or its label, or where it lies. */
  holder([stack, label, pool, stream]) {
    if (stack > 0) return this.site(stack);
    if (stack === -1) return "all others";
    if (label > 0) return this.label(label);
    if (this.recording.stacks.length > 1) return "no call stack";
    return `${this.pool(pool)}, ${this.stream(stream)}`;
  }

  /** All of a stack, its label and its place in one text, to search in. */
  text(stack, label, pool, stream) {
    const frames = this.frames(Math.max(0, stack)).map(cistern.Names.frameText);
    return [...frames, this.label(label), this.pool(pool), this.stream(stream)]
        .join("\n")
        .toLowerCase();
  }
};
