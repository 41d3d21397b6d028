// Requests without tickets: their answers hold no resources.
#include "base/copy_memory.hpp"
#include "client/client.hpp"
#include "client/core.hpp"
#include "client/decode.hpp"
#include "client/encode.hpp"
#include "client/segments.hpp"

#include <algorithm>

namespace terrace::client {

using detail::ask;
using detail::body_builder;
using protocol::kind;

result<bool> connection::cancel(const detail::any_ticket& under_way, deadline until) {
  if (!under_way)
    return fail(errc::bad_request, "expected a ticket of a request in flight, got an empty one");
  return ask<kind::cancel>(
      *under_way.channel_, until, [&](body_builder& body) { return wire::CreateCancel(body, under_way.id_); },
      [](const wire::CancelAnswer& table) { return table.found(); });
}

result<bool> connection::cancel_lookup(const lookup_id& id, deadline until) {
  return ask<kind::cancel>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateCancel(body, 0, body.CreateVector(id.bytes.data(), id.bytes.size()));
      },
      [](const wire::CancelAnswer& table) { return table.found(); });
}

result<void> connection::end_inference(const inference_end& ended, deadline until) {
  auto optional = [](const auto& value) -> flatbuffers::Optional<uint32_t> {
    if (!value)
      return flatbuffers::nullopt;
    return static_cast<uint32_t>(*value);
  };
  std::optional<int64_t> think_ms;
  if (ended.think_time)
    think_ms = std::clamp<int64_t>(ended.think_time->count(), 0, UINT32_MAX);
  return ask<kind::end_inference>(
      *core_->now(), until,
      [&](body_builder& body) {
        return wire::CreateEndInference(body, ended.inference, optional(ended.output_tokens),
                                        static_cast<wire::FinishReason>(ended.reason), ended.session_closed,
                                        optional(think_ms), detail::to_wire(ended.time));
      },
      [](const wire::EndInferenceAnswer&) {});
}

result<bell> connection::bell(deadline until) { return core_->ring_with(until); }

result<clear_result> connection::clear(const space* only, deadline until) {
  uint32_t number = 0;
  if (only != nullptr) {
    auto known = core_->space_id_of(*only);
    if (!known)
      return tl::unexpected<error>(known.error());
    number = *known;
  }
  return ask<kind::clear>(
      *core_->now(), until, [&](body_builder& body) { return wire::CreateClear(body, number); },
      [](const wire::ClearAnswer& table) {
        return clear_result{table.objects(), table.bytes()};
      });
}

result<policies_status> connection::policies(deadline until) {
  return ask<kind::policies>(
      *core_->now(), until, [](body_builder& body) { return wire::CreatePolicies(body); },
      [](const wire::PoliciesAnswer& table) { return detail::decode(table); });
}

result<std::string> connection::set_policy(const std::string& tier, const std::string& policy,
                                           deadline until) {
  return ask<kind::set_policy>(
      *core_->now(), until,
      [&](body_builder& body) { return wire::CreateSetPolicyDirect(body, tier.c_str(), policy.c_str()); },
      [](const wire::SetPolicyAnswer& table) { return detail::to_text(table.before()); });
}

result<daemon_status> connection::status(deadline until) {
  return ask<kind::status>(
      *core_->now(), until, [](body_builder& body) { return wire::CreateStatus(body); },
      [](const wire::StatusAnswer& table) { return detail::decode(table); });
}

// Copies from the mapped arena, on the caller's thread.

result<uint64_t> connection::load_under_lease(const lease& held, chunk_range range,
                                              std::span<const std::span<uint8_t>> into, deadline until,
                                              std::span<const uint8_t> pools, earlier_places earlier) {
  lease_parts parts(range, into, earlier);
  while (parts.more()) {
    auto located = read_lease(held.id(), parts.range(), until, pools, parts.earlier());
    if (!located)
      return tl::unexpected<error>(located.error());
    if (auto copied = parts.copy(located->objects); !copied)
      return tl::unexpected<error>(copied.error());
  }
  return parts.bytes();
}

result<void> lease_parts::copy(std::span<const std::span<const uint8_t>> objects) {
  size_t came = objects.size();
  more_ = came != 0 && per_chunk_ != 0 && came % per_chunk_ == 0 && came < left_.size();
  auto some = copy_objects(objects, more_ || came == 0 ? left_.first(came) : left_);
  if (!some)
    return tl::unexpected<error>(some.error());
  bytes_ += *some;
  if (!more_)
    return {};
  left_ = left_.subspan(came);
  auto chunks = static_cast<uint32_t>(came / per_chunk_);
  range_ = {range_.first + chunks, range_.count - chunks};
  earlier_ = earlier_places::given_up;
  return {};
}

result<uint64_t> copy_objects(std::span<const std::span<const uint8_t>> from,
                              std::span<const std::span<uint8_t>> into) {
  if (from.size() != into.size())
    return fail(errc::bad_request, "expected one destination an object (" + std::to_string(from.size()) +
                                       "), got " + std::to_string(into.size()));
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].size() != into[i].size())
      return fail(errc::bad_request, "expected a destination of " + std::to_string(from[i].size()) +
                                         " bytes for object " + std::to_string(i) + ", got " +
                                         std::to_string(into[i].size()));
  uint64_t bytes = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    copy_memory(into[i].data(), from[i].data(), from[i].size());
    bytes += from[i].size();
  }
  return bytes;
}

} // namespace terrace::client
