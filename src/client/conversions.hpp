// Converts libterrace's values to tables (encode.cpp), and verified tables to values (decode.cpp).
#pragma once

#include "client/status.hpp"
#include "client/types.hpp"
#include "protocol/kinds.hpp"
#include "protocol/verify.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace terrace::client::detail {

using body_builder = flatbuffers::FlatBufferBuilder;

/// What the connection adds to a request: wire ids for the handles, and the remaining time.
struct request_context {
  uint32_t space = 0;
  uint32_t region = 0;
  uint32_t deadline_ms = 0;
  uint32_t progress_region = 0; ///< region of the counter that a store waits for
  uint32_t layers_region = 0;
};

inline flatbuffers::Optional<uint64_t> to_wire(const std::optional<std::chrono::nanoseconds>& time) {
  if (!time)
    return flatbuffers::nullopt;
  return time->count() < 0 ? 0 : static_cast<uint64_t>(time->count());
}

template <class T>
flatbuffers::Optional<T> to_wire(const std::optional<T>& value) {
  return value ? flatbuffers::Optional<T>(*value) : flatbuffers::nullopt;
}

struct hello_request {
  std::string_view name;
  std::span<const uint64_t> resumes;
  boot_id resumes_boot;
  bool observes = false;
};

flatbuffers::Offset<wire::Prefix> encode(body_builder& body, const prefix& prompt);
flatbuffers::Offset<wire::Options> encode(body_builder& body,
                                          /// The defaults if `options` is absent.
                                          const request_options& options);
flatbuffers::Offset<wire::Hello> encode(body_builder& body, const hello_request& request);
flatbuffers::Offset<wire::OpenSpace> encode(body_builder& body, const space_spec& spec, uint32_t known = 0);
flatbuffers::Offset<wire::Lookup> encode(body_builder& body, const lookup_request& request,
                                         const request_context& context);
flatbuffers::Offset<wire::AwaitLookup> encode(body_builder& body, const lookup_id& lookup,
                                              const request_options& options, const request_context& context);
flatbuffers::Offset<wire::Announce> encode(body_builder& body, const announcement& request,
                                           const request_context& context);
flatbuffers::Offset<wire::Load> encode(body_builder& body, const load_request& request,
                                       const request_context& context);
flatbuffers::Offset<wire::Prefetch> encode(body_builder& body, const prefetch_request& request,
                                           const request_context& context);
flatbuffers::Offset<wire::Store> encode(body_builder& body, const store_request& request,
                                        const request_context& context);
flatbuffers::Offset<wire::Reserve> encode(body_builder& body, const reserve_request& request,
                                          const request_context& context);
flatbuffers::Offset<wire::ReadLease> encode(body_builder& body, const lease_id& lease, chunk_range range,
                                            std::span<const uint8_t> pools, earlier_places earlier,
                                            const request_options& options, const request_context& context);
flatbuffers::Offset<wire::EndInference> encode(body_builder& body, const inference_end& ended);
flatbuffers::Offset<wire::Commit> encode_commit(body_builder& body, uint64_t reservation,
                                                const request_options& options,
                                                const request_context& context);

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
