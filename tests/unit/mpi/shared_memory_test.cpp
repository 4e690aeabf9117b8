#include "mpi/shared_memory.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>

#include "mpi/collectives.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;

namespace {

std::string maps() { return test::content_of("/proc/self/maps"); }

}  // namespace

TEST_CASE("all ranks read what a rank writes to its part") {
  const auto node = mpi::Communicator::world().node();
  const mpi::SharedMemory memory(node, node, 5000, "hortator-test");
  for (int rank = 0; rank < node.size(); ++rank) {
    CHECK(reinterpret_cast<std::uintptr_t>(memory.part(rank)) % static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)) ==
          0);
    CHECK(memory.part(rank)[4999] == std::byte{0});
  }
  mpi::barrier(node);
  std::memset(memory.part(node.rank()), node.rank() + 1, 5000);
  mpi::barrier(node);
  for (int rank = 0; rank < node.size(); ++rank) {
    CHECK(memory.part(rank)[0] == std::byte(rank + 1));
    CHECK(memory.part(rank)[4999] == std::byte(rank + 1));
  }
}

TEST_CASE("shared memory is freed with its owner and has no file") {
  const auto node = mpi::Communicator::world().node();
  {
    const mpi::SharedMemory memory(node, node, 4096, "hortator-test-gone");
    CHECK(maps().find("hortator-test-gone (deleted)") != std::string::npos);
  }
  CHECK(maps().find("hortator-test-gone") == std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    CHECK(entry.path().filename().string().find("hortator-test-gone") == std::string::npos);
  }
}

TEST_CASE("a part may be empty, and memory can be moved") {
  const auto node = mpi::Communicator::world().node();
  const mpi::SharedMemory empty(node, node, 0, "hortator-test-empty");
  CHECK(empty.part_bytes() == 0);
  mpi::SharedMemory first(node, node, 100, "hortator-test");
  first.part(node.rank())[7] = std::byte{42};
  const auto second = std::move(first);
  CHECK(second.part(node.rank())[7] == std::byte{42});
}

TEST_CASE("an allocation that exceeds the memory is refused on all ranks before it takes any") {
  const auto node = mpi::Communicator::world().node();
  CHECK_THROWS_WITH(mpi::SharedMemory(node, node, std::size_t{1} << 50, "hortator-test"),
                    ContainsSubstring("No room for") && ContainsSubstring("fewer ranks a node"));
}

TEST_CASE("ranks that ask for different sizes all throw") {
  const auto node = mpi::Communicator::world().node();
  if (node.size() == 1) return;
  const std::size_t bytes = node.rank() == 0 ? 0 : 10000;
  CHECK_THROWS_WITH(mpi::SharedMemory(node, node, bytes, "hortator-test"),
                    ContainsSubstring("asked for here") && ContainsSubstring("the same sizes in the same order"));
}
