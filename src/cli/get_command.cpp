// terrace get
#include "cli/capacity_option.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/file_object.hpp"
#include "cli/json.hpp"
#include "cli/object_client.hpp"
#include "cli/output_file.hpp"
#include "cli/units.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace terrace::cli {

namespace {

class get_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("KEY", key_, "The key printed by put: the SHA-256 of the file")->required();
    app.add_option("-o,--output", output_, "File to write; - for standard output")->required();
    add_size_option(app, "--object-bytes", object_bytes_, "Size of the pieces, as for put");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto key = parse_file_key(key_);
    if (!key)
      return tl::unexpected(key.error());
    if (object_bytes_ < file_object_bytes_least || object_bytes_ > file_object_bytes_most)
      return bad_usage(fmt::format("--object-bytes: expected {} to {}",
                                   readable_bytes(file_object_bytes_least),
                                   readable_bytes(file_object_bytes_most)));
    auto daemon = connect(daemon_, "terrace get");
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto client =
        object_client::open(std::move(*daemon), {.space = file_space(object_bytes_), .lease = false});
    if (!client)
      return tl::unexpected(client.error());
    auto fetched = fetch(**client, *key, to);
    if (!fetched)
      return tl::unexpected(fetched.error());
    report(*key, *fetched, to);
    return exit_code::ok;
  }

 private:
  struct fetched_file {
    uint64_t bytes;
    bool to_standard_output;
  };

  /// The report of a file that went to standard output goes to standard error.
  void report(const digest& key, const fetched_file& fetched, console& to) const {
    std::string name = fetched.to_standard_output ? "standard output" : output_;
    std::string text =
        daemon_.json
            ? json_line({{"key", to_hex(key)}, {"bytes", fetched.bytes}, {"file", name}})
            : fmt::format("{} written to {}; its SHA-256 matches\n", readable_bytes(fetched.bytes), name);
    if (fetched.to_standard_output)
      to.note("{}", text);
    else
      to.print("{}", text);
  }

  /// Reads the size of the file from its first piece.
  outcome<uint64_t> size_of(object_client& client, const digest& key) {
    auto found = client.lookup(std::span(&key, 1));
    if (!found)
      return request_failed(client.daemon(), "looking up the first piece", found.error());
    if (found->empty())
      return failed(
          fmt::format("{}: not in the cache with pieces of {}; it was never stored, or has been evicted",
                      to_hex(key), readable_bytes(object_bytes_)));
    auto loaded = client.load(0, 1);
    if (!loaded)
      return request_failed(client.daemon(), "loading the first piece", loaded.error());
    auto bytes = *loaded == 1 ? read_file_header(client.buffer()) : std::nullopt;
    if (!bytes || pieces_of(*bytes, object_bytes_) > file_pieces_max)
      return failed(
          fmt::format("{}: the first piece was not delivered or does not belong to a file", to_hex(key)));
    return *bytes;
  }

  outcome<fetched_file> fetch(object_client& client, const digest& key, console& to) {
    auto bytes = size_of(client, key);
    if (!bytes)
      return tl::unexpected(bytes.error());
    uint64_t pieces = pieces_of(*bytes, object_bytes_);
    auto found = client.lookup(piece_digests(key, pieces));
    if (!found)
      return request_failed(client.daemon(), "looking up the pieces", found.error());
    if (found->size() < pieces)
      return failed(fmt::format("{}: found {} in the cache; store the file again", to_hex(key),
                                format_part(found->size(), pieces, "piece")));
    auto file = output_file::open(output_, to);
    if (!file)
      return tl::unexpected(file.error());
    file_hasher hasher;
    progress bar(to, "get", pieces);
    size_t batch_max = client.buffer().size() / object_bytes_;
    uint64_t left = *bytes;
    for (uint64_t first = 0; first < pieces;) {
      size_t count = std::min<uint64_t>(batch_max, pieces - first);
      auto loaded = client.load(first, count);
      if (!loaded)
        return request_failed(client.daemon(), fmt::format("loading piece {} of {}", first + 1, pieces),
                              loaded.error());
      if (*loaded < count)
        return failed(fmt::format(
            "{}: piece {} of {} was found, but lost before it was delivered; store the file again",
            to_hex(key), first + *loaded + 1, pieces));
      auto body = client.buffer().first(count * object_bytes_).subspan(first == 0 ? file_header_bytes : 0);
      body = body.first(std::min<uint64_t>(body.size(), left));
      hasher.add(body);
      if (auto written = file->write(body); !written)
        return tl::unexpected(written.error());
      left -= body.size();
      first += count;
      bar.advance(count, noun_for(pieces, "piece"));
    }
    if (hasher.finish() != key)
      return failed(fmt::format("{}: the delivered bytes have another SHA-256; {}", to_hex(key),
                                file->in_place() ? "what was written is wrong" : "nothing was written"));
    if (auto kept = file->keep(); !kept)
      return tl::unexpected(kept.error());
    return fetched_file{*bytes, file->is_standard_output()};
  }

  std::string key_;
  std::string output_;
  uint64_t object_bytes_ = 1ULL << 20;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_get_command() { return std::make_unique<get_command>(); }

// terrace put

namespace {

struct hashed_file {
  digest key;
  uint64_t bytes = 0;
};

outcome<hashed_file> hash_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  file_hasher hasher;
  hashed_file hashed;
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    auto count = static_cast<size_t>(file.gcount());
    hasher.add(std::as_bytes(std::span(buffer).first(count)));
    hashed.bytes += count;
  }
  if (!file.eof())
    return bad_usage(fmt::format("{}: expected a readable file: {}", path, std::strerror(errno)));
  hashed.key = hasher.finish();
  return hashed;
}

class put_command final : public command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("FILE", path_, "The file to store")->required();
    add_size_option(app, "--object-bytes", object_bytes_, "Size of the pieces; get must use the same");
    daemon_.declare(app);
  }

  outcome<exit_code> run(console& to) override {
    auto file = hash_file(path_);
    if (!file)
      return tl::unexpected(file.error());
    uint64_t pieces = pieces_of(file->bytes, object_bytes_);
    if (object_bytes_ < file_object_bytes_least || object_bytes_ > file_object_bytes_most ||
        pieces > file_pieces_max)
      return bad_usage(
          fmt::format("--object-bytes: expected {} to {} and at most {} pieces; these would be {}",
                      readable_bytes(file_object_bytes_least), readable_bytes(file_object_bytes_most),
                      file_pieces_max, pieces));
    auto daemon = connect(daemon_, "terrace put");
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto client =
        object_client::open(std::move(*daemon), {.space = file_space(object_bytes_), .lease = false});
    if (!client)
      return tl::unexpected(client.error());
    auto stored = store_pieces(**client, *file, pieces, to);
    if (!stored)
      return tl::unexpected(stored.error());
    auto kept = (*client)->lookup(piece_digests(file->key, pieces));
    if (!kept)
      return request_failed((*client)->daemon(), "looking up what was stored", kept.error());
    report(*file, *stored, kept->size(), to);
    if (kept->size() == pieces)
      return exit_code::ok;
    return failed(
        fmt::format("{}: of {} the first {} in the cache: the rest had no room, or left to make room. "
                    "terrace get needs all; raise host.bytes or disk.bytes, or clear what is not needed",
                    path_, format_counted(pieces, "piece"),
                    kept->size() == 1 ? "one is" : format_count(kept->size()) + " are"));
  }

 private:
  outcome<replay_target::stored> store_pieces(object_client& client, const hashed_file& file, uint64_t pieces,
                                              console& to) {
    std::ifstream from(path_, std::ios::binary);
    std::vector<digest> chain = piece_digests(file.key, pieces);
    size_t batch_max = client.buffer().size() / object_bytes_;
    progress bar(to, "put", pieces);
    replay_target::stored sum;
    file_hasher again; // the file may have changed since its key was computed
    for (uint64_t first = 0; first < pieces;) {
      size_t count = std::min<uint64_t>(batch_max, pieces - first);
      auto memory = client.buffer().first(count * object_bytes_);
      std::fill(memory.begin(), memory.end(), std::byte{0});
      if (first == 0)
        write_file_header(memory, file.bytes);
      auto body = memory.subspan(first == 0 ? file_header_bytes : 0);
      from.read(reinterpret_cast<char*>(body.data()), static_cast<std::streamsize>(body.size()));
      again.add(body.first(static_cast<size_t>(from.gcount())));
      bool last = first + count == pieces;
      if (last && again.finish() != file.key)
        return failed(path_ + ": the file changed while it was read; store it again");
      auto answer = client.store(std::span(chain).first(first + count), count);
      if (!answer)
        return request_failed(client.daemon(), fmt::format("storing piece {} of {}", first + 1, pieces),
                              answer.error());
      sum.written += answer->written;
      sum.present += answer->present;
      first += count;
      bar.advance(count, noun_for(pieces, "piece"));
    }
    return sum;
  }

  void report(const hashed_file& file, const replay_target::stored& stored, uint64_t kept,
              console& to) const {
    if (daemon_.json)
      print_json(to, {{"key", to_hex(file.key)},
                      {"bytes", file.bytes},
                      {"object_bytes", object_bytes_},
                      {"stored_pieces", stored.written},
                      {"present_pieces", stored.present},
                      {"kept_pieces", kept}});
    else
      to.print("{}  {} ({}, {} stored, {} already present)\n", to_hex(file.key), path_,
               readable_bytes(file.bytes), format_counted(stored.written, "piece"),
               format_count(stored.present));
  }

  std::string path_;
  uint64_t object_bytes_ = 1ULL << 20;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_put_command() { return std::make_unique<put_command>(); }

} // namespace terrace::cli
