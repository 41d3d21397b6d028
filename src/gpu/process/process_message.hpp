// Messages between the daemon and the process of a GPU. Both are the same binary, so messages have no versions; each is
// one message of a SOCK_SEQPACKET socket: a head, copies, or a text, and at most one descriptor.
#pragma once

#include "base/error.hpp"
#include "gpu/copy_request.hpp"
#include "gpu/device.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace terrace::gpu {

enum class process_verb : uint32_t {
  // These go to the process. It answers each once by `done` with its id.
  begin, ///< with the descriptor of the staging memory of `bytes`; `done` has the device's description
  import_handle, ///< `handle` becomes region `region` of `bytes`
  import_memory, ///< the descriptor that comes along becomes region `region` of `bytes`
  import_page, ///< the page of generations that comes along becomes region `region`, for loads that signal; its first `signals`
               ///< generations have an event each, and the page its handles
  forget,      ///< forget region `region`, of which nothing is in flight
  load,     ///< copies from staging memory, or from `arena`, into `region`; `copies` have no particular order
  store,    ///< copies from `region` into staging memory
  allocate, ///< new memory of the device of `bytes` becomes region `region`
  map_memory, ///< the memfd of `bytes` that comes along is mapped for reading, as region `region`; nothing is copied from it
  /// `bytes` from `offset` on of region `arena`, which was mapped so, become region `region`, from which
  /// loads may copy.
  pin_memory,
  share, ///< `done` comes with a descriptor of region `region`, which was allocated
  /// `bytes` of device memory, into which files are read, become region `region`; `done` says by what.
  open_reads,
  add_file, ///< the file that comes along is file `region`
  /// Reads `extents` into slot `offset` of that memory; `done` says by bits which are there and as expected
  /// (in `bytes`), and which the library could not read (in `offset`).
  read,
  // This comes from the process.
  done, ///< end of request `id`: `code`, and `text` if it failed, or if an object of a read is missing
};
constexpr uint32_t process_verbs = static_cast<uint32_t>(process_verb::done) + 1;

struct process_message {
  process_verb verb = process_verb::done;
  errc code = errc::ok;
  uint64_t id = 0;
  uint64_t region = 0;
  uint64_t bytes = 0;
  uint64_t arena = 0; ///< the region from which a load copies; 0: staging memory
  uint64_t page =
      0; ///< the region in which a load writes `signals` generations behind its copies, from `signal` on; 0: none
  uint32_t signals = 0;
  uint64_t offset = 0;
  generation signal;
  std::array<std::byte, 64> handle = {};
  std::vector<strided_copy> copies;
  std::vector<disk_extent> extents;
  std::string text;
};

constexpr size_t copies_per_message_max = 1024;
constexpr size_t signals_per_message_max = 1024;
constexpr size_t process_text_max = 4096; ///< longer ones are cut
constexpr size_t process_message_bytes_max = 64 << 10;

std::vector<uint8_t> encode(const process_message& message);
/// Errors: `bad_request`. The caller checks what the numbers refer to.
result<process_message> decode_process_message(std::span<const uint8_t> bytes);

} // namespace terrace::gpu
