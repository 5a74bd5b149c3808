// For each label the most bytes that were held at once by what was allocated within it.
#include <algorithm>

#include "interop/report/analyses.hpp"

namespace cistern::report {
namespace {

struct LabelBytes {
  std::uint64_t now = 0, peak = 0, at_us = 0;
};

/// The label and those around it.
template <class Each>
void withOuter(const recording::Recording& recording, std::uint32_t label, Each each) {
  for (; label != 0; label = recording.labels[label].parent) each(label);
}

}  // namespace

nlohmann::json labelPeaks(const Study& study) {
  const recording::Recording& recorded = study.recorded();
  std::vector<LabelBytes> labels(recorded.labels.size());
  InUse in_use = study.inUse();
  for (std::uint32_t number = 0; number < study.events(); ++number) {
    const std::uint64_t now_us = recorded.events[number].time_us;
    const auto enter = [&](const Life& life) {
      withOuter(recorded, life.label, [&](std::uint32_t label) {
        LabelBytes& bytes = labels[label];
        bytes.now += life.bytes;
        if (bytes.now > bytes.peak) bytes = {bytes.now, bytes.now, now_us};
      });
    };
    const auto leave = [&](const Life& life) {
      withOuter(recorded, life.label,
                [&](std::uint32_t label) { labels[label].now -= life.bytes; });
    };
    in_use.apply(number, enter, leave);
  }
  nlohmann::json rows = nlohmann::json::array();
  for (std::uint32_t label = 1; label < labels.size(); ++label) {
    if (labels[label].peak == 0) continue;
    rows.push_back({{"label", label},
                    {"peak", labels[label].peak},
                    {"at_us", labels[label].at_us},
                    {"end", labels[label].now}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a["peak"].template get<std::uint64_t>() > b["peak"].template get<std::uint64_t>();
  });
  return rows;
}

}  // namespace cistern::report
