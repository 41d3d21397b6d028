#include "bench/remote_setup.hpp"

#include "bench/placement.hpp"
#include "tests/support/programs.hpp"
#include "tests/support/scrape.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <iostream>
#include <random>

namespace terrace::bench {

namespace {

constexpr uint64_t far_header = 256, far_part = far_mib; // docs/remote.md
constexpr double far_patience_s = 60;
constexpr uint32_t host_only = 1U << static_cast<unsigned>(tier_kind::host);
constexpr uint32_t store_only = 1U << static_cast<unsigned>(tier_kind::remote);
constexpr const char* keys_of_objects = "terrace/t1/*/*/*/*";

} // namespace

void await(const char* what, const std::function<bool()>& there) {
  for (double begin = seconds_now(); !there(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (seconds_now() - begin > far_patience_s)
      give_up(what);
}

// ---- the daemon ----

bool far_daemon::possible() {
  const bool installed = test::redis_process::installed();
  if (!installed)
    std::cerr << "  left out: no redis-server on this machine; install the package `redis-server`"
              << std::endl;
  return installed;
}

far_daemon::far_daemon(const settings& options, const std::string& more, const test::s3_process* bucket)
    : port_(test::free_port()),
      store_(options.folder, {"--port", std::to_string(port_), "--bind", "127.0.0.1"}), bare_(port_),
      daemon_(options, {.disk = false, .more = section(options.folder, more, bucket)}),
      client_(connect(daemon_.socket())) {
  await("the remote tier is not ready", [&] { return tier_of(client_, "remote").state == "ready"; });
}

std::string far_daemon::section(const std::string& folder, const std::string& more,
                                const test::s3_process* bucket) const {
  const auto secret = [&folder](const char* name, const std::string& content) {
    const std::string file = folder + "/" + name;
    test::write_file(file, content);
    if (::chmod(file.c_str(), 0600) != 0)
      give_up("cannot protect " + file);
    return "\"" + file + "\"\n";
  };
  std::string made = "[[remote]]\nrealm_key_file = " + secret("realm-key", std::string(32, 'k')) +
                     "demotion = \"write_through\"\n" + more;
  if (bucket == nullptr)
    return made + "address = \"127.0.0.1:" + std::to_string(port_) + "\"\n";
  return made + "address = \"s3://" + bucket->place() + "\"\npassword_file = " +
         secret("keys", test::s3_process::secret_key + std::string("\n") + test::s3_process::access_key);
}

// ---- a chain ----

far_chain::far_chain(far_daemon& in, uint64_t object_bytes)
    : in_(in), object_bytes_(object_bytes), client_(connect(in.daemon().socket())),
      space_(must(client_.open_space(space_of(object_bytes)), "opening a space")),
      memory_(must(client::region::create("terrace-bench", far_bytes), "making a region")) {
  std::memset(memory_.data(), 0x3c, memory_.size());
  region_ = must(client_.register_region(memory_), "registering a region");
  for (uint64_t i = 0; i < objects(); ++i)
    runs_.push_back({.offset = i * object_bytes, .bytes = object_bytes});
}

void far_chain::use_floats() {
  std::mt19937 random(1);
  std::normal_distribution<float> values;
  const auto all = memory_.bytes();
  for (size_t i = 0; i < far_mib; i += 2) {
    const auto high = static_cast<uint16_t>(std::bit_cast<uint32_t>(values(random)) >> 16);
    std::memcpy(all.data() + i, &high, sizeof high);
  }
  for (size_t i = far_mib; i < all.size(); i += far_mib) // farther away than zstd looks
    std::memcpy(all.data() + i, all.data(), far_mib);
}

uint64_t far_chain::value_bytes() const { return far_header + std::min(object_bytes_, far_part); }

size_t far_chain::values() const { return far_bytes / std::min(object_bytes_, far_part); }

std::vector<std::string> far_chain::keys() const { return in_.bare().keys(keys_of_objects); }

uint32_t far_chain::found(uint32_t tiers) {
  return must(client_.lookup({.in = space_, .what = what(), .tiers = tiers}), "looking up").found_chunks;
}

void far_chain::store() {
  chain_ = digests_of(objects(), ++seed_);
  const uint64_t before = tier_of(client_, "remote").bytes_written;
  client::store_request request;
  request.in = space_;
  request.what = what();
  request.region = &region_;
  request.runs = runs_;
  if (must(client_.store(request), "storing").stored_chunks != objects())
    give_up("not every chunk was stored");
  await("what was stored is not in the store",
        [&] { return tier_of(client_, "remote").bytes_written - before >= far_bytes; });
}

void far_chain::chill() {
  await("the chain stays in host memory", [&] {
    must(client_.admin().evict({.in = space_, .what = what(), .tiers = host_only}), "evicting");
    return found(host_only) == 0;
  });
  if (found(store_only) != objects())
    give_up("the store lacks chunks that were written");
}

client::ticket<client::prefetch_result> far_chain::begin_prefetch() {
  client::prefetch_request request;
  request.in = space_;
  request.what = what();
  return must(client_.async().prefetch(request), "prefetching");
}

void far_chain::prefetch() {
  auto ahead = begin_prefetch();
  if (must(ahead.wait(), "prefetching").delivered_chunks != objects())
    give_up("a chunk of the store did not arrive");
}

uint32_t far_chain::load() {
  client::load_request request;
  request.in = space_;
  request.what = what();
  request.region = &region_;
  request.runs = runs_;
  return must(client_.load(request), "loading").delivered_chunks;
}

uint32_t far_chain::prefetch_and_load() {
  auto ahead = begin_prefetch();
  const uint32_t delivered = load();
  must(ahead.wait(), "prefetching");
  return delivered;
}

void far_chain::forget() {
  chill();
  in_.bare().remove(keys_of_objects);
}

// ---- a reader ----

busy_reader::busy_reader(far_daemon& in, std::optional<int> processor) : chain_(in, far_mib) {
  chain_.store();
  thread_ = std::jthread([this, processor](const std::stop_token& stop) {
    if (processor)
      place_this_thread(*processor);
    read(stop);
  });
}

busy_reader::~busy_reader() {
  thread_.request_stop();
  works_ = true;
  works_.notify_one();
}

void busy_reader::read(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    works_.wait(false);
    std::lock_guard reading(mutex_);
    if (!works_)
      continue;
    chain_.chill();
    chain_.prefetch();
  }
}

void busy_reader::work(bool on) {
  works_ = on;
  works_.notify_one();
  if (!on)
    std::lock_guard at_rest(mutex_);
}

} // namespace terrace::bench
