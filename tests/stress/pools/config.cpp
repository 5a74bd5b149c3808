#include "tests/stress/pools/config.hpp"

#include <fmt/format.h>

#include "tests/stress/pools/random.hpp"

namespace cistern::storm {
namespace {

sim::SimConfig deviceFor(Random& random) {
  sim::SimConfig config;
  config.capacity = (96 + 32 * random.below(16)) * kMiB;
  config.gpu_lag_ns = random.oneIn(2) ? 20'000 : 0;
  config.reuse_streams = !random.oneIn(3);
  config.virtual_memory = !random.oneIn(16);
  config.host_page_capacity = (16 + 16 * random.below(8)) * kMiB;
  return config;
}

std::string optionsFor(Random& random, bool alone) {
  const auto pick = [&](std::initializer_list<const char*> choices) {
    return choices.begin()[random.below(choices.size())];
  };
  std::string conf = fmt::format(
      "backing:{},recycle:{},page_size:{},thread_cache:{},"
      "background_thread:{},cross_stream_reuse:{}",
      pick({"pages", "pages", "segments"}), pick({"budget", "eager", "off"}),
      pick({"auto", "auto", "2M", "4M"}), pick({"8M", "2M", "64K", "off"}),
      !alone && random.oneIn(2) ? "true" : "false",
      pick({"true", "true", "true", "wait", "false"}));
  if (random.oneIn(3)) {
    conf += fmt::format(",garbage_collection_threshold:{}", pick({"0.01", "0.3", "0.8"}));
  }
  if (random.oneIn(6)) conf += ",max_split_size:20M";
  if (random.oneIn(6)) conf += ",roundup_power2_divisions:4";
  return conf;
}

}  // namespace

Config::Config(std::uint64_t seed, std::size_t threads) {
  Random random(seed);
  alone = threads == 1;
  device = deviceFor(random);
  options = Options::parse(optionsFor(random, alone));
  const bool pages = device.virtual_memory && options.backing == Backing::kPages;
  if (pages && random.oneIn(3)) options.overflow = device.host_page_capacity / 2;
  streams = 3 + random.below(6);
  operations = (alone ? 1'000 : 400) + random.below(alone ? 5'000 : 2'000);
  faults = random.oneIn(2);
  sources_throw = random.oneIn(3);
  abrupt_end = random.oneIn(3);
  busy_hooks = random.oneIn(3);
  untold = random.oneIn(2);
  host_fails = !busy_hooks && random.oneIn(3);
}

}  // namespace cistern::storm
