// A bound that no placement in host memory can beat: the least bytes over the bus with which a
// program runs on a device that is too small for it.
//
// It is the optimum of a linear program over the blocks' lives. Each block of s bytes has y of them
// in host memory, 0 <= y <= s. After each event the s - y of all living blocks fit the device. The
// sum of y is the least possible. Each byte in host memory goes over the bus twice: it is written
// once and read once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interop/command/overflow/lifetimes.hpp"

namespace cistern::command {

/// The least sum of y on a device of `capacity` bytes. Twice that goes over the bus.
/// Pre: `lives` are in the order of their births.
///
/// One sweep over the births is exact. If the living bytes exceed the capacity, those that end last
/// go to the host. Any other living bytes would make room for a part of the same events only, and
/// cost as much.
std::uint64_t leastHostBytes(const std::vector<Lifetime>& lives, std::uint64_t capacity);

/// The same for each iteration by itself. A block that lives in several iterations is read and
/// written in each, as weights are, and counts anew. Pre: `starts` rise from 0, all below `events`
/// but the first; no life ends later than `events`.
std::vector<std::uint64_t> leastHostBytesByIteration(const std::vector<Lifetime>& lives,
                                                     const std::vector<std::size_t>& starts,
                                                     std::size_t events, std::uint64_t capacity);

}  // namespace cistern::command
