#include "runtime/identity/folder_lock.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using namespace std::chrono_literals;
using runtime::FolderLock;
using runtime::LockHolder;
namespace fs = std::filesystem;

namespace {

/// Another process, which holds the lock of a folder until it is killed or its time is over.
class OtherProcess {
 public:
  OtherProcess(const fs::path& folder, const LockHolder& holder, unsigned seconds = 60) {
    int ready[2] = {};
    REQUIRE(pipe(ready) == 0);
    id_ = fork();
    if (id_ == 0) {
      {
        const FolderLock lock(folder, holder, 0ms);
        const char byte = 1;
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        sleep(seconds);
      }
      _exit(0);
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~OtherProcess() { kill(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  void kill() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    waitpid(std::exchange(id_, 0), nullptr, 0);
  }

 private:
  pid_t id_ = 0;
};

const LockHolder other{
    .run = "other", .host = "n1", .pid = 77, .job = "slurm 12", .since = "2026-11-25T03:00:00Z", .ranks = 4};
const LockHolder self{.run = "self", .host = "n2", .pid = 78, .job = "slurm 13"};

}  // namespace

TEST_CASE("a folder that another process holds is refused with its holder and the way out") {
  const test::OwnFolder folder("lock");
  const OtherProcess process(folder.path, other);
  CHECK_THROWS_WITH(FolderLock(folder.path, self, 50ms),
                    ContainsSubstring("Another run uses the folder " + folder.path.string()) &&
                        ContainsSubstring("pid 77 on n1, job slurm 12, since 2026-11-25T03:00:00Z") &&
                        ContainsSubstring("if it is certainly gone, remove " + (folder.path / "run.lock").string()));
}

TEST_CASE("another part of the same run is refused at once, with the name of the part that has the folder") {
  const test::OwnFolder folder("lock");
  auto of_solvers = self;
  of_solvers.part = "the run of solvers.yaml (1)";
  auto of_trainers = self;
  of_trainers.part = "the run of trainers.yaml (2)";
  const OtherProcess process(folder.path, of_solvers);
  const auto start = std::chrono::steady_clock::now();
  for (const auto& one : {of_trainers, self}) {
    CHECK_THROWS_WITH(FolderLock(folder.path, one, 20s),
                      ContainsSubstring("Another run of this job uses the folder " + folder.path.string() +
                                        ": the run of solvers.yaml (1), pid 78 on n2") &&
                          ContainsSubstring("give each run a run_dir of its own"));
  }
  CHECK(std::chrono::steady_clock::now() - start < 10s);
  CHECK_FALSE(FolderLock(folder.path, of_solvers, 0ms).is_held());
}

TEST_CASE("the lock of a killed process is free at once, and one of a process that ends is waited for") {
  const test::OwnFolder folder("lock");
  {
    OtherProcess process(folder.path, other);
    process.kill();
    CHECK(fs::exists(folder.path / "run.lock"));
    CHECK(FolderLock(folder.path, self, 0ms).is_held());
  }
  const OtherProcess process(folder.path, other, 1);
  CHECK(FolderLock(folder.path, self, 10s).is_held());
}

TEST_CASE("processes of the same run, and locks of the same process, are let in") {
  const test::OwnFolder folder("lock");
  {
    const OtherProcess process(folder.path, other);
    CHECK_FALSE(FolderLock(folder.path, other, 0ms).is_held());
    CHECK_THROWS_WITH(FolderLock(folder.path, other, 0ms, runtime::OtherRanks::are_refused),
                      ContainsSubstring("Another run of this job uses the folder") &&
                          ContainsSubstring("the Accelerator of 4 ranks, pid 77 on n1"));
  }
  std::optional<FolderLock> first(std::in_place, folder.path, self, 0ms);
  const FolderLock second(folder.path / "." / "", self, 0ms);
  first.reset();
  CHECK(second.is_held());
  CHECK(fs::exists(folder.path / "run.lock"));
}

TEST_CASE("a requeued job takes over the folder from its earlier start, and that does not remove the new lock") {
  const test::OwnFolder folder("lock");
  auto again = other;
  again.run = "again";
  again.restarts = 1;
  CHECK(runtime::is_superseded(other, again));
  CHECK_FALSE(runtime::is_superseded(again, other));
  CHECK_FALSE(runtime::is_superseded(other, other));
  CHECK_FALSE(runtime::is_superseded(LockHolder{}, LockHolder{.restarts = 1}));
  const OtherProcess process(folder.path, other, 1);
  const FolderLock lock(folder.path, again, 10ms);
  CHECK(lock.is_held());
  sleep(2);  // the earlier start ends
  CHECK(runtime::parse_holder(test::content_of(folder.path / "run.lock")).run == "again");
}

TEST_CASE("a lock leaves nothing: neither its file nor folders that were made for it; those with other files stay") {
  const test::OwnFolder folder("lock");
  { const FolderLock lock(folder.path / "a" / "b", self, 0ms); }
  CHECK_FALSE(fs::exists(folder.path));
  fs::create_directories(folder.path);
  {
    const FolderLock lock(folder.path / "a" / "b", self, 0ms);
    std::ofstream(folder.path / "a" / "mine") << "x";
  }
  CHECK_FALSE(fs::exists(folder.path / "a" / "b"));
  CHECK(fs::exists(folder.path / "a" / "mine"));
}

TEST_CASE("a folder that other runs make and remove all the time is locked, and its path found") {
  const test::OwnFolder folder("lock");
  const auto run = folder.path / "a" / "b";
  const auto busy = fork();
  if (busy == 0) {
    for (std::error_code ignored;;) {
      fs::create_directories(run, ignored);
      fs::remove(run, ignored);
      fs::remove(run.parent_path(), ignored);
    }
  }
  for (int i = 0; i < 20000; ++i) CHECK(runtime::one_path_of(run) == run);
  for (int i = 0; i < 500; ++i) CHECK(FolderLock(run, self, 5s).is_held());
  ::kill(busy, SIGKILL);
  waitpid(busy, nullptr, 0);
}

TEST_CASE("where nothing can be written there is no lock, and no error") {
  const test::OwnFolder folder("lock");
  fs::create_directories(folder.path);
  std::ofstream(folder.path / "file") << "in the way";
  CHECK_FALSE(FolderLock(folder.path / "file" / "run", self, 0ms).is_held());
}

TEST_CASE("a holder is read back as it was written, and any other content is an unknown holder") {
  const auto read = runtime::parse_holder(runtime::to_json(other));
  CHECK(runtime::to_string(read) == runtime::to_string(other));
  CHECK(read.run == "other");
  CHECK(read.part.empty());
  auto part = other;
  part.part = "the run of sim.yaml";
  CHECK(runtime::parse_holder(runtime::to_json(part)).part == "the run of sim.yaml");
  for (const auto* text : {"", "{", "[1]", R"({"pid": "x", "host": 3})"})
    CHECK(runtime::to_string(runtime::parse_holder(text)) == "its lock file does not say which");
}
