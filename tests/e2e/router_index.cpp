#include "router_index.hpp"

#include <msgpack.hpp>

#include <vector>

namespace terrace::e2e {

namespace {

struct read_event {
  std::string type, medium;
  std::vector<std::string> hashes;
  int block_size = 0;
};

read_event read(const msgpack::object& event, bool map) {
  read_event made;
  if (map) {
    auto fields = event.as<std::map<std::string, msgpack::object>>();
    made.type = fields.at("type").as<std::string>();
    if (made.type != "AllBlocksCleared") {
      made.medium = fields.at("medium").as<std::string>();
      made.hashes = fields.at("block_hashes").as<std::vector<std::string>>();
    }
    if (made.type == "BlockStored")
      made.block_size = fields.at("block_size").as<int>();
    return made;
  }
  auto fields = event.as<std::vector<msgpack::object>>();
  made.type = fields.at(0).as<std::string>();
  if (made.type != "AllBlocksCleared") {
    made.medium = fields.at(made.type == "BlockStored" ? 6 : 2).as<std::string>();
    made.hashes = fields.at(1).as<std::vector<std::string>>();
  }
  if (made.type == "BlockStored")
    made.block_size = fields.at(4).as<int>();
  return made;
}

} // namespace

std::string router_index::take(const std::string& batch) {
  try {
    auto handle = msgpack::unpack(batch.data(), batch.size());
    auto whole = handle.get().as<std::vector<msgpack::object>>();
    if (whole.size() != 2)
      return "a batch has " + std::to_string(whole.size()) + " fields";
    for (const msgpack::object& object : whole[1].as<std::vector<msgpack::object>>()) {
      auto event = read(object, maps_);
      if (event.type == "AllBlocksCleared") {
        blocks_.clear();
        ++begins;
      }
      if (event.type == "BlockStored" && event.block_size != 16)
        return "another block size";
      for (const std::string& hash : event.hashes) {
        if (hash.size() != 32)
          return "a hash of " + std::to_string(hash.size()) + " bytes";
        if (event.type == "BlockStored")
          blocks_[event.medium].insert(hash);
        else
          blocks_[event.medium].erase(hash);
      }
    }
  } catch (const std::exception& why) {
    return why.what();
  }
  return {};
}

} // namespace terrace::e2e
