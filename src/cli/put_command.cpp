// terrace put

#include "cli/byte_size_option.hpp"
#include "cli/command.hpp"
#include "cli/file_object.hpp"
#include "cli/json.hpp"
#include "cli/object_client.hpp"
#include "cli/progress.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace terrace::cli {

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
                      format_bytes(file_object_bytes_least), format_bytes(file_object_bytes_most),
                      file_pieces_max, pieces));
    auto daemon = connect(daemon_, "terrace put");
    if (!daemon)
      return tl::unexpected(daemon.error());
    auto client = object_client::open(std::move(*daemon), {.space = file_space(object_bytes_)});
    if (!client)
      return tl::unexpected(client.error());
    auto stored = store_pieces(**client, *file, pieces, to);
    if (!stored)
      return tl::unexpected(stored.error());
    report(*file, *stored, to);
    return exit_code::ok;
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
      bar.advance(count, "pieces");
    }
    return sum;
  }

  void report(const hashed_file& file, const replay_target::stored& stored, console& to) const {
    if (daemon_.json)
      print_json(to, {{"key", to_hex(file.key)},
                      {"bytes", file.bytes},
                      {"object_bytes", object_bytes_},
                      {"stored_pieces", stored.written},
                      {"present_pieces", stored.present}});
    else
      fmt::print(to.out, "{}  {} ({}, {} pieces stored, {} already present)\n", to_hex(file.key), path_,
                 format_bytes(file.bytes), stored.written, stored.present);
  }

  std::string path_;
  uint64_t object_bytes_ = 1ULL << 20;
  daemon_options daemon_;
};

} // namespace

std::unique_ptr<command> make_put_command() { return std::make_unique<put_command>(); }

} // namespace terrace::cli
