#include "cli/prompt_options.hpp"

#include <CLI/CLI.hpp>

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
  client::prefix what = digests_.empty() ? client::prefix::of_tokens(token_ids_)
                                         : client::prefix::of_digests(digest_list_.bytes, digest_list_.width);
  what.lora = lora_;
  what.salt = salt_;
  return what;
}

} // namespace terrace::cli
