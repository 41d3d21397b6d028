// Rounds, clocks and the lines that a benchmark prints.
#pragma once

#include "bench/statistics.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace terrace::bench {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What `work` takes, in seconds.
template <class F>
double seconds_of(F&& work) {
  double begin = seconds_now();
  work();
  return seconds_now() - begin;
}

/// Calls `work` `count` times; microseconds of each.
template <class F>
std::vector<double> microseconds_each(int count, F&& work) {
  std::vector<double> samples;
  samples.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    samples.push_back(seconds_of(work) * 1e6);
  return samples;
}

enum class better { lower, higher };

/// One line of the result.
struct figure {
  std::string name;
  std::string unit;
  double value = 0;
  double limit = 0;
  double floor = 0; ///< of the ratio; of the value where `absolute`
  double aim = 0;
  int rounds = 0;
  better direction = better::lower;
  bool absolute = false; ///< the bounds hold for the value (a limit of 0 has no ratio)
  bool bounded = true;   ///< false: reported for comparison, without floor and aim
  std::optional<double> spread =
      {}; ///< of what is judged, the ratio or else the value: half of the rounds are within so much of each other
  std::optional<std::pair<double, double>> range = {}; ///< least and most of the value, over the rounds
  std::optional<double> ratio_of_rounds =
      {}; ///< the median of their ratios: what slows a round slows both of its sides

  /// `ratio_of_rounds`, or else value / limit. None: there is no limit, or the value is judged.
  std::optional<double> ratio() const;

  /// "aim", "floor" or "below floor"; "undecided" when the spread is wider than the distance from the floor; "" when
  /// unbounded. The aim is reached when the spread is not wider than the distance from it either.
  std::string_view verdict() const;
};

/// The figure with the medians of its rounds, their spread and their range. `values[n]` and `limits[n]` are of the same
/// round; no limits: it has none.
figure of_rounds(figure f, const std::vector<double>& values, const std::vector<double>& limits = {});

std::string to_json(const figure& f);

/// All figures, columns aligned.
std::string to_table(const std::vector<figure>& figures);

/// How many figures reach their floor, how many do not, and how many decide nothing: one line.
std::string to_summary(const std::vector<figure>& figures);

/// What was measured on both sides of a comparison: [which value][round].
struct sides {
  std::vector<std::vector<double>> values;
  std::vector<std::vector<double>> limits;

  /// The figure of one of the values and the limit beside it.
  figure judged(figure f, size_t which = 0) const;
};

/// Measures the two sides in turns, `rounds` times, so that whatever the machine does besides meets both. A side gives
/// any number of values a round.
using side = std::function<std::vector<double>()>;
sides interleave(int rounds, const side& value, const side& limit);

/// Prints to standard error and ends the program: a benchmark that cannot run has no figure.
[[noreturn]] void give_up(std::string_view why);

/// The value of a result, or the end of the program.
template <class R>
auto must(R&& r, std::string_view what) {
  if (!r)
    give_up(std::string(what) + ": " + r.error().text);
  if constexpr (!std::is_void_v<typename std::remove_cvref_t<R>::value_type>)
    return std::move(*r);
}

} // namespace terrace::bench
