// The kinds of programs, one function each. A program makes at least `events` events and ends with
// the step in which it does, or it makes `steps` steps.
#pragma once

#include <cstdint>

#include "interop/programs/program.hpp"
#include "interop/recording/recording_model.hpp"

namespace cistern::programs {

// training.cpp
/// A network trained with another batch and length, or picture size, in each step.
void train(Program& program, Random& random, std::uint64_t events);
/// The same with one shape throughout.
void trainStable(Program& program, Random& random, std::uint64_t events);
/// Sequences that grow from step to step, and begin again: a curriculum, or buffers appended to.
void sawtooth(Program& program, Random& random, std::uint64_t events);
/// Training of one shape, and at times one request of a size of its own that is most of the peak.
void giants(Program& program, Random& random, std::uint64_t events);
/// Training, evaluation, generation and fine-tuning of several networks, one after the other.
void phases(Program& program, Random& random, std::uint64_t events);

// serving.cpp
/// Requests come and go, each with a cache that grows with every token.
void serve(Program& program, Random& random, std::uint64_t events);

// many_streams.cpp
/// Stages on streams of their own, which pass microbatches of random length on; what one stage
/// makes another one frees.
void streams(Program& program, Random& random, std::uint64_t events);

// periodic.cpp
/// Training that makes the same requests in every step. The sizes are drawn before the first step,
/// so that a longer program begins as a shorter one.
void periodic(Program& program, Random& random, std::uint64_t steps);

// sampled.cpp
/// Graphs and clouds of points drawn anew in each step: no size ever comes again.
void sampled(Program& program, Random& random, std::uint64_t events);

// A program whose frees come late and in another order, as they do under a garbage collector or if
// another thread frees.

/// The same allocations in the same order; of the frees so many percent come 1 to 4 events later
/// than in `program`. The n-th event comes when it came there. Which frees are late follows from
/// the seed. Pre: `program` has calls alone.
recording::Recording withJitter(const recording::Recording& program, std::uint64_t percent,
                                std::uint64_t seed);

}  // namespace cistern::programs
