#include "interop/command/plot/field.hpp"

#include "interop/command/plot/svg.hpp"

namespace cistern::command {

std::string Field::area(const Curve& curve, std::uint64_t Curve::Column::*up_to) const {
  const auto& columns = curve.columns();
  StepPath path(left, bottom);
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].*up_to == height) continue;
    height = columns[i].*up_to;
    path.across(xOf(i));
    path.upTo(yOf(height));
  }
  path.across(xOf(columns.size()));
  path.upTo(bottom);
  return path.closed();
}

// A column that ends higher than it began goes down to its least first, and any other up to its
// most.
std::string Field::line(const Curve& curve) const {
  const auto& columns = curve.columns();
  StepPath path(left, bottom);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Curve::Column& column = columns[i];
    if (column.least == before && column.most == before) continue;
    const bool rises = column.last >= before;
    path.across(xOf(i) + 0.5);
    path.upTo(yOf(rises ? column.least : column.most));
    path.upTo(yOf(rises ? column.most : column.least));
    path.upTo(yOf(column.last));
    before = column.last;
  }
  path.across(xOf(columns.size()));
  return path.open();
}

}  // namespace cistern::command
