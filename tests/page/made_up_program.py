"""A made-up program, step by step: what it allocates, what its allocator reserves, and which request fails.

It keeps the events that `made_up_model.py` turns into the model of a report."""

MIB = 1 << 20
ALLOCATE, FREE, USES_END, RESERVE, RELEASE, MAP, UNMAP, FAILED, MARK = range(9)


class Block:
    def __init__(self, number, address, size, stack, label, pool, stream, since):
        self.number, self.address, self.size = number, address, size
        self.stack, self.label, self.pool, self.stream, self.since = stack, label, pool, stream, since
        self.pending = False


class Program:
    """Segments of at least 20 MiB, first fit, up to a limit."""
    def __init__(self, limit, tick_us=1000):
        self.limit, self.tick_us, self.now = limit, tick_us, 0
        self.frames, self.stacks, self.labels = [], [[0, 0]], [["", 0]]
        self.pools, self.streams = ["default"], ["0"]
        self.events, self.segments, self.blocks = [], [], [
        ]  # segments: [address, size, pool, stream, living blocks]
        self.marks, self.failures = [], []

    def stack(self, *frames):
        """The number of a stack; frames from the outermost: (function, file, line)."""
        parent = 0
        for frame in frames:
            if list(frame) not in self.frames:
                self.frames.append(list(frame))
            node = [parent, self.frames.index(list(frame))]
            if node not in self.stacks[1:]:
                self.stacks.append(node)
            parent = self.stacks.index(node, 1)
        return parent

    def label(self, name, parent=0):
        self.labels.append([name, parent])
        return len(self.labels) - 1

    def event(self, kind, address=0, size=0, stack=0, label=0, pool=0, stream=0, block=0):
        self.now += self.tick_us
        self.events.append((kind, self.now, address, size, stack, label, pool, stream, block))

    def reserved(self):
        return sum(segment[1] for segment in self.segments)

    def place(self, size, pool, stream):
        """The segment and address of the first gap that fits."""
        for segment in self.segments:
            if segment[2:4] != [pool, stream]:
                continue
            reached = segment[0]
            for block in sorted(segment[4], key=lambda block: block.address):
                if block.address - reached >= size:
                    return segment, reached
                reached = block.address + block.size
            if segment[0] + segment[1] - reached >= size:
                return segment, reached
        return None

    def allocate(self, size, stack=0, label=0, pool=0, stream=0):
        """A block, or None where it does not fit within the limit."""
        found = self.place(size, pool, stream)
        if found is None:
            wanted = max(20 * MIB, (size + 2 * MIB - 1) // (2 * MIB) * (2 * MIB))
            if self.reserved() + wanted > self.limit:
                self.event(FAILED, 0, size, stack, label, pool, stream, len(self.failures))
                self.failures.append(size)
                return None
            address = self.segments[-1][0] + self.segments[-1][1] + 64 * MIB if self.segments else 0x7F0000000000
            segment = [address, wanted, pool, stream, []]
            self.segments.append(segment)
            self.event(RESERVE, address, wanted, pool=pool, stream=stream)
            found = segment, address
        segment, address = found
        block = Block(len(self.blocks), address, size, stack, label, pool, stream, self.now + self.tick_us)
        segment[4].append(block)
        self.blocks.append(block)
        self.event(ALLOCATE, address, size, stack, label, pool, stream, block.number)
        return block

    def free(self, block, used_elsewhere=False):
        """Frees a block; one that is used elsewhere keeps its place until `uses_end`."""
        self.event(FREE, block.address, block.size, block.stack, block.label, block.pool, block.stream,
                   block.number)
        block.pending = used_elsewhere
        if not used_elsewhere:
            self.forget(block)

    def uses_end(self, block):
        self.event(USES_END, block.address, block.size, block.stack, block.label, block.pool, block.stream,
                   block.number)
        self.forget(block)

    def forget(self, block):
        next(segment for segment in self.segments if block in segment[4])[4].remove(block)

    def release(self):
        """Gives the segments without blocks back."""
        for segment in [segment for segment in self.segments if not segment[4]]:
            self.segments.remove(segment)
            self.event(RELEASE, segment[0], segment[1], pool=segment[2], stream=segment[3])

    def sleep(self, segment):
        """The memory of a segment goes; its blocks live on."""
        self.event(UNMAP, segment[0], segment[1], pool=segment[2], stream=segment[3])

    def wake(self, segment):
        self.event(MAP, segment[0], segment[1], pool=segment[2], stream=segment[3])

    def mark(self, name):
        self.marks.append(name)
        self.event(MARK, block=len(self.marks) - 1)
