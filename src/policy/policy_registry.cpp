#include "policy/arc_policy.hpp"
#include "policy/kmg_policy.hpp"
#include "policy/s3fifo_policy.hpp"
#include "policy/simple_policies.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace terrace {

namespace {

struct entry {
  std::string_view name;
  std::unique_ptr<eviction_policy> (*make)(const policy_context&);
};

template <class Order>
std::unique_ptr<eviction_policy> make(const policy_context& context) {
  return std::make_unique<Order>(context);
}

// A new policy needs one line here.
constexpr std::array registry{
    entry{"lru", &make<lru_policy>},   entry{"lfu", &make<lfu_policy>},
    entry{"fifo", &make<fifo_policy>}, entry{"mru", &make<mru_policy>},
    entry{"slru", &make<slru_policy>}, entry{"s3fifo", &make<s3fifo_policy>},
    entry{"arc", &make<arc_policy>},   entry{"sieve", &make<sieve_policy>},
    entry{"lru2", &make<lru2_policy>}, entry{"priority", &make<priority_policy>},
    entry{"kmg", &make<kmg_policy>},
};

constexpr auto names = [] {
  std::array<std::string_view, registry.size()> all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = registry[i].name;
  return all;
}();

} // namespace

std::span<const std::string_view> eviction_policy_names() { return names; }

result<void> check_eviction_policy(std::string_view name) {
  std::string known;
  for (std::string_view each : names) {
    if (each == name)
      return {};
    known += (known.empty() ? "" : ", ") + std::string(each);
  }
  return fail(errc::bad_request,
              "unknown eviction policy '" + std::string(name) + "': expected one of " + known);
}

result<std::unique_ptr<eviction_policy>> make_eviction_policy(std::string_view name,
                                                              const policy_context& context) {
  if (auto known = check_eviction_policy(name); !known)
    return tl::unexpected(known.error());
  return std::find_if(registry.begin(), registry.end(), [&](const entry& e) { return e.name == name; })
      ->make(context);
}

} // namespace terrace
