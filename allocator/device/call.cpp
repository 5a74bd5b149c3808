#include "cistern/device_calls.hpp"

namespace cistern {

std::string_view callName(Call call) {
#define CISTERN_NAME(Kind, function, name, ...) #name,
  static constexpr std::array<std::string_view, kCallCount> kNames = {
      CISTERN_DEVICE_CALLS(CISTERN_NAME, CISTERN_NAME, CISTERN_NAME, CISTERN_NO_ROW) "open"};
#undef CISTERN_NAME
  return kNames[std::size_t(call)];
}

}  // namespace cistern
