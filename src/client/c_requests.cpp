// The C interface (terrace.h): requests on objects.
#include "client/c_handles.hpp"

#include <vector>

namespace {

using namespace terrace::client;
using namespace terrace::client::detail;
using terrace::errc;
using terrace::fail;
using terrace::result;

/// Refers to the memory that the caller's prefix points to.
result<prefix> prefix_of(const terrace_prefix* given) {
  auto read = sized(given, "terrace_prefix");
  if (!read)
    return tl::unexpected<terrace::error>(read.error());
  if ((read->tokens == nullptr) == (read->digests == nullptr))
    return fail(errc::bad_request, "expected a prefix with either tokens or digests");
  size_t width = read->digest_bytes == 0 ? terrace::digest::max_size : read->digest_bytes;
  if (width > terrace::digest::max_size)
    return fail(errc::bad_request,
                "expected digests of at most 32 bytes, got digest_bytes " + std::to_string(width));
  prefix what = read->tokens != nullptr ? prefix::of_tokens({read->tokens, read->token_count})
                                        : prefix::of_digests({read->digests, read->digest_count * width},
                                                             static_cast<uint8_t>(width));
  what.lora = read->lora == nullptr ? std::string_view() : read->lora;
  what.salt = read->salt == nullptr ? std::string_view() : read->salt;
  return what;
}

std::vector<run> runs_of(const terrace_run* given, size_t count) {
  std::vector<run> runs;
  for (size_t i = 0; i < count; ++i)
    runs.push_back({given[i].offset, given[i].bytes, given[i].stride, std::max<uint64_t>(given[i].count, 1)});
  return runs;
}

} // namespace

terrace_code terrace_lookup(terrace_connection* connection, const terrace_space* space,
                            const terrace_prefix* prefix, int lease, int64_t timeout_ms, terrace_found* found,
                            terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection, space, prefix and found", connection, space, prefix, found);
        !checked)
      return checked;
    auto what = prefix_of(prefix);
    if (!what)
      return tl::unexpected<terrace::error>(what.error());
    auto looked_up = connection->daemon.lookup({.in = space->opened, .what = *what, .lease = lease != 0},
                                               deadline_of(timeout_ms));
    if (!looked_up)
      return tl::unexpected<terrace::error>(looked_up.error());
    *found = {looked_up->requested_chunks, looked_up->found_chunks,     looked_up->found_tokens,
              looked_up->usable_tokens,    looked_up->recompute_chunks, nullptr};
    if (looked_up->held)
      found->lease = new terrace_lease{std::move(looked_up->held)};
    return {};
  });
}

void terrace_release(terrace_lease* lease) { delete lease; }

terrace_code terrace_load(terrace_connection* connection, const terrace_space* space,
                          const terrace_prefix* prefix, const terrace_lease* lease, uint32_t first_chunk,
                          uint32_t chunks, const terrace_region* region, const terrace_run* runs,
                          size_t run_count, int64_t timeout_ms, terrace_moved* loaded, terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection, region, runs and loaded", connection, region, runs, loaded);
        !checked)
      return checked;
    if ((prefix == nullptr) == (lease == nullptr) || (space == nullptr) != (prefix == nullptr))
      return fail(errc::bad_request, "expected either a prefix with its space, or a lease without them");
    auto places = runs_of(runs, run_count);
    load_request request{.in = {},
                         .what = {},
                         .lease = {},
                         .range = {first_chunk, chunks},
                         .region = &region->registered,
                         .runs = places,
                         .runs_per_object = {},
                         .pools = {},
                         .options = {}};
    if (lease != nullptr) {
      request.lease = lease->held.id();
    } else {
      auto what = prefix_of(prefix);
      if (!what)
        return tl::unexpected<terrace::error>(what.error());
      request.in = space->opened;
      request.what = *what;
    }
    auto done = connection->daemon.load(request, deadline_of(timeout_ms));
    if (!done)
      return tl::unexpected<terrace::error>(done.error());
    *loaded = {done->requested_chunks, done->delivered_chunks, 0, done->bytes};
    return {};
  });
}

terrace_code terrace_store(terrace_connection* connection, const terrace_space* space,
                           const terrace_prefix* prefix, uint32_t first_chunk, uint32_t chunks,
                           const terrace_region* region, const terrace_run* runs, size_t run_count,
                           int64_t timeout_ms, terrace_moved* stored, terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection, space, prefix, region and runs", connection, space, prefix,
                                   region, runs);
        !checked)
      return checked;
    auto what = prefix_of(prefix);
    if (!what)
      return tl::unexpected<terrace::error>(what.error());
    auto places = runs_of(runs, run_count);
    auto done = connection->daemon.store({.in = space->opened,
                                          .what = *what,
                                          .range = {first_chunk, chunks},
                                          .region = &region->registered,
                                          .runs = places,
                                          .runs_per_object = {},
                                          .pools = {},
                                          .options = {}},
                                         deadline_of(timeout_ms));
    if (!done)
      return tl::unexpected<terrace::error>(done.error());
    if (stored != nullptr)
      *stored = {0, done->stored_chunks, done->present_chunks, done->bytes};
    return {};
  });
}

terrace_code terrace_read_lease(terrace_connection* connection, const terrace_lease* lease,
                                uint32_t first_chunk, uint32_t chunks, int64_t timeout_ms,
                                terrace_objects** objects, terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection, lease and objects", connection, lease, objects); !checked)
      return checked;
    auto located =
        connection->daemon.read_lease(lease->held.id(), {first_chunk, chunks}, deadline_of(timeout_ms));
    if (!located)
      return tl::unexpected<terrace::error>(located.error());
    *objects = new terrace_objects{std::move(*located)};
    return {};
  });
}

size_t terrace_objects_count(const terrace_objects* objects) {
  return objects == nullptr ? 0 : objects->located.objects.size();
}

const void* terrace_objects_data(const terrace_objects* objects, size_t index, size_t* bytes) {
  bool there = index < terrace_objects_count(objects);
  if (bytes != nullptr)
    *bytes = there ? objects->located.objects[index].size() : 0;
  return there ? objects->located.objects[index].data() : nullptr;
}

void terrace_objects_free(terrace_objects* objects) { delete objects; }

terrace_code terrace_clear(terrace_connection* connection, const terrace_space* space, int64_t timeout_ms,
                           uint64_t* objects, terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection", connection); !checked)
      return checked;
    auto cleared = connection->daemon.admin().clear(space == nullptr ? nullptr : &space->opened,
                                                    deadline_of(timeout_ms));
    if (!cleared)
      return tl::unexpected<terrace::error>(cleared.error());
    if (objects != nullptr)
      *objects = cleared->objects;
    return {};
  });
}
