#include "interop/command/plot/field.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

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

namespace {

std::string tenths(std::int64_t number) {
  const std::string whole = fmt::format("{}{}", number < 0 ? "-" : "", std::abs(number) / 10);
  return number % 10 == 0 ? whole : fmt::format("{}.{}", whole, std::abs(number) % 10);
}

std::int64_t inTenths(double value) { return std::llround(value * 10); }

/// Characters that no XML may have.
constexpr std::string_view kNoCharacters[] = {"\xef\xbf\xbe", "\xef\xbf\xbf"};

std::string_view entityFor(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const std::string_view entity = entityFor(c);
    if (entity.empty()) {
      result += c;
    } else {
      result += entity;
    }
  }
  for (const std::string_view none : kNoCharacters) {
    for (std::size_t at; (at = result.find(none)) != std::string::npos;) {
      result.replace(at, none.size(), "\xef\xbf\xbd");  // the one that stands for such
    }
  }
  return result;
}

std::string coordinate(double value) { return tenths(inTenths(value)); }

StepPath::StepPath(double x, double y)
    : x_(inTenths(x)),
      y_(inTenths(y)),
      written_x_(x_),
      text_(fmt::format("M{} {}", tenths(x_), tenths(y_))) {}

// Lines across add up, and are written when the path turns.
void StepPath::across(double to_x) { x_ = inTenths(to_x); }

void StepPath::upTo(double to_y) {
  const std::int64_t before = std::exchange(y_, inTenths(to_y));
  if (y_ == before) return;
  text_ += toEnd() + 'v' + tenths(y_ - before);
  written_x_ = x_;
}

std::string StepPath::toEnd() const {
  return x_ == written_x_ ? "" : 'h' + tenths(x_ - written_x_);
}

}  // namespace cistern::command
