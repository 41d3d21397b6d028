// Requests without a ticket: their answers hold nothing.
#include "client/client.hpp"
#include "client/core.hpp"
#include "client/decode.hpp"
#include "client/encode.hpp"

#include <algorithm>

namespace terrace::client {

using detail::answer;
using detail::body_builder;
using protocol::kind;

namespace {

template <class T>
tl::unexpected<error> pass_on(const result<T>& failed) {
  return tl::unexpected<error>(failed.error());
}

} // namespace

result<bool> connection::cancel(const detail::any_ticket& under_way, deadline until) {
  if (!under_way)
    return fail(errc::bad_request, "expected a ticket of a request under way, got an empty one");
  auto& in = *under_way.channel_;
  auto id = in.submit(
      kind::cancel, [&](body_builder& body) { return wire::CreateCancel(body, under_way.id_); }, until);
  if (!id)
    return pass_on(id);
  return detail::take<wire::CancelAnswer>(in, *id, until,
                                          [](const auto& table, answer&) { return table.found(); });
}

result<bool> connection::cancel_lookup(const lookup_id& id, deadline until) {
  auto& in = *core_->now();
  auto sent = in.submit(
      kind::cancel,
      [&](body_builder& body) {
        return wire::CreateCancel(body, 0, body.CreateVector(id.bytes.data(), id.bytes.size()));
      },
      until);
  if (!sent)
    return pass_on(sent);
  return detail::take<wire::CancelAnswer>(in, *sent, until,
                                          [](const auto& table, answer&) { return table.found(); });
}

result<void> connection::end_inference(const inference_end& what, deadline until) {
  auto optional = [](const auto& value) -> flatbuffers::Optional<uint32_t> {
    if (!value)
      return flatbuffers::nullopt;
    return static_cast<uint32_t>(*value);
  };
  std::optional<int64_t> think_ms;
  if (what.think_time)
    think_ms = std::clamp<int64_t>(what.think_time->count(), 0, UINT32_MAX);
  auto& in = *core_->now();
  auto id = in.submit(
      kind::end_inference,
      [&](body_builder& body) {
        return wire::CreateEndInference(body, what.inference, optional(what.output_tokens),
                                        static_cast<wire::FinishReason>(what.reason), what.session_closed,
                                        optional(think_ms), detail::to_wire(what.time));
      },
      until);
  if (!id)
    return pass_on(id);
  auto answered =
      detail::take<wire::EndInferenceAnswer>(in, *id, until, [](const auto&, answer&) { return true; });
  if (!answered)
    return pass_on(answered);
  return {};
}

result<clear_result> connection::clear(const space* only, deadline until) {
  uint32_t number = 0;
  if (only != nullptr) {
    auto known = core_->space_id_of(*only);
    if (!known)
      return pass_on(known);
    number = *known;
  }
  auto& in = *core_->now();
  auto id = in.submit(
      kind::clear, [&](body_builder& body) { return wire::CreateClear(body, number); }, until);
  if (!id)
    return pass_on(id);
  clear_result cleared;
  auto answered = detail::take<wire::ClearAnswer>(in, *id, until, [&](const auto& table, answer&) {
    cleared = {table.objects(), table.bytes()};
    return true;
  });
  if (!answered)
    return pass_on(answered);
  return cleared;
}

result<policies_status> connection::policies(deadline until) {
  auto& in = *core_->now();
  auto id = in.submit(
      kind::policies, [](body_builder& body) { return wire::CreatePolicies(body); }, until);
  if (!id)
    return pass_on(id);
  return detail::take<wire::PoliciesAnswer>(in, *id, until,
                                            [](const auto& table, answer&) { return detail::decode(table); });
}

result<std::string> connection::set_policy(const std::string& tier, const std::string& policy,
                                           deadline until) {
  auto& in = *core_->now();
  auto id = in.submit(
      kind::set_policy,
      [&](body_builder& body) { return wire::CreateSetPolicyDirect(body, tier.c_str(), policy.c_str()); },
      until);
  if (!id)
    return pass_on(id);
  return detail::take<wire::SetPolicyAnswer>(
      in, *id, until, [](const auto& table, answer&) { return detail::to_text(table.before()); });
}

result<daemon_status> connection::status(deadline until) {
  auto& in = *core_->now();
  auto id = in.submit(
      kind::status, [](body_builder& body) { return wire::CreateStatus(body); }, until);
  if (!id)
    return pass_on(id);
  return detail::take<wire::StatusAnswer>(in, *id, until,
                                          [](const auto& table, answer&) { return detail::decode(table); });
}

} // namespace terrace::client
