#include "policy/fifo_policy.hpp"
#include "policy/lru_policy.hpp"

#include <array>
#include <string>

namespace terrace {

namespace {

struct entry {
  std::string_view name;
  std::unique_ptr<eviction_policy> (*make)();
};

template <class Policy>
std::unique_ptr<eviction_policy> make() {
  return std::make_unique<Policy>();
}

// A new policy is one more line here.
constexpr std::array registry{
    entry{"lru", &make<lru_policy>},
    entry{"fifo", &make<fifo_policy>},
};

constexpr auto names = [] {
  std::array<std::string_view, registry.size()> all;
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = registry[i].name;
  return all;
}();

} // namespace

std::span<const std::string_view> eviction_policy_names() { return names; }

result<std::unique_ptr<eviction_policy>> make_eviction_policy(std::string_view name) {
  std::string known;
  for (const entry& e : registry) {
    if (e.name == name)
      return e.make();
    known += (known.empty() ? "" : ", ") + std::string(e.name);
  }
  return fail(errc::bad_request,
              "unknown eviction policy '" + std::string(name) + "': expected one of " + known);
}

} // namespace terrace
