#include "storage/store_id.hpp"

#include "base/digest.hpp"
#include "base/random_id.hpp"

namespace terrace {

store_id random_store_id() { return {random_boot_id().bytes}; }

std::string to_hex(const store_id& id) { return to_hex(digest::from(id.bytes), id.bytes.size()); }

} // namespace terrace
