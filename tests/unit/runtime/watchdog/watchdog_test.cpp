#include "runtime/watchdog/watchdog.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <hortator/error.hpp>
#include <iterator>
#include <thread>

#include "mpi/collectives.hpp"
#include "runtime/world.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using runtime::Board;
using runtime::RankLife;
using runtime::RankRecord;
using runtime::World;

namespace {

long threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

bool maps_a_board() { return test::content_of("/proc/self/maps").find("-watchdog") != std::string::npos; }

RankRecord slot_of(const mpi::Communicator& node) {
  RankRecord slot{.rank = node.rank(), .local_rank = node.rank(), .pid = getpid()};
  slot.stack.assign(static_cast<std::size_t>(node.rank()) + 1, "frame");
  return slot;
}

}  // namespace

TEST_CASE("the whole node reads what a rank publishes, also after it has left") {
  const auto node = mpi::Communicator::world().node();
  Board board(node);
  CHECK(board.blindness().empty());
  CHECK(board.read().empty());
  mpi::barrier(node);
  auto mine = slot_of(node);
  mine.life = RankLife::left;
  board.publish(mine);
  mpi::barrier(node);
  const auto slots = board.read();
  REQUIRE(slots.size() == static_cast<std::size_t>(node.size()));
  for (int rank = 0; rank < node.size(); ++rank) {
    const auto& slot = slots[static_cast<std::size_t>(rank)];
    CHECK(slot.rank == rank);
    CHECK(slot.life == RankLife::left);
    CHECK(slot.stack.size() == static_cast<std::size_t>(rank) + 1);
    CHECK(board.beats(rank) == 1);
  }
  mpi::barrier(node);
}

TEST_CASE("a question reaches every other rank once") {
  const auto node = mpi::Communicator::world().node();
  Board board(node);
  CHECK_FALSE(board.take_question());
  mpi::barrier(node);
  const bool asks = node.rank() == node.size() - 1;
  if (asks) board.ask();
  mpi::barrier(node);
  CHECK(board.take_question() != asks);
  CHECK_FALSE(board.take_question());
}

TEST_CASE("a stack that is too long for the page is left out, and all other facts are published") {
  const auto node = mpi::Communicator::world().node();
  Board board(node);
  auto mine = slot_of(node);
  mine.stack.assign(1000, "a frame with quite a long name of fifty letters");
  board.publish(mine);
  mpi::barrier(node);
  for (const auto& slot : board.read()) CHECK(slot.stack.empty());
  CHECK(board.read().size() == static_cast<std::size_t>(node.size()));
  mpi::barrier(node);
}

TEST_CASE("a world has one watchdog thread and one board, a single rank none") {
  const auto before = threads();
  for (int round = 0; round < 3; ++round) {
    const World one({.collective_timeout = 10min});
    const World two({});
    const bool alone = one.comm().size() == 1;
    CHECK(threads() == before + (alone ? 0 : 2));
    CHECK(maps_a_board() == !alone);
    mpi::barrier(one.comm());
  }
  CHECK(threads() == before);
  CHECK_FALSE(maps_a_board());
}

TEST_CASE("a world ends with an exception as well") {
  const auto before = threads();
  try {
    const World world({});
    mpi::barrier(world.comm());
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  CHECK(threads() == before);
}

TEST_CASE("worlds can be created and destroyed quickly while their watchdogs check as often as they can") {
  for (int round = 0; round < 10; ++round) {
    const World world({.collective_timeout = 30s});
    for (int i = 0; i < 50; ++i) mpi::barrier(world.comm());
  }
}

TEST_CASE("an invalid time limit is refused on all ranks") {
  const auto last = mpi::Communicator::world();
  const auto asked = last.rank() == last.size() - 1 ? std::optional<std::chrono::milliseconds>(-1ms) : std::nullopt;
  CHECK_THROWS_WITH(World({.collective_timeout = asked}), ContainsSubstring("collective_timeout is -1 ms"));
}

// It has copied the object, but neither the thread nor the rank.
TEST_CASE("a forked child exits without a hang or a message") {
  const World world({});
  const auto child = fork();
  if (child == 0) {
    // What the parent has prepared is not the child's to end, but for what exit() itself reaches.
    alarm(10);
    std::exit(7);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  mpi::barrier(world.comm());
}
