// Rounds, clocks and the output lines of benchmarks.
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

/// Returns the seconds that `work` takes.
template <class F>
double seconds_of(F&& work) {
  double begin = seconds_now();
  work();
  return seconds_now() - begin;
}

/// Calls `work` `count` times; returns the microseconds of each.
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
  double floor = 0; ///< floor of the ratio, or of the value if `absolute`
  double aim = 0;
  int rounds = 0;
  better direction = better::lower;
  bool absolute = false; ///< the bounds apply to the value, because a limit of 0 has no ratio
  bool bounded = true;   ///< false: reported for comparison, without floor and aim
  /// Spread of the judged number, the ratio or else the value: half of the rounds are within this distance of
  /// each other.
  std::optional<double> spread = {};
  std::optional<std::pair<double, double>> range = {}; ///< least and greatest value over the rounds
  /// The median of the rounds' ratios: a slow round slows both of its sides.
  std::optional<double> ratio_of_rounds = {};

  /// Returns `ratio_of_rounds`, or else value / limit; nothing if there is no limit or the value is judged.
  std::optional<double> ratio() const;

  /// Returns "aim", "floor" or "below floor"; "undecided" if the spread is wider than the distance from the
  /// floor; "" if unbounded. The aim counts as reached only if the spread is not wider than the distance from
  /// it.
  std::string_view verdict() const;
};

/// Returns the figure with the medians of its rounds, their spread and their range. `values[n]` and
/// `limits[n]` are of the same round; empty `limits`: there is no limit.
figure of_rounds(figure f, const std::vector<double>& values, const std::vector<double>& limits = {});

std::string to_json(const figure& f);

/// Formats all figures with aligned columns.
std::string to_table(const std::vector<figure>& figures);

/// Returns one line: how many figures reach their floor, how many do not, and how many decide nothing.
std::string to_summary(const std::vector<figure>& figures);

/// Measurements of both sides of a comparison: [which value][round].
struct sides {
  std::vector<std::vector<double>> values;
  std::vector<std::vector<double>> limits;

  /// Returns the figure of one of the values with its limit.
  figure judged(figure f, size_t which = 0) const;
};

/// Measures the two sides in turns, `rounds` times, so that disturbances by the machine affect both. A side
/// returns any number of values per round.
using side = std::function<std::vector<double>()>;
sides interleave(int rounds, const side& value, const side& limit);

/// Prints to standard error and ends the program: a benchmark that cannot run has no figure.
[[noreturn]] void give_up(std::string_view why);

/// Returns the value of a result, or ends the program.
template <class R>
auto must(R&& r, std::string_view what) {
  if (!r)
    give_up(std::string(what) + ": " + r.error().text);
  if constexpr (!std::is_void_v<typename std::remove_cvref_t<R>::value_type>)
    return std::move(*r);
}

} // namespace terrace::bench
