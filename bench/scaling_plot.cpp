#include "bench/scaling_plot.hpp"

#include "cli/simulate/line_plot.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

namespace terrace::bench {

std::string to_scaling_plot(const std::vector<figure>& figures) {
  constexpr std::string_view prefix = "scaling_";
  std::map<std::string, std::map<int, double>> ratios; // [what][workers]
  for (const figure& f : figures) {
    size_t end = f.name.rfind('_');
    if (!f.name.starts_with(prefix) || end <= prefix.size() || !f.ratio())
      continue;
    ratios[f.name.substr(prefix.size(), end - prefix.size())][std::atoi(f.name.c_str() + end + 1)] =
        *f.ratio();
  }
  if (ratios.empty())
    return {};
  simulate::line_plot plot{.title = "Rates by the number of workers",
                           .subtitle =
                               "Each beside bare loops with as many threads: 100 % is as fast as these",
                           .x_title = "workers",
                           .y_title = "of the bare rate"};
  for (auto [workers, ratio] : ratios.begin()->second)
    plot.ticks.push_back({static_cast<double>(workers), std::to_string(workers)});
  for (const auto& [what, by_workers] : ratios) {
    simulate::line one{.name = what};
    for (const auto& tick : plot.ticks) {
      auto found = by_workers.find(static_cast<int>(tick.at));
      if (found == by_workers.end())
        return {};
      one.values.push_back(found->second);
    }
    plot.lines.push_back(std::move(one));
  }
  return simulate::to_svg(plot);
}

} // namespace terrace::bench
