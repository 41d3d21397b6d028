#include "cli/simulate_report.hpp"

#include "cli/simulate/tier_cache.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <algorithm>

namespace terrace::cli {

namespace {

using cell_counts = simulate::cache_counts;

constexpr std::string_view default_policy = "kmg"; // this policy is drawn bold

std::string percent(double ratio) { return fmt::format("{:.1f}", ratio * 100); }

double ratio_of(double part, double whole) { return whole == 0 ? 0 : part / whole; }

double host_hits(const simulated_cell& cell) {
  return cell.mean(&cell_counts::hits) - cell.mean(&cell_counts::disk_hits);
}

/// Formats one column per capacity. `cell_text(cell)` makes a cell; `bound_text(capacity)` makes the last
/// line, unless it is null.
template <class CellText, class BoundText>
std::string cells_table(const simulate_summary& s, const std::string& title, bool with_rate,
                        CellText cell_text, BoundText bound_text) {
  std::vector<column> columns{{title, align::left}};
  for (const simulated_capacity& capacity : s.capacities)
    columns.push_back({capacity.label});
  if (with_rate)
    columns.push_back({"accesses/s"});
  table cells(std::move(columns));
  for (size_t policy = 0; policy < s.policies.size(); ++policy) {
    std::vector<std::string> row{s.policies[policy]};
    for (size_t i = 0; i < s.capacities.size(); ++i)
      row.push_back(cell_text(s.cell(policy, i)));
    if (with_rate)
      row.push_back(fmt::format("{:.2f} M", s.accesses_per_second(policy) / 1e6));
    cells.add(std::move(row));
  }
  if constexpr (!std::is_null_pointer_v<BoundText>) {
    std::vector<std::string> bound{"Belady"};
    for (const simulated_capacity& capacity : s.capacities)
      bound.push_back(percent(s.hit_ratio(static_cast<double>(bound_text(capacity)))));
    cells.add(std::move(bound));
  }
  return cells.to_string();
}

std::string format_facts_of(const simulate_summary& s) {
  std::vector<std::pair<std::string, std::string>> facts{
      {"trace", fmt::format("{}, {}, {}", s.trace, format_counted(s.requests, "request"),
                            format_counted(s.input_tokens, "input token"))},
      {"chunks", fmt::format("{} of {}, {} distinct, {} each", format_count(s.accesses),
                             format_counted(s.chunk_tokens, "token"), format_count(s.distinct_chunks),
                             readable_bytes(s.object_bytes))},
      {"infinite cache",
       percent(s.hit_ratio(static_cast<double>(s.infinite_hits))) + " % of the input tokens hit"}};
  std::string host;
  for (const simulated_capacity& capacity : s.capacities)
    host += (host.empty() ? "" : ", ") + format_count(capacity.chunks);
  facts.emplace_back("capacities", host + " chunks" + (s.disk.empty() ? "" : " in host memory"));
  if (!s.disk.empty())
    facts.emplace_back("disk", s.disk);
  return format_facts(facts);
}

json cell_json(const simulate_summary& s, const simulated_cell& cell, bool with_disk) {
  double least = 1, most = 0;
  for (const cell_counts& run : cell.runs) {
    least = std::min(least, s.hit_ratio(static_cast<double>(run.hits)));
    most = std::max(most, s.hit_ratio(static_cast<double>(run.hits)));
  }
  json told{{"capacity", s.capacities[cell.capacity].label},
            {"hit_ratio", s.hit_ratio(cell.mean(&cell_counts::hits))},
            {"hit_ratio_min", least},
            {"hit_ratio_max", most},
            {"hit_tokens", cell.mean(&cell_counts::hits) * s.chunk_tokens},
            {"chunks_stored", cell.mean(&cell_counts::stored)},
            {"chunks_evicted", cell.mean(&cell_counts::evicted)},
            {"chunks_without_room", cell.mean(&cell_counts::no_room)},
            {"chunks_behind_holes", cell.mean(&cell_counts::behind_hole)}};
  if (with_disk) {
    told["host_hit_ratio"] = s.hit_ratio(host_hits(cell));
    told["disk_hit_ratio"] = s.hit_ratio(cell.mean(&cell_counts::disk_hits));
    told["chunks_promoted"] = cell.mean(&cell_counts::promoted);
    told["chunks_written_to_disk"] = cell.mean(&cell_counts::disk_written);
    told["chunks_evicted_from_disk"] = cell.mean(&cell_counts::disk_evicted);
    told["chunks_not_admitted_to_disk"] = cell.mean(&cell_counts::disk_refused);
  }
  told["runs"] = cell.runs.size();
  told["seconds"] = cell.seconds;
  return told;
}

} // namespace

double simulate_summary::hit_ratio(double chunks) const {
  return ratio_of(chunks * chunk_tokens, static_cast<double>(input_tokens));
}

double simulate_summary::accesses_per_second(size_t policy) const {
  uint64_t served = 0;
  double seconds = 0;
  for (size_t i = 0; i < capacities.size(); ++i) {
    served += cell(policy, i).served;
    seconds += cell(policy, i).seconds;
  }
  return ratio_of(static_cast<double>(served), seconds);
}

std::string format_summary(const simulate_summary& s) {
  std::string text =
      format_facts_of(s) + "\n" +
      cells_table(
          s, "hit ratio in %", true,
          [&](const simulated_cell& cell) { return percent(s.hit_ratio(cell.mean(&cell_counts::hits))); },
          [](const simulated_capacity& capacity) { return capacity.belady_hits; });
  if (s.disk.empty())
    return text;
  return text + "\n" +
         cells_table(
             s, "of these from host memory", false,
             [&](const simulated_cell& cell) { return percent(s.hit_ratio(host_hits(cell))); },
             [](const simulated_capacity& capacity) { return capacity.belady_host_hits; }) +
         "\n" +
         cells_table(
             s, "chunks written to disk per chunk served from it", false,
             [](const simulated_cell& cell) {
               double served = cell.mean(&cell_counts::disk_hits);
               return served == 0 ? std::string("-")
                                  : fmt::format("{:.2f}", cell.mean(&cell_counts::disk_written) / served);
             },
             nullptr);
}

json to_json(const simulate_summary& s) {
  json capacities = json::array(), policies = json::array();
  for (const simulated_capacity& c : s.capacities) {
    capacities.push_back(
        {{"capacity", c.label},
         {"bytes", c.arena_bytes},
         {"chunks", c.chunks},
         {"share", ratio_of(static_cast<double>(c.chunks), static_cast<double>(s.distinct_chunks))},
         {"belady_hit_ratio", s.hit_ratio(static_cast<double>(c.belady_hits))}});
    if (s.disk.empty())
      continue;
    capacities.back()["disk_chunks"] = c.disk_chunks;
    capacities.back()["belady_host_hit_ratio"] = s.hit_ratio(static_cast<double>(c.belady_host_hits));
  }
  for (size_t policy = 0; policy < s.policies.size(); ++policy) {
    json cells = json::array();
    for (size_t i = 0; i < s.capacities.size(); ++i)
      cells.push_back(cell_json(s, s.cell(policy, i), !s.disk.empty()));
    policies.push_back({{"policy", s.policies[policy]},
                        {"accesses_per_second", s.accesses_per_second(policy)},
                        {"cells", std::move(cells)}});
  }
  json told{{"trace", s.trace},
            {"requests", s.requests},
            {"input_tokens", s.input_tokens},
            {"chunk_tokens", s.chunk_tokens},
            {"object_bytes", s.object_bytes},
            {"accesses", s.accesses},
            {"distinct_chunks", s.distinct_chunks},
            {"infinite_cache_hit_ratio", s.hit_ratio(static_cast<double>(s.infinite_hits))},
            {"capacities", std::move(capacities)},
            {"policies", std::move(policies)}};
  if (!s.disk.empty())
    told["disk"] = s.disk;
  return told;
}

simulate::line_plot to_plot(const simulate_summary& s) {
  simulate::line_plot plot;
  plot.title = "Hit ratio over capacity";
  plot.subtitle =
      fmt::format("{}: {}, {} of {}{}", s.trace, format_counted(s.requests, "request"),
                  format_counted(s.distinct_chunks, "distinct chunk"),
                  format_counted(s.chunk_tokens, "token"), s.disk.empty() ? "" : "; disk: " + s.disk);
  plot.x_title = s.disk.empty() ? "capacity (logarithmic)" : "capacity of host memory (logarithmic)";
  plot.y_title = "hit tokens of all input tokens";
  simulate::line belady{"Belady", simulate::line_style::bound, {}};
  simulate::line infinite{"infinite cache", simulate::line_style::bound, {}};
  for (const simulated_capacity& c : s.capacities) {
    plot.ticks.push_back({static_cast<double>(c.chunks), c.label});
    belady.values.push_back(s.hit_ratio(static_cast<double>(c.belady_hits)));
    infinite.values.push_back(s.hit_ratio(static_cast<double>(s.infinite_hits)));
  }
  for (size_t policy = 0; policy < s.policies.size(); ++policy) {
    bool bold = s.policies[policy] == default_policy;
    simulate::line drawn{
        s.policies[policy], bold ? simulate::line_style::strong : simulate::line_style::plain, {}};
    for (size_t i = 0; i < s.capacities.size(); ++i)
      drawn.values.push_back(s.hit_ratio(s.cell(policy, i).mean(&cell_counts::hits)));
    plot.lines.push_back(std::move(drawn));
  }
  plot.lines.push_back(std::move(belady));
  plot.lines.push_back(std::move(infinite));
  return plot;
}

} // namespace terrace::cli
