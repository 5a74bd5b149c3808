// The coarse map: how full each part of the memory is over time. Each column shows the moment at
// which the program asks for most within it.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "interop/report/address_rows.hpp"
#include "interop/report/analyses.hpp"
#include "interop/report/base64.hpp"
#include "interop/report/reserved.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;
using recording::Event;

constexpr std::size_t kHeatRows = 256;
constexpr std::size_t kHeatColumns = 512;

/// The bytes of each row that something takes, and their course as one byte a row and column.
class Fullness {
 public:
  explicit Fullness(const AddressRows& rows) : rows_(rows), now_(rows.count()) {}

  void add(std::uint64_t address, std::uint64_t bytes) {
    rows_.forRows(address, bytes, [&](std::size_t row, std::uint64_t n) { now_[row] += n; });
  }
  void remove(std::uint64_t address, std::uint64_t bytes) {
    rows_.forRows(address, bytes,
                  [&](std::size_t row, std::uint64_t n) { now_[row] -= std::min(n, now_[row]); });
  }
  void column() {
    for (const std::uint64_t bytes : now_) {
      const double part = 255 * double(bytes) / double(rows_.rowBytes());
      course_ +=
          char(std::uint8_t(std::min(std::ceil(part), 255.0)));  // never 0 where there is anything
    }
  }
  std::string text() const { return base64(course_); }

 private:
  const AddressRows& rows_;
  std::vector<std::uint64_t> now_;
  std::string course_;
};

class HeatMap {
 public:
  explicit HeatMap(const Study& study)
      : study_(study),
        rows_(study, kHeatRows),
        columns_(study.recorded(), kHeatColumns),
        peaks_(peaksOf(study.recorded(), study.inUse(), columns_)),
        in_use_(study.inUse(Until::kEnded)),
        used_(rows_),
        mapped_(rows_) {}

  json draw() {
    std::uint32_t number = 0;
    for (const std::uint32_t done : peaks_.done) {
      for (; number < done; ++number) apply(number);
      used_.column();
      mapped_.column();
    }
    return {{"rows", rows_.count()},
            {"columns", columns_.count()},
            {"edges", columns_.edges()},
            {"row_bytes", rows_.rowBytes()},
            {"segments", partsJson()},
            {"used", used_.text()},
            {"mapped", study_.recorded().has_reserved ? json(mapped_.text()) : json()}};
  }

 private:
  void apply(std::uint32_t number) {
    const Event& event = study_.recorded().events[number];
    in_use_.apply(
        number, [&](const Life& life) { used_.add(life.address, takenBytes(life.bytes)); },
        [&](const Life& life) { used_.remove(life.address, takenBytes(life.bytes)); });
    const std::uint64_t address = study_.recorded().placeOf(event).address;
    if (takesMemory(event)) mapped_.add(address, event.value);
    if (givesMemoryBack(event)) mapped_.remove(address, event.value);
  }
  json partsJson() const {
    json parts = json::array();
    for (const AddressPart& part : rows_.parts())
      parts.push_back({part.address, part.bytes, part.first_row, part.rows});
    return parts;
  }

  const Study& study_;
  const AddressRows rows_;
  const Columns columns_;
  const ColumnPeaks peaks_;
  InUse in_use_;
  Fullness used_, mapped_;
};

}  // namespace

json heat(const Study& study) {
  if (!study.recorded().has_addresses || study.lives.empty()) return nullptr;
  return HeatMap(study).draw();
}

}  // namespace cistern::report
