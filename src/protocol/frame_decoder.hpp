// Assembles frames from the bytes of recvmsg, however they are split or merged. Pure: it owns memory and
// descriptors and makes no system call except close.
//
//   message.prepare(decoder.write_area());
//   n = recvmsg(fd, message.header(), receive_flags);
//   auto descriptors = message.take();
//   if (auto ok = decoder.commit(n, std::move(descriptors), message.truncated()); !ok) end the connection
//   with ok.error() while (auto next = decoder.next()) handle(*next);
//
// Bytes are received directly where the frame is read. A frame larger than the buffer of an idle connection
// gets a buffer of its own length, which is released as soon as its frames are read, so an idle connection
// costs `idle_bytes`, whatever it has received before.
#pragma once

#include "base/error.hpp"
#include "protocol/descriptors.hpp"
#include "protocol/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace terrace::protocol {

enum class direction : uint8_t { requests, answers }; ///< what the peer may send

class frame_decoder {
 public:
  struct options {
    direction accepts = direction::requests;
    size_t idle_bytes = 16 << 10;                         ///< a multiple of 8, at least 64
    uint64_t frame_bytes_max = protocol::frame_bytes_max; ///< at most protocol::frame_bytes_max
    /// Deletes (`delete[]`) a buffer of `large_bytes` or more, on any thread, where unmapping its pages does
    /// not delay others. Empty: the last owner deletes it.
    std::function<void(uint64_t*)> dispose{};
  };

  static constexpr size_t large_bytes = 1 << 20;

  explicit frame_decoder(options settings);

  /// Returns the place for the next bytes; never empty. Invalidates the bodies of all frames returned by
  /// `next`, except those that were held. The area stays in place until the next call.
  std::span<uint8_t> write_area();

  /// Call after `bytes` were written to the start of the write area; `descriptors` came with them. An error is final:
  /// the peer violated the protocol, the text says how, the connection must end. Descriptors are then closed.
  result<void> commit(size_t bytes, descriptor_list descriptors, bool descriptors_truncated);

  /// Returns the next whole frame, if there is one. After an error in `commit`, the frames before the invalid
  /// one are still returned.
  std::optional<frame> next();

  /// Returns the checked header of the frame that `next` would return, even while its body is incomplete.
  std::optional<frame_header> peek() const;

  /// Keeps the bodies of all frames returned since the last write area, for the lifetime of the pointer, on
  /// any thread. Costs an allocation, unless nobody holds the bodies of the time before any more.
  std::shared_ptr<const void> hold();

  /// Bytes of an incomplete frame, or of frames not yet taken. If the number is not zero at an end of file, a
  /// frame was truncated.
  size_t pending_bytes() const { return end_ - begin_; }

  /// Memory held now.
  size_t capacity() const { return capacity_; }

  /// The maximum length of frames that start from now on: small before the handshake, as agreed afterwards.
  void set_frame_bytes_max(uint64_t bytes) { settings_.frame_bytes_max = bytes; }

 private:
  using buffer = std::shared_ptr<uint64_t[]>; // words: bodies lie on 8-byte boundaries

  uint8_t* data() const { return reinterpret_cast<uint8_t*>(buffer_.get()); }
  result<void> scan();
  result<void> check(const frame_header& header) const;
  void replace_buffer(size_t bytes);

  options settings_;
  buffer buffer_;
  buffer former_; ///< the last idle one that was held: it serves again once nobody holds it any more
  size_t capacity_ = 0;
  size_t begin_ = 0;   ///< first byte not yet given out: always the start of a frame
  size_t end_ = 0;     ///< one past the last received byte
  size_t scanned_ = 0; ///< start of the first frame whose header has not been checked; may be beyond end_
  bool held_ = false;  ///< others may read the buffer: frames in it must not be overwritten
  std::optional<error> broken_;
  std::deque<unique_fd> descriptors_;
  size_t claimed_ = 0; ///< number of descriptors of checked frames not yet returned
};

} // namespace terrace::protocol
