#include "actors/remote/store_link.hpp"

#include "actors/remote/valkey_link.hpp"

#include <cassert>

namespace terrace::actors {

std::unique_ptr<store_link> make_link(const remote::store_address& address, store_link::callbacks call) {
  if (address.at == remote::store_address::kind::plugin)
    return make_plugin_link(std::move(call));
#if TERRACE_WITH_CURL
  if (address.at == remote::store_address::kind::bucket)
    return make_s3_link(std::move(call));
#endif
  assert(address.at != remote::store_address::kind::bucket); // there are no such addresses without libcurl
  return std::make_unique<valkey_link>(std::move(call));
}

} // namespace terrace::actors
