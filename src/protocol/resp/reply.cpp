#include "protocol/resp/reply.hpp"

#include <algorithm>
#include <cassert>

namespace terrace::resp {

void append_error(std::string& to, std::string_view code, std::string_view text) {
  to.push_back('-');
  to.append(code);
  to.push_back(' ');
  for (char c : text)
    to.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  to.append("\r\n");
}

void append_failure(std::string& to, const error& why) {
  switch (why.code) {
    case errc::no_space: return append_error(to, "OOM", why.text);
    case errc::busy:
    case errc::deadline: return append_error(to, "BUSY", why.text);
    case errc::denied: return append_error(to, "NOPERM", why.text);
    default: return append_error(to, "ERR", std::string(to_string(why.code)) + ": " + why.text);
  }
}

std::string& reply_queue::text() {
  if (pieces_.size() <= being_sent_ || !pieces_.back().text)
    pieces_.push_back({std::make_shared<std::string>(), {}, nullptr});
  return *pieces_.back().text;
}

void reply_queue::add_value(std::span<const std::byte> bytes, keep_alive owner) {
  assert(!bytes.empty());
  pieces_.push_back({nullptr, bytes, std::move(owner)});
  ++values_;
}

uint64_t reply_queue::text_bytes() const {
  uint64_t bytes = 0;
  for (const piece& one : pieces_)
    bytes += one.text ? one.size() : 0;
  return bytes;
}

reply_queue::part reply_queue::begin(uint64_t bytes_most) {
  assert(being_sent_ == 0);
  part next;
  size_t skip = first_sent_;
  for (const piece& one : pieces_) {
    if (next.areas.size() == areas_max || next.bytes >= bytes_most)
      break;
    size_t bytes = static_cast<size_t>(std::min<uint64_t>(one.size() - skip, bytes_most - next.bytes));
    next.areas.push_back(
        {const_cast<char*>(static_cast<const char*>(one.data())) + skip, bytes}); // the kernel only reads it
    next.owners.push_back(one.text ? keep_alive(one.text) : one.owner);
    next.bytes += bytes;
    ++being_sent_;
    skip = 0;
  }
  return next;
}

void reply_queue::sent(uint64_t bytes) {
  being_sent_ = 0;
  while (bytes != 0) {
    assert(!pieces_.empty());
    piece& first = pieces_.front();
    uint64_t left = first.size() - first_sent_;
    if (bytes < left) {
      first_sent_ += static_cast<size_t>(bytes);
      return;
    }
    bytes -= left;
    values_ -= first.text ? 0 : 1;
    pieces_.pop_front();
    first_sent_ = 0;
  }
}

} // namespace terrace::resp
