#include "tools/keepers/keepers.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "support/catch.hpp"
#include "support/files.hpp"
#include "tools/keepers/kept_folder.hpp"

using namespace hortator::tools;
using hortator::test::OwnFolder;
namespace fs = std::filesystem;

namespace {

fs::path kept_in(const OwnFolder& parent, const char* name) {
  fs::create_directories(parent.path);
  return parent.path / (kept_prefix() + name);
}

KeeperPlan plan_of(std::vector<std::string> command, int keepers = 1) {
  return {.folder = "none", .commands = {{.command = std::move(command), .keepers = keepers, .where = "n2"}}};
}

/// A folder whose files cannot be removed: without permission to write or, for root, immutable.
class Sealed {
 public:
  explicit Sealed(const fs::path& folder) : folder_(folder) {
    fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
    if (geteuid() == 0) REQUIRE(set_immutable(true));
  }
  ~Sealed() {
    if (geteuid() == 0) set_immutable(false);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  Sealed(const Sealed&) = delete;
  Sealed& operator=(const Sealed&) = delete;

 private:
  bool set_immutable(bool is_immutable) const {
    const int opened = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;
    bool is_done = ioctl(opened, FS_IOC_GETFLAGS, &flags) == 0;
    flags = is_immutable ? flags | FS_IMMUTABLE_FL : flags & ~FS_IMMUTABLE_FL;
    is_done = is_done && ioctl(opened, FS_IOC_SETFLAGS, &flags) == 0;
    ::close(opened);
    return is_done;
  }

  fs::path folder_;
};

}  // namespace

TEST_CASE("a kept folder is its user's only, and is removed with what ranks have written there") {
  const OwnFolder parent("kept");
  const auto folder = kept_in(parent, "1");
  const KeptFolder kept(folder);
  CHECK(fs::status(folder).permissions() == fs::perms::owner_all);
  fs::create_directories(folder / "run-1" / "checkpoint_0");
  kept.remove();
  CHECK_FALSE(fs::exists(folder));
}

TEST_CASE("a keeper says so if it cannot remove its folder") {
  const OwnFolder parent("kept");
  const auto folder = kept_in(parent, "1");
  const KeptFolder kept(folder);
  fs::create_directory(folder / "run-1");
  std::ofstream(folder / "run-1" / "state.h5").flush();
  const Sealed sealed(folder / "run-1");
  CHECK_THROWS_WITH(kept.remove(std::chrono::milliseconds(300)),
                    Catch::Contains(folder.string()) && Catch::Contains("could not be removed"));
}

TEST_CASE("a keeper takes over the folder of a killed one, and removes those of killed launches beside it") {
  const OwnFolder parent("kept");
  const auto folder = kept_in(parent, "1");
  const auto other = kept_in(parent, "2");
  for (const auto& one : {folder, other}) {
    fs::create_directories(one / "run-1");
    std::ofstream(one / "keeper.lock").flush();
  }
  const KeptFolder kept(folder);
  CHECK(fs::exists(folder / "run-1"));
  CHECK_FALSE(fs::exists(other));
  CHECK_THROWS_WITH(KeptFolder(folder), Catch::Contains("another keeper uses it"));
}

TEST_CASE("a folder that no keeper has made is never taken") {
  const OwnFolder parent("kept");
  const auto folder = kept_in(parent, "1");
  fs::create_directory(folder);
  std::ofstream(folder / "thesis.tex") << "all of it";
  CHECK_THROWS_WITH(KeptFolder(folder), Catch::Contains("no keeper's"));
  const auto link = kept_in(parent, "2");
  fs::create_directory_symlink(parent.path, link);
  CHECK_THROWS_WITH(KeptFolder(link), Catch::Contains("not this user's folder"));
  CHECK(fs::exists(folder / "thesis.tex"));
}

TEST_CASE("a keeper begins while another one takes its folder for an abandoned one") {
  const OwnFolder parent("kept");
  const auto folder = kept_in(parent, "1");
  fs::create_directory(folder);
  const auto lock_file = folder / "keeper.lock";
  const int lock = ::open(lock_file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  REQUIRE(flock(lock, LOCK_EX) == 0);
  std::jthread remover([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fs::remove_all(folder);
    ::close(lock);
  });
  const KeptFolder kept(folder);
  remover.join();
  CHECK(fs::exists(lock_file));
}

TEST_CASE("only the line of a keeper says that it is ready, whatever a remote shell prints before") {
  const Keepers ready(plan_of({"sh", "-c", "echo Welcome to n2; printf 're'; sleep 0.1; echo ady; cat"}));
  CHECK_THROWS_WITH(Keepers(plan_of({"sh", "-c", "echo Welcome to n2; exit 1"})), Catch::Contains("on n2"));
  CHECK_THROWS_WITH(Keepers(plan_of({"sh", "-c", "echo ready"}, 2)), Catch::Contains("on n2"));
  CHECK_THROWS_WITH(Keepers(plan_of({"/no/such/keeper"})), Catch::Contains("on n2"));
}

TEST_CASE("keepers that have ended are started again, and one that cannot be is named once") {
  const OwnFolder parent("kept");
  fs::create_directories(parent.path);
  const auto reachable = parent.path / "reachable";
  const auto starts = parent.path / "starts";
  std::ofstream(reachable) << 1;
  Keepers keepers(
      plan_of({"sh", "-c", "[ -e " + reachable.string() + " ] && echo >>" + starts.string() + " && echo ready"}));
  const auto renewed = [&](const auto& is_done) {
    std::vector<std::string> lost;
    for (int i = 0; i < 500 && !is_done(lost); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      lost = keepers.renew();
    }
    return lost;
  };
  CHECK(renewed([&](const auto&) { return fs::file_size(starts) > 1; }).empty());
  fs::remove(reachable);
  CHECK(renewed([](const auto& lost) { return !lost.empty(); }) == std::vector<std::string>{"n2"});
  CHECK(keepers.renew().empty());
}

TEST_CASE("a launch that is asked to stop does not wait for keepers that it starts again") {
  const OwnFolder parent("kept");
  fs::create_directories(parent.path);
  const auto started = parent.path / "started";
  Keepers keepers(
      plan_of({"sh", "-c", "[ -e " + started.string() + " ] && exec cat; touch " + started.string() + "; echo ready"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(
      keepers.renew([&] { return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(200); }).empty());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("the folder of a keeper that was killed is removed at the end, by another one") {
  const OwnFolder parent("kept");
  fs::create_directories(parent.path);
  const auto kept = parent.path / "kept";
  const auto keep = "mkdir -p " + kept.string() + "; echo ready; ";
  const auto first = parent.path / "first";
  {
    const Keepers keepers(plan_of({"sh", "-c",
                                   keep + "[ -e " + first.string() + " ] || { touch " + first.string() +
                                       "; exit 1; }; cat; rmdir " + kept.string()}));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(fs::exists(kept));
  }
  CHECK_FALSE(fs::exists(kept));
}
