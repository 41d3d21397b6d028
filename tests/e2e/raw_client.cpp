#include "raw_client.hpp"

#include "process.hpp"
#include "protocol/verify.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>

namespace terrace::e2e {

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

raw_client::raw_client(const std::string& socket)
    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to " + socket + ": " + std::strerror(errno));
}

bool raw_client::send(std::span<const uint8_t> bytes, std::span<const int> descriptors) {
  while (!bytes.empty()) {
    // Not outgoing_message: it refuses to send more descriptors than a frame may have.
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
    ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (n < 0)
      return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
    descriptors = {};
  }
  return true;
}

std::optional<raw_answer> raw_client::receive() {
  for (;;) {
    if (received_.size() >= protocol::header_bytes) {
      auto header = protocol::read_header(received_.data());
      if (received_.size() >= header.length) {
        raw_answer answer;
        answer.kind = static_cast<uint16_t>(header.kind);
        answer.request = header.request_id;
        answer.body.assign(received_.begin() + protocol::header_bytes, received_.begin() + header.length);
        received_.erase(received_.begin(), received_.begin() + header.length);
        if (answer.is_error())
          if (auto table = protocol::parse<wire::Error>(answer.body)) {
            answer.error_code = (*table)->code();
            answer.error_text = (*table)->text()->str();
          }
        return answer;
      }
    }
    pollfd watched{socket_.get(), POLLIN, 0};
    std::array<uint8_t, 4096> some;
    ssize_t n =
        ::poll(&watched, 1, patience_ms) == 1 ? ::recv(socket_.get(), some.data(), some.size(), 0) : -1;
    if (n <= 0)
      return std::nullopt;
    received_.insert(received_.end(), some.begin(), some.begin() + n);
  }
}

bool raw_client::greet() {
  if (!send(hello_frame()))
    return false;
  auto answer = receive();
  return answer && !answer->is_error();
}

} // namespace terrace::e2e
