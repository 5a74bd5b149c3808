// The engine's paths, by name: what each of them does, as often as is asked for.
#pragma once

#include <span>
#include <string_view>

#include "tests/golden/paths/rig.hpp"

namespace cistern::golden {

struct Path {
  std::string_view name;
  const char* options;
  void (*run)(Rig& rig, long times);
};

std::span<const Path> paths();

}  // namespace cistern::golden
