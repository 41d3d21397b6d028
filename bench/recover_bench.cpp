// How long a daemon needs to find ten million objects again, beside reading the same metadata.
#include "base/unique_fd.hpp"
#include "bench/benchmark.hpp"
#include "bench/generated_index.hpp"
#include "storage/recovery.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace terrace::bench {

namespace {

constexpr uint64_t objects = 10'000'000;
constexpr uint64_t piece_bytes = 4ULL << 20;

/// What recovery reads: the journal and the checkpoint that counts.
void read_sequentially(file_device& device, const superblock& block, aligned_buffer& into) {
  auto read = [&](uint64_t begin, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes; done += into.size())
      must(device.read(begin + done, into.bytes().first(std::min(bytes - done, into.size()))), "reading");
  };
  read(block.layout.journal_begin, block.layout.journal_bytes);
  read(block.layout.checkpoint_area(1), block.layout.checkpoint_bytes);
}

} // namespace

void recover(const settings& options, const reporter& report) {
  std::string path = options.folder + "/recover.extents";
  unique_fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file)
    give_up(path + ": cannot be made");
  ::unlink(path.c_str());
  file_device device(path, file.get());
  auto made = must(generated_index::write(device, objects), "writing the index");
  must(device.sync(), "syncing");
  (void) try_direct(file.get()); // or else both sides read the page cache

  aligned_buffer buffer(piece_bytes);
  auto sides = interleave(
      options.rounds,
      [&] {
        size_t found = 0;
        double seconds = seconds_of([&] {
          auto volume = terrace::recover(device, made.block(), made.arena_bytes());
          found = volume.objects.size();
        });
        if (found != objects)
          give_up("recovery lost objects");
        return std::vector<double>{seconds};
      },
      [&] {
        return std::vector<double>{seconds_of([&] { read_sequentially(device, made.block(), buffer); })};
      });
  report({.name = "recover",
          .unit = "s for 10 million objects",
          .value = sides.value[0],
          .limit = sides.limit[0],
          .floor = 5,
          .aim = 5,
          .rounds = options.rounds,
          .absolute = true});
}

} // namespace terrace::bench
