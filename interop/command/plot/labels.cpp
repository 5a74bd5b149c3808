#include "interop/command/plot/labels.hpp"

#include <algorithm>
#include <numeric>

namespace cistern::command {
namespace {

/// Labels that touch. Each wants its place in the row to begin at `wanted` / `count`, the mean of
/// what its labels want.
struct Row {
  double wanted = 0;  ///< of all its labels, as if each were the first
  std::size_t count = 0;

  double begin(double height, double top, double bottom) const {
    const double last = std::max(top, bottom - height * double(count - 1));
    return std::clamp(wanted / double(count), top, last);
  }
};

}  // namespace

// From the top down, each is a row of its own at first, and joins the row above it where it would
// overlap that.
std::vector<double> spread(const std::vector<double>& wanted, double height, double top,
                           double bottom) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  std::vector<Row> rows;
  for (const std::size_t label : order) {
    Row row{wanted[label], 1};
    while (!rows.empty() &&
           rows.back().begin(height, top, bottom) + height * double(rows.back().count) >
               row.begin(height, top, bottom)) {
      const Row above = rows.back();
      rows.pop_back();
      const double shift = height * double(above.count) * double(row.count);
      row = {above.wanted + row.wanted - shift, above.count + row.count};
    }
    rows.push_back(row);
  }
  std::vector<double> places(wanted.size());
  auto label = order.begin();
  for (const Row& row : rows) {
    const double begin = row.begin(height, top, bottom);
    for (std::size_t i = 0; i < row.count; ++i) places[*label++] = begin + height * double(i);
  }
  return places;
}

}  // namespace cistern::command
