// Turns what recvmsg delivers, split and merged as it likes, into frames. Pure: it owns memory and
// descriptors and makes no system call but close.
//
//   message.prepare(decoder.write_area());
//   n = recvmsg(fd, message.header(), receive_flags);
//   auto descriptors = message.take();
//   if (auto ok = decoder.commit(n, std::move(descriptors), message.truncated()); !ok) end the connection
//   with ok.error() while (auto next = decoder.next()) handle(*next);
//
// Bytes go from the kernel straight to where the frame is read. A frame that does not fit the buffer of an
// idle connection gets a buffer of its own announced length, which is given back as soon as its frames are
// read, so an idle connection costs `idle_bytes`, whatever it has received before.
#pragma once

#include "base/error.hpp"
#include "protocol/descriptors.hpp"
#include "protocol/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
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
  };

  explicit frame_decoder(options settings);

  /// Where the next bytes go; never empty. Ends the life of the bodies of all frames that `next` gave out
  /// before, but of those that were held. The area stays in place until the next call.
  std::span<uint8_t> write_area();

  /// `bytes` were written to the start of the write area, and `descriptors` came with them. An error is
  /// final: the peer broke the protocol, the text says how, the connection must end. Descriptors are closed
  /// then.
  result<void> commit(size_t bytes, descriptor_list descriptors, bool descriptors_truncated);

  /// The next whole frame, if there is one. After an error in `commit` the frames before the broken one still
  /// come.
  std::optional<frame> next();

  /// Keeps the bodies of all frames that were given out since the last write area, for as long as the pointer
  /// lives, on any thread. Costs the decoder one allocation; meant for large bodies that travel to another
  /// actor.
  std::shared_ptr<const void> hold();

  /// Bytes of an incomplete frame, or of frames not yet taken. An end of file while it is not zero cuts a
  /// frame off.
  size_t pending_bytes() const { return end_ - begin_; }

  /// Memory held now.
  size_t capacity() const { return capacity_; }

  /// Frames that start from now on may be this long: small before the handshake, what was agreed after it.
  void set_frame_bytes_max(uint64_t bytes) { settings_.frame_bytes_max = bytes; }

 private:
  using buffer = std::shared_ptr<uint64_t[]>; // words: bodies lie on 8-byte boundaries

  uint8_t* data() const { return reinterpret_cast<uint8_t*>(buffer_.get()); }
  result<void> scan();
  result<void> check(const frame_header& header) const;
  void replace_buffer(size_t bytes);

  options settings_;
  buffer buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;   ///< first byte not yet given out: always the start of a frame
  size_t end_ = 0;     ///< behind the last received byte
  size_t scanned_ = 0; ///< start of the first frame whose header has not been checked; may lie behind end_
  bool held_ = false;  ///< somebody else may read the buffer: never write where frames were
  std::optional<error> broken_;
  std::deque<unique_fd> descriptors_;
  size_t claimed_ = 0; ///< descriptors that checked frames, not yet given out, will take
};

} // namespace terrace::protocol
