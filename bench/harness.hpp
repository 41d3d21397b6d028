// Rounds, clocks and the lines that a benchmark prints.
#pragma once

#include "bench/statistics.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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

  std::optional<double> ratio() const;
  std::string_view verdict() const; ///< "aim", "floor", "below floor", or "" when unbounded
};

std::string to_json(const figure& f);

/// All figures, columns aligned.
std::string to_table(const std::vector<figure>& figures);

/// Measures the two sides in turns, `rounds` times, so that whatever the machine does besides meets both. A side gives
/// any number of values a round; the answer is their medians over the rounds.
struct sides {
  std::vector<double> value;
  std::vector<double> limit;
};
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
