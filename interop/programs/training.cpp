// Programs that train.
#include <algorithm>

#include "allocator/base/bytes.hpp"
#include "interop/programs/kinds.hpp"
#include "interop/programs/networks.hpp"

namespace cistern::programs {
namespace {

constexpr std::uint64_t kLeastSteps = 4;

void endStep(Program& program, Random& random) { program.pass(random.between(5'000, 250'000)); }

/// Calls `step` with its number until there are enough events.
template <class Step>
void repeat(Program& program, Random& random, std::uint64_t events, Step step) {
  const std::uint64_t until = program.events() + events;
  for (std::uint64_t i = 0; i < kLeastSteps || program.events() < until; ++i) {
    step(i);
    endStep(program, random);
  }
}

struct Batch {
  std::uint64_t sequences, length;
  std::uint64_t tokens() const { return sequences * length; }
};

/// Whether the network is a transformer, else it is for images.
bool drawTransformer(Random& random) { return random.chance(65); }

void trainText(Program& program, Random& random, std::uint64_t events, bool stable) {
  TransformerShape shape = TransformerShape::drawn(random);
  if (stable) shape.experts = 1;  // a gate deals tokens otherwise each time
  Transformer model(program, random, shape);
  const std::uint64_t most = random.logBetween(2'000, 24'000);
  const std::uint64_t longest =
      std::min<std::uint64_t>(most, random.pick({512, 1'024, 2'048, 4'096}));
  const auto drawn = [&] {
    const std::uint64_t length = random.between(longest / 16, longest);
    return Batch{random.between(1, std::max<std::uint64_t>(most / longest, 1)), length};
  };
  Batch batch = drawn();
  if (stable) batch.length = longest;
  repeat(program, random, events, [&](std::uint64_t) {
    if (!stable) batch = drawn();
    model.trainStep(batch.tokens(), batch.sequences);
  });
}

void trainImages(Program& program, Random& random, std::uint64_t events, bool stable) {
  ConvnetShape shape = ConvnetShape::drawn(random);
  if (stable) shape.detects = false;  // how many boxes are found is up to the picture
  Convnet model(program, random, shape);
  const std::uint64_t most = random.between(2, 24);
  const std::uint64_t largest = 32 * random.between(6, 40);
  const auto edge = [&] { return 8 * random.between(largest / 16, largest / 8); };
  std::uint64_t height = edge(), width = edge(), images = most;
  repeat(program, random, events, [&](std::uint64_t) {
    if (!stable) height = edge(), width = edge(), images = random.between(1, most);
    model.trainStep(images, height, width);
  });
}

void trainSomething(Program& program, Random& random, std::uint64_t events, bool stable) {
  if (drawTransformer(random)) {
    trainText(program, random, events, stable);
  } else {
    trainImages(program, random, events, stable);
  }
}

/// A buffer that is appended to by copying it into a larger one.
void growBuffers(Program& program, Random& random, std::uint64_t events) {
  const std::uint64_t count = random.between(1, 12);
  const std::uint64_t first = random.logBetween(kMiB, 512 * kMiB);
  const std::uint64_t permille = random.logBetween(5, 300);
  const std::uint64_t teeth = random.between(8, 60);
  Blocks buffers;
  std::uint64_t bytes = first;
  repeat(program, random, events, [&](std::uint64_t i) {
    if (i % teeth == 0) program.drop(buffers), bytes = first;
    for (std::uint64_t k = 0; k < count; ++k) {
      const Block larger = program.take(bytes + k * 512);
      program.scratch(random.logBetween(512, bytes / 4 + 1'024));
      if (buffers.size() < count) {
        buffers.push_back(larger);
        continue;
      }
      program.drop(buffers[k]);
      buffers[k] = larger;
    }
    for (int k = 0; k < 40; ++k) program.scratch(random.logBetween(64, 8 * kMiB));
    bytes += bytes * permille / 1'000;
  });
}

void growSequences(Program& program, Random& random, std::uint64_t events) {
  Transformer model(program, random, TransformerShape::drawn(random));
  const std::uint64_t sequences = random.between(1, 8);
  const std::uint64_t shortest = random.between(32, 256);
  const std::uint64_t more = random.between(1, 128);
  const std::uint64_t teeth = random.between(6, 40);
  repeat(program, random, events, [&](std::uint64_t i) {
    model.trainStep(sequences * (shortest + i % teeth * more), sequences);
  });
}

}  // namespace

void train(Program& program, Random& random, std::uint64_t events) {
  trainSomething(program, random, events, false);
}

void trainStable(Program& program, Random& random, std::uint64_t events) {
  trainSomething(program, random, events, true);
}

void sawtooth(Program& program, Random& random, std::uint64_t events) {
  if (random.chance(50)) {
    growBuffers(program, random, events);
  } else {
    growSequences(program, random, events);
  }
}

void giants(Program& program, Random& random, std::uint64_t events) {
  Transformer model(program, random, TransformerShape::drawn(random));
  const std::uint64_t length = random.between(128, 2'048);
  const std::uint64_t sequences = random.between(1, 8);
  const std::uint64_t giant = random.logBetween(kGiB, 20 * kGiB);
  const std::uint64_t every = random.between(2, 9);
  repeat(program, random, events, [&](std::uint64_t i) {
    model.trainStep(sequences * length, sequences);
    if (i % every != every - 1) return;
    // Scores of a whole data set, a checkpoint put together, a workspace that is tried out.
    const Block one = program.take(giant / 512 * random.between(200, 700));
    program.scratch(giant / 512 * random.between(10, 300));
    const Block result = program.take(random.logBetween(kKiB, 64 * kMiB));
    program.pass(random.between(1'000, 400'000));
    program.drop(one);
    program.drop(result);
  });
}

void phases(Program& program, Random& random, std::uint64_t events) {
  const std::uint64_t count = random.between(3, 6);
  for (std::uint64_t i = 0; i < count; ++i) {
    program.pass(random.between(100'000, 2'000'000));
    const std::uint64_t share = events / count;
    if (random.chance(25)) {
      serve(program, random, share);
      continue;
    }
    if (random.chance(35)) {
      trainImages(program, random, share, random.chance(50));
      continue;
    }
    Transformer model(program, random, TransformerShape::drawn(random));
    const std::uint64_t sequences = random.between(1, 8);
    const std::uint64_t longest = random.between(256, 2'048);
    repeat(program, random, share / 2, [&](std::uint64_t) {
      model.trainStep(sequences * random.between(longest / 4, longest), sequences);
    });
    repeat(program, random, share / 2, [&](std::uint64_t) {
      model.inferStep(4 * sequences * random.between(longest / 4, longest), 4 * sequences);
    });
    if (random.chance(80)) model.drop();
  }
}

}  // namespace cistern::programs
