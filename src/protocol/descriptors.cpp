#include "protocol/descriptors.hpp"

#include <cassert>
#include <cstring>

namespace terrace::protocol {

msghdr* incoming_message::prepare(std::span<uint8_t> area) {
  area_ = {area.data(), area.size()};
  header_ = {};
  header_.msg_iov = &area_;
  header_.msg_iovlen = 1;
  header_.msg_control = control_.data();
  header_.msg_controllen = control_.size();
  truncated_ = false;
  return &header_;
}

descriptor_list incoming_message::take() {
  descriptor_list taken;
  truncated_ = header_.msg_flags & MSG_CTRUNC;
  for (auto* item = CMSG_FIRSTHDR(&header_); item; item = CMSG_NXTHDR(&header_, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
      continue;
    size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
      if (!taken.push_back(unique_fd(fd)))
        truncated_ = true;
    }
  }
  header_.msg_controllen = 0; // a second call takes nothing
  return taken;
}

msghdr* outgoing_message::prepare(std::span<const uint8_t> bytes, std::span<const int> descriptors) {
  assert(descriptors.size() <= descriptors_max);
  area_ = {const_cast<uint8_t*>(bytes.data()), bytes.size()}; // sendmsg does not modify it
  header_ = {};
  header_.msg_iov = &area_;
  header_.msg_iovlen = 1;
  if (descriptors.empty())
    return &header_;
  control_.fill(0); // the padding between elements is passed to the kernel
  header_.msg_control = control_.data();
  header_.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  auto* item = CMSG_FIRSTHDR(&header_);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
  return &header_;
}

} // namespace terrace::protocol
