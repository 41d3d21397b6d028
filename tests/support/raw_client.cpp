#include "tests/support/raw_client.hpp"

#include "tests/support/programs.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace terrace::test {

frame_bytes frame_of(uint16_t kind, uint64_t request, std::span<const uint8_t> body,
                     std::optional<uint32_t> length, uint16_t fd_count) {
  size_t whole = (protocol::header_bytes + body.size() + 7) / 8 * 8;
  protocol::frame_header header;
  header.length = length.value_or(static_cast<uint32_t>(whole));
  header.kind = static_cast<protocol::kind>(kind);
  header.fd_count = fd_count;
  header.request_id = request;
  frame_bytes bytes(whole);
  auto begin = protocol::write_header(header);
  std::copy(begin.begin(), begin.end(), bytes.begin());
  std::copy(body.begin(), body.end(), bytes.begin() + protocol::header_bytes);
  return bytes;
}

frame_bytes hello_frame(uint64_t request, uint32_t version) {
  return frame_with(protocol::kind::hello, request, [&](flatbuffers::FlatBufferBuilder& body) {
    return wire::CreateHelloDirect(body, version, "raw");
  });
}

frame_bytes status_frame(uint64_t request) {
  return frame_with(protocol::kind::status, request,
                    [](flatbuffers::FlatBufferBuilder& body) { return wire::CreateStatus(body); });
}

raw_client::raw_client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    throw std::runtime_error("path is too long for a socket: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to " + path + ": " + std::strerror(errno));
}

bool raw_client::send(std::span<const uint8_t> bytes, std::span<const int> descriptors) {
  while (!bytes.empty()) {
    // outgoing_message is not used, because it refuses to send more descriptors than a frame may have.
    iovec area{const_cast<uint8_t*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(32 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &area;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
    }
    ssize_t n = ::sendmsg(socket_.get(), &message, protocol::send_flags);
    if (n < 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
    descriptors = {};
  }
  return true;
}

std::optional<received> raw_client::next_of_decoded() {
  if (auto frame = decoder_.next())
    return received{frame->kind, frame->request_id, {frame->body.begin(), frame->body.end()}};
  return std::nullopt;
}

/// Returns false if nothing came. Throws if the daemon broke the protocol.
bool raw_client::read_some(int flags) {
  protocol::incoming_message message;
  ssize_t n =
      ::recvmsg(socket_.get(), message.prepare(decoder_.write_area()), protocol::receive_flags | flags);
  if (n < 0)
    return false;
  auto arrived = message.take();
  if (n == 0) {
    ended_ = true;
    return false;
  }
  if (auto sound = decoder_.commit(static_cast<size_t>(n), std::move(arrived), message.truncated()); !sound)
    throw std::runtime_error("the daemon broke the protocol: " + sound.error().text);
  return true;
}

std::optional<received> raw_client::receive() {
  for (;;) {
    if (auto frame = next_of_decoded())
      return frame;
    pollfd watched{socket_.get(), POLLIN, 0};
    if (::poll(&watched, 1, patience_ms) != 1 || !read_some(0))
      return std::nullopt;
  }
}

std::optional<received> raw_client::next() {
  for (;;) {
    if (auto frame = next_of_decoded())
      return frame;
    if (!read_some(MSG_DONTWAIT))
      return std::nullopt;
  }
}

bool raw_client::ended() {
  while (next()) {
  }
  return ended_;
}

bool raw_client::greet() {
  if (!send(hello_frame()))
    return false;
  auto answer = receive();
  return answer && !answer->is_error();
}

} // namespace terrace::test
