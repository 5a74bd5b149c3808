// The standard headers that nearly every file includes: read once for each library. Each file still
// includes what it uses; presets `cuda` and `hip` do without this one, and notice.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
