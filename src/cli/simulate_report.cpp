#include "cli/simulate_report.hpp"

#include "cli/table.hpp"
#include "cli/units.hpp"

namespace terrace::cli {

namespace {

using counts = simulate::cache_counts;

std::string percent(double ratio) { return fmt::format("{:.1f}", ratio * 100); }

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

double simulate_summary::hit_ratio(double chunks) const {
  return input_tokens == 0 ? 0 : chunks * chunk_tokens / static_cast<double>(input_tokens);
}

double simulate_summary::accesses_per_second(size_t policy) const {
  uint64_t served = 0;
  double seconds = 0;
  for (size_t i = 0; i < capacities.size(); ++i) {
    served += cell(policy, i).served;
    seconds += cell(policy, i).seconds;
  }
  return seconds > 0 ? static_cast<double>(served) / seconds : 0;
}

std::string format_summary(const simulate_summary& s) {
  std::vector<column> columns{{"hit ratio in %", align::left}};
  for (const simulated_capacity& capacity : s.capacities)
    columns.push_back({capacity.label});
  columns.push_back({"accesses/s"});
  table ratios(std::move(columns));
  std::vector<std::string> chunks{"chunks"}, bound{"Belady"};
  for (const simulated_capacity& capacity : s.capacities) {
    chunks.push_back(format_count(capacity.chunks));
    bound.push_back(percent(s.hit_ratio(static_cast<double>(capacity.belady_hits))));
  }
  ratios.add(std::move(chunks));
  for (size_t policy = 0; policy < s.policies.size(); ++policy) {
    std::vector<std::string> row{s.policies[policy]};
    for (size_t i = 0; i < s.capacities.size(); ++i)
      row.push_back(percent(s.hit_ratio(s.cell(policy, i).mean(&simulate::cache_counts::hits))));
    row.push_back(fmt::format("{:.2f} M", s.accesses_per_second(policy) / 1e6));
    ratios.add(std::move(row));
  }
  ratios.add(std::move(bound));
  return format_facts({{"trace", fmt::format("{}, {} requests, {} input tokens", s.trace,
                                             format_count(s.requests), format_count(s.input_tokens))},
                       {"chunks", fmt::format("{} of {} tokens, {} distinct, {} each",
                                              format_count(s.accesses), s.chunk_tokens,
                                              format_count(s.distinct_chunks), format_bytes(s.object_bytes))},
                       {"infinite cache", percent(s.hit_ratio(static_cast<double>(s.infinite_hits))) +
                                              " % of the input tokens hit"}}) +
         "\n" + ratios.to_string();
}

json to_json(const simulate_summary& s) {
  json capacities = json::array(), policies = json::array();
  for (const simulated_capacity& c : s.capacities)
    capacities.push_back({{"capacity", c.label},
                          {"bytes", c.arena_bytes},
                          {"chunks", c.chunks},
                          {"share", share(c.chunks, s.distinct_chunks)},
                          {"belady_hit_ratio", s.hit_ratio(static_cast<double>(c.belady_hits))}});
  for (size_t policy = 0; policy < s.policies.size(); ++policy) {
    json cells = json::array();
    for (size_t i = 0; i < s.capacities.size(); ++i) {
      const simulated_cell& cell = s.cell(policy, i);
      cells.push_back({{"capacity", s.capacities[i].label},
                       {"hit_ratio", s.hit_ratio(cell.mean(&counts::hits))},
                       {"hit_tokens", cell.mean(&counts::hits) * s.chunk_tokens},
                       {"chunks_stored", cell.mean(&counts::stored)},
                       {"chunks_evicted", cell.mean(&counts::evicted)},
                       {"chunks_without_room", cell.mean(&counts::no_room)},
                       {"chunks_behind_holes", cell.mean(&counts::behind_hole)},
                       {"seeds", cell.runs.size()},
                       {"seconds", cell.seconds}});
    }
    policies.push_back({{"policy", s.policies[policy]},
                        {"accesses_per_second", s.accesses_per_second(policy)},
                        {"cells", std::move(cells)}});
  }
  return {{"trace", s.trace},
          {"requests", s.requests},
          {"input_tokens", s.input_tokens},
          {"chunk_tokens", s.chunk_tokens},
          {"object_bytes", s.object_bytes},
          {"accesses", s.accesses},
          {"distinct_chunks", s.distinct_chunks},
          {"infinite_cache_hit_ratio", s.hit_ratio(static_cast<double>(s.infinite_hits))},
          {"capacities", std::move(capacities)},
          {"policies", std::move(policies)}};
}

simulate::line_plot to_plot(const simulate_summary& s) {
  simulate::line_plot plot;
  plot.title = "Hit ratio over capacity";
  plot.subtitle = fmt::format("{}: {} requests, {} distinct chunks of {} tokens", s.trace,
                              format_count(s.requests), format_count(s.distinct_chunks), s.chunk_tokens);
  plot.x_title = "capacity (logarithmic)";
  plot.y_title = "hit tokens of all input tokens";
  simulate::line belady{"Belady", simulate::line_style::bound, {}};
  simulate::line infinite{"infinite cache", simulate::line_style::bound, {}};
  for (const simulated_capacity& c : s.capacities) {
    plot.ticks.push_back({static_cast<double>(c.chunks), c.label});
    belady.values.push_back(s.hit_ratio(static_cast<double>(c.belady_hits)));
    infinite.values.push_back(s.hit_ratio(static_cast<double>(s.infinite_hits)));
  }
  for (size_t policy = 0; policy < s.policies.size(); ++policy) {
    simulate::line drawn{s.policies[policy], simulate::line_style::plain, {}};
    for (size_t i = 0; i < s.capacities.size(); ++i)
      drawn.values.push_back(s.hit_ratio(s.cell(policy, i).mean(&simulate::cache_counts::hits)));
    plot.lines.push_back(std::move(drawn));
  }
  plot.lines.push_back(std::move(belady));
  plot.lines.push_back(std::move(infinite));
  return plot;
}

} // namespace terrace::cli
