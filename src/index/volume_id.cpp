#include "index/volume_id.hpp"

#include "base/digest.hpp"
#include "base/random_id.hpp"

namespace terrace {

volume_id random_volume_id() { return {random_boot_id().bytes}; }

std::string to_hex(const volume_id& id) { return to_hex(digest::from(id.bytes), id.bytes.size()); }

} // namespace terrace
