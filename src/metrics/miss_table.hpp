// Missed tokens per client and reason, with a number of series that clients cannot increase without limit.
#pragma once

#include "base/miss_reason.hpp"
#include "metrics/samples.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace terrace::metrics {

/// Clients are counted by their names. The first `named_max` names that miss something have their own series for the
/// lifetime of the daemon; all further ones share "other". Thread-safe.
class miss_table {
 public:
  static constexpr size_t named_max = 64;

  /// A client chooses its name: see `printable_label`.
  void missed(const std::string& group, std::string_view client, miss_reason why, uint64_t tokens);
  /// Reasons without a token have no series.
  void collect(sample_sink& sink) const;

 private:
  using by_reason = std::array<uint64_t, miss_reasons>;

  mutable std::mutex mutex_;
  size_t named_ = 0;
  std::map<std::pair<std::string, std::string>, by_reason> tokens_; ///< by group and client
};

} // namespace terrace::metrics
