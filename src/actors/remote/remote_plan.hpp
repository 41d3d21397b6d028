// Configuration of a trust group's remote tier.
#pragma once

#include "remote/realm.hpp"
#include "remote/store_address.hpp"
#include "remote/tls_stream.hpp"
#include "tier/tier_config.hpp"

#include <chrono>

namespace terrace {

struct remote_plan {
  tier_config tier{.kind = tier_kind::remote};
  remote::store_address address;
  remote::store_credentials credentials;
  remote::realm names; ///< of objects
  std::chrono::nanoseconds lookup_budget{2'000'000};
  bool compress = false;            ///< values of 16-bit floats that are written
  std::chrono::seconds lifetime{0}; ///< after which the store forgets a value; 0: never
};

} // namespace terrace
