#include "cli/space_options.hpp"

#include "cli/byte_size_option.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace terrace::cli {

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
