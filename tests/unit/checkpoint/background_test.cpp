// Saving while the program continues.
#include "checkpoint/write/background_save.hpp"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "file_limit.hpp"
#include "formats/hdf5/handle.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;

namespace {

/// While it exists, this process cannot start threads, as if their number were limited: there is no space for stacks.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t huge{};
    pthread_getattr_default_np(&before_);
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50);
    if (pthread_setattr_default_np(&huge) != 0) throw std::runtime_error("pthread_setattr_default_np");
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

/// Waits for a file of that name in the one folder that `root` holds, and removes it.
void remove_once_there(const std::filesystem::path& root, const std::string& name) {
  const auto folder = std::filesystem::directory_iterator(root)->path();
  while (!std::filesystem::remove(folder / name)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string problem_on_all(const mpi::Communicator& comm, const std::string& mine) {
  for (const auto& other : mpi::all_gather(comm, std::string_view(mine))) CHECK(other == mine);
  return mine;
}

}  // namespace

TEST_CASE("a background save stores the state as it was when save returned") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background");
  checkpoint::BackgroundSave saves;
  saves.wait(comm);
  auto state = snapshot(comm.rank(), 1);
  for (int variant = 1; variant <= 5; ++variant) {
    const auto weight = state.common.get<at::Tensor>("models/0/fc1.weight");
    const auto strided = state.common.get<at::Tensor>("models/0/strided");
    const auto expected = weight.clone();
    CHECK(saves.start(comm, root / "checkpoint", state, {}) == root / "checkpoint");
    weight.add_(1);
    strided.zero_();
    saves.wait(comm);
    const Reader reader(root / "checkpoint");
    CHECK(bitwise_equal(reader.read("models/0/fc1.weight"), expected));
    for (int rank = 0; rank < comm.size(); ++rank) CHECK(reader.own(rank).get<int>("rng/seed") == 100 + rank);
    CHECK(entries(reader.folder()) == 2);
    mpi::barrier(comm);
  }
}

TEST_CASE("rank 0 knows how long a save takes until it is complete") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_times");
  checkpoint::BackgroundSave saves;
  CHECK_FALSE(saves.longest().has_value());
  CHECK_FALSE(saves.under_way_for().has_value());
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 1), {});
  saves.wait(comm);
  CHECK(saves.longest().has_value() == (comm.rank() == 0));
  CHECK_FALSE(saves.under_way_for().has_value());
  const auto before = saves.longest();
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 2), {});
  saves.wait(comm);
  CHECK(saves.longest() >= before);
  mpi::barrier(comm);
}

TEST_CASE("the next save waits for the previous one, and destruction for the last") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_next");
  {
    checkpoint::BackgroundSave saves;
    for (int variant = 1; variant <= 4; ++variant)
      saves.start(comm, root / std::to_string(variant), snapshot(comm.rank(), variant), {});
    // No rank waits, as when an exception ends the program.
  }
  mpi::barrier(comm);
  for (int variant = 1; variant <= 4; ++variant)
    CHECK(Reader(root / std::to_string(variant)).values().get<int>("epoch") == variant);
  mpi::barrier(comm);
}

TEST_CASE(
    "a failure on one rank is thrown on all at the next call; the older checkpoint stays and the next save works") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_failure");
  checkpoint::BackgroundSave saves;
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 1), {});
  saves.wait(comm);
  for (int culprit = 0; culprit < comm.size(); ++culprit) {
    {
      std::optional<FileLimit> limit;
      if (comm.rank() == culprit) limit.emplace(50'000);
      saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 2), {});
      const auto problem = error_of([&] { saves.wait(comm); });
      CHECK_THAT(problem_on_all(comm, problem), ContainsSubstring("File too large"));
    }
    CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 1);
    CHECK(entries(root) == 1);
    mpi::barrier(comm);
    CHECK_NOTHROW(saves.wait(comm));
  }
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 3), {});
  saves.wait(comm);
  CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 3);
  CHECK(entries(root) == 1);
  mpi::barrier(comm);
}

TEST_CASE("if a rank cannot start a thread, all ranks throw at once, nothing is left, and the next save works") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_no_thread");
  checkpoint::BackgroundSave saves;
  for (int culprit = 0; culprit < comm.size(); ++culprit) {
    {
      std::optional<NoThreads> none;
      if (comm.rank() == culprit) none.emplace();
      const auto problem = error_of([&] { saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 1), {}); });
      CHECK_THAT(problem_on_all(comm, problem), ContainsSubstring("No thread can be started"));
    }
    CHECK(entries(root) == 0);
    CHECK_NOTHROW(saves.wait(comm));
  }
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 2), {});
  saves.wait(comm);
  CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 2);
  mpi::barrier(comm);
}

TEST_CASE("if the report files are removed, rank 0's thread gets the reports from wait()") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "background_no_reports");
  checkpoint::BackgroundSave saves;
  // Rank 0's thread, which would read them, cannot make its file's structure meanwhile.
  std::optional<formats::Hdf5Lock> lock;
  if (comm.rank() == 0) lock.emplace();
  saves.start(comm, root / "checkpoint", snapshot(comm.rank(), 1), {});
  if (comm.rank() != 0) remove_once_there(root, checkpoint::report_file(comm.rank()));
  mpi::barrier(comm);
  lock.reset();
  saves.wait(comm);
  const Reader reader(root / "checkpoint");
  for (int rank = 0; rank < comm.size(); ++rank) CHECK(reader.own(rank).get<int>("rng/seed") == 100 + rank);
  CHECK(
      bitwise_equal(reader.read("models/0/fc1.weight"), snapshot(0, 1).common.get<at::Tensor>("models/0/fc1.weight")));
  CHECK(entries(root) == 1);
  mpi::barrier(comm);
}
