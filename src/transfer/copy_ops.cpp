#include "transfer/copy_ops.hpp"

#include "storage/index_record.hpp"
#include "storage/object_header.hpp"
#include "storage/payload_checksum.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace terrace {

namespace {

/// A piece that a core copies and then finds in its own cache. Larger pieces bypass the caches, and smaller
/// ones gain nothing.
constexpr uint64_t in_cache_bytes = 256 << 10;

error shrunk(const outside_memory& outside, uint64_t offset, uint64_t bytes) {
  return {errc::gone, "the region's file no longer holds bytes " + std::to_string(offset) + " to " +
                          std::to_string(offset + bytes) + " of " + std::to_string(outside.bytes) +
                          "; seal it against shrinking (F_SEAL_SHRINK)"};
}

/// Through the descriptor: any number of short transfers, until an error or the end of a truncated file.
error move_through_file(const outside_memory& outside, copy_direction direction, std::byte* inside,
                        uint64_t offset, uint64_t bytes) {
  if (direction == copy_direction::out_of_arena) {
    struct stat status {};
    // A write beyond the end would extend the file, which the client has truncated, so it gets an error
    // instead.
    if (::fstat(outside.fd, &status) != 0 || static_cast<uint64_t>(status.st_size) < offset + bytes)
      return shrunk(outside, offset, bytes);
  }
  for (uint64_t done = 0; done < bytes;) {
    auto at = static_cast<off_t>(offset + done);
    ssize_t n = direction == copy_direction::into_arena
                    ? ::pread(outside.fd, inside + done, bytes - done, at)
                    : ::pwrite(outside.fd, inside + done, bytes - done, at);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return {errc::gone, "the region cannot be accessed: " + std::string(std::strerror(errno))};
    if (n == 0)
      return shrunk(outside, offset, bytes);
    done += static_cast<uint64_t>(n);
  }
  return {};
}

error move_part(const copy_request& request, std::byte* inside, uint64_t offset, uint64_t bytes) {
  const outside_memory& outside = request.outside;
  if (outside.data == nullptr)
    return move_through_file(outside, request.direction, inside, offset, bytes);
  if (request.direction == copy_direction::into_arena)
    std::memcpy(inside, outside.data + offset, bytes);
  else
    std::memcpy(outside.data + offset, inside, bytes);
  return {};
}

object_identity identity_of(const opened_space& in, const volume_id& volume, const sealed_object& object) {
  object_identity identity;
  identity.space = in.fingerprint.bytes;
  identity.pool = object.key.pool;
  identity.rank = object.key.rank;
  identity.chunk = object.key.chunk;
  identity.generation = object.generation;
  identity.epoch = epoch_of(object.generation);
  identity.volume = volume;
  return identity;
}

std::span<const std::byte> payload_of(const sealed_object& object) {
  return {object.begin + object_header_bytes, object.payload_bytes};
}

} // namespace

copy_answer move_bytes(const copy_request& request, uint64_t piece_bytes) {
  copy_answer answer;
  std::optional<payload_checksummer> sum;
  if (!request.object_ends.empty()) {
    piece_bytes = std::min(piece_bytes, in_cache_bytes);
    sum.emplace();
  }
  for (const copy_piece& piece : request.pieces) {
    for (uint64_t done = 0; done < piece.bytes;) {
      if (request.context && !request.context->live()) {
        answer.failure = {request.context->ended.load(), "the request ended while its bytes were copied"};
        return answer;
      }
      uint64_t part = std::min(piece_bytes, piece.bytes - done);
      if (error failed = move_part(request, piece.inside + done, piece.outside_offset + done, part);
          failed.code != errc::ok) {
        answer.failure = std::move(failed);
        return answer;
      }
      if (sum)
        sum->update({piece.inside + done, part});
      done += part;
      answer.bytes += part;
    }
    ++answer.pieces_done;
    if (sum && answer.checksums.size() < request.object_ends.size() &&
        request.object_ends[answer.checksums.size()] == answer.pieces_done) {
      answer.checksums.push_back(sum->value());
      sum->restart();
    }
  }
  return answer;
}

void seal_objects(const seal_request& request) {
  for (const sealed_object& object : request.objects) {
    std::byte* payload_end = object.begin + object_header_bytes + object.payload_bytes;
    std::memset(payload_end, 0, static_cast<size_t>(object.begin + object.physical_bytes - payload_end));
    object_header header;
    header.identity = identity_of(*request.in, request.volume, object);
    header.payload_bytes = object.payload_bytes;
    header.physical_bytes = object.physical_bytes;
    header.payload_checksum = object.checksum ? *object.checksum : payload_checksum(payload_of(object));
    encode(header, std::span<std::byte, object_header_bytes>(object.begin, object_header_bytes));
  }
}

std::vector<bool> check_objects(const check_request& request) {
  std::vector<bool> good;
  good.reserve(request.objects.size());
  for (const sealed_object& object : request.objects) {
    auto header = decode(std::span<const std::byte, object_header_bytes>(object.begin, object_header_bytes));
    good.push_back(header && header->payload_bytes == object.payload_bytes &&
                   matches(*header, identity_of(*request.in, request.volume, object)).has_value() &&
                   header->payload_checksum == payload_checksum(payload_of(object)));
  }
  return good;
}

} // namespace terrace
