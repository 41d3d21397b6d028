#include "tests/fuzz/verb_client.hpp"

#include "tests/fuzz/promise.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace terrace::fuzz {

using protocol::kind;

verb_client::verb_client(unique_fd socket, std::shared_ptr<unique_fd> process, shared_knowledge& shared)
    : socket_(std::move(socket)), process_(std::move(process)), shared_(shared) {}

void verb_client::queue(std::span<const uint8_t> bytes, unique_fd descriptor) {
  wild_ = true;
  line_.push_back({{bytes.begin(), bytes.end()}, std::move(descriptor)});
}

void verb_client::queue_frame(uint64_t request, kind verb, std::vector<uint8_t> bytes, unique_fd descriptor) {
  open_[request] = verb;
  line_.push_back({std::move(bytes), std::move(descriptor)});
}

void verb_client::send(size_t bytes_max) {
  while (open() && !line_.empty() && bytes_max > 0) {
    part& next = line_.front();
    iovec area{next.bytes.data(), std::min(next.bytes.size(), bytes_max)};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &area;
    message.msg_iovlen = 1;
    if (next.descriptor) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      int number = next.descriptor.get();
      std::memcpy(CMSG_DATA(head), &number, sizeof number);
    }
    ssize_t sent = next.bytes.empty()
                       ? 0
                       : ::sendmsg(socket_.descriptor(), &message, protocol::send_flags | MSG_DONTWAIT);
    if (sent < 0)
      return; // the socket is full, or closed
    next.descriptor.reset();
    bytes_max -= static_cast<size_t>(sent);
    next.bytes.erase(next.bytes.begin(), next.bytes.begin() + sent);
    if (next.bytes.empty())
      line_.pop_front();
  }
}

void verb_client::receive() {
  if (!open() || !reads)
    return;
  while (auto frame = socket_.next()) // throws where the daemon breaks the protocol
    take(*frame);
  ended_ = socket_.ended();
}

void verb_client::end_process() {
  uint64_t one = 1;
  promise(::write(process_->get(), &one, sizeof one) == sizeof one, "a process can end");
  close();
}

void verb_client::take(const test::received& frame) {
  for (uint64_t number : {static_cast<uint64_t>(frame.kind), frame.id, uint64_t{frame.body.size()}})
    trace = (trace ^ number) * 0x9e3779b97f4a7c15ULL;
  auto verb = static_cast<uint16_t>(frame.kind) & ~protocol::answer_bit;
  bool of_connection = frame.is_error() && frame.id == protocol::connection_request_id;
  if (frame.is_error())
    promise(!frame.text().empty(), "an error says why");
  if (of_connection)
    return;
  auto asked = open_.find(frame.id);
  if (asked == open_.end()) {
    promise(wild_, "only what was asked is answered, and once");
    return;
  }
  if (!frame.is_error())
    promise(static_cast<uint16_t>(asked->second) == verb || wild_, "the answer is that of its request");
  auto number = static_cast<size_t>(asked->second);
  if (number < verbs)
    ++(frame.is_error() ? refused : served)[number];
  open_.erase(asked);
  if (clears == frame.id) {
    cleared = !frame.is_error();
    clears.reset();
  }
  if (!frame.is_error())
    learn(frame);
}

/// Reading an answer as its table verifies it, too.
void verb_client::learn(const test::received& frame) {
  switch (static_cast<uint16_t>(frame.kind)) {
#define TERRACE_VERB(NAME, TABLE, NUMBER, ...)                                                               \
  case NUMBER | protocol::answer_bit:                                                                        \
    frame.as<wire::TABLE##Answer>();                                                                         \
    break;
#include "protocol/verbs.def"
    default: return;
  }
  if (frame.kind == answer_to(kind::open_space)) {
    spaces.push_back(frame.as<wire::OpenSpaceAnswer>().space());
  } else if (frame.kind == answer_to(kind::register_region)) {
    regions.push_back(frame.as<wire::RegisterRegionAnswer>().region());
  } else if (frame.kind == answer_to(kind::reserve)) {
    reservations.push_back(frame.as<wire::ReserveAnswer>().reservation());
  } else if (frame.kind == answer_to(kind::lookup)) {
    if (const auto* lease = frame.as<wire::LookupAnswer>().lease())
      shared_.leases.emplace_front(lease->begin(), lease->end());
    if (shared_.leases.size() > 8)
      shared_.leases.pop_back();
  } else if (frame.kind == answer_to(kind::open_session) || frame.kind == answer_to(kind::fork_session)) {
    const auto* id = frame.kind == answer_to(kind::open_session)
                         ? frame.as<wire::OpenSessionAnswer>().session()
                         : frame.as<wire::ForkSessionAnswer>().session();
    shared_.sessions.emplace_front(id->begin(), id->end());
    if (shared_.sessions.size() > 8)
      shared_.sessions.pop_back();
  }
}

} // namespace terrace::fuzz
