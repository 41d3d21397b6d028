#include "connection/waiting_requests.hpp"

#include "protocol/bounds.hpp"
#include "protocol/verify.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace terrace {

namespace {

/// Frames up to this size are copied.
constexpr size_t copied_bytes = 16 << 10;

template <class Table>
lease_id lease_in(std::span<const uint8_t> body) {
  auto asked = protocol::well_formed<Table>(body);
  return asked ? protocol::to_lease_id((*asked)->lease()) : lease_id{};
}

/// The lease that a request names, if any.
lease_id lease_of(const protocol::frame& what) {
  switch (what.kind) {
    case protocol::kind::load: return lease_in<wire::Load>(what.body);
    case protocol::kind::read_lease: return lease_in<wire::ReadLease>(what.body);
    case protocol::kind::release: return lease_in<wire::Release>(what.body);
    default: return {};
  }
}

} // namespace

protocol::frame_header waiting_requests::entry::header() const {
  protocol::frame_header said;
  said.length = static_cast<uint32_t>(bytes());
  said.kind = frame.kind;
  said.fd_count = static_cast<uint16_t>(frame.descriptors.size());
  said.request_id = frame.request_id;
  return said;
}

bool waiting_requests::has_place(const protocol::frame_header& next) const {
  if (descriptors_ + next.fd_count > protocol::descriptors_max)
    return false;
  if (gives_back(next))
    return giving_back_ < protocol::giving_back_requests_max;
  return line_.size() - giving_back_ < most_.requests && bytes_ + next.length <= most_.bytes;
}

bool waiting_requests::may_pass(const protocol::frame& next) const {
  if (line_.empty() || next.kind == protocol::kind::cancel)
    return true;
  if (next.kind != protocol::kind::release)
    return false;
  auto lease = lease_of(next);
  return std::none_of(line_.begin(), line_.end(), [&](const entry& each) { return each.lease == lease; });
}

void waiting_requests::add(protocol::frame frame, bool has_room, time_point now,
                           const std::function<keep_alive()>& hold) {
  entry made{.frame = std::move(frame), .body = nullptr, .has_room = has_room};
  made.lease = lease_of(made.frame);
  made.arrived = now;
  if (auto& body = made.frame.body; body.size() <= copied_bytes) {
    auto copy = std::make_shared<uint64_t[]>((body.size() + 7) / 8); // bodies lie on 8-byte boundaries
    if (!body.empty())
      std::memcpy(copy.get(), body.data(), body.size());
    body = {reinterpret_cast<const uint8_t*>(copy.get()), body.size()};
    made.body = std::move(copy);
  } else {
    made.body = hold();
  }
  bytes_ += made.bytes();
  giving_back_ += gives_back(made.header());
  descriptors_ += made.frame.descriptors.size();
  line_.push_back(std::move(made));
  assert(line_.size() <= most_.requests + size_t{protocol::giving_back_requests_max});
  assert(descriptors_ <= protocol::descriptors_max);
}

waiting_requests::entry waiting_requests::take_at(size_t index) {
  auto at = line_.begin() + static_cast<std::ptrdiff_t>(index);
  entry taken = std::move(*at);
  line_.erase(at);
  bytes_ -= taken.bytes();
  giving_back_ -= gives_back(taken.header());
  descriptors_ -= taken.frame.descriptors.size();
  return taken;
}

waiting_requests::entry waiting_requests::take_first() {
  assert(!line_.empty());
  return take_at(0);
}

std::optional<waiting_requests::entry> waiting_requests::take(request_id id) {
  auto found = std::find_if(line_.begin(), line_.end(),
                            [id](const entry& each) { return each.frame.request_id == id; });
  if (found == line_.end())
    return std::nullopt;
  return take_at(static_cast<size_t>(found - line_.begin()));
}

void waiting_requests::clear() {
  line_.clear();
  bytes_ = 0;
  giving_back_ = 0;
  descriptors_ = 0;
}

} // namespace terrace
