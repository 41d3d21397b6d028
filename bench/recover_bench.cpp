// The time to find ten million objects again, for the index alone and for a daemon until it serves them,
// compared with reading the same bytes.
#include "base/unique_fd.hpp"
#include "bench/bench_daemon.hpp"
#include "bench/benchmark.hpp"
#include "bench/generated_index.hpp"
#include "bench/workload.hpp"
#include "storage/file_lock.hpp"
#include "storage/recovery.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace terrace::bench {

namespace {

constexpr uint64_t piece_bytes = 4ULL << 20;

/// Reads what recovery reads: the journal and the valid checkpoint.
void read_sequentially(file_device& device, const superblock& block, aligned_buffer& into) {
  auto read = [&](uint64_t begin, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes; done += into.size())
      must(device.read(begin + done, into.bytes().first(std::min(bytes - done, into.size()))), "reading");
  };
  read(block.layout.journal_begin, block.layout.journal_bytes);
  read(block.layout.checkpoint_area(1), block.layout.checkpoint_bytes);
}

std::string unit_of(const settings& options) {
  constexpr uint64_t million = 1'000'000;
  bool round = options.objects % million == 0;
  return "s for " +
         (round ? std::to_string(options.objects / million) + " million" : std::to_string(options.objects)) +
         " objects";
}

// ---- a whole daemon ----

/// The library of sparse_volume.cpp lies beside this program.
std::string sparse_volume_library() {
  auto path = std::filesystem::canonical("/proc/self/exe").parent_path() / "libterrace_sparse_volume.so";
  if (!std::filesystem::exists(path))
    give_up("restart needs " + path.string() + ", which is built with this program");
  return path;
}

client::space_spec numbered_space(uint32_t number) {
  auto spec = space_of(generated_index::object_bytes - object_header_bytes);
  spec.model = "restart-" + std::to_string(number);
  return spec;
}

/// A default daemon that is restarted again and again on a volume with a generated index. The volume has room
/// for all objects, and is sparse: only its index is written.
class restarted_daemon {
 public:
  explicit restarted_daemon(const settings& options)
      : daemon_(options, {.disk = false, .preload = sparse_volume_library()}) {
    auto connection = connect(daemon_.socket());
    for (uint32_t number = 1; number <= generated_index::spaces; ++number) {
      auto space = must(connection.open_space(numbered_space(number)), "opening a space");
      fingerprints_.push_back(space.fingerprint.bytes);
    }
    daemon_.kill();
    daemon_.reconfigure({.disk_bytes = generated_index::capacity_bytes_for(options.objects)});
  }

  /// Fingerprints of the volume's spaces, as a client opens them.
  const std::vector<space_fingerprint>& fingerprints() const { return fingerprints_; }

  std::string file() const { return daemon_.state() + "/terrace.extents"; }

  /// Returns the seconds from its start until every object is in its index and in its policy, and a thousand
  /// of them were found.
  double seconds_until_served(const generated_index& made) {
    double seconds = seconds_of([&] {
      daemon_.start();
      auto connection = connect(daemon_.socket());
      await_all(connection, made.objects());
      look_up_some(connection, made);
    });
    daemon_.kill();
    return seconds;
  }

 private:
  static void await_all(client::connection& by, uint64_t objects) {
    constexpr double patience_seconds = 300;
    wait_for_disk(by, patience_seconds);
    if (tier_of(by, "disk").objects != objects)
      give_up("the restarted daemon has " + std::to_string(tier_of(by, "disk").objects) + " objects of " +
              std::to_string(objects));
    for (double begin = seconds_now();
         must(by.admin().policies(), "asking for the policies").tracked < objects;
         std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      if (seconds_now() - begin > patience_seconds)
        give_up("the restarted daemon's policy does not know every object");
  }

  static void look_up_some(client::connection& by, const generated_index& made) {
    constexpr uint64_t of_each_space = 128;
    uint64_t step = made.objects() / generated_index::spaces / of_each_space * generated_index::spaces;
    for (uint32_t number = 1; number <= generated_index::spaces; ++number) {
      std::vector<digest> chunks;
      for (uint64_t i = 0; i < of_each_space; ++i) {
        digest& one = chunks.emplace_back();
        one.bytes = made.expected(number - 1 + i * step).chunk.bytes;
      }
      auto space = must(by.open_space(numbered_space(number)), "opening a space");
      auto found = must(by.lookup({.in = space, .what = client::prefix::of_digests(chunks)}), "looking up");
      if (found.found_chunks != of_each_space)
        give_up("a restarted daemon does not find its objects");
    }
  }

  bench_daemon daemon_;
  std::vector<space_fingerprint> fingerprints_;
};

/// Writes a volume of this machine's default group.
generated_index write_volume(const std::string& path, uint64_t objects,
                             std::vector<space_fingerprint> fingerprints) {
  unique_fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file)
    give_up(path + ": cannot be made");
  file_device device(path, file.get());
  auto made = must(generated_index::write(device, objects, std::move(fingerprints)), "writing the index");
  superblock block = made.block();
  block.owner = {machine_identity(), "default"};
  aligned_buffer bytes(superblock_bytes);
  encode(block, bytes.bytes().first<superblock_bytes>());
  must(device.write(superblock_offset(block.sequence), bytes.bytes()), "writing the superblock");
  must(device.sync(), "syncing");
  if (::ftruncate(file.get(), static_cast<off_t>(block.capacity_bytes)) != 0)
    give_up(path + ": cannot be " + std::to_string(block.capacity_bytes) + " bytes long");
  return made;
}

} // namespace

void restart(const settings& options, const reporter& report) {
  restarted_daemon daemon(options);
  auto made = write_volume(daemon.file(), options.objects, daemon.fingerprints());
  aligned_buffer buffer(piece_bytes);
  auto sides = interleave(
      options.rounds, [&] { return std::vector{daemon.seconds_until_served(made)}; },
      [&] {
        unique_fd file(::open(daemon.file().c_str(), O_RDONLY | O_CLOEXEC));
        (void) try_direct(file.get());
        file_device device(daemon.file(), file.get());
        return std::vector{seconds_of([&] { read_sequentially(device, made.block(), buffer); })};
      });
  report(sides.judged({.name = "restart", .unit = unit_of(options), .bounded = false}));
}

void recover(const settings& options, const reporter& report) {
  std::string path = options.folder + "/recover.extents";
  unique_fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file)
    give_up(path + ": cannot be made");
  ::unlink(path.c_str());
  file_device device(path, file.get());
  auto made = must(generated_index::write(device, options.objects), "writing the index");
  must(device.sync(), "syncing");
  (void) try_direct(file.get()); // without O_DIRECT both sides read the page cache

  aligned_buffer buffer(piece_bytes);
  auto sides = interleave(
      options.rounds,
      [&] {
        size_t found = 0;
        double seconds = seconds_of([&] {
          auto volume = terrace::recover(device, made.block(), made.arena_bytes());
          found = volume.objects.size();
        });
        if (found != options.objects)
          give_up("recovery lost objects");
        return std::vector<double>{seconds};
      },
      [&] {
        return std::vector<double>{seconds_of([&] { read_sequentially(device, made.block(), buffer); })};
      });
  report(sides.judged({.name = "recover", .unit = unit_of(options), .floor = 5, .aim = 5, .absolute = true}));
}

} // namespace terrace::bench
