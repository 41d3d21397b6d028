#include "remote/store_reports.hpp"

#include <algorithm>
#include <charconv>

namespace terrace::remote {

store_memory parse_memory(std::string_view text) {
  store_memory found;
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    auto colon = line.find(':');
    if (colon == std::string_view::npos)
      continue;
    auto name = line.substr(0, colon), value = line.substr(colon + 1);
    if (name == "used_memory")
      std::from_chars(value.data(), value.data() + value.size(), found.used_bytes);
    else if (name == "maxmemory")
      std::from_chars(value.data(), value.data() + value.size(), found.max_bytes);
    else if (name == "maxmemory_policy")
      found.policy = value;
  }
  return found;
}

store_memory sum_of(const store_memory& one, const store_memory& other) {
  const bool bounded = one.max_bytes != 0 && other.max_bytes != 0;
  const bool named = one.policy.find(other.policy) != std::string::npos;
  return {.used_bytes = one.used_bytes + other.used_bytes,
          .max_bytes = bounded ? one.max_bytes + other.max_bytes : 0,
          .policy = named ? one.policy : one.policy + ", " + other.policy};
}

std::string memory_warning(const store_memory& memory) {
  if (memory.max_bytes == 0)
    return "maxmemory is not set: the store grows until its machine has no memory left; set maxmemory, and "
           "maxmemory-policy to allkeys-lru";
  if (memory.policy == "noeviction")
    return "maxmemory-policy is noeviction: a full store takes no more objects; set it to allkeys-lru";
  return {};
}

std::string budget_warning(uint32_t answers, std::chrono::nanoseconds mean, std::chrono::nanoseconds budget) {
  constexpr uint32_t answers_min = 16;
  constexpr std::chrono::nanoseconds longest_lookup_budget = std::chrono::seconds(1); // of the option
  if (answers < answers_min || mean <= budget)
    return {};
  const auto in_ms = [](std::chrono::nanoseconds time) {
    return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(time).count());
  };
  const std::string waits = "a lookup waits " + in_ms(budget) +
                            " ms for what the store has (lookup_budget), and its answers take " +
                            in_ms(mean) + " ms";
  if (budget >= longest_lookup_budget)
    return waits + ": most first lookups of a prompt find nothing there; use a store that is nearer";
  // The mean alone would be too short for half of the answers.
  return waits + ": most first lookups of a prompt find nothing there; set lookup_budget to at least " +
         in_ms(std::min<std::chrono::nanoseconds>(2 * mean, longest_lookup_budget)) + "ms";
}

} // namespace terrace::remote
