#include "protocol/frame_decoder.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <string>

namespace terrace::protocol {

frame_decoder::frame_decoder(options settings) : settings_(std::move(settings)) {
  assert(settings_.idle_bytes % frame_alignment == 0 && settings_.idle_bytes >= 64);
  assert(settings_.frame_bytes_max <= protocol::frame_bytes_max);
}

void frame_decoder::replace_buffer(size_t bytes) {
  size_t words = bytes / sizeof(uint64_t);
  buffer fresh;
  if (bytes == settings_.idle_bytes && former_.use_count() == 1) {
    std::atomic_thread_fence(std::memory_order_acquire); // whoever held it may have read it on another thread
    fresh = std::move(former_);
  } else if (bytes >= large_bytes && settings_.dispose) {
    fresh = buffer(new uint64_t[words], settings_.dispose);
  } else {
    fresh = std::make_shared_for_overwrite<uint64_t[]>(words);
  }
  if (end_ > begin_)
    std::memcpy(fresh.get(), data() + begin_, end_ - begin_);
  if (held_ && capacity_ == settings_.idle_bytes)
    former_ = std::move(buffer_);
  buffer_ = std::move(fresh);
  capacity_ = bytes;
  held_ = false;
  scanned_ -= begin_;
  end_ -= begin_;
  begin_ = 0;
}

std::span<uint8_t> frame_decoder::write_area() {
  // The frame being received determines the space needed: its whole length once its header is complete.
  // Frames received whole but not taken yet are kept as well.
  size_t pending = end_ - begin_;
  size_t wanted = settings_.idle_bytes;
  if (scanned_ > end_)
    wanted = std::max(wanted, scanned_ - begin_);
  else if (pending + header_bytes > wanted)
    wanted = (pending + settings_.idle_bytes + frame_alignment - 1) & ~(frame_alignment - 1);

  bool oversized = capacity_ > wanted && capacity_ > settings_.idle_bytes;
  if (!buffer_ || held_ || capacity_ < wanted ||
      (oversized && pending <= settings_.idle_bytes / 2 && scanned_ <= end_)) {
    replace_buffer(wanted);
  } else if (begin_ > 0 && (begin_ == end_ || capacity_ - begin_ < wanted)) {
    // This moves little: at most one partial frame, once per buffer that was filled.
    std::memmove(data(), data() + begin_, pending);
    scanned_ -= begin_;
    end_ = pending;
    begin_ = 0;
  }
  return {data() + end_, capacity_ - end_};
}

result<void> frame_decoder::commit(size_t bytes, descriptor_list descriptors, bool descriptors_truncated) {
  if (broken_)
    return tl::unexpected<error>(*broken_);
  assert(bytes <= capacity_ - end_);
  end_ += bytes;
  for (size_t i = 0; i < descriptors.size(); ++i)
    descriptors_.push_back(std::move(descriptors[i]));
  result<void> ok;
  if (descriptors_truncated)
    ok = fail(errc::bad_request, "descriptors were cut off (MSG_CTRUNC): send at most " +
                                     std::to_string(descriptors_max) +
                                     " with a frame; if so few were sent, the receiver is out of descriptors "
                                     "(RLIMIT_NOFILE)");
  else
    ok = scan();
  if (!ok) {
    broken_ = ok.error();
    // Descriptors of the frames before the invalid one are kept; the others are closed now.
    if (descriptors_.size() > claimed_)
      descriptors_.resize(claimed_);
  }
  return ok;
}

// Checks the headers of all frames whose first 16 bytes are present, and their descriptors.
result<void> frame_decoder::scan() {
  while (scanned_ + header_bytes <= end_) {
    auto header = read_header(data() + scanned_);
    if (auto ok = check(header); !ok)
      return ok;
    if (claimed_ + header.fd_count > descriptors_.size())
      return fail(errc::bad_request, "the frame of kind " + std::string(to_string(header.kind)) +
                                         " announces " + std::to_string(header.fd_count) +
                                         " descriptors, but " +
                                         std::to_string(descriptors_.size() - claimed_) +
                                         " came with it; send them with the frame's first byte");
    claimed_ += header.fd_count;
    scanned_ += header.length;
  }
  // Descriptors may precede their frame only while its header is incomplete.
  bool partial_header = scanned_ < end_;
  size_t surplus = descriptors_.size() - claimed_;
  if (surplus > (partial_header ? descriptors_max : 0))
    return fail(errc::bad_request, "expected as many descriptors as the frames announce (fd_count), got " +
                                       std::to_string(surplus) + " more");
  return {};
}

result<void> frame_decoder::check(const frame_header& header) const {
  auto number = std::to_string(static_cast<unsigned>(header.kind));
  if (header.length < header_bytes || header.length > settings_.frame_bytes_max)
    return fail(errc::bad_request, "expected a frame length of " + std::to_string(header_bytes) + " to " +
                                       std::to_string(settings_.frame_bytes_max) + " bytes, got " +
                                       std::to_string(header.length) + " (kind " + number + ")");
  if (header.length % frame_alignment != 0)
    return fail(errc::bad_request, "expected a frame length that is a multiple of " +
                                       std::to_string(frame_alignment) + ", got " +
                                       std::to_string(header.length) + "; pad the body with zeros");
  bool known = settings_.accepts == direction::requests ? is_request(header.kind) : is_answer(header.kind);
  if (!known)
    return fail(errc::bad_request,
                std::string("expected the kind of ") +
                    (settings_.accepts == direction::requests ? "a request" : "an answer") +
                    " of protocol version " + std::to_string(version) + ", got " + number + " (" +
                    std::string(to_string(header.kind)) + ")");
  if (header.fd_count > descriptors_max)
    return fail(errc::bad_request, "expected at most " + std::to_string(descriptors_max) +
                                       " descriptors with a frame, got fd_count " +
                                       std::to_string(header.fd_count));
  if (header.fd_count > descriptors_allowed(header.kind))
    return fail(errc::bad_request, "expected at most " + std::to_string(descriptors_allowed(header.kind)) +
                                       " descriptors with a frame of kind " +
                                       std::string(to_string(header.kind)) + ", got fd_count " +
                                       std::to_string(header.fd_count));
  return {};
}

std::optional<frame> frame_decoder::next() {
  // Returns only complete frames with a checked header.
  if (begin_ >= scanned_ || begin_ >= end_)
    return std::nullopt;
  auto header = read_header(data() + begin_);
  if (begin_ + header.length > end_)
    return std::nullopt;
  frame out{
      header.kind, header.request_id, {data() + begin_ + header_bytes, header.length - header_bytes}, {}};
  for (uint16_t i = 0; i < header.fd_count; ++i) {
    out.descriptors.push_back(std::move(descriptors_.front()));
    descriptors_.pop_front();
  }
  claimed_ -= header.fd_count;
  begin_ += header.length;
  return out;
}

std::optional<frame_header> frame_decoder::peek() const {
  if (begin_ >= scanned_ || begin_ >= end_)
    return std::nullopt;
  return read_header(data() + begin_);
}

std::shared_ptr<const void> frame_decoder::hold() {
  held_ = true;
  return buffer_;
}

} // namespace terrace::protocol
