#include "storage/object_check.hpp"

#include "index/payload_checksum.hpp"

#include <algorithm>

namespace terrace {

namespace {

constexpr uint64_t object_bytes_max = 1ULL << 30; ///< largest object on disk; a search goes no further

/// Returns the problem with an object's header, if any.
checked_object check_header(const result<object_header>& header, const index_record& object,
                            const object_identity& expected) {
  if (!header)
    return {stored_state::damaged, header.error().text};
  if (auto same = matches(*header, expected); !same)
    return {stored_state::superseded, same.error().text};
  if (header->payload_bytes != object.payload_bytes)
    return {stored_state::damaged, "the index records " + std::to_string(object.payload_bytes) +
                                       " bytes, its header " + std::to_string(header->payload_bytes)};
  return {};
}

} // namespace

checked_object object_checker::check(const index_record& object, const space_fingerprint& space) {
  checked_object found = compare(object, space);
  if (found.state == stored_state::damaged && overwritten(object))
    return {stored_state::superseded, "a newer object was written over a part of it", found.bytes_read};
  return found;
}

std::optional<object_header> object_checker::header_in(std::span<const std::byte> block) const {
  auto header = decode(block.first<object_header_bytes>());
  if (!header || header->identity.volume != block_.volume)
    return std::nullopt;
  return *header;
}

bool object_checker::overwritten(const index_record& object) {
  const uint64_t begin = block_.layout.extents_begin + object.offset;
  for (uint64_t done = 0; done < object.physical_bytes;) {
    auto piece = buffer_.bytes().first(std::min(object.physical_bytes - done, buffer_.size()));
    if (!from_.read(begin + done, piece))
      return false;
    for (uint64_t at = 0; at < piece.size(); at += object_header_bytes)
      if (auto header = header_in(piece.subspan(at));
          header && header->identity.generation > object.generation)
        return true;
    done += piece.size();
  }
  // The nearest header before the extent belongs to the object whose payload would be here.
  uint64_t lowest = begin - std::min(object.offset, object_bytes_max);
  uint64_t searched = begin;
  auto remember = [&] { bare_begin_ = searched, bare_end_ = begin; };
  for (uint64_t end = begin; end > lowest; searched = end) {
    if (end > bare_begin_ && end <= bare_end_) {
      end = bare_begin_;
      continue;
    }
    uint64_t until = end > bare_end_ ? std::max(lowest, bare_end_) : lowest;
    auto piece = buffer_.bytes().first(std::min(end - until, buffer_.size()));
    end -= piece.size();
    if (!from_.read(end, piece))
      return false;
    for (uint64_t at = piece.size(); at > 0;) {
      at -= object_header_bytes;
      if (auto header = header_in(piece.subspan(at))) {
        searched = end + at + object_header_bytes;
        remember();
        return header->identity.generation > object.generation && end + at + header->physical_bytes > begin;
      }
    }
  }
  remember();
  return false;
}

checked_object object_checker::compare(const index_record& object, const space_fingerprint& space) {
  object_identity expected{.space = space,
                           .pool = object.pool,
                           .rank = object.rank,
                           .chunk = object.chunk,
                           .digest_width = object.digest_width,
                           .generation = object.generation,
                           .epoch = epoch_of(object.generation),
                           .volume = block_.volume};
  uint64_t begin = block_.layout.extents_begin + object.offset;
  uint64_t wanted = physical_bytes_for(object.payload_bytes);
  uint64_t sum = 0;
  uint64_t payload_left = object.payload_bytes;
  payload_checksummer summer;
  for (uint64_t done = 0; done < wanted;) {
    auto piece = buffer_.bytes().first(std::min(wanted - done, buffer_.size()));
    if (auto read = from_.read(begin + done, piece); !read)
      return {stored_state::unreadable, read.error().text, done};
    std::span<const std::byte> payload = piece;
    if (done == 0) {
      auto header =
          decode(std::span<const std::byte, object_header_bytes>(piece.data(), object_header_bytes));
      if (auto found = check_header(header, object, expected); found.state != stored_state::intact) {
        found.bytes_read = piece.size();
        return found;
      }
      sum = header->payload_checksum;
      payload = payload.subspan(object_header_bytes);
    }
    payload = payload.first(std::min<uint64_t>(payload.size(), payload_left));
    summer.update(payload);
    payload_left -= payload.size();
    done += piece.size();
  }
  if (summer.value() != sum)
    return {stored_state::damaged, "its payload does not match its checksum", wanted};
  return {stored_state::intact, {}, wanted};
}

} // namespace terrace
