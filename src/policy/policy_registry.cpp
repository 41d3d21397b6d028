#include "policy/arc_order.hpp"
#include "policy/fifo_order.hpp"
#include "policy/kmg_order.hpp"
#include "policy/lfu_order.hpp"
#include "policy/lru2_order.hpp"
#include "policy/lru_order.hpp"
#include "policy/mru_order.hpp"
#include "policy/priority_order.hpp"
#include "policy/s3fifo_order.hpp"
#include "policy/sieve_order.hpp"
#include "policy/slru_order.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace terrace {

namespace {

struct entry {
  std::string_view name;
  std::unique_ptr<eviction_order> (*make)(const order_context&);
};

template <class Order>
std::unique_ptr<eviction_order> make(const order_context& context) {
  return std::make_unique<Order>(context);
}

// A new policy is one more line here.
constexpr std::array registry{
    entry{"lru", &make<lru_order>},   entry{"lfu", &make<lfu_order>},
    entry{"fifo", &make<fifo_order>}, entry{"mru", &make<mru_order>},
    entry{"slru", &make<slru_order>}, entry{"s3fifo", &make<s3fifo_order>},
    entry{"arc", &make<arc_order>},   entry{"sieve", &make<sieve_order>},
    entry{"lru2", &make<lru2_order>}, entry{"priority", &make<priority_order>},
    entry{"kmg", &make<kmg_order>},
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

result<std::unique_ptr<eviction_order>> make_eviction_order(std::string_view name,
                                                            const order_context& context) {
  if (auto known = check_eviction_policy(name); !known)
    return tl::unexpected(known.error());
  return std::find_if(registry.begin(), registry.end(), [&](const entry& e) { return e.name == name; })
      ->make(context);
}

} // namespace terrace
