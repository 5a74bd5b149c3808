// A sparse matrix of which everything is known: 4 on the diagonal, -1 beside it.
#pragma once

#include <vector>

namespace cistern::test {

inline constexpr int kRows = 1000;

struct Tridiagonal {
  std::vector<int> offsets{0}, columns;
  std::vector<float> values;

  Tridiagonal() {
    for (int row = 0; row < kRows; ++row) {
      for (int column = row - 1; column <= row + 1; ++column) {
        if (column < 0 || column >= kRows) continue;
        columns.push_back(column);
        values.push_back(column == row ? 4.0F : -1.0F);
      }
      offsets.push_back(int(columns.size()));
    }
  }

  std::vector<float> times(const std::vector<float>& x) const {
    std::vector<float> y(x.size(), 0.0F);
    for (std::size_t row = 0; row < x.size(); ++row) {
      for (int i = offsets[row]; i < offsets[row + 1]; ++i) {
        y[row] += values[std::size_t(i)] * x[std::size_t(columns[std::size_t(i)])];
      }
    }
    return y;
  }
};

}  // namespace cistern::test
