#include "group/session.hpp"

#include <cassert>
#include <utility>

namespace terrace {

namespace {

/// The state that all sessions without tokens share.
const session_state_ptr& no_tokens() {
  static const auto nothing = std::make_shared<const session_state>();
  return nothing;
}

} // namespace

session::session(space_id space, uint32_t chunk_tokens, bool held, session_root_ptr root,
                 session_state_ptr state)
    : in_(space), chunk_tokens_(chunk_tokens), held_(held), root_(std::move(root)),
      state_(state ? std::move(state) : no_tokens()), saved_(state_->saved()) {
  assert(chunk_tokens_ > 0);
  lengths_.commit(state_->tokens(), chunk_tokens_);
}

session_used session::use(uint64_t tokens) {
  if (tokens != 0)
    lengths_.begin(tokens);
  return {{}, facts(), {in_, generation_, root_, state_, held_, saved_, hold_ ? hold_->host_chunks : 0}};
}

std::optional<session_saved> session::save(save_session_request request) {
  if (request.generation != generation_)
    return std::nullopt;
  ++generation_;
  state_ = std::move(request.after);
  lengths_.commit(state_->tokens(), chunk_tokens_);
  session_saved report;
  if (request.hold) {
    saved_ = state_->saved();
    report.with_end = true;
    report.before = end_hold();
    keep(std::move(*request.hold), report);
  }
  report.now = facts();
  return report;
}

/// Holds what it is given, unless that alone is too much.
void session::keep(session_hold given, session_saved& report) {
  if (!given.lease)
    return;
  if (given.host_bytes > given.bytes_max) {
    report.unheld = "its chunks have " + std::to_string(given.host_bytes) +
                    " bytes of host memory: expected at most " + std::to_string(given.bytes_max) +
                    " of all held sessions (a third of lease.host_percent)";
    return;
  }
  hold_ = std::make_shared<const hold>(hold{given.lease, given.host_chunks});
  report.hold = std::move(given);
}

lease_ptr session::end_hold() {
  auto held = std::exchange(hold_, nullptr);
  return held ? held->lease : nullptr;
}

} // namespace terrace
