// Suggestions for mistyped words.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace terrace {

namespace detail {

/// Optimal string alignment: insertions, deletions, substitutions and transpositions cost 1 each.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

} // namespace detail

/// The candidate with the smallest edit distance to `word` (with transpositions; Damerau 1964), or empty if
/// even that one differs in more than a third of its letters and so is no plausible typing mistake. The first
/// one wins a tie.
inline std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t word_max = 128; // the distance takes quadratic time; longer words are no typing mistakes
  std::string_view best;
  size_t best_distance = std::numeric_limits<size_t>::max();
  for (auto candidate : candidates) {
    if (word.size() > word_max)
      break;
    auto distance = detail::edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best_distance <= std::max(word.size(), best.size()) / 3 ? best : std::string_view{};
}

} // namespace terrace
