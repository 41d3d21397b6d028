#include "metrics/space_table.hpp"

namespace terrace::metrics {
namespace {

constexpr std::string_view other = "other";

} // namespace

void space_probe::hit(tier_kind tier, uint64_t tokens) noexcept {
  if (auto i = static_cast<size_t>(tier); i < hit_tokens_.size())
    hit_tokens_[i].add(tokens);
}

void space_probe::collect(const labels& series, sample_sink& sink) const {
  sink.counter("terrace_space_asked_tokens_total", "Tokens of prefixes looked up or loaded.", series,
               static_cast<double>(asked_tokens_.value()));
  for (size_t i = 0; i < hit_tokens_.size(); ++i) {
    if (i > static_cast<size_t>(remote_tiers.front()) && hit_tokens_[i].value() == 0)
      continue; // few groups have several
    sink.counter("terrace_space_hit_tokens_total", "Tokens of them that were found, by tier.",
                 with(series, "tier", to_string(static_cast<tier_kind>(i))),
                 static_cast<double>(hit_tokens_[i].value()));
  }
  sink.counter("terrace_space_loaded_bytes_total",
               "Bytes that loads copied to clients; what these read in place is not counted.", series,
               static_cast<double>(loaded_bytes_.value()));
  sink.counter("terrace_space_stored_bytes_total", "Bytes of new objects stored by clients.", series,
               static_cast<double>(stored_bytes_.value()));
}

std::shared_ptr<space_probe> space_table::probe(const std::string& group, std::string_view name) {
  std::lock_guard guard(mutex_);
  auto label = printable_label(name);
  auto found = probes_.find({group, label});
  if (found != probes_.end())
    return found->second;
  if (label != other && named_ < named_max_)
    ++named_;
  else
    label = other;
  auto& probe = probes_[{group, label}];
  if (!probe)
    probe = std::make_shared<space_probe>();
  return probe;
}

space_table::token_totals space_table::totals(const std::string& group) const {
  std::lock_guard guard(mutex_);
  token_totals sum;
  for (const auto& [key, probe] : probes_) {
    if (key.first != group)
      continue;
    sum.asked += probe->asked_tokens();
    for (size_t i = 0; i < sum.hit.size(); ++i)
      sum.hit[i] += probe->hit_tokens(static_cast<tier_kind>(i));
  }
  return sum;
}

void space_table::collect(sample_sink& sink) const {
  std::lock_guard guard(mutex_);
  for (const auto& [key, probe] : probes_)
    probe->collect({{"group", key.first}, {"space", key.second}}, sink);
}

} // namespace terrace::metrics
