// Converts verified tables to libterrace's values.
#pragma once

#include "client/policies.hpp"
#include "client/status.hpp"
#include "client/types.hpp"
#include "protocol/verify.hpp"

#include <algorithm>
#include <string>

namespace terrace::client::detail {

inline std::string to_text(const flatbuffers::String* text) { return text ? text->str() : std::string(); }

daemon_info decode(const wire::HelloAnswer& table);
std::optional<missing_object> decode(const wire::Missing* missing);
std::vector<digest> decode_digests(const wire::LookupAnswer& table);
load_result decode(const wire::LoadAnswer& table);
prefetch_result decode(const wire::PrefetchAnswer& table);
store_result decode(const wire::StoreAnswer& table);
store_result decode(const wire::CommitAnswer& table);
std::vector<tenant_status>
decode(const flatbuffers::Vector<flatbuffers::Offset<wire::TenantStatus>>& tenants);
daemon_status decode(const wire::StatusAnswer& table);
policies_status decode(const wire::PoliciesAnswer& table);
std::vector<open_pool> decode(const flatbuffers::Vector<flatbuffers::Offset<wire::OpenPool>>* list);

} // namespace terrace::client::detail
