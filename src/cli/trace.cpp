#include "cli/trace.hpp"

#include "cli/random_source.hpp"
#include "client/types.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <xxhash.h>
#include <zlib.h>

namespace terrace::cli {

namespace {

constexpr std::array<std::string_view, 5> reason_names{"unknown", "stop", "length", "tool_call", "aborted"};

std::string shown(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

/// Ends the messages about files that have another format.
constexpr std::string_view expected_format =
    ": a trace has Mooncake's format, one JSON object a line with "
    "timestamp, input_length, output_length and hash_ids "
    "(docs/simulate.md); `terrace trace convert` reads those of Azure, "
    "BurstGPT, Qwen-Bailian and ShareGPT";

outcome<uint64_t> whole_number(const nlohmann::json& value, std::string_view text, uint64_t max) {
  uint64_t number = 0;
  if (value.is_number_unsigned())
    number = value.get<uint64_t>();
  else if (value.is_number_float() && value.get<double>() >= 0 && value.get<double>() < 0x1.0p53 &&
           value.get<double>() == std::floor(value.get<double>()))
    number = static_cast<uint64_t>(value.get<double>()); // 5.0
  else
    return bad_usage(
        fmt::format("expected {} to be a whole number from 0 to {}, found {}", text, max, shown(value)));
  if (number > max)
    return bad_usage(
        fmt::format("expected {} to be a whole number from 0 to {}, found {}", text, max, number));
  return number;
}

outcome<uint64_t> member(const nlohmann::json& line, const char* key, uint64_t max) {
  auto found = line.find(key);
  if (found == line.end())
    return bad_usage(fmt::format("expected the key \"{}\", found none of that name{}", key, expected_format));
  return whole_number(*found, fmt::format("\"{}\"", key), max);
}

/// In milliseconds.
outcome<uint64_t> timestamp_of(const nlohmann::json& line, trace_clock clock) {
  constexpr uint64_t most = 1ULL << 53;
  auto found = line.find("timestamp");
  if (found == line.end() || !found->is_number_float())
    if (auto whole = member(line, "timestamp", most); !whole || clock != trace_clock::seconds)
      return whole;
  double given = found->get<double>();
  if (clock == trace_clock::whole_milliseconds && given != std::floor(given))
    return bad_usage(
        fmt::format("expected \"timestamp\" to be whole milliseconds, found {}: add --timestamps seconds, or "
                    "--timestamps milliseconds if its fraction shall be dropped",
                    shown(*found)));
  double milliseconds = clock == trace_clock::seconds ? given * 1000 : given;
  if (!(milliseconds >= 0 && milliseconds < static_cast<double>(most)))
    return bad_usage(
        fmt::format("expected \"timestamp\" to be from 0 to {} ms, found {}", most, shown(*found)));
  return static_cast<uint64_t>(clock == trace_clock::seconds ? std::llround(milliseconds)
                                                             : static_cast<long long>(milliseconds));
}

outcome<nlohmann::json> parse_object(std::string_view text) {
  try {
    nlohmann::json line = nlohmann::json::parse(text);
    if (line.is_object())
      return line;
    if (line.is_array())
      return bad_usage(
          fmt::format("expected a JSON object, found an array{}; jq -c '.[]' writes its elements as lines",
                      expected_format));
    return bad_usage(fmt::format("expected a JSON object, found {}{}", shown(line), expected_format));
  } catch (const nlohmann::json::parse_error& e) {
    if (text.starts_with("\x28\xb5\x2f\xfd"))
      return bad_usage(
          "expected a plain or gzipped file, found one compressed with zstd: decompress it first (zstd -d)");
    return bad_usage(
        fmt::format("expected a JSON object, but column {} is not JSON{}", e.byte, expected_format));
  } catch (const nlohmann::json::exception& e) { // no type holds the number
    return bad_usage(fmt::format("expected a JSON object ({})", e.what()));
  }
}

/// The usual size of blocks that gives so many ids, or 0.
uint32_t likely_block(uint64_t input_length, size_t ids) {
  for (uint32_t block : {512, 256, 128, 64, 32, 16})
    if (ids != 0 && (ids == input_length / block || ids == (input_length + block - 1) / block))
      return block;
  return 0;
}

outcome<std::vector<uint64_t>> parse_ids(const nlohmann::json& line, uint64_t input_length,
                                         uint32_t block_tokens) {
  auto found = line.find("hash_ids");
  if (found == line.end() || !found->is_array())
    return bad_usage(
        fmt::format("expected the key \"hash_ids\" with an array of block ids{}", expected_format));
  std::vector<uint64_t> ids;
  ids.reserve(found->size());
  for (const nlohmann::json& value : *found) {
    if (!value.is_number_unsigned())
      return bad_usage(
          fmt::format("expected \"hash_ids\"[{}] to be a whole number, found {}", ids.size(), shown(value)));
    ids.push_back(value.get<uint64_t>());
  }
  uint64_t whole = input_length / block_tokens;
  uint64_t begun = (input_length + block_tokens - 1) / block_tokens;
  if (ids.size() < whole || ids.size() > begun) {
    uint32_t likely = likely_block(input_length, ids.size());
    return bad_usage(
        fmt::format("expected {} hash_ids for an input_length of {} (one per {} tokens), found {}; {}", begun,
                    input_length, block_tokens, ids.size(),
                    likely != 0 ? fmt::format("for blocks of {0} tokens add --block-tokens {0}", likely)
                                : std::string("--block-tokens tells the size of the trace's blocks")));
  }
  return ids;
}

outcome<void> parse_hints(const nlohmann::json& line, trace_request& request) {
  if (auto reason = line.find("finish_reason"); reason != line.end()) {
    auto known = reason_names.end();
    if (reason->is_string())
      known = std::find(reason_names.begin(), reason_names.end(), reason->get<std::string>());
    if (known == reason_names.end())
      return bad_usage(fmt::format("expected \"finish_reason\" to be one of {}, found {}",
                                   fmt::join(reason_names, ", "), shown(*reason)));
    request.reason = static_cast<finish_reason>(known - reason_names.begin());
  }
  if (auto closed = line.find("session_closed"); closed != line.end()) {
    if (!closed->is_boolean())
      return bad_usage(
          fmt::format("expected \"session_closed\" to be true or false, found {}", shown(*closed)));
    request.session_closed = closed->get<bool>();
  }
  if (auto think = line.find("think_ms"); think != line.end()) {
    auto number = whole_number(*think, "\"think_ms\"", std::numeric_limits<uint32_t>::max());
    if (!number)
      return tl::unexpected(number.error());
    request.think_ms = static_cast<uint32_t>(*number);
  }
  return {};
}

} // namespace

uint64_t trace_request::session_number() const {
  return session_id.empty() ? 0 : XXH3_64bits(session_id.data(), session_id.size()) | 1;
}

outcome<trace_request> parse_trace_line(std::string_view text, const trace_format& format) {
  auto line = parse_object(text);
  if (!line)
    return tl::unexpected(line.error());
  trace_request request;
  auto timestamp = timestamp_of(*line, format.clock);
  if (!timestamp)
    return tl::unexpected(timestamp.error());
  auto input = member(*line, "input_length", client::prefix::tokens_max);
  if (!input)
    return tl::unexpected(input.error());
  auto output = member(*line, "output_length", std::numeric_limits<uint32_t>::max());
  if (!output)
    return tl::unexpected(output.error());
  auto ids = parse_ids(*line, *input, format.block_tokens);
  if (!ids)
    return tl::unexpected(ids.error());
  request.timestamp_ms = *timestamp;
  request.input_length = static_cast<uint32_t>(*input);
  request.output_length = static_cast<uint32_t>(*output);
  request.hash_ids = std::move(*ids);
  request.block_tokens = format.block_tokens;
  if (auto session = line->find("session_id"); session != line->end())
    request.session_id = session->is_string() ? session->get<std::string>() : session->dump();
  if (auto turn = line->find("turn"); turn != line->end() && turn->is_number_unsigned())
    request.turn = static_cast<uint32_t>(turn->get<uint64_t>());
  if (auto hints = parse_hints(*line, request); !hints)
    return tl::unexpected(hints.error());
  return request;
}

outcome<trace> load_trace(const std::string& path, size_t limit, const trace_format& format) {
  auto reader = line_reader::open(path);
  if (!reader)
    return tl::unexpected(reader.error());
  trace loaded;
  while (limit == 0 || loaded.requests.size() < limit) {
    auto line = reader->next();
    if (!line)
      return tl::unexpected(line.error());
    if (!*line)
      break;
    if ((*line)->find_first_not_of(" \t") == std::string::npos)
      continue;
    auto request = parse_trace_line(**line, format);
    if (!request)
      return bad_usage(fmt::format("{}:{}: {}", path, reader->line_number(), request.error().text));
    loaded.requests.push_back(std::move(*request));
  }
  if (loaded.requests.empty())
    return bad_usage(fmt::format("{}:1: expected at least one request, found an empty file", path));
  return loaded;
}

std::string format_trace_line(const trace_request& request) {
  std::string line =
      fmt::format(R"({{"timestamp": {}, "input_length": {}, "output_length": {}, "hash_ids": [)",
                  request.timestamp_ms, request.input_length, request.output_length);
  for (size_t i = 0; i < request.hash_ids.size(); ++i)
    line.append(i == 0 ? "" : ", ").append(std::to_string(request.hash_ids[i]));
  line += ']';
  if (!request.session_id.empty())
    line += fmt::format(
        R"(, "session_id": {})",
        nlohmann::json(request.session_id).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  if (request.turn != 0)
    line += fmt::format(R"(, "turn": {})", request.turn);
  if (request.reason != finish_reason::unknown)
    line += fmt::format(R"(, "finish_reason": "{}")", reason_names[static_cast<size_t>(request.reason)]);
  if (request.session_closed)
    line += R"(, "session_closed": true)";
  if (request.think_ms)
    line += fmt::format(R"(, "think_ms": {})", *request.think_ms);
  return line + "}\n";
}

outcome<void> check_chunk_tokens(uint32_t chunk_tokens, uint32_t block_tokens) {
  if (chunk_tokens == 0 || (chunk_tokens % block_tokens != 0 && block_tokens % chunk_tokens != 0))
    return bad_usage(
        fmt::format("--chunk-tokens: expected a multiple of {0} (the trace's blocks) or a whole part of "
                    "it such as {1}, found {2}",
                    block_tokens, block_tokens / 2, chunk_tokens));
  return {};
}

std::vector<uint64_t> chunk_ids(const trace_request& request, uint32_t chunk_tokens) {
  const uint32_t block_tokens = request.block_tokens;
  size_t named_tokens = std::min<size_t>(request.input_length, request.hash_ids.size() * block_tokens);
  size_t chunks = named_tokens / chunk_tokens; // the id of a block that is not full may be missing
  std::vector<uint64_t> ids(chunks);
  for (size_t i = 0; i < chunks; ++i) {
    size_t last_token = (i + 1) * chunk_tokens - 1;
    uint64_t block = request.hash_ids[last_token / block_tokens];
    if (request.space > 1)
      block = splitmix64(block + splitmix64_step * (uint64_t{request.space} << 32));
    ids[i] = chunk_tokens >= block_tokens
                 ? block
                 : splitmix64(block + splitmix64_step * (1 + last_token % block_tokens));
  }
  return ids;
}

namespace {
constexpr size_t buffer_bytes = 256U << 10;
}

void line_reader::closer::operator()(gzFile_s* file) const { gzclose_r(file); }

line_reader::line_reader(std::string path, gzFile_s* file)
    : path_(std::move(path)), file_(file), buffer_(buffer_bytes) {}
line_reader::line_reader(line_reader&&) noexcept = default;
line_reader& line_reader::operator=(line_reader&&) noexcept = default;
line_reader::~line_reader() = default;

outcome<line_reader> line_reader::open(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return bad_usage(fmt::format("{}: expected a file, found a directory", path));
  gzFile file = gzopen(path.c_str(), "rbe"); // reads plain files as they are
  if (file == nullptr)
    return bad_usage(fmt::format("{}: expected a readable file: {}", path, std::strerror(errno)));
  gzbuffer(file, buffer_bytes);
  return line_reader(path, file);
}

outcome<bool> line_reader::fill() {
  int count = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* text = gzerror(file_.get(), &code);
  if (count < 0 || (count == 0 && code == Z_BUF_ERROR))
    return bad_usage(
        fmt::format("{}:{}: expected a complete gzip archive, but it is damaged or truncated ({})", path_,
                    line_number_ + 1, code == Z_ERRNO ? std::strerror(errno) : text));
  begin_ = 0;
  end_ = static_cast<size_t>(count);
  return count > 0;
}

outcome<std::optional<std::string>> line_reader::next() {
  std::string line;
  bool any = false;
  for (;;) {
    if (begin_ == end_) {
      auto more = fill();
      if (!more)
        return tl::unexpected(more.error());
      if (!*more)
        break;
    }
    any = true;
    const char* first = buffer_.data() + begin_;
    const void* newline = std::memchr(first, '\n', end_ - begin_);
    size_t length = newline ? static_cast<size_t>(static_cast<const char*>(newline) - first) : end_ - begin_;
    if (line.size() + length > line_bytes_max)
      return bad_usage(
          fmt::format("{}:{}: expected a line of at most {} bytes", path_, line_number_ + 1, line_bytes_max));
    line.append(first, length);
    begin_ += length;
    if (newline != nullptr) {
      ++begin_;
      break;
    }
  }
  if (!any)
    return std::nullopt;
  ++line_number_;
  if (!line.empty() && line.back() == '\r')
    line.pop_back();
  return line;
}

} // namespace terrace::cli
