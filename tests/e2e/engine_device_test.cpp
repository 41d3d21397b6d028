// An engine with blocks of single tokens: libterrace's kernel gathers them, and the daemon copies whole
// objects. Runs on the simulated driver, whose kernel is the twin of the real one.
#include "client/engine_device.hpp"

#include "gpu/cuda/device_memory.hpp"
#include "gpu/cuda/stream.hpp"
#include "gpu_daemon.hpp"

#include <sys/mman.h>

namespace terrace::e2e {
namespace {

template <class T>
T made(result<T> what) {
  if (!what)
    throw std::runtime_error(what.error().text);
  return std::move(*what);
}

constexpr uint64_t token_bytes = 4096;
constexpr uint64_t tokens = object_bytes / token_bytes;

/// Two chunks in blocks of one token, in any order, and a buffer for both.
struct token_engine {
  token_engine() {
    blocks = made(cuda::allocation::make(context, 2 * object_bytes));
    buffer = made(cuda::allocation::make(context, 2 * object_bytes));
    static constexpr std::byte any[64] = {};
    client::engine_device_options options{.device = uuid, .driver = test::driver_library(), .kernel = {}};
    if (!test::on_real_driver())
      options.kernel = any; // the simulated driver runs the kernel's twin
    gpu = made(client::engine_device::open(options));
    work = made(cuda::stream::make(context));
    pages = made(client::region::create("pages", 2 * object_bytes));
    pinned = made(cuda::registration::make(context, std::as_writable_bytes(pages.bytes())));
    for (uint64_t i = 0; i < 2 * tokens; ++i) // 151 and the number of blocks have no common factor
      pieces.push_back(
          {.address = blocks.get().address + i * 151 % (2 * tokens) * token_bytes, .bytes = token_bytes});
  }
  client::device_allocation shared() const {
    client::device_allocation made_of{.device = uuid, .bytes = 2 * object_bytes};
    auto handle = made(buffer.share());
    std::memcpy(made_of.handle.data(), &handle, made_of.handle.size());
    return made_of;
  }
  void copy(cuda::device_pointer to, cuda::device_pointer from) {
    ASSERT_TRUE(context->call("cuMemcpyAsync", context->api().MemcpyAsync, to, from, size_t{2 * object_bytes},
                              work.get()));
  }
  /// Writes block by block.
  void write(const std::vector<uint8_t>& content) {
    for (uint64_t i = 0; i < pieces.size(); ++i)
      std::memcpy(pages.data() + (pieces[i].address - blocks.get().address), content.data() + i * token_bytes,
                  token_bytes);
    copy(blocks.get().address, pinned.address());
    ASSERT_TRUE(work.synchronize());
  }
  std::vector<uint8_t> read() {
    copy(pinned.address(), blocks.get().address);
    EXPECT_TRUE(work.synchronize());
    std::vector<uint8_t> content(2 * object_bytes);
    for (uint64_t i = 0; i < pieces.size(); ++i)
      std::memcpy(content.data() + i * token_bytes, pages.data() + (pieces[i].address - blocks.get().address),
                  token_bytes);
    return content;
  }

  std::shared_ptr<const cuda::driver> driver = made(cuda::driver::open(test::driver_library()));
  std::string uuid = cuda::to_text(made(driver->devices()).front().uuid);
  std::shared_ptr<const cuda::context> context = made(cuda::context::retain(driver, 0));
  cuda::allocation blocks, buffer;
  client::region pages;
  cuda::registration pinned;
  cuda::stream work;
  std::unique_ptr<client::engine_device> gpu;
  std::vector<client::device_run> pieces;
};

TEST(TokenBlocks, AreGatheredForAStoreAndScatteredAfterALoad) {
  if (test::sanitized("thread"))
    GTEST_SKIP() << "the simulated driver of another build is not run under ThreadSanitizer";
  gpu_daemon::faults("");
  gpu_daemon daemon;
  tester client(daemon.socket());
  auto page = made(client::region::create("generations", 4096));
  token_engine engine;
  auto region = made(client->register_device_region(engine.shared(), patiently()));
  auto generations = made(client->register_generations(page, engine.uuid, patiently()));
  auto ring = made(client::layer_ring::make(page, generations, {.layers = 1}));
  ASSERT_TRUE(engine.gpu->attach(page));
  auto chain = chain_of(1, 2);
  std::vector<uint8_t> content(2 * object_bytes);
  for (size_t i = 0; i < 2; ++i)
    fill_content(chain[i], std::span(content).subspan(i * object_bytes, object_bytes));
  engine.write(content);
  std::vector<client::run> runs{{.offset = 0, .bytes = object_bytes},
                                {.offset = object_bytes, .bytes = object_bytes}};
  // The store waits for the kernel: after it, the engine's stream writes a counter of the same page, and
  // rings.
  client::layer_counter gathered{2048, 1};
  auto bell = made(client->bell(patiently()));
  auto stored = client.store_of(chain);
  stored.region = &region;
  stored.runs = runs;
  stored.after = client::generation{&generations, gathered.offset, gathered.value};
  auto store = made(client->async().store(stored, patiently()));
  void* stream = engine.work.get();
  ASSERT_TRUE(engine.gpu->gather(stream, engine.pieces, engine.buffer.get().address));
  ASSERT_TRUE(engine.gpu->write(stream, gathered));
  ASSERT_TRUE(engine.gpu->ring(stream, bell));
  auto done = store.wait(patiently());
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(client.load_and_check(chain), 2U);
  // Loads into blocks that have other contents by now.
  engine.write(std::vector<uint8_t>(2 * object_bytes, 0x5a));
  auto load = made(ring->begin());
  ASSERT_TRUE(engine.gpu->wait(stream, load.layer(0)));
  ASSERT_TRUE(engine.gpu->scatter(stream, engine.pieces, engine.buffer.get().address));
  ASSERT_TRUE(engine.gpu->write(stream, load.passed()));
  auto wanted = client.load_of(chain);
  wanted.region = &region;
  wanted.runs = runs;
  wanted.layers = load;
  ASSERT_TRUE(client->load(wanted, patiently()));
  EXPECT_TRUE(engine.read() == content);
  EXPECT_TRUE(region.unregister(patiently()));
  std::filesystem::remove(gpu_daemon::script());
}

} // namespace
} // namespace terrace::e2e
