#include "metrics/history.hpp"

#include <nlohmann/json.hpp>

namespace terrace::metrics {

/// Adds up what belongs to a point.
class history::reading_sink final : public sample_sink {
 public:
  explicit reading_sink(point& to) : to_(to) {}

  void counter(std::string_view name, std::string_view, const labels& series, double value) override {
    if (name == "terrace_space_asked_tokens_total")
      to_.asked += value;
    else if (name == "terrace_space_hit_tokens_total")
      add(series, &level::hit, value);
  }

  void gauge(std::string_view name, std::string_view, const labels& series, double value) override {
    if (name == "terrace_tier_used_bytes")
      add(series, &level::used, value);
    else if (name == "terrace_tier_capacity_bytes")
      add(series, &level::capacity, value);
  }

  void histogram(std::string_view, std::string_view, const labels&, const histogram_snapshot&) override {}

 private:
  void add(const labels& series, double level::*what, double value) {
    for (const auto& [label, text] : series)
      if (label == "tier")
        if (auto tier = tier_named(text))
          to_.tiers[static_cast<size_t>(*tier)].*what += value;
  }

  point& to_;
};

void history::add(int64_t time_ms, const std::function<void(sample_sink&)>& sources) {
  point now{.time_ms = time_ms};
  reading_sink sink(now);
  sources(sink);
  if (points_.size() == points_max)
    points_.pop_front();
  points_.push_back(now);
}

std::string history::text() const {
  auto points = nlohmann::json::array();
  for (const point& at : points_) {
    auto tiers = nlohmann::json::object();
    for (tier_kind tier : all_tiers)
      if (const level& of = at.tiers[static_cast<size_t>(tier)]; of.capacity > 0)
        tiers[to_string(tier)] = {{"used", of.used}, {"capacity", of.capacity}, {"hit", of.hit}};
    points.push_back({{"time_ms", at.time_ms}, {"asked", at.asked}, {"tiers", tiers}});
  }
  return nlohmann::json{{"points", points}}.dump();
}

} // namespace terrace::metrics
