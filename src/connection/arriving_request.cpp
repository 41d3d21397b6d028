#include "connection/arriving_request.hpp"

#include <array>
#include <string>

namespace terrace {

namespace {

struct verb_rule {
  const char* name;
  size_t descriptors;  ///< descriptors that arrived with its frame
  bool while_draining; ///< it releases something or only reads, so it is served during a drain
};

/// Rows in the order of the verbs' numbers.
constexpr std::array verb_rules{
#define TERRACE_VERB(NAME, TABLE, NUMBER, FDS, ANSWER_FDS, DRAINING, ...) verb_rule{#NAME, FDS, DRAINING},
#include "protocol/verbs.def"
};

/// Verbs that an observer may use.
bool observable(protocol::kind verb) {
  using protocol::kind;
  return verb == kind::status || verb == kind::policies || verb == kind::cancel || verb == kind::leases ||
         verb == kind::check || verb == kind::revoke || verb == kind::subscribe ||
         verb == kind::set_log_level || verb == kind::shutdown || verb == kind::quota ||
         verb == kind::remote_status || verb == kind::remote_probe || verb == kind::remote_sweep ||
         verb == kind::recent_lookups;
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

arriving_request arriving(const protocol::frame& frame, bool in_flight) {
  arriving_request arrival{frame.request_id, frame.kind, in_flight};
  arrival.descriptors = frame.descriptors.size();
  if (protocol::is_request(frame.kind)) {
    const verb_rule& rule = verb_rules[static_cast<size_t>(frame.kind) - 1];
    arrival.verb = rule.name;
    arrival.while_draining = rule.while_draining;
    arrival.descriptors_of_verb = rule.descriptors;
  }
  return arrival;
}

error violation_of(const arriving_request& arrival, connection_phase phase) {
  if (arrival.id == 0)
    return {errc::bad_request, "request id 0 is reserved for the daemon; expected 1 or more"};
  if (arrival.in_flight)
    return {errc::bad_request, "request id " + std::to_string(arrival.id) + " is in flight already"};
  if (arrival.verb == nullptr)
    return {errc::bad_request,
            "a client does not send frames of kind " + std::to_string(static_cast<unsigned>(arrival.kind))};
  if (phase == connection_phase::handshake && arrival.kind != protocol::kind::hello)
    return {errc::bad_request, std::string("expected hello as the first frame, got ") + arrival.verb};
  return {};
}

std::optional<early_refusal> refusal_of(const arriving_request& arrival, connection_phase phase,
                                        bool observes) {
  if (phase == connection_phase::draining && !arrival.while_draining)
    return early_refusal{{errc::busy, "the daemon is shutting down"}};
  if (phase != connection_phase::handshake && arrival.kind == protocol::kind::hello)
    return malformed("hello was answered already; expected it once per connection");
  if (observes && !observable(arrival.kind))
    return malformed(std::string("the connection observes (Hello.observes); expected status, policies or "
                                 "a request of operators, got ") +
                     arrival.verb);
  // A frame with more descriptors than it announced violates the framing.
  if (arrival.descriptors != arrival.descriptors_of_verb)
    return malformed(std::string(arrival.verb) + " takes " + std::to_string(arrival.descriptors_of_verb) +
                     " descriptors, " + std::to_string(arrival.descriptors) + " came");
  return std::nullopt;
}

error with_frame(const error& why, const protocol::frame& frame) {
  return {why.code, why.text + " (frame of kind " + std::to_string(static_cast<unsigned>(frame.kind)) +
                        ", request " + std::to_string(frame.request_id) + ")"};
}

error with_trace(const error& why, const std::string& trace) {
  return trace.empty() ? why : error{why.code, why.text + " (trace " + trace + ")"};
}

error no_memory_for(protocol::kind kind) {
  return {errc::no_space, "the daemon has no memory to serve this " + std::string(protocol::to_string(kind)) +
                              "; ask for less at a time"};
}

} // namespace terrace
