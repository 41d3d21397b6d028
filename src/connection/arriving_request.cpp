#include "connection/arriving_request.hpp"

#include <string>

namespace terrace {

namespace {

/// What an observer may ask.
bool observable(protocol::kind verb) {
  return verb == protocol::kind::status || verb == protocol::kind::policies || verb == protocol::kind::cancel;
}

early_refusal malformed(std::string text) { return {{errc::bad_request, std::move(text)}, true}; }

} // namespace

const char* to_string(connection_phase phase) {
  switch (phase) {
    case connection_phase::handshake: return "handshake";
    case connection_phase::serving: return "serving";
    case connection_phase::draining: return "draining";
    case connection_phase::closing: return "closing";
    case connection_phase::quarantined: return "quarantined";
  }
  return "";
}

error violation_of(const arriving_request& what, connection_phase phase) {
  if (what.id == 0)
    return {errc::bad_request, "request id 0 is reserved for the daemon; expected 1 or more"};
  if (what.in_flight)
    return {errc::bad_request, "request id " + std::to_string(what.id) + " is in flight already"};
  if (what.verb == nullptr)
    return {errc::bad_request,
            "a client does not send frames of kind " + std::to_string(static_cast<unsigned>(what.kind))};
  if (phase == connection_phase::handshake && what.kind != protocol::kind::hello)
    return {errc::bad_request, std::string("expected hello as the first frame, got ") + what.verb};
  return {};
}

std::optional<early_refusal> refusal_of(const arriving_request& what, connection_phase phase, bool observes) {
  if (phase == connection_phase::draining && !what.while_draining)
    return early_refusal{{errc::busy, "the daemon is shutting down"}};
  if (phase != connection_phase::handshake && what.kind == protocol::kind::hello)
    return malformed("hello was answered already; expected it once per connection");
  if (observes && !observable(what.kind))
    return malformed(
        std::string("the connection observes (Hello.observes); expected status or policies, got ") +
        what.verb);
  if (what.descriptors != what.descriptors_of_verb) // more than announced are a violation of the framing
    return malformed(std::string(what.verb) + " takes " + std::to_string(what.descriptors_of_verb) +
                     " descriptors, " + std::to_string(what.descriptors) + " came");
  return std::nullopt;
}

} // namespace terrace
