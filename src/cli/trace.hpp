// Request traces in the format that Mooncake published: JSON lines, plain or gzipped.
#pragma once

#include "base/eviction_types.hpp"
#include "cli/failure.hpp"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct gzFile_s;

namespace terrace::cli {

// Lines of a text file, plain or gzipped.

/// Reads forward only, in pieces of 256 KiB. Gzip is detected from the first bytes, not from the name.
class line_reader {
 public:
  static constexpr size_t line_bytes_max = 32U << 20;

  /// Fails with usage if the file cannot be opened.
  static outcome<line_reader> open(const std::string& path);

  line_reader(line_reader&&) noexcept;
  line_reader& operator=(line_reader&&) noexcept;
  ~line_reader();

  /// The next line without its end, or nullopt at the end of the file. A truncated or damaged archive and a
  /// line over the limit are failures with file and line.
  outcome<std::optional<std::string>> next();

  /// The number of the line last returned by next(); the first is 1.
  size_t line_number() const { return line_number_; }
  const std::string& path() const { return path_; }

 private:
  struct closer {
    void operator()(gzFile_s* file) const;
  };

  line_reader(std::string path, gzFile_s* file);
  outcome<bool> fill();

  std::string path_;
  std::unique_ptr<gzFile_s, closer> file_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t line_number_ = 0;
};

/// The number of tokens per id of a trace in Mooncake's format; other traces have other blocks.
constexpr uint32_t trace_block_tokens = 512;

enum class trace_clock : uint8_t {
  whole_milliseconds, ///< a fraction is refused, because it is a sign of seconds
  milliseconds,       ///< fractions are dropped
  seconds,
};

/// What the lines of a trace do not say themselves.
struct trace_format {
  uint32_t block_tokens = trace_block_tokens;
  trace_clock clock = trace_clock::whole_milliseconds;
};

/// One line: {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [...]}. An id
/// identifies a block of 512 tokens and the whole prefix before it: two requests share a prefix exactly as
/// far as their ids agree. The last id is a partial block unless input_length is a multiple of the block's tokens.
struct trace_request {
  uint64_t timestamp_ms = 0;
  uint32_t input_length = 0;
  uint32_t output_length = 0;
  std::vector<uint64_t> hash_ids;
  std::string session_id;                        ///< optional extra key, empty when absent
  uint32_t turn = 0;                             ///< optional extra key, from 1; 0 when absent
  finish_reason reason = finish_reason::unknown; ///< optional extra key "finish_reason"
  bool session_closed = false;                   ///< optional extra key
  std::optional<uint32_t>
      think_ms;       ///< optional extra key: the client's estimate of the time until the next turn
  uint32_t space = 1; ///< space of the ids; not a key, because one file is one space
  uint32_t block_tokens =
      trace_block_tokens; ///< tokens per id; not a key, because one file has one size of blocks

  /// Number of ids of whole blocks, which a cache can share.
  size_t full_blocks() const { return input_length / block_tokens; }

  /// A number for the session; 0 when it has none.
  uint64_t session_number() const;

  friend bool operator==(const trace_request&, const trace_request&) = default;
};

struct trace {
  std::vector<trace_request> requests; ///< in file order
};

/// Parses one line; on failure the text states what was expected and found, without file and line. Unknown
/// keys are ignored. Information on a request's end takes effect once its answer is complete.
outcome<trace_request> parse_trace_line(std::string_view line, const trace_format& format = {});

/// Reads at most `limit` requests (0: all). Failures read "file:line: expected ...". Empty lines are skipped;
/// a file without any request is a failure.
outcome<trace> load_trace(const std::string& path, size_t limit = 0, const trace_format& format = {});

/// Formats the line of a request, with a newline. Optional keys are written when present.
std::string format_trace_line(const trace_request& request);

// Computes chunks whose size differs from the blocks of a trace.

/// `chunk_tokens` must be a multiple of the trace's blocks or a whole part of one.
outcome<void> check_chunk_tokens(uint32_t chunk_tokens, uint32_t block_tokens = trace_block_tokens);

/// Returns the ids of the request's whole chunks, whose size was checked. A chunk of whole blocks has the id
/// of its last block, which identifies the prefix up to there; a part of a block has an id made from the
/// block's id and its position.
std::vector<uint64_t> chunk_ids(const trace_request& request, uint32_t chunk_tokens);

} // namespace terrace::cli
