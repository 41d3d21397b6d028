#include "metrics/miss_table.hpp"

#include "base/printable.hpp"

namespace terrace::metrics {

std::string printable_label(std::string_view name) {
  constexpr size_t bytes_max = 100;
  std::string label = printable(name.substr(0, 4 * bytes_max));
  size_t kept = 0;
  for (size_t next = 0; next <= bytes_max && next <= label.size();) {
    kept = next;
    size_t bytes = first_character(std::string_view(label).substr(next)).bytes;
    if (bytes == 0)
      break; // the end
    next += bytes;
  }
  label.resize(kept);
  return label;
}

void miss_table::missed(const std::string& group, std::string_view client, miss_reason why, uint64_t tokens) {
  constexpr std::string_view other = "other";
  auto label = printable_label(client);
  std::lock_guard guard(mutex_);
  auto place = tokens_.find({group, label});
  if (place == tokens_.end()) {
    if (label != other && named_ < named_max)
      ++named_;
    else
      label = other;
    place = tokens_.try_emplace({group, label}).first;
  }
  place->second[static_cast<size_t>(why)] += tokens;
}

void miss_table::collect(sample_sink& sink) const {
  std::lock_guard guard(mutex_);
  for (const auto& [name, counts] : tokens_)
    for (size_t why = 0; why < counts.size(); ++why)
      if (counts[why] != 0)
        sink.counter(
            "terrace_client_miss_tokens_total",
            "Missed tokens by the client's name: of the first 64 names that missed any, and of \"other\".",
            {{"group", name.first},
             {"client", name.second},
             {"reason", std::string(to_string(static_cast<miss_reason>(why)))}},
            static_cast<double>(counts[why]));
}

} // namespace terrace::metrics
