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

std::vector<std::string> hashes_of(const msgpack::object& list) {
  std::vector<std::string> hashes;
  for (const msgpack::object& one : list.as<std::vector<msgpack::object>>())
    hashes.push_back(one.type == msgpack::type::POSITIVE_INTEGER ? std::to_string(one.as<uint64_t>())
                                                                 : one.as<std::string>());
  return hashes;
}

read_event read(const msgpack::object& event, bool map) {
  read_event made;
  if (map) {
    auto fields = event.as<std::map<std::string, msgpack::object>>();
    made.type = fields.at("type").as<std::string>();
    if (made.type != "AllBlocksCleared") {
      const auto locality = fields.at("locality").as<std::string>();
      made.medium = locality == "REMOTE" ? locality : fields.at("medium").as<std::string>();
      made.hashes = hashes_of(fields.at("block_hashes"));
    }
    if (made.type == "BlockStored")
      made.block_size = fields.at("block_size").as<int>();
    return made;
  }
  auto fields = event.as<std::vector<msgpack::object>>();
  made.type = fields.at(0).as<std::string>();
  if (made.type != "AllBlocksCleared") {
    made.medium = fields.at(made.type == "BlockStored" ? 6 : 2).as<std::string>();
    made.hashes = hashes_of(fields.at(1));
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
