// The C interface (terrace.h): connections, spaces and memory.
#include "client/c_handles.hpp"

namespace {

using namespace terrace::client;
using namespace terrace::client::detail;
using terrace::errc;
using terrace::fail;
using terrace::result;

result<pool_spec> pool_of(const terrace_pool& given) {
  if (given.object_bytes == 0)
    return fail(errc::bad_request, "expected object_bytes of each pool: the bytes of one chunk on one rank");
  pool_spec pool;
  if (given.name != nullptr)
    pool.name = given.name;
  pool.object_bytes = given.object_bytes;
  pool.replicated = given.replicated != 0;
  if (given.trailing != 0) {
    pool.rule = hit_rule::trailing_chunks;
    pool.trailing = given.trailing;
  }
  return pool;
}

result<space_spec> spec_of(const terrace_space_spec* given) {
  auto read = sized(given, "terrace_space_spec");
  if (!read)
    return tl::unexpected<terrace::error>(read.error());
  if (auto checked = check_given("pools", read->pools); !checked)
    return tl::unexpected<terrace::error>(checked.error());
  space_spec spec;
  spec.model = text_of(read->model);
  spec.revision = text_of(read->revision);
  spec.dtype = text_of(read->dtype);
  spec.layout = text_of(read->layout);
  spec.salt = text_of(read->salt);
  spec.seed = text_of(read->seed);
  spec.algorithm = static_cast<hash_algorithm>(read->algorithm);
  spec.rank = read->rank;
  spec.prefill_tokens_per_s = read->prefill_tokens_per_s;
  const auto set = [](uint32_t& to, uint32_t value) { to = value == 0 ? to : value; };
  set(spec.chunk_tokens, read->chunk_tokens);
  set(spec.hash_block_tokens, read->hash_block_tokens);
  set(spec.world_size, read->world_size);
  for (size_t i = 0; i < read->pool_count; ++i) {
    auto pool = pool_of(read->pools[i]);
    if (!pool)
      return tl::unexpected<terrace::error>(pool.error());
    spec.pools.push_back(std::move(*pool));
  }
  return spec;
}

} // namespace

#ifndef TERRACE_VERSION
#define TERRACE_VERSION "unknown"
#endif

const char* terrace_version(void) { return TERRACE_VERSION; }

terrace_code terrace_connect(const char* path, const char* name, int64_t timeout_ms,
                             terrace_connection** connection, terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("path and connection", path, connection); !checked)
      return checked;
    connect_options options{.path = path};
    if (name != nullptr)
      options.name = name;
    auto connected = terrace::client::connection::connect(std::move(options), deadline_of(timeout_ms));
    if (!connected)
      return tl::unexpected<terrace::error>(connected.error());
    *connection = new terrace_connection{std::move(*connected)};
    return {};
  });
}

void terrace_disconnect(terrace_connection* connection) { delete connection; }

int terrace_alive(const terrace_connection* connection) {
  return connection != nullptr && connection->daemon.alive() ? 1 : 0;
}

terrace_code terrace_reconnect(terrace_connection* connection, int64_t timeout_ms, int* same_daemon,
                               terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection", connection); !checked)
      return checked;
    auto same = connection->daemon.reconnect(deadline_of(timeout_ms));
    if (!same)
      return tl::unexpected<terrace::error>(same.error());
    if (same_daemon != nullptr)
      *same_daemon = *same ? 1 : 0;
    return {};
  });
}

terrace_code terrace_open_space(terrace_connection* connection, const terrace_space_spec* spec,
                                int64_t timeout_ms, terrace_space** space, terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection, spec and space", connection, spec, space); !checked)
      return checked;
    auto wanted = spec_of(spec);
    if (!wanted)
      return tl::unexpected<terrace::error>(wanted.error());
    auto opened = connection->daemon.open_space(*wanted, deadline_of(timeout_ms));
    if (!opened)
      return tl::unexpected<terrace::error>(opened.error());
    *space = new terrace_space{*opened};
    return {};
  });
}

void terrace_space_free(terrace_space* space) { delete space; }

terrace_code terrace_memory_create(const char* name, uint64_t bytes, terrace_memory** memory,
                                   terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("memory", memory); !checked)
      return checked;
    auto made = region::create(name == nullptr ? "terrace" : name, bytes);
    if (!made)
      return tl::unexpected<terrace::error>(made.error());
    *memory = new terrace_memory{std::move(*made)};
    return {};
  });
}

void* terrace_memory_data(const terrace_memory* memory) {
  return memory == nullptr ? nullptr : memory->memory.data();
}

void terrace_memory_free(terrace_memory* memory) { delete memory; }

terrace_code terrace_register(terrace_connection* connection, const terrace_memory* memory,
                              int64_t timeout_ms, terrace_region** region, terrace_error* error) {
  if (memory == nullptr)
    return tell(error, errc::bad_request, "expected memory, got a null pointer");
  return terrace_register_descriptor(connection, memory->memory.descriptor(), memory->memory.size(),
                                     timeout_ms, region, error);
}

terrace_code terrace_register_descriptor(terrace_connection* connection, int descriptor, uint64_t bytes,
                                         int64_t timeout_ms, terrace_region** region, terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto checked = check_given("connection and region", connection, region); !checked)
      return checked;
    auto registered = connection->daemon.register_region(descriptor, bytes, deadline_of(timeout_ms));
    if (!registered)
      return tl::unexpected<terrace::error>(registered.error());
    *region = new terrace_region{std::move(*registered)};
    return {};
  });
}

terrace_code terrace_unregister(terrace_connection* connection, terrace_region* region, int64_t timeout_ms,
                                terrace_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (region == nullptr)
      return {};
    registered_region ended = std::move(region->registered);
    delete region;
    if (auto checked = check_given("connection", connection); !checked)
      return checked;
    return ended.unregister(deadline_of(timeout_ms));
  });
}
