#include "cli/prompt_options.hpp"

#include "cli/capacity_option.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace terrace::cli {

void prompt_options::declare(CLI::App& app) {
  auto* tokens =
      app.add_option("--tokens", tokens_, "Token ids, as \"1 2 3\", [1, 2, 3], @FILE or @- (standard input)");
  auto* digests = app.add_option("--digests", digests_,
                                 "Chunk digests in hexadecimal, separated by commas or spaces, or @FILE");
  tokens->excludes(digests);
  space_.declare(app, true);
  app.add_option("--lora", lora_, "LoRA adapter of the prompt");
  app.add_option("--salt", salt_, "Cache salt of the prompt");
}

outcome<client::space_spec> prompt_options::read() {
  if (tokens_.empty() == digests_.empty())
    return bad_usage("expected either --tokens or --digests (see --help)");
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
  return space_.read();
}

outcome<opened_prompt> prompt_options::open(const daemon_options& to, const std::string& name) {
  auto spec = read();
  if (!spec)
    return tl::unexpected(spec.error());
  auto daemon = connect(to, name);
  if (!daemon)
    return tl::unexpected(daemon.error());
  auto space = daemon->open_space(*spec, to.until());
  if (!space)
    return request_failed(*daemon, "opening the space", space.error());
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

void space_options::declare(CLI::App& app, bool required) {
  app.add_option("--model", spec_.model, "Model of the space; all fields must equal those used by the engine")
      ->required(required);
  app.add_option("--dtype", spec_.dtype, "Data type of the space")->required(required);
  app.add_option("--layout", spec_.layout, "Layout of the space")->required(required);
  app.add_option("--pool", pools_, "Pool of the space, as NAME:OBJECT_BYTES; repeat per pool")
      ->required(required);
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
