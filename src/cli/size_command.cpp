// terrace size

#include "cli/capacity_option.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_size.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>

#include <fstream>
#include <iterator>

namespace terrace::cli {

namespace {

constexpr uint64_t config_bytes_max = 16 << 20;

outcome<std::string> read_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  text.resize(config_bytes_max + 1);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file.is_open()))
    return bad_usage(path + ": expected a readable file");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > config_bytes_max)
    return bad_usage(path + ": expected the config.json of a model, of at most 16 MiB");
  return text;
}

class size_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("CONFIG", path_, "config.json of the model, as it lies beside its weights")->required();
    app.add_option("--kv-dtype", kv_dtype_,
                   "Type of the KV if the engine is told another one than the model's, as \"fp8\"");
    app.add_option("--tokens", tokens_, "Tokens of a conversation")
        ->check(CLI::Range(1U, 1U << 30))
        ->capture_default_str();
    app.add_option("--users", users_, "Conversations that go on at the same time; 0: not told")
        ->check(CLI::Range(0U, 1U << 30))
        ->capture_default_str();
    app.add_option("--think", think_s_, "Seconds between an answer and the next question")
        ->check(CLI::Range(0.001, 1e6))
        ->capture_default_str();
    app.add_flag("--json", json_, "Print JSON");
  }

  outcome<exit_code> run(console& to) override {
    auto text = read_config(path_);
    if (!text)
      return tl::unexpected(text.error());
    auto model = read_model_size(*text, kv_dtype_);
    if (!model) {
      model.error().text = path_ + ": " + model.error().text;
      return tl::unexpected(model.error());
    }
    if (json_)
      print_json(to, facts(*model));
    else
      fmt::print(to.out, "{}", report(*model));
    return exit_code::ok;
  }

 private:
  double all_bytes(const model_size& model) const {
    return static_cast<double>(model.prompt_bytes(tokens_)) * static_cast<double>(users_);
  }
  uint64_t tokens_per_gib(const model_size& model) const {
    return model.token_bytes() == 0 ? 0 : (uint64_t{1} << 30) / model.token_bytes();
  }

  json facts(const model_size& model) const {
    json made{{"model_type", model.type},
              {"kv_dtype", model.dtype},
              {"latent", model.latent},
              {"full_layers", model.full_layers},
              {"window_layers", model.window_layers},
              {"window_tokens", model.window_tokens},
              {"state_layers", model.state_layers},
              {"other_layers", model.other_layers},
              {"bytes_per_token", model.token_bytes()},
              {"tokens_per_gib", tokens_per_gib(model)},
              {"tokens", tokens_},
              {"prompt_bytes", model.prompt_bytes(tokens_)}};
    if (users_ != 0) {
      made["users"] = users_;
      made["bytes"] = all_bytes(model);
      made["bytes_per_second"] = all_bytes(model) / think_s_;
    }
    return made;
  }

  std::string layers(const model_size& model) const {
    std::string text = fmt::format("{} with all tokens", model.full_layers);
    if (model.window_layers != 0)
      text += fmt::format(", {} with a window of {}", model.window_layers,
                          format_counted(model.window_tokens, "token"));
    if (model.state_layers != 0)
      text += fmt::format(", {} with a state, which is not counted", model.state_layers);
    if (model.other_layers != 0)
      text += fmt::format(", {} without KV", model.other_layers);
    return text;
  }

  std::string report(const model_size& model) const {
    std::vector<std::pair<std::string, std::string>> lines{
        {"model", fmt::format("{}, {} in {}", model.type.empty() ? "unnamed" : model.type,
                              model.latent ? "latent KV" : "keys and values", model.dtype)},
        {"layers", layers(model)},
        {"KV per token", readable_bytes(model.token_bytes())},
        {"tokens per GiB", format_count(tokens_per_gib(model))},
        {format_counted(tokens_, "token"), readable_bytes(model.prompt_bytes(tokens_))}};
    if (users_ != 0) {
      lines.push_back(
          {format_counted(users_, "user"),
           readable_bytes(static_cast<uint64_t>(all_bytes(model))) + ": host.bytes and disk.bytes together"});
      lines.push_back(
          {"read",
           fmt::format("{} if each returns every {}: what comes from the disk is bounded by its speed",
                       format_rate(all_bytes(model) / think_s_), format_duration(think_s_ * 1e9))});
    }
    return format_facts(lines);
  }

  std::string path_;
  std::string kv_dtype_;
  uint32_t tokens_ = 8192;
  uint32_t users_ = 0;
  double think_s_ = 60;
  bool json_ = false;
};

} // namespace

std::unique_ptr<command> make_size_command() { return std::make_unique<size_command>(); }

} // namespace terrace::cli
