// The parts of the model: each is one analysis of a recording, in a file of its name, as the JSON
// that the page draws. docs/report.md tells what each part means; model.hpp puts them together.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/report/study.hpp"

namespace cistern::report {

/// bytes_over_time.cpp: the bytes over time, and what other policies would have reserved.
nlohmann::json timeline(const Study& study);
/// stacked.cpp: the bytes asked for over time, by pool, stream, label and call site.
nlohmann::json stacked(const Study& study);
/// heat.cpp: how full each part of the memory is over time; null without addresses.
nlohmann::json heat(const Study& study);
/// flame.cpp: bytes by stack at the peak, at the end, and of the blocks that live longest.
nlohmann::json flame(const Study& study);
/// histograms.cpp: "sizes", "lifetimes" and "size_life" go into `model`.
void addHistograms(const Study& study, nlohmann::json& model);
/// leaks.cpp: the stacks whose living bytes keep growing, fastest first.
nlohmann::json leaks(const Study& study);
/// label_peaks.cpp: for each label the most bytes that it and the labels within it held at once.
nlohmann::json labelPeaks(const Study& study);
/// memory_calls.cpp: how often memory was taken from the device and given back, and how much.
nlohmann::json calls(const Study& study);
/// memory_calls.cpp: the last call that made, moved or gave back memory; null if the recording does
/// not tell of any memory.
nlohmann::json rest(const Study& study);

}  // namespace cistern::report
