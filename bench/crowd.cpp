#include "bench/crowd.hpp"

#include "bench/harness.hpp"

#include <cstring>
#include <thread>

namespace terrace::bench {

void work_together(const std::vector<std::function<void()>>& work, double seconds) {
  double end = seconds_now() + seconds;
  std::vector<std::thread> threads;
  for (const auto& one : work)
    threads.emplace_back([&one, end] {
      while (seconds_now() < end)
        one();
    });
  for (auto& thread : threads)
    thread.join();
}

crowd_client::crowd_client(const std::string& socket_path, uint64_t object_bytes, size_t region_objects)
    : object_bytes_(object_bytes), connection_(connect(socket_path)),
      space_(must(connection_.open_space(space_of(object_bytes)), "opening a space")),
      memory_(
          must(client::region::create("terrace-crowd", region_objects * object_bytes), "making a region")) {
  std::memset(memory_.data(), 0x3c, memory_.size());
  region_ = must(connection_.register_region(memory_), "registering a region");
  for (size_t i = 0; i < region_objects; ++i)
    runs_.push_back({.offset = i * object_bytes, .bytes = object_bytes});
}

client::ticket<client::load_result> crowd_client::begin_load(const std::vector<digest>& chain) {
  client::load_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(chain);
  request.region = &region_;
  request.runs = std::span(runs_).first(chain.size());
  return must(connection_.async().load(request), "loading");
}

client::ticket<client::load_result> crowd_client::begin_load(const client::lookup_result& found) {
  client::load_request request;
  request.in = space_;
  request.lease = found.held.id();
  request.region = &region_;
  request.runs = std::span(runs_).first(found.found_chunks);
  return must(connection_.async().load(request), "loading under a lease");
}

client::ticket<client::store_result> crowd_client::begin_store(const std::vector<digest>& chain,
                                                               uint32_t first) {
  client::store_request request;
  request.in = space_;
  request.what = client::prefix::of_digests(chain);
  request.range = {.first = first};
  request.region = &region_;
  request.runs = std::span(runs_).first(chain.size() - first);
  return must(connection_.async().store(request), "storing");
}

uint64_t crowd_client::finish(client::ticket<client::load_result>& under_way) {
  return must(under_way.wait(), "loading").bytes;
}

void crowd_client::finish(client::ticket<client::store_result>& under_way) {
  must(under_way.wait(), "storing");
}

void crowd_client::store(const std::vector<digest>& chain, uint32_t first) {
  auto under_way = begin_store(chain, first);
  finish(under_way);
}

client::lookup_result crowd_client::look_up(const std::vector<digest>& chain, bool lease) {
  return must(connection_.lookup({.in = space_, .what = client::prefix::of_digests(chain), .lease = lease}),
              "looking up");
}

} // namespace terrace::bench
