// The remote tier on a redis-server of this machine, beside a bare client of the same server: objects read and written, questions,
// lookups of other clients meanwhile, and a store that stands still.
#include "bench/placement.hpp"
#include "bench/processor_time.hpp"
#include "bench/remote_setup.hpp"
#include "bench/shared_memory.hpp"

#include <openssl/evp.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <ctime>

namespace terrace::bench {

namespace {

constexpr size_t asked_chunks = 128;

double cpu_seconds_of_this_thread() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct far_size {
  const char* name;
  uint64_t bytes;
};
constexpr far_size far_sizes[] = {{"256KiB", far_mib / 4}, {"1MiB", far_mib}, {"4MiB", 4 * far_mib}};

double gb_per_s(double seconds) { return static_cast<double>(far_bytes) / seconds / 1e9; }

/// AES-256-GCM alone, on one thread: each MiB of the memory is a message, encrypted or decrypted where it is. Tags are not compared.
void cross_bare_cipher(std::span<uint8_t> memory, bool encrypts) {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  const std::array<uint8_t, 32> key{};
  std::array<uint8_t, 12> nonce{};
  for (; !memory.empty(); memory = memory.subspan(std::min(memory.size(), far_mib))) {
    const auto part = memory.first(std::min(memory.size(), far_mib));
    ++nonce[0];
    int count = 0;
    if (context == nullptr ||
        EVP_CipherInit_ex(context, EVP_aes_256_gcm(), nullptr, key.data(), nonce.data(), encrypts ? 1 : 0) !=
            1 ||
        EVP_CipherUpdate(context, part.data(), &count, part.data(), static_cast<int>(part.size())) != 1)
      give_up("libcrypto has no AES-256-GCM");
  }
  EVP_CIPHER_CTX_free(context);
}

/// zstd alone, on one thread: the high bytes of floats, 64 KiB at a time, as the daemon compresses them. Planes are not split or joined.
class bare_compression {
 public:
  explicit bare_compression(std::span<const uint8_t> floats) {
    for (size_t i = 1; i < floats.size(); i += 2)
      high_.push_back(floats[i]);
  }
  void compress() {
    frames_.clear();
    for (size_t at = 0; at < high_.size(); at += piece_) {
      std::vector<uint8_t>& frame = frames_.emplace_back(ZSTD_compressBound(piece_));
      frame.resize(ZSTD_compressCCtx(in_.get(), frame.data(), frame.size(), high_.data() + at, piece_, 1));
    }
  }
  void expand() {
    for (size_t at = 0; const auto& frame : frames_) {
      if (ZSTD_decompressDCtx(out_.get(), high_.data() + at, piece_, frame.data(), frame.size()) != piece_)
        give_up("zstd does not expand what it has compressed");
      at += piece_;
    }
  }

 private:
  struct release {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  static constexpr size_t piece_ = 64 << 10;
  std::vector<uint8_t> high_;
  std::vector<std::vector<uint8_t>> frames_;
  std::unique_ptr<ZSTD_CCtx, release> in_{ZSTD_createCCtx()};
  std::unique_ptr<ZSTD_DCtx, release> out_{ZSTD_createDCtx()};
};

/// Lookups of chunks that nobody has, and the same question to the store.
class probes {
 public:
  static constexpr int lookups = 500;

  explicit probes(far_daemon& in)
      : in_(in), space_(must(in.client().open_space(space_of(4096)), "opening a space")) {}

  /// Returns the p50 and p99 of lookups, in microseconds.
  std::vector<double> look_up() {
    return both([&] {
      auto unknown = digests_of(asked_chunks, ++seed_);
      return seconds_of([&] {
        if (must(in_.client().lookup({.in = space_, .what = client::prefix::of_digests(unknown)}),
                 "looking up")
                .found_chunks != 0)
          give_up("a chunk that nobody stored was found");
      });
    });
  }

  /// Measures round trips in place of reads.
  std::vector<double> ask(bare_store& by) {
    return both([&] {
      std::vector<std::string> keys; // as long as the daemon's
      for (const digest& each : digests_of(asked_chunks, ++seed_))
        keys.push_back("terrace/t1/0123456789abcdef0123456789abcdef/0123456789abcdef/0.0/" + to_hex(each));
      return seconds_of([&] { by.exist(keys); });
    });
  }

 private:
  static std::vector<double> both(const std::function<double()>& once) {
    std::vector<double> samples;
    for (int i = 0; i < lookups; ++i)
      samples.push_back(1e6 * once());
    return {percentile(samples, 0.5), percentile(samples, 0.99)};
  }

  far_daemon& in_;
  client::space space_;
  uint64_t seed_ = 1;
};

void probe_alone(const settings& options, const reporter& report, const std::string& suffix,
                 const std::function<void(far_daemon&)>& placed) {
  far_daemon in(options);
  bare_store tracked(in.port());
  tracked.track();
  probes asks(in);
  placed(in);
  auto sides = interleave(
      options.rounds,
      [&] {
        const double before = cpu_seconds_of(in.daemon().pid());
        auto values = asks.look_up();
        values.push_back((cpu_seconds_of(in.daemon().pid()) - before) * 1e6 / probes::lookups);
        return values;
      },
      [&] {
        auto limits = asks.ask(in.bare());
        limits.push_back(asks.ask(tracked)[0]);
        return limits;
      });
  release(::getpid());
  report(sides.judged({.name = "remote_probe" + suffix + "_p50", .unit = "us", .bounded = false}));
  report(sides.judged({.name = "remote_probe" + suffix + "_p99", .unit = "us", .bounded = false}, 1));
  auto added = [&](const char* beyond, size_t limit) {
    std::vector<double> more;
    for (size_t round = 0; round < sides.values[0].size(); ++round)
      more.push_back(sides.values[0][round] - sides.limits[limit][round]);
    report(of_rounds(
        {.name = "remote_probe" + suffix + beyond, .unit = "us", .floor = 50, .aim = 25, .absolute = true},
        more));
  };
  added("_added", 0);
  added("_added_to_tracked", 2);
  report(
      of_rounds({.name = "remote_probe" + suffix + "_cpu", .unit = "us", .bounded = false}, sides.values[2]));
}

} // namespace

void remote_get(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  shared_memory into(far_bytes);
  for (const far_size& size : far_sizes) {
    far_daemon in(options);
    far_chain chain(in, size.bytes);
    chain.store();
    const auto keys = chain.keys();
    auto sides = interleave(
        options.rounds,
        [&] {
          chain.chill();
          return std::vector{gb_per_s(seconds_of([&] { chain.prefetch(); }))};
        },
        [&] {
          return std::vector{
              gb_per_s(seconds_of([&] { in.bare().get(keys, chain.value_bytes(), into.bytes()); }))};
        });
    report(sides.judged({.name = std::string("remote_get_") + size.name,
                         .unit = "GB/s",
                         .floor = 0.9,
                         .aim = 1,
                         .direction = better::higher}));
  }
  far_daemon in(options, "encrypt = true\n");
  far_chain chain(in, far_mib);
  chain.store();
  auto sides = interleave(
      options.rounds,
      [&] {
        chain.chill();
        return std::vector{gb_per_s(seconds_of([&] { chain.prefetch(); }))};
      },
      [&] { return std::vector{gb_per_s(seconds_of([&] { cross_bare_cipher(into.bytes(), false); }))}; });
  report(sides.judged(
      {.name = "remote_get_1MiB_encrypted", .unit = "GB/s", .direction = better::higher, .bounded = false}));
}

void remote_put(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  shared_memory from(far_bytes);
  for (const far_size& size : far_sizes) {
    far_daemon in(options);
    far_chain chain(in, size.bytes);
    std::vector<std::string> keys;
    for (size_t i = 0; i < chain.values(); ++i)
      keys.push_back("bare/" + std::to_string(i));
    auto sides = interleave(
        options.rounds,
        [&] {
          const double rate = gb_per_s(seconds_of([&] { chain.store(); }));
          chain.forget();
          return std::vector{rate};
        },
        [&] {
          const double rate =
              gb_per_s(seconds_of([&] { in.bare().set(keys, chain.value_bytes(), from.bytes()); }));
          in.bare().remove("bare/*");
          return std::vector{rate};
        });
    report(sides.judged({.name = std::string("remote_put_") + size.name,
                         .unit = "GB/s",
                         .floor = 0.75,
                         .aim = 0.9,
                         .direction = better::higher}));
  }
  far_daemon in(options, "encrypt = true\n");
  far_chain chain(in, far_mib);
  auto sides = interleave(
      options.rounds,
      [&] {
        const double rate = gb_per_s(seconds_of([&] { chain.store(); }));
        chain.forget();
        return std::vector{rate};
      },
      [&] { return std::vector{gb_per_s(seconds_of([&] { cross_bare_cipher(from.bytes(), true); }))}; });
  report(sides.judged(
      {.name = "remote_put_1MiB_encrypted", .unit = "GB/s", .direction = better::higher, .bounded = false}));
}

void remote_cpu(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  shared_memory into(far_bytes);
  constexpr double gb = static_cast<double>(far_bytes) / 1e9;
  for (bool encrypts : {false, true}) {
    far_daemon in(options, encrypts ? "encrypt = true\n" : "");
    far_chain chain(in, far_mib);
    chain.store();
    const auto keys = chain.keys();
    auto sides = interleave(
        options.rounds,
        [&] {
          chain.chill();
          const double before = cpu_seconds_of(in.daemon().pid());
          chain.prefetch();
          return std::vector{(cpu_seconds_of(in.daemon().pid()) - before) / gb};
        },
        [&] {
          const double before = cpu_seconds_of_this_thread();
          in.bare().get(keys, chain.value_bytes(), into.bytes());
          if (encrypts)
            cross_bare_cipher(into.bytes(), false);
          return std::vector{(cpu_seconds_of_this_thread() - before) / gb};
        });
    report(sides.judged({.name = encrypts ? "remote_cpu_encrypted" : "remote_cpu",
                         .unit = "s/GB",
                         .floor = 1.25,
                         .aim = 1.1}));
  }
}

/// Rates and processor time per payload, of noise in bfloat16; the limit is zstd alone.
void remote_compress(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  far_daemon in(options, "compress = true\n");
  far_chain chain(in, far_mib);
  chain.use_floats();
  bare_compression bare(chain.content());
  constexpr double gb = static_cast<double>(far_bytes) / 1e9;
  auto daemon_side = [&](const std::function<void()>& act) {
    const double before = cpu_seconds_of(in.daemon().pid());
    const double rate = gb_per_s(seconds_of(act));
    return std::vector{rate, (cpu_seconds_of(in.daemon().pid()) - before) / gb};
  };
  auto bare_side = [&](const std::function<void()>& act) {
    const double before = cpu_seconds_of_this_thread();
    const double rate = gb_per_s(seconds_of(act));
    return std::vector{rate, (cpu_seconds_of_this_thread() - before) / gb};
  };
  auto tell = [&](const std::string& name, const auto& sides) {
    report(sides.judged({.name = name, .unit = "GB/s", .direction = better::higher, .bounded = false}));
    report(sides.judged({.name = name + "_cpu", .unit = "s/GB", .bounded = false}, 1));
  };
  tell("remote_put_1MiB_compressed", interleave(
                                         options.rounds,
                                         [&] {
                                           auto both = daemon_side([&] { chain.store(); });
                                           chain.forget();
                                           return both;
                                         },
                                         [&] { return bare_side([&] { bare.compress(); }); }));
  chain.store();
  tell("remote_get_1MiB_compressed", interleave(
                                         options.rounds,
                                         [&] {
                                           chain.chill();
                                           return daemon_side([&] { chain.prefetch(); });
                                         },
                                         [&] { return bare_side([&] { bare.expand(); }); }));
  const auto told = must(in.client().admin().remote_status(), "asking the store");
  const auto& remote = told.front();
  report(of_rounds(
      {.name = "remote_compression_ratio", .unit = "", .direction = better::higher, .bounded = false},
      {static_cast<double>(remote.written_bytes) / static_cast<double>(remote.stored_bytes)}));
}

void remote_pipeline(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  shared_memory into(far_bytes), to(far_bytes);
  far_daemon in(options);
  far_chain chain(in, far_mib);
  chain.store();
  const auto keys = chain.keys();
  auto milliseconds = [&](const std::function<uint32_t()>& load) {
    chain.chill();
    return 1e3 * seconds_of([&] {
             if (load() != chain.objects())
               give_up("a chunk of the store was not delivered");
           });
  };
  auto sides = interleave(
      options.rounds,
      [&] {
        return std::vector{milliseconds([&] { return chain.prefetch_and_load(); }),
                           milliseconds([&] { return chain.load(); })};
      },
      [&] {
        const double get = seconds_of([&] { in.bare().get(keys, chain.value_bytes(), into.bytes()); });
        const double copy =
            seconds_of([&] { std::memcpy(to.bytes().data(), into.bytes().data(), far_bytes); });
        const double slower = 1e3 * std::max(get, copy);
        return std::vector{slower, slower};
      });
  report(sides.judged({.name = "remote_pipeline", .unit = "ms", .floor = 1.15, .aim = 1.05}));
  report(sides.judged({.name = "remote_load", .unit = "ms", .bounded = false}, 1));
}

void remote_probe(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  probe_alone(options, report, "", [](far_daemon&) {});
  probe_alone(options, report, "_one_cpu", [](far_daemon& in) {
    for (pid_t process : {::getpid(), in.daemon().pid(), in.store()})
      place(process, 0);
  });
  far_daemon in(options); // another server: one forgets the keys that it notes beyond a million
  probes asks(in);
  busy_reader reader(in, {});
  reader.work(true);
  auto sides = interleave(
      options.rounds, [&] { return asks.look_up(); }, [&] { return asks.ask(in.bare()); });
  report(sides.judged({.name = "remote_probe_busy_p50", .unit = "us", .bounded = false}));
  report(sides.judged(
      {.name = "remote_probe_busy_p99", .unit = "us", .floor = 2000, .aim = 1000, .absolute = true}, 1));
}

void remote_lookup(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  constexpr int lookups = 4000;
  far_daemon in(options);
  auto space = must(in.client().open_space(space_of(4096)), "opening a space");
  auto memory = must(client::region::create("terrace-bench", 4096), "making a region");
  auto region = must(in.client().register_region(memory), "registering a region");
  auto chain = digests_of(asked_chunks, 1);
  store_chain(in.client(), space, chain, region, 4096);
  busy_reader reader(in, 1);
  auto look_up = [&] {
    if (must(in.client().lookup({.in = space, .what = client::prefix::of_digests(chain)}), "looking up")
            .found_chunks != asked_chunks)
      give_up("a stored chunk was not found");
  };
  auto both = [&](bool busy) {
    reader.work(busy);
    auto samples = microseconds_each(lookups, look_up);
    return std::vector{percentile(samples, 0.5), percentile(samples, 0.99)};
  };
  auto measure = [&](const std::string& suffix, bool bounded) {
    auto sides = interleave(
        options.rounds, [&] { return both(true); }, [&] { return both(false); });
    report(sides.judged({.name = "remote_lookup" + suffix + "_p50",
                         .unit = "us",
                         .floor = 1.05,
                         .aim = 1.02,
                         .bounded = bounded}));
    report(sides.judged({.name = "remote_lookup" + suffix + "_p99", .unit = "us", .bounded = false}, 1));
  };
  measure("", false);
  place_this_thread(0);
  place(in.daemon().pid(), 0);
  place_named(in.daemon().pid(), "transfer-", 1);
  place(in.store(), 1);
  measure("_apart", true);
}

void remote_stopped(const settings& options, const reporter& report) {
  if (!far_daemon::possible())
    return;
  far_daemon in(options);
  far_chain chain(in, far_mib);
  chain.store();
  auto space = must(in.client().open_space(space_of(4096)), "opening a space");
  std::vector<double> lookups, loads, recoveries;
  for (int round = 0; round < options.rounds; ++round) {
    chain.chill();
    ::kill(in.store(), SIGSTOP);
    auto unknown = digests_of(asked_chunks, static_cast<uint64_t>(round) + 77);
    lookups.push_back(1e3 * seconds_of([&] {
                        must(in.client().lookup({.in = space, .what = client::prefix::of_digests(unknown)}),
                             "looking up");
                      }));
    loads.push_back(1e3 * seconds_of([&] {
                      if (chain.load() == chain.objects())
                        give_up("a store that stands still has delivered");
                    }));
    std::this_thread::sleep_for(std::chrono::seconds(3)); // an outage
    ::kill(in.store(), SIGCONT);
    recoveries.push_back(1e3 * seconds_of([&] {
                           await("the store is not used again",
                                 [&] { return chain.load() == chain.objects(); });
                         }));
    std::this_thread::sleep_for(std::chrono::seconds(10)); // the outages are apart
  }
  report(of_rounds({.name = "remote_stopped_lookup", .unit = "ms", .floor = 4, .aim = 3, .absolute = true},
                   lookups));
  report(of_rounds({.name = "remote_stopped_load", .unit = "ms", .floor = 200, .aim = 170, .absolute = true},
                   loads));
  report(of_rounds({.name = "remote_recovery", .unit = "ms", .floor = 2000, .aim = 1000, .absolute = true},
                   recoveries));
}

} // namespace terrace::bench
