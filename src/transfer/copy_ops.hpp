// The operations of a copier on bytes: plain, blocking functions.
#pragma once

#include "index/payload_checksum.hpp"
#include "transfer/copy_messages.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace terrace {

// A copy in parts, which several copiers do at the same time.
//
// Pure: a transfer asks a copier for each part and joins their answers.

/// Payload of a part, at least: 100 us of copying, beside which it costs little to wake a copier.
constexpr uint64_t copy_part_bytes_min = 1 << 20;

/// How many parts of that size it has; 1: it is not divided. A copy with checksums is divided between objects.
size_t copy_parts_max(const copy_request& request);

/// Contiguous parts of about as many bytes each, at most `count`; of a first load into a client's memory they begin at large pages where they can. They end together: the last one that is copied announces what
/// has arrived, and when one fails, the others stop.
std::vector<copy_request> parts_of(copy_request request, size_t count);

/// The answer to the whole. `answers`: of all parts, in their order.
copy_answer joined(std::vector<copy_answer> answers);

/// Copies the objects in order, piece by piece. Mapped memory is copied; unmapped memory is accessed through its descriptor,
/// where truncation is the error `gone` and not a fault. Ends early with the context. Checksums are those of
/// the arena's bytes, whatever the client does to its own, and are computed while these are in cache, which
/// costs half of reading them again.
copy_answer move_bytes(const copy_request& request, uint64_t piece_bytes);

/// The same, a part at a time. Costs are in bytes: those that are copied, and for each piece what it costs beside
/// them. So a million pieces of a byte are not a megabyte.
class byte_copy {
 public:
  byte_copy(copy_request request, uint64_t piece_bytes);

  uint64_t left() const { return left_; } ///< cost of the rest

  /// Goes on until `budget` is spent, and one part of a piece more at most. Before a load reaches memory of a client for the first time,
  /// 2 MiB of it are mapped: what that costs beyond the budget is paid from the next ones. True: it is done.
  bool go_on(uint64_t budget);
  /// Once, when it is done. Announces what has arrived.
  copy_answer take_answer() {
    if (answer_.failure.code == errc::ok && (!request_.parts || request_.parts->copied()))
      request_.arrived.announce();
    return std::move(answer_);
  }

 private:
  bool ends(error why);
  void open_object();
  void next_piece();
  bool may_reach_new_memory() const;
  bool goes_on_for(uint64_t bytes) const;
  uint64_t map_ahead();

  copy_request request_;
  copy_answer answer_;
  uint64_t piece_bytes_;
  uint64_t each_;                     ///< cost of a piece beside its bytes
  size_t object_ = 0;                 ///< the current one
  piece_cursor pieces_;               ///< of the current object, after the current piece
  std::optional<object_piece> piece_; ///< the current one; empty: everything is copied
  uint64_t done_ = 0;                 ///< of the current piece
  uint64_t left_ = 0;
  uint64_t owed_ = 0; ///< of it: the cost of what was mapped ahead
  std::optional<payload_checksummer> sum_;
};

/// For one object of a request.
void seal_object(const seal_request& request, const sealed_object& object);
bool check_object(const check_request& request, const sealed_object& object);

/// Writes the header block in front of each payload and zeroes the padding after it. Reads only payloads
/// whose checksum is not known; the others take a microsecond each.
void seal_objects(const seal_request& request);

/// True if header and checksum match the expected object.
std::vector<bool> check_objects(const check_request& request);

} // namespace terrace
