#include "cli/prompt_options.hpp"

#include "base/printable.hpp"
#include "cli/capacity_option.hpp"
#include "cli/digest_text.hpp"
#include "cli/run_program.hpp"
#include "client/status.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace terrace::cli {

namespace {

/// Prints the ids, or one line that says why there are none.
constexpr const char* tokenizing = R"(
import os, sys
name, path, special = sys.argv[1:4]
try:
    from tokenizers import Tokenizer
except ImportError:
    sys.exit("the Python package tokenizers is missing: python3 -m pip install tokenizers")
file = os.path.join(name, "tokenizer.json") if os.path.isdir(name) else name
try:
    text = sys.stdin.read() if path == "-" else open(path, encoding="utf-8").read()
except (OSError, UnicodeDecodeError) as problem:
    sys.exit(f"{path}: {problem}")
try:
    tokenizer = Tokenizer.from_file(file) if os.path.exists(file) else Tokenizer.from_pretrained(name)
except Exception as problem:
    sys.exit(f"--tokenizer {name}: expected a model's folder, a tokenizer.json or a name of Hugging Face: {str(problem).splitlines()[0]}")
print(*tokenizer.encode(text, add_special_tokens=special == "yes").ids)
)";

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
}

} // namespace

outcome<std::vector<uint32_t>> tokens_of_text(const tokenized_text& what) {
  auto ended =
      run_program({"python3", "-c", tokenizing, what.tokenizer, what.file, what.special ? "yes" : "no"});
  if (!ended)
    return failed(ended.error().text + "; install it, or give --tokens");
  if (ended->code != 0)
    return bad_usage(last_line(ended->output));
  return parse_tokens(last_line(ended->output));
}

void prompt_options::declare(CLI::App& app) {
  auto* tokens =
      app.add_option("--tokens", tokens_, "Token ids, as \"1 2 3\", [1, 2, 3], @FILE or @- (standard input)");
  auto* digests = app.add_option("--digests", digests_,
                                 "Chunk digests in hexadecimal, separated by commas or spaces, or @FILE");
  auto* text = app.add_option("--text", text_.file, "Text of the prompt, in this file; - for standard input");
  auto* tokenizer = app.add_option("--tokenizer", text_.tokenizer,
                                   "Tokenizer of --text: a model's folder, a tokenizer.json, or a name of "
                                   "Hugging Face (needs python3 with the package tokenizers)");
  app.add_flag(
         "!--no-special-tokens", text_.special,
         "With --text: without the tokens that the tokenizer adds, as for a text made by a chat template")
      ->needs(text);
  tokens->excludes(digests)->excludes(text);
  digests->excludes(text);
  text->needs(tokenizer);
  tokenizer->needs(text);
  space_.declare(app);
  app.add_option("--lora", lora_, "LoRA adapter of the prompt");
  app.add_option("--salt", salt_, "Cache salt of the prompt");
}

outcome<void> prompt_options::read() {
  if (tokens_.empty() + digests_.empty() + text_.file.empty() != 2)
    return bad_usage(instead_.empty()
                         ? std::string("expected --tokens, --digests or --text (see --help)")
                         : "expected --tokens, --digests, --text or " + instead_ + " (see --help)");
  if (!text_.file.empty()) {
    if (auto fits = space_.check(); !fits)
      return fits;
    auto ids = tokens_of_text(text_);
    if (!ids)
      return tl::unexpected(ids.error());
    token_ids_ = std::move(*ids);
    return {};
  }
  auto text = text_or_file(tokens_.empty() ? digests_ : tokens_);
  if (!text)
    return tl::unexpected(text.error());
  if (!tokens_.empty()) {
    auto parsed = parse_tokens(*text);
    if (!parsed)
      return tl::unexpected(parsed.error());
    token_ids_ = std::move(*parsed);
  } else {
    auto parsed = parse_digests(*text);
    if (!parsed)
      return tl::unexpected(parsed.error());
    digest_list_ = std::move(*parsed);
  }
  return space_.check();
}

outcome<opened_prompt> prompt_options::open(const daemon_options& to, const std::string& name) {
  if (auto understood = read(); !understood)
    return tl::unexpected(understood.error());
  auto daemon = connect(to, name);
  if (!daemon)
    return tl::unexpected(daemon.error());
  auto space = space_.open(*daemon, to);
  if (!space)
    return tl::unexpected(space.error());
  return opened_prompt{std::move(*daemon), *space};
}

client::prefix prompt_options::what() const {
  client::prefix prompt = digests_.empty()
                              ? client::prefix::of_tokens(token_ids_)
                              : client::prefix::of_digests(digest_list_.bytes, digest_list_.width);
  prompt.lora = lora_;
  prompt.salt = salt_;
  return prompt;
}

void space_options::declare(CLI::App& app) {
  app.add_option("--space", number_,
                 "Number of the space, as terrace status shows it, instead of its fields");
  app.add_option("--model", spec_.model,
                 "Model of the space; all fields must equal those used by the engine");
  app.add_option("--dtype", spec_.dtype, "Data type of the space");
  app.add_option("--layout", spec_.layout, "Layout of the space");
  app.add_option("--pool", pools_, "Pool of the space, as NAME:OBJECT_BYTES; repeat per pool");
  app.add_option("--revision", spec_.revision, "Model revision of the space");
  app.add_option("--chunk-tokens", spec_.chunk_tokens, "Tokens per chunk of the space")
      ->capture_default_str();
  app.add_option("--hash-block-tokens", spec_.hash_block_tokens, "Tokens per hash block of the space")
      ->capture_default_str();
  app.add_option("--world-size", spec_.world_size, "World size of the space")->capture_default_str();
  app.add_option("--space-salt", spec_.salt, "Tenant salt of the space");
  app.add_option("--algorithm", algorithm_, "Hash algorithm of the space")
      ->check(CLI::IsMember({"sha256_cbor", "sha256", "xxh3_128"}))
      ->capture_default_str();
  app.add_option("--seed", spec_.seed, "Hash seed of the space");
}

outcome<void> space_options::check() const {
  bool all = !spec_.model.empty() && !spec_.dtype.empty() && !spec_.layout.empty() && !pools_.empty();
  if (number_ != 0 ? fields_given() : !all)
    return bad_usage(
        "expected either --space, or --model, --dtype, --layout and --pool (terrace status lists spaces)");
  auto spec = read();
  return spec ? outcome<void>() : tl::unexpected(spec.error());
}

namespace {

constexpr size_t listed_max = 8;

/// The spaces of the daemon's answer, for messages.
std::string listed(const std::vector<client::space_status>& spaces) {
  if (spaces.empty())
    return "the trust group has no space: nothing was stored since the daemon started, or all of it has gone";
  std::string text = "there are: ";
  for (size_t i = 0; i < std::min(spaces.size(), listed_max); ++i) {
    const client::space_status& one = spaces[i];
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", one.space,
                        one.model.empty() ? "(not opened since the daemon started)"
                                          : fmt::format("{} ({}, {})", printable(one.model),
                                                        printable(one.dtype), printable(one.layout)));
  }
  return text + (spaces.size() > listed_max ? ", and more: see terrace status" : "");
}

} // namespace

outcome<client::space> space_options::open(client::connection& daemon, const daemon_options& to) const {
  auto status = daemon.admin().status(to.until());
  if (!status)
    return request_failed(daemon, "asking for the spaces", status.error());
  std::vector<client::space_status> spaces;
  for (const client::group_status& group : status->groups)
    for (const auto* some : {&group.open_spaces, &group.idle_spaces})
      spaces.insert(spaces.end(), some->begin(), some->end());
  auto exists = [&](auto is_it) { return std::any_of(spaces.begin(), spaces.end(), is_it); };
  if (number_ != 0) { // one that has nothing left is not listed, and its prompts can still be explained
    auto opened = daemon.admin().open_space(number_, to.until());
    if (opened)
      return *opened;
    if (!exists([&](const auto& one) { return one.space == number_; }))
      return failed(fmt::format("no space has the number {}; {}", number_, listed(spaces)));
    return request_failed(daemon, "opening the space", opened.error());
  }
  auto opened = daemon.open_space(*read(), to.until()); // checked
  if (!opened)
    return request_failed(daemon, "opening the space", opened.error());
  if (!exists([&](const auto& one) { return one.fingerprint == opened->fingerprint; }))
    return failed("no space has these fields; " + listed(spaces));
  return *opened;
}

outcome<client::space_spec> space_options::read() const {
  client::space_spec spec = spec_;
  spec.algorithm = algorithm_ == "sha256"     ? client::hash_algorithm::sha256
                   : algorithm_ == "xxh3_128" ? client::hash_algorithm::xxh3_128
                                              : client::hash_algorithm::sha256_cbor;
  for (const std::string& text : pools_) {
    size_t colon = text.find(':');
    auto bytes = colon == std::string::npos ? parse_bytes("") : parse_bytes(text.substr(colon + 1));
    if (!bytes || colon == 0)
      return bad_usage(fmt::format("--pool: expected NAME:OBJECT_BYTES such as kv:4MiB, found \"{}\"", text));
    spec.pools.push_back({.name = text.substr(0, colon), .object_bytes = *bytes});
  }
  return spec;
}

} // namespace terrace::cli
