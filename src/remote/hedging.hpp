// When a request to a store is sent a second time (hedged): when its answer has not begun after the time within which the last answers
// of its kind began, but for one in twenty (Dean and Barroso, "The Tail at Scale", 2013). A few slow answers then make no load late.
//
//   hedging policy;
//   auto due = policy.began(kind, now, limit);  // unless the answer has begun before that,
//   if (policy.take())                          // then, and if there is one to spare,
//     ...                                       // the request is sent again
//   policy.answered(kind, took);
//
// A store that is slow as a whole makes the delay longer, and is not asked much more: a second request takes a token, and a token comes
// with each twentieth request. Pure, one thread; times are passed in.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace terrace::remote {

class hedging {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class kind : uint8_t { head, get };

  struct options {
    std::chrono::milliseconds delay_min{10}; ///< a new connection takes about as long
    uint32_t requests_for_token = 20;        ///< so at most 5 % of the requests are sent again
    uint32_t tokens_max = 4;                 ///< that are kept, for answers that are late together
  };
  static constexpr size_t answers_min = 20; ///< of a kind, before its requests are sent again
  static constexpr size_t answers_kept = 128;

  hedging() : hedging(options{}) {}
  explicit hedging(const options& o) : options_(o) {}

  /// A request begins that has `limit` in all. Returns when it may be sent again: half of the limit is left then at least. nullopt:
  /// too few answers are known.
  std::optional<time_point> began(kind what, time_point now, std::chrono::nanoseconds limit);
  /// The answer began after this time. If it never came: the time that it was waited for.
  void answered(kind what, std::chrono::nanoseconds took);
  /// False: there is no token.
  bool take();

 private:
  struct answers {
    std::array<std::chrono::nanoseconds, answers_kept> took{}; ///< of the last ones
    size_t count = 0;
  };
  std::chrono::nanoseconds slowest_but_one_in_twenty(const answers& of) const;

  options options_;
  std::array<answers, 2> of_kinds_{};
  uint32_t requests_ = 0; ///< that pay for tokens
};

inline std::optional<hedging::time_point> hedging::began(kind what, time_point now,
                                                         std::chrono::nanoseconds limit) {
  requests_ = std::min(requests_ + 1, options_.tokens_max * options_.requests_for_token);
  const answers& known = of_kinds_[static_cast<size_t>(what)];
  if (known.count < answers_min)
    return std::nullopt;
  const auto delay = std::max<std::chrono::nanoseconds>(slowest_but_one_in_twenty(known), options_.delay_min);
  return now + std::min(delay, limit / 2);
}

inline void hedging::answered(kind what, std::chrono::nanoseconds took) {
  answers& known = of_kinds_[static_cast<size_t>(what)];
  known.took[known.count++ % answers_kept] = took;
}

inline bool hedging::take() {
  if (requests_ < options_.requests_for_token)
    return false;
  requests_ -= options_.requests_for_token;
  return true;
}

inline std::chrono::nanoseconds hedging::slowest_but_one_in_twenty(const answers& of) const {
  auto sorted = of.took;
  const size_t count = std::min(of.count, answers_kept), slower = count / 20;
  const auto place = sorted.begin() + static_cast<ptrdiff_t>(count - 1 - slower);
  std::nth_element(sorted.begin(), place, sorted.begin() + static_cast<ptrdiff_t>(count));
  return *place;
}

} // namespace terrace::remote
