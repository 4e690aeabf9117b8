// The memory of one node, which a folder imitates.
#include "checkpoint/memory/node_memory.hpp"

#include <fstream>

#include "scratch.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using checkpoint::NodeMemory;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> files = {"state-0.h5", "state-1.h5"};

void put(const fs::path& file, std::size_t bytes) {
  fs::create_directories(file.parent_path());
  testing::write_file(file, std::string(bytes, 'x'));
}

}  // namespace

TEST_CASE("only names of checkpoints in memory count, whatever numbers others have", "[serial]") {
  const test::OwnFolder folder("node-memory");
  for (const auto* name : {"checkpoint_3", "checkpoint_-1", "checkpoint_007", "checkpoint_9223372036854775807",
                           "checkpoint_99999999999999999999", "checkpoint_4.new-1", "checkpoint_", "other_12"})
    fs::create_directories(folder.path / name);
  const NodeMemory memory(folder.path, {});
  CHECK(memory.last_number() == 3);
  CHECK(memory.inventory().empty());  // it has no manifest
  CHECK(NodeMemory(folder.path / "missing", {}).last_number() == -1);
}

TEST_CASE("a new checkpoint takes the memory of an older one, and one is kept", "[serial]") {
  const test::OwnFolder folder("node-memory");
  put(folder.path / "checkpoint_1" / "state-0.h5", 700);
  put(folder.path / "checkpoint_1" / "state-7.h5", 100);
  put(folder.path / "checkpoint_1" / "manifest.json", 10);
  put(folder.path / "checkpoint_2" / "state-0.h5", 700);
  put(folder.path / "foreign" / "file", 1);
  NodeMemory memory(folder.path, 2000);
  const auto staged = folder.path / "checkpoint_3.new-1";
  memory.make(staged, files, 1000, 2);
  CHECK(testing::entries(folder.path) == 3);
  CHECK(testing::entries(staged) == 2);
  CHECK(fs::file_size(staged / "state-0.h5") == 700);
  CHECK(fs::file_size(staged / "state-1.h5") == 0);
  CHECK(fs::exists(folder.path / "checkpoint_2" / "state-0.h5"));
  CHECK(fs::exists(folder.path / "foreign" / "file"));
}

TEST_CASE("the limit of a node's memory counts what is there, and what is reused only once", "[serial]") {
  const test::OwnFolder folder("node-memory");
  put(folder.path / "checkpoint_1" / "state-0.h5", 400);
  put(folder.path / "checkpoint_2" / "state-0.h5", 500);
  NodeMemory memory(folder.path, 1000);
  memory.require_room(100);
  CHECK_THROWS_WITH(memory.require_room(101), Catch::Contains("needs 101 B") && Catch::Contains("has 100 B left"));
  const auto staged = folder.path / "checkpoint_3.new-1";
  memory.make(staged, files, 500, 2);
  CHECK_THROWS_WITH(memory.make(staged, files, 501, 2), Catch::Contains("its limit of 1000 B"));
  CHECK_FALSE(fs::exists(staged));
  CHECK(fs::exists(folder.path / "checkpoint_2"));
}

TEST_CASE("a restart has the limit of the first start, although checkpoints are in memory already", "[serial]") {
  constexpr std::uint64_t free = 100'000;
  const auto limit = checkpoint::default_limit(free, 0);
  CHECK(limit == free / 2);
  CHECK(checkpoint::default_limit(free - 40'000, 40'000) == limit);
}

TEST_CASE("memory is never made again when its keeper has removed it", "[serial]") {
  const test::OwnFolder folder("node-memory");
  NodeMemory memory(folder.path, 1000);
  CHECK_THROWS(memory.make(folder.path / "checkpoint_0.new-1", files, 10, {}));
  CHECK_FALSE(fs::exists(folder.path));
}
