// A recording that has something of everything, for the tests of what is written.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "tests/recording/recording_testing.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::recording::testing {

inline Recording sampleRecording() {
  return parsed(
      "# {\"name\": \"tiny\", \"recording\": 1, \"device\": \"cuda:1\", \"first_recorded\": 2}\n"
      "# a note\n"
      "N \"inner \\\"quoted\\\"\" \"a.py\" 7\n"
      "N \"outer\" \"\" 0\n"
      "S 0 2\nS 1 1\n"
      "L 0 \"forward\"\nL 1 \"layer 0\"\n"
      "P 0 7\n"
      "r alloc 100000 65536 0 0 0\n"
      "a 1000 0 0 100000 2 2 0\n"
      "r map 200000 4096 0 1 5\n"
      "a 600 3 5 200000 1 0 1\n"
      "t 10 \"step 1\"\n"
      "f 0 7\n"
      "a 70 0 1 100400 0 0 0\n"
      "e 0 3\n"
      "r map 400000 8192 0 1 0 host\nr unmap 400000 4096 0 1 0 host\n"
      "o 4096 0 1 1 1 0 {\"requested\":4096,\"device_free\":12,\"unused\":[{\"why\":\"too_small\","
      "\"bytes\":1000,\"largest\":600}],\"advice\":\"less\"}\n");
}

inline std::string contentOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace cistern::recording::testing
