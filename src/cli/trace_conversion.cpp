#include "cli/trace_conversion.hpp"

#include "base/printable.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <map>
#include <unordered_map>

namespace terrace::cli {

namespace {

using json = nlohmann::json;

constexpr uint32_t bailian_block_tokens = 16;
constexpr uint32_t tokens_max = 1U << 30;

struct timed_request {
  double seconds = 0;
  trace_request request;
};

std::string at_line(const line_reader& from, const std::string& text) {
  return fmt::format("{}:{}: {}", from.path(), from.line_number(), text);
}

/// Describes a value of JSON for an error: its fields, or its type.
std::string shape_of(const json& value) {
  constexpr size_t shown_max = 6;
  if (value.is_discarded())
    return "text that is no JSON";
  if (!value.is_object())
    return "a JSON " + std::string(value.type_name());
  std::vector<std::string> names;
  for (const auto& [name, part] : value.items())
    if (names.size() < shown_max)
      names.push_back("\"" + printable(name.substr(0, 40)) + "\"");
  return value.empty() ? "an empty object"
                       : fmt::format("an object with {}{}", fmt::join(names, ", "),
                                     value.size() > shown_max ? " and others" : "");
}

size_t blocks_begun(uint64_t tokens, uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

// ---- CSV ----

/// The public files have no quotes.
std::vector<std::string> cells_of(std::string_view line) {
  if (line.ends_with('\r'))
    line.remove_suffix(1);
  std::vector<std::string> cells;
  for (;;) {
    size_t comma = line.find(',');
    cells.emplace_back(line.substr(0, comma));
    if (comma == std::string_view::npos)
      return cells;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_of(const std::string& cell) {
  double value = 0;
  auto [end, failed] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failed != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

/// "2023-11-16 18:17:03.9799600", perhaps with "+00:00" behind it, in seconds.
std::optional<double> date_of(const std::string& cell) {
  std::tm date{};
  int used = 0;
  if (std::sscanf(cell.c_str(), "%d-%d-%d %d:%d:%d%n", &date.tm_year, &date.tm_mon, &date.tm_mday,
                  &date.tm_hour, &date.tm_min, &date.tm_sec, &used) != 6)
    return std::nullopt;
  date.tm_year -= 1900;
  --date.tm_mon;
  std::string rest = cell.substr(static_cast<size_t>(used));
  rest = rest.substr(0, rest.find_first_of("+Z"));
  auto fraction = rest.empty()          ? std::optional<double>(0)
                  : rest.front() == '.' ? number_of("0" + rest)
                                        : std::nullopt;
  if (!fraction)
    return std::nullopt;
  return static_cast<double>(::timegm(&date)) + *fraction;
}

/// Which cells of a line are what.
struct columns {
  static constexpr size_t none = SIZE_MAX;
  size_t time = none, input = none, output = none, session = none;
};

columns find_columns(const std::vector<std::string>& heads, trace_source from) {
  auto place = [&](std::string_view name) {
    auto found = std::find(heads.begin(), heads.end(), name);
    return found == heads.end() ? columns::none : static_cast<size_t>(found - heads.begin());
  };
  if (from == trace_source::azure)
    return {place("TIMESTAMP"), place("ContextTokens"), place("GeneratedTokens"), columns::none};
  return {place("Timestamp"), place("Request tokens"), place("Response tokens"), place("Session ID")};
}

std::optional<trace_source> looks_like(std::string_view line) {
  if (line.starts_with("TIMESTAMP,ContextTokens"))
    return trace_source::azure;
  if (line.starts_with("Timestamp,") && line.find("Request tokens") != std::string_view::npos)
    return trace_source::burstgpt;
  if (line.starts_with("{") && line.find("\"conversations\"") != std::string_view::npos)
    return trace_source::sharegpt;
  if (line.starts_with("{") && line.find("\"hash_ids\"") != std::string_view::npos)
    return trace_source::bailian;
  return std::nullopt;
}

constexpr const char* no_conversion =
    "a trace in Mooncake's format, which needs no conversion: terrace simulate and terrace replay read it";

/// Whether a request has the ids of blocks of 512 tokens, as Mooncake's traces have, and not of 16.
bool is_mooncake(const json& request) {
  if (!request.is_object() || !request.contains("timestamp") || request.contains("chat_id"))
    return false;
  const auto ids = request.find("hash_ids");
  const auto length = request.find("input_length");
  if (ids == request.end() || !ids->is_array() || length == request.end() || !length->is_number_unsigned())
    return false;
  const auto tokens = length->get<uint64_t>();
  return tokens <= tokens_max && ids->size() == blocks_begun(tokens, trace_block_tokens) &&
         ids->size() != blocks_begun(tokens, bailian_block_tokens) &&
         ids->size() != tokens / bailian_block_tokens;
}

/// Describes the first line of a file for an error.
std::string look_of(std::string_view line) {
  constexpr size_t shown_max = 60;
  if (auto source = looks_like(line); source == trace_source::azure)
    return "a CSV of Azure";
  else if (source == trace_source::burstgpt)
    return "a CSV of BurstGPT";
  else if (source == trace_source::sharegpt)
    return "conversations in ShareGPT's format";
  if (line.starts_with('{') || line.starts_with('[')) {
    const json value = json::parse(line, nullptr, false);
    return is_mooncake(value) ? no_conversion : shape_of(value);
  }
  return "\"" + printable(std::string(line.substr(0, shown_max))) +
         (line.size() > shown_max ? "...\"" : "\"");
}

outcome<std::vector<timed_request>> read_table(line_reader& lines, const std::string& head, trace_source from,
                                               const conversion_options& options, uint32_t block_tokens) {
  const columns at = find_columns(cells_of(head), from);
  if (at.time == columns::none || at.input == columns::none || at.output == columns::none)
    return bad_usage(at_line(
        lines, fmt::format("expected a CSV of {}, found {}",
                           from == trace_source::azure
                               ? "Azure, with the columns TIMESTAMP, ContextTokens and GeneratedTokens"
                               : "BurstGPT, with the columns Timestamp, Request tokens and Response tokens",
                           look_of(head))));
  /// The blocks of a session so far, and its tokens.
  struct earlier {
    std::vector<uint64_t> ids;
    uint64_t tokens = 0;
    uint32_t turns = 0;
  };
  std::unordered_map<std::string, earlier> sessions;
  std::vector<timed_request> read;
  uint64_t next_id = 0;
  for (;;) {
    auto line = lines.next();
    if (!line)
      return tl::unexpected(line.error());
    if (!*line || (options.limit != 0 && read.size() == options.limit))
      return read;
    if ((*line)->empty())
      continue;
    auto cells = cells_of(**line);
    size_t last = std::max({at.time, at.input, at.output});
    if (cells.size() <= last)
      return bad_usage(at_line(lines, fmt::format("expected {} cells, found {}", last + 1, cells.size())));
    auto time = from == trace_source::azure ? date_of(cells[at.time]) : number_of(cells[at.time]);
    auto input = number_of(cells[at.input]), output = number_of(cells[at.output]);
    if (!time)
      return bad_usage(at_line(lines, "expected a time, found \"" + cells[at.time] + "\""));
    if (!input || !output || *input < 0 || *output < 0 || *input > tokens_max || *output > tokens_max)
      return bad_usage(at_line(lines, "expected numbers of tokens, found \"" + cells[at.input] + "\" and \"" +
                                          cells[at.output] + "\""));
    timed_request one{*time, {}};
    one.request.input_length = static_cast<uint32_t>(*input);
    one.request.output_length = static_cast<uint32_t>(*output);
    earlier alone;
    std::string session = at.session < cells.size() ? cells[at.session] : "";
    earlier& before = session.empty() ? alone : sessions[session];
    // A prompt that is shorter than the conversation before it does not continue it.
    if (one.request.input_length < before.tokens)
      before = {};
    if (!session.empty()) {
      one.request.session_id = session;
      one.request.turn = ++before.turns;
    }
    before.ids.resize(before.tokens / block_tokens);
    while (before.ids.size() < blocks_begun(one.request.input_length, block_tokens))
      before.ids.push_back(next_id++);
    one.request.hash_ids = before.ids;
    before.tokens = one.request.input_length; // the whole blocks of the answer get ids with the next prompt
    read.push_back(std::move(one));
  }
}

// ---- JSON lines of blocks ----

/// Numbers prefixes: two are the same if their last blocks and what is before them are.
class prefix_numbers {
 public:
  uint64_t of(uint64_t before, uint64_t block) {
    return known_.try_emplace({before, block}, known_.size() + 1).first->second;
  }

 private:
  struct mixed {
    size_t operator()(const std::pair<uint64_t, uint64_t>& of) const {
      return XXH3_64bits_withSeed(&of.second, sizeof of.second, of.first);
    }
  };
  std::unordered_map<std::pair<uint64_t, uint64_t>, uint64_t, mixed> known_;
};

outcome<std::vector<timed_request>> read_blocks(line_reader& lines, std::string line,
                                                const conversion_options& options, uint32_t block_tokens) {
  if (block_tokens % bailian_block_tokens != 0)
    return bad_usage(fmt::format("--block-tokens: expected a multiple of {}", bailian_block_tokens));
  const size_t joined = block_tokens / bailian_block_tokens;
  std::vector<timed_request> read;
  std::unordered_map<int64_t, int64_t> first_of; // of a chat: that with which its conversation began
  prefix_numbers numbers;
  constexpr const char* expected =
      "expected a line of a Qwen-Bailian trace, with timestamp, input_length, output_length and hash_ids";
  for (;;) {
    const json from = json::parse(line, nullptr, false);
    for (const char* name : {"timestamp", "input_length", "output_length", "hash_ids"})
      if (!from.is_object() || !from.contains(name))
        return bad_usage(at_line(lines, fmt::format("{}, found {}", expected, look_of(line))));
    if (is_mooncake(from))
      return bad_usage(at_line(lines, std::string(expected) + " of 16 tokens each, found " + no_conversion));
    try {
      timed_request one{from.at("timestamp").get<double>(), {}};
      one.request.input_length = from.at("input_length").get<uint32_t>();
      one.request.output_length = from.at("output_length").get<uint32_t>();
      const auto& ids = from.at("hash_ids");
      size_t begun = blocks_begun(one.request.input_length, bailian_block_tokens);
      if (ids.size() != begun && ids.size() != one.request.input_length / bailian_block_tokens)
        return bad_usage(at_line(lines, fmt::format("expected {} hash_ids, one for {} tokens, found {}",
                                                    begun, bailian_block_tokens, ids.size())));
      uint64_t prefix = 0;
      for (size_t i = 0; i < ids.size(); ++i) {
        prefix = numbers.of(prefix, ids[i].get<uint64_t>());
        if ((i + 1) % joined == 0 || i + 1 == ids.size())
          one.request.hash_ids.push_back(prefix);
      }
      if (from.contains("chat_id")) {
        auto chat = from["chat_id"].get<int64_t>(), parent = from.value("parent_chat_id", int64_t{-1});
        auto known = first_of.find(parent);
        int64_t first = first_of[chat] = known == first_of.end() ? chat : known->second;
        one.request.session_id = std::to_string(first);
        one.request.turn = from.value("turn", uint32_t{0});
      }
      read.push_back(std::move(one));
    } catch (const json::exception&) {
      return bad_usage(
          at_line(lines, fmt::format("{}, all numbers, found {} of other types", expected, shape_of(from))));
    }
    do {
      auto next = lines.next();
      if (!next)
        return tl::unexpected(next.error());
      if (!*next || (options.limit != 0 && read.size() == options.limit))
        return read;
      line = std::move(**next);
    } while (line.empty());
  }
}

// ---- conversations as text ----

/// Text that grows, and the ids of its blocks.
class text_blocks {
 public:
  explicit text_blocks(size_t block_bytes) : block_bytes_(block_bytes) {}

  void add(std::string_view text) {
    bytes_ += text.size();
    rest_ += text;
    size_t done = 0;
    for (; rest_.size() - done >= block_bytes_; done += block_bytes_)
      whole_.push_back(XXH3_64bits_withSeed(rest_.data() + done, block_bytes_, prefix()));
    rest_.erase(0, done);
  }
  std::vector<uint64_t> ids() const {
    auto all = whole_;
    if (!rest_.empty())
      all.push_back(XXH3_64bits_withSeed(rest_.data(), rest_.size(), prefix()));
    return all;
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t prefix() const { return whole_.empty() ? 0 : whole_.back(); }
  size_t block_bytes_;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> whole_;
  std::string rest_;
};

class conversations {
 public:
  conversations(const conversion_options& options, uint32_t block_tokens)
      : options_(options), block_tokens_(block_tokens) {}

  bool full() const { return options_.limit != 0 && read_.size() >= options_.limit; }
  std::vector<timed_request> take() { return std::move(read_); }

  /// Adds a request for each answer of one conversation. Throws what nlohmann throws.
  void add(const json& conversation) {
    const size_t number = count_++;
    text_blocks text(size_t{block_tokens_} * options_.bytes_per_token);
    auto tokens = [&](uint64_t bytes) {
      return static_cast<uint32_t>((bytes + options_.bytes_per_token - 1) / options_.bytes_per_token);
    };
    uint32_t turn = 0;
    for (const json& said : conversation.at("conversations")) {
      const auto& who = said.at("from").get_ref<const std::string&>();
      const auto& value = said.at("value").get_ref<const std::string&>();
      bool answer = who == "gpt" || who == "chatgpt" || who == "assistant" || who == "bing" || who == "bard";
      if (answer && text.bytes() != 0 && !full()) {
        timed_request one{static_cast<double>(number) / options_.rate + turn * options_.turn_seconds, {}};
        one.request.input_length = tokens(text.bytes());
        one.request.output_length = tokens(value.size());
        one.request.hash_ids = text.ids();
        one.request.session_id = std::to_string(number);
        one.request.turn = ++turn;
        read_.push_back(std::move(one));
      }
      text.add(who + ": " + value + "\n");
    }
  }

 private:
  const conversion_options& options_;
  uint32_t block_tokens_;
  size_t count_ = 0;
  std::vector<timed_request> read_;
};

/// The characters of a plain or gzipped file, for a parser that reads them one after the other.
class file_characters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  file_characters() = default; ///< the end
  explicit file_characters(gzFile file) : file_(file) { ++*this; }
  reference operator*() const { return current_; }
  file_characters& operator++() {
    int next = gzgetc(file_);
    if (next < 0)
      file_ = nullptr;
    current_ = static_cast<char>(next);
    return *this;
  }
  file_characters operator++(int) {
    auto before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const file_characters& a, const file_characters& b) { return a.file_ == b.file_; }
  friend bool operator!=(const file_characters& a, const file_characters& b) { return !(a == b); }

 private:
  gzFile file_ = nullptr;
  char current_ = 0;
};

/// A file is one array of many hundred MB, so each conversation is dropped when it has been read.
outcome<std::vector<timed_request>> read_array(const std::string& path, conversations& all) {
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  if (!file)
    return bad_usage(path + ": cannot be opened");
  std::string failure_text;
  auto take = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth != 1 || event != json::parse_event_t::object_end)
      return true;
    try {
      if (failure_text.empty())
        all.add(parsed);
    } catch (const json::exception&) {
      failure_text = shape_of(parsed) + " in it";
    }
    return false;
  };
  try {
    const json rest = json::parse(file_characters(file.get()), file_characters(), take);
    if (!rest.is_array())
      failure_text = shape_of(rest);
    else if (failure_text.empty() && !rest.empty() && !rest.front().is_null())
      failure_text = shape_of(rest.front()) + " in it";
  } catch (const json::parse_error& e) {
    failure_text = fmt::format("text that is no JSON at byte {}", e.byte);
  }
  if (!failure_text.empty())
    return bad_usage(fmt::format("{}: expected ShareGPT's format, an array of objects with "
                                 "\"conversations\", each of {{\"from\", \"value\"}}, found {}",
                                 path, failure_text));
  return all.take();
}

outcome<std::vector<timed_request>> read_lines(line_reader& lines, std::string line, conversations& all) {
  for (;;) {
    try {
      if (!line.empty())
        all.add(json::parse(line));
    } catch (const json::exception&) {
      return bad_usage(
          at_line(lines, fmt::format("expected ShareGPT's format, an object with \"conversations\", each of "
                                     "{{\"from\", \"value\"}}, found {}",
                                     look_of(line))));
    }
    auto next = lines.next();
    if (!next)
      return tl::unexpected(next.error());
    if (!*next || all.full())
      return all.take();
    line = std::move(**next);
  }
}

// ---- all ----

/// The first byte that is no space; it decides how the file is read.
outcome<char> first_byte(const std::string& path) {
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file(::gzopen(path.c_str(), "rb"), ::gzclose);
  if (!file)
    return bad_usage(path + ": cannot be opened");
  int next = 0;
  do
    next = gzgetc(file.get());
  while (next == ' ' || next == '\n' || next == '\r' || next == '\t');
  if (next < 0)
    return bad_usage(path + ": expected a trace, found an empty file");
  return static_cast<char>(next);
}

outcome<std::vector<timed_request>> read_requests(const std::string& path, const conversion_options& options,
                                                  conversion& made) {
  auto first = first_byte(path);
  if (!first)
    return tl::unexpected(first.error());
  auto block_of = [&](trace_source from) {
    return options.block_tokens != 0       ? options.block_tokens
           : from == trace_source::bailian ? bailian_block_tokens
                                           : trace_block_tokens;
  };
  if (*first == '[' && options.from.value_or(trace_source::sharegpt) == trace_source::sharegpt) {
    made.from = trace_source::sharegpt;
    made.block_tokens = block_of(made.from);
    conversations all(options, made.block_tokens);
    return read_array(path, all);
  }
  auto lines = line_reader::open(path);
  if (!lines)
    return tl::unexpected(lines.error());
  auto head = lines->next();
  if (!head)
    return tl::unexpected(head.error());
  std::string line = head->value_or("");
  if (line.starts_with("\xef\xbb\xbf"))
    line.erase(0, 3);
  auto from = options.from ? options.from : looks_like(line);
  if (!from)
    return bad_usage(
        at_line(*lines, "expected a trace of Azure or BurstGPT (CSV), of Qwen-Bailian (JSON lines with "
                        "hash_ids), or conversations in ShareGPT's format, found " +
                            look_of(line) + "; --from names the format"));
  made.from = *from;
  made.block_tokens = block_of(*from);
  switch (*from) {
    case trace_source::azure:
    case trace_source::burstgpt: return read_table(*lines, line, *from, options, made.block_tokens);
    case trace_source::bailian: return read_blocks(*lines, std::move(line), options, made.block_tokens);
    case trace_source::sharegpt: break;
  }
  conversations all(options, made.block_tokens);
  return read_lines(*lines, std::move(line), all);
}

std::string assumptions(const conversion& made, const conversion_options& options) {
  bool sessions = std::any_of(made.made.requests.begin(), made.made.requests.end(),
                              [](const trace_request& one) { return !one.session_id.empty(); });
  switch (made.from) {
    case trace_source::azure:
    case trace_source::burstgpt:
      return sessions ? "the file does not say which prompts begin alike: a prompt that is at least as long "
                        "as the one "
                        "before it in its session is taken to begin with it"
                      : "the file does not say which prompts begin alike: none are taken to, so nothing can "
                        "be hit";
    case trace_source::bailian: return {};
    case trace_source::sharegpt:
      return fmt::format(
          "the file has neither tokens nor times: {} bytes count as a token, {:g} conversations begin a "
          "second, and their requests are {:g} s apart",
          options.bytes_per_token, options.rate, options.turn_seconds);
  }
  return {};
}

} // namespace

std::optional<trace_source> trace_source_named(std::string_view name) {
  constexpr std::string_view names[] = {"azure", "burstgpt", "bailian", "sharegpt"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (name == names[i])
      return static_cast<trace_source>(i);
  return std::nullopt;
}

outcome<conversion> convert_trace(const std::string& path, const conversion_options& options) {
  conversion made;
  auto read = read_requests(path, options, made);
  if (!read)
    return tl::unexpected(read.error());
  if (read->empty())
    return bad_usage(path + ": expected at least one request, found none");
  std::stable_sort(read->begin(), read->end(),
                   [](const timed_request& a, const timed_request& b) { return a.seconds < b.seconds; });
  const double start = read->front().seconds;
  for (timed_request& one : *read) {
    one.request.timestamp_ms = static_cast<uint64_t>(std::llround((one.seconds - start) * 1000));
    one.request.block_tokens = made.block_tokens;
    made.made.requests.push_back(std::move(one.request));
  }
  made.assumed = assumptions(made, options);
  return made;
}

} // namespace terrace::cli
