// The comment that gives a trace in Cistern's own format its name, and says what it records:
//   # {"name": "gpt2", "stream_uses": "recorded"}
//   # {"name": "train", "recording": 1, "device": "cuda:0", "first_recorded": 41, "dump": true}
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// The version of the lines that only a recording has.
inline constexpr std::uint64_t kRecordingVersion = 1;

struct Header {
  std::optional<std::string> name;  ///< none in a comment that has other keys alone
  StreamUses stream_uses = StreamUses::kNotSaid;
  bool recording = false;            ///< the file is a recording, of kRecordingVersion
  bool dump = false;                 ///< it was written where a request found no memory
  std::string device;                ///< empty: not known
  std::uint64_t first_recorded = 0;  ///< so many events at the beginning tell what was there before
  std::map<std::uint64_t, std::uint64_t> stream_names;  ///< the program's own, by stream number
};

/// What "stream_uses" says of them; empty where there is nothing to say.
std::string_view wordFor(StreamUses uses);

/// What a JSON object says of a trace: the string under "name", or else "workload", and the rest of
/// Header; none if it has no such key. A comment that is not JSON, or is longer than 64 KiB, is
/// nobody's error. `on_bad` is told what was expected of a key whose value is none that Cistern
/// writes. "device", "first_recorded", "dump" and "stream_names" count beside "recording" only.
std::optional<Header> headerInComment(std::string_view comment,
                                      const std::function<void(const std::string&)>& on_bad);

}  // namespace cistern::recording
