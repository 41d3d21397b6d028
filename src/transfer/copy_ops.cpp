#include "transfer/copy_ops.hpp"

#include "base/copy_memory.hpp"
#include "index/object_header.hpp"
#include "index/payload_checksum.hpp"
#include "memory/region_populator.hpp"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace terrace {

namespace {

/// A piece that a core copies and then finds in its own cache. Larger pieces bypass the caches, and smaller
/// ones gain nothing.
constexpr uint64_t in_cache_bytes = 256 << 10;

/// What a piece costs beside its bytes, in bytes that are copied in the same time: 20 ns in mapped memory, and two
/// system calls through a descriptor.
constexpr uint64_t mapped_piece_cost = 256;
constexpr uint64_t file_piece_cost = 16 << 10;

/// Pieces and objects, to find out whether a whole slice of a region is copied: 2 MiB in objects of 32 KiB.
constexpr int looks_ahead = 128;

constexpr const char* ended_meanwhile = "the request ended while its bytes were copied";

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
    copy_memory(inside, outside.data + offset, bytes);
  else
    copy_memory(outside.data + offset, inside, bytes);
  return {};
}

object_identity identity_of(const opened_space& opened, const volume_id& volume,
                            const sealed_object& object) {
  return expected_of(opened, volume, object.key, object.generation, object.payload_bytes).identity;
}

std::span<const std::byte> payload_of(const sealed_object& object) {
  return {object.begin + object_header_bytes, object.payload_bytes};
}

} // namespace

uint64_t piece_cost(const outside_memory& outside) {
  return outside.data != nullptr ? mapped_piece_cost : file_piece_cost;
}

byte_copy::byte_copy(copy_request request, uint64_t piece_bytes)
    : request_(std::move(request)), piece_bytes_(piece_bytes), each_(piece_cost(request_.outside)) {
  for (size_t i = 0; i < request_.objects.size(); ++i) {
    auto content = request_.runs->count(request_.objects[i].number, request_.range_of(i));
    left_ += content.bytes + content.pieces * each_;
  }
  if (request_.checksums) {
    piece_bytes_ = std::min(piece_bytes_, in_cache_bytes);
    sum_.emplace();
  }
  open_object();
}

void byte_copy::open_object() {
  while (object_ != request_.objects.size()) {
    pieces_ = request_.runs->pieces(request_.objects[object_].number, request_.range_of(object_));
    piece_ = pieces_.next();
    if (piece_)
      return;
    ++object_; // all of it is skipped
  }
}

void byte_copy::next_piece() {
  done_ = 0;
  piece_ = pieces_.next();
  if (piece_)
    return;
  if (sum_) {
    answer_.checksums.push_back(sum_->value());
    sum_->restart();
  }
  ++object_;
  open_object();
}

bool byte_copy::may_reach_new_memory() const {
  return request_.outside.ahead != nullptr && request_.outside.data != nullptr;
}

/// So many bytes of the outside memory come next, without a gap: in this piece and those behind it, also of the next objects.
bool byte_copy::goes_on_for(uint64_t bytes) const {
  uint64_t found = piece_->bytes - done_, end = piece_->region_offset + piece_->bytes;
  piece_cursor pieces = pieces_;
  size_t object = object_;
  for (int looks = 0; found < bytes && looks < looks_ahead; ++looks) {
    if (auto next = pieces.next()) {
      if (next->region_offset != end)
        return false;
      found += next->bytes;
      end += next->bytes;
    } else if (++object != request_.objects.size()) {
      pieces = request_.runs->pieces(request_.objects[object].number, request_.range_of(object));
    } else {
      return false;
    }
  }
  return found >= bytes;
}

/// A slice of a region, if it is the first time that all of it is copied. Returns what that cost.
uint64_t byte_copy::map_ahead() {
  const uint64_t at = piece_->region_offset + done_;
  region_ahead* ahead = request_.outside.ahead;
  if (!may_reach_new_memory() || at % region_ahead::slice_bytes != 0 || !ahead->is_new(at) ||
      !goes_on_for(region_ahead::slice_bytes))
    return 0;
  if (request_.direction == copy_direction::out_of_arena)
    return ahead->before_load(request_.outside.data, at);
  ahead->before_store(at);
  return 0;
}

bool byte_copy::go_on(uint64_t budget) {
  uint64_t spent = 0;
  while (piece_) {
    if (request_.context && !request_.context->live())
      return ends({request_.context->ended.load(), ended_meanwhile});
    if (request_.parts && request_.parts->failed())
      return ends({errc::cancelled, ended_meanwhile});
    if (spent < budget && owed_ == 0) {
      owed_ = map_ahead();
      left_ += owed_;
    }
    const uint64_t paid = std::min(owed_, budget - std::min(spent, budget));
    owed_ -= paid;
    left_ -= paid;
    spent += paid;
    if (spent >= budget)
      return false;
    const uint64_t at = piece_->region_offset + done_;
    std::byte* inside = request_.objects[object_].inside + piece_->object_offset + done_;
    uint64_t part = std::min({piece_bytes_, piece_->bytes - done_, budget - spent});
    if (may_reach_new_memory())
      part = std::min(part, region_ahead::slice_bytes - at % region_ahead::slice_bytes);
    auto failed = move_part(request_, inside, at, part);
    if (failed.code != errc::ok)
      return ends(std::move(failed));
    if (sum_)
      sum_->update({inside, part});
    done_ += part;
    answer_.bytes += part;
    bool whole = done_ == piece_->bytes;
    uint64_t cost = part + (whole ? each_ : 0);
    spent += cost;
    left_ -= cost;
    if (whole)
      next_piece();
  }
  return true;
}

bool byte_copy::ends(error why) {
  const bool first = !request_.parts || request_.parts->fail();
  answer_.failure = first ? std::move(why) : error{errc::cancelled, ended_meanwhile};
  left_ = 0;
  return true;
}

copy_answer move_bytes(const copy_request& request, uint64_t piece_bytes) {
  byte_copy copy(request, piece_bytes);
  copy.go_on(UINT64_MAX);
  return copy.take_answer();
}

void seal_object(const seal_request& request, const sealed_object& object) {
  std::byte* payload_end = object.begin + object_header_bytes + object.payload_bytes;
  std::memset(payload_end, 0, static_cast<size_t>(object.begin + object.physical_bytes - payload_end));
  object_header header;
  header.identity = identity_of(*request.space, request.volume, object);
  header.payload_bytes = object.payload_bytes;
  header.physical_bytes = object.physical_bytes;
  header.payload_checksum = object.checksum ? *object.checksum : payload_checksum(payload_of(object));
  encode(header, std::span<std::byte, object_header_bytes>(object.begin, object_header_bytes));
}

bool check_object(const check_request& request, const sealed_object& object) {
  auto found = decode(std::span<const std::byte, object_header_bytes>(object.begin, object_header_bytes));
  auto expected =
      expected_of(*request.space, request.volume, object.key, object.generation, object.payload_bytes);
  return found && is_expected(*found, expected) &&
         found->payload_checksum == payload_checksum(payload_of(object));
}

void seal_objects(const seal_request& request) {
  for (const sealed_object& object : request.objects)
    seal_object(request, object);
}

std::vector<bool> check_objects(const check_request& request) {
  std::vector<bool> good;
  good.reserve(request.objects.size());
  for (const sealed_object& object : request.objects)
    good.push_back(check_object(request, object));
  return good;
}

namespace {

/// Parts begin at pages of the payload, as payloads do in the arena.
constexpr uint64_t boundary = 4096;

uint64_t bytes_of(const copy_request& request) {
  uint64_t bytes = 0;
  for (const copied_object& object : request.objects)
    bytes += object.bytes;
  return bytes;
}

/// A place between two parts: inside an object, or before its first byte.
struct place {
  size_t object = 0;
  uint64_t byte = 0;

  bool operator==(const place&) const = default;
};

/// Goes through a copy from the beginning to its end.
class divider {
 public:
  explicit divider(const copy_request& request) : what_(request) {}

  /// The boundary nearest to so many bytes of all; they do not become less from call to call.
  place at(uint64_t bytes) {
    while (object_ != what_.objects.size() && before_ + what_.objects[object_].bytes <= bytes)
      before_ += what_.objects[object_++].bytes;
    if (object_ == what_.objects.size())
      return {object_, 0};
    const uint64_t within = bytes - before_, all = what_.objects[object_].bytes;
    if (what_.checksums)
      return {object_ + (within > all / 2 ? 1 : 0), 0};
    return {object_, before_new_slice(within - within % boundary)};
  }

 private:
  /// A large page that a load may have to make is of one part.
  uint64_t before_new_slice(uint64_t within) const {
    const region_ahead* ahead = what_.outside.ahead;
    if (ahead == nullptr || what_.direction != copy_direction::out_of_arena)
      return within;
    const auto here = piece_at(within);
    const uint64_t more = here ? here->region_offset % region_ahead::slice_bytes : 0;
    if (more == 0 || more > within || !ahead->is_new(here->region_offset - more))
      return within;
    const auto first = piece_at(within - more);
    const bool adjacent = first && first->bytes >= more && first->region_offset + more == here->region_offset;
    return adjacent ? within - more : within;
  }
  /// From that byte of the object on.
  std::optional<object_piece> piece_at(uint64_t within) const {
    return what_.runs->pieces(what_.objects[object_].number, {within, UINT64_MAX}).next();
  }

  const copy_request& what_;
  size_t object_ = 0;
  uint64_t before_ = 0; ///< bytes of the objects before that
};

copy_request part_between(const copy_request& request, const place& begin, const place& end) {
  copy_request part;
  part.direction = request.direction;
  part.outside = request.outside;
  part.runs = request.runs;
  part.checksums = request.checksums;
  part.arrived = request.arrived;
  part.context = request.context;
  part.owners = request.owners;
  const auto first = request.objects.begin();
  const size_t after = end.object + (end.byte != 0 ? 1 : 0);
  part.objects.assign(first + static_cast<ptrdiff_t>(begin.object), first + static_cast<ptrdiff_t>(after));
  part.begin = begin.byte;
  part.end = end.byte != 0 ? end.byte : UINT64_MAX;
  return part;
}

} // namespace

size_t copy_parts_max(const copy_request& request) {
  uint64_t parts = bytes_of(request) / copy_part_bytes_min;
  if (request.checksums)
    parts = std::min<uint64_t>(parts, request.objects.size());
  return std::max<uint64_t>(parts, 1);
}

std::vector<copy_request> parts_of(copy_request request, size_t count) {
  assert(!request.arena && !request.generations.page && !request.parts);
  std::vector<copy_request> parts;
  const uint64_t all = bytes_of(request);
  divider places(request);
  place begin;
  for (size_t i = 1; i < count; ++i) {
    const place end = places.at(all / count * i);
    if (end == begin || end.object == request.objects.size())
      continue;
    parts.push_back(part_between(request, begin, end));
    begin = end;
  }
  if (parts.empty()) {
    parts.push_back(std::move(request));
    return parts;
  }
  parts.push_back(part_between(request, begin, {request.objects.size(), 0}));
  auto shared = std::make_shared<copy_parts>(parts.size());
  for (copy_request& part : parts)
    part.parts = shared;
  return parts;
}

copy_answer joined(std::vector<copy_answer> answers) {
  assert(!answers.empty());
  copy_answer whole = std::move(answers.front());
  for (size_t i = 1; i < answers.size(); ++i) {
    copy_answer& part = answers[i];
    whole.bytes += part.bytes;
    whole.checksums.insert(whole.checksums.end(), part.checksums.begin(), part.checksums.end());
    // Those that were stopped by the failure of another part are `cancelled`.
    const errc now = whole.failure.code;
    if (now == errc::ok || (now == errc::cancelled && part.failure.code != errc::ok))
      whole.failure = std::move(part.failure);
  }
  return whole;
}

} // namespace terrace
