// What the race detectors of the simulated devices have found: copies that nothing orders.
#include <string>

#include "fake_runtime.hpp"

/// A line for each since the last call, of the device. Valid until the thread's next call.
FAKE_API const char* fake_races(int ordinal) {
  static thread_local std::string text;
  text.clear();
  for (const auto& race : fake::device(ordinal).races()) text += race.text + "\n";
  fake::device(ordinal).clearRaces();
  return text.c_str();
}
