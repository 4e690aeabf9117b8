#include "checkpoint/memory/file_transfer.hpp"

#include <array>

#include "core/text/text.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::FileOfRank;
using checkpoint::SteadyWork;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t message_bytes = std::int64_t{1} << 23;

std::string content_of(int rank, std::int64_t bytes) {
  std::string content(static_cast<std::size_t>(bytes), '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(rank + 7 * i + i / 251);
  return content;
}

/// Ranks have files of other sizes, also of none and of whole messages.
std::int64_t bytes_of(int rank) {
  return std::array<std::int64_t, 4>{3 * message_bytes + 3, 0, message_bytes, 1}[static_cast<std::size_t>(rank) % 4];
}

FileOfRank file_of(const fs::path& folder, const char* name, int rank) {
  return {.path = folder / (name + std::to_string(rank)), .bytes = bytes_of(rank)};
}

}  // namespace

TEST_CASE("files pass on to ranks at any distance, over what is there") {
  const auto comm = mpi::Communicator::world();
  const auto folder = scratch(comm, "file_transfer");
  const auto mine = file_of(folder, "own", comm.rank());
  write_file(mine.path, content_of(comm.rank(), mine.bytes));
  for (int distance = 1; distance < comm.size(); ++distance) {
    const int from = (comm.rank() - distance + comm.size()) % comm.size();
    const auto theirs = file_of(folder, "copy", from);
    if (distance == 1) write_file(theirs.path, std::string(static_cast<std::size_t>(theirs.bytes) + 5, 'x'));
    SteadyWork work;
    checkpoint::pass_on(comm, distance, mine, theirs, 3 * message_bytes + 3, work);
    CHECK_FALSE(work.outcome().failed);
    CHECK(read_file(theirs.path) == content_of(from, theirs.bytes));
    mpi::barrier(comm);
    fs::remove(theirs.path);
    mpi::barrier(comm);
  }
}

TEST_CASE("a rank whose file cannot be read or written takes part in all messages, and has an error of its own") {
  const auto comm = mpi::Communicator::world();
  const auto folder = scratch(comm, "file_transfer");
  const int from = (comm.rank() - 1 + comm.size()) % comm.size();
  auto mine = file_of(folder, "own", comm.rank());
  auto theirs = file_of(folder, "copy", from);
  if (comm.rank() != 0) write_file(mine.path, content_of(comm.rank(), mine.bytes));
  if (comm.rank() == comm.size() - 1) theirs.path = folder / "missing" / "copy";
  SteadyWork work;
  checkpoint::pass_on(comm, 1, mine, theirs, 3 * message_bytes + 3, work);
  CHECK(work.outcome().failed == (comm.rank() == 0 || comm.rank() == comm.size() - 1));
  CHECK_THROWS_WITH(mpi::agree(comm, work.outcome()), Catch::Contains("own0"));
  if (from != 0 && !work.outcome().failed) CHECK(read_file(theirs.path) == content_of(from, theirs.bytes));
}

TEST_CASE("a file reaches the ranks that want it") {
  const auto comm = mpi::Communicator::world();
  const auto folder = scratch(comm, "file_transfer");
  for (int root = 0; root < comm.size(); ++root) {
    const bool is_wanted = comm.rank() == root || (comm.rank() + root) % 2 == 0;
    const auto name = text::concat("sent", root, '-', comm.rank());
    const auto path = is_wanted ? folder / name : fs::path();
    if (comm.rank() == root) write_file(path, content_of(root, bytes_of(root)));
    SteadyWork work;
    checkpoint::broadcast_file(comm, root, {.path = path, .bytes = bytes_of(root)}, work);
    mpi::agree(comm, work.outcome());
    CHECK(fs::exists(folder / name) == is_wanted);
    if (is_wanted) CHECK(read_file(path) == content_of(root, bytes_of(root)));
  }
}
