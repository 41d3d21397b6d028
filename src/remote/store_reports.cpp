#include "remote/store_reports.hpp"

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

} // namespace terrace::remote
