// Errors on one rank while saving: all ranks soon throw the same error, and the older checkpoint is unchanged.
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "file_limit.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;

namespace {

/// While it exists, this rank cannot write to `folder`: root acts as the user nobody, other users remove their own
/// permission (and so all ranks').
class NoRights {
 public:
  explicit NoRights(std::filesystem::path folder) : folder_(std::move(folder)), root_(geteuid() == 0) {
    if (root_ && seteuid(65534) != 0) throw std::runtime_error("seteuid");
    if (!root_) std::filesystem::permissions(folder_, std::filesystem::perms::owner_exec);
  }
  ~NoRights() {
    if (root_ && seteuid(0) != 0) std::abort();
    if (!root_) std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  }
  NoRights(const NoRights&) = delete;
  NoRights& operator=(const NoRights&) = delete;

 private:
  std::filesystem::path folder_;
  bool root_;
};

/// Mounts a disk of 3 MiB on a folder while it exists. @collective
class SmallDisk {
 public:
  explicit SmallDisk(const mpi::Communicator& comm) : comm_(comm) {
    unmount();  // what a killed test left
    root_ = scratch(comm, "small_disk");
    const auto mount = "mount -t tmpfs -o size=3m hortator " + root_.string() + " 2>/dev/null";
    is_there_ = mpi::broadcast(comm, comm.rank() == 0 && std::system(mount.c_str()) == 0);
  }
  ~SmallDisk() {
    mpi::barrier(comm_);
    unmount();
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_there() const { return is_there_; }
  const std::filesystem::path& root() const { return root_; }

 private:
  void unmount() const {
    if (comm_.rank() == 0 && std::system("umount -l small_disk 2>/dev/null") != 0) return;
  }

  const mpi::Communicator& comm_;
  std::filesystem::path root_;
  bool is_there_ = false;
};

void check_all_threw(const mpi::Communicator& comm, const std::string& problem, const std::string& expected) {
  const auto all = mpi::all_gather(comm, std::string_view(problem));
  for (const auto& other : all) CHECK(other == problem);
  CHECK_THAT(problem, ContainsSubstring(expected));
}

void check_untouched(const mpi::Communicator& comm, const std::filesystem::path& root, int variant) {
  const Reader reader(root / "checkpoint");
  CHECK(reader.values().get<int>("epoch") == variant);
  CHECK(bitwise_equal(reader.read("models/0/fc1.weight"),
                      snapshot(0, variant).common.get<at::Tensor>("models/0/fc1.weight")));
  CHECK(entries(root) == 1);
  mpi::barrier(comm);
}

}  // namespace

TEST_CASE("a full disk on any one rank") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "full_disk");
  checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 1));
  for (int culprit = 0; culprit < comm.size(); ++culprit) {
    const auto begin = std::chrono::steady_clock::now();
    std::string problem;
    {
      std::optional<FileLimit> limit;
      if (comm.rank() == culprit) limit.emplace(50'000);
      problem = error_of([&] { checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 2)); });
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
    check_all_threw(comm, problem, "File too large");
    check_untouched(comm, root, 1);
  }
  checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 3));
  check_untouched(comm, root, 3);
}

TEST_CASE("a disk that is full for all") {
  const auto comm = mpi::Communicator::world();
  const SmallDisk disk(comm);
  // Only root may make one.
  if (!disk.is_there()) return;
  const auto& root = disk.root();
  checkpoint::Snapshot small;
  small.common.put("epoch", 1);
  checkpoint::save(comm, root / "checkpoint", small);
  const auto problem = error_of([&] { checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 2)); });
  check_all_threw(comm, problem, "No space left on device");
  CHECK(Reader(root / "checkpoint").values().get<int>("epoch") == 1);
  CHECK(entries(root) == 1);
  mpi::barrier(comm);
}

TEST_CASE("no permission on the rank that makes the folder") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "no_rights");
  checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 1));
  std::string problem;
  {
    std::optional<NoRights> nobody;
    if (comm.rank() == 0) nobody.emplace(root);
    problem = error_of([&] { checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 2)); });
  }
  check_all_threw(comm, problem, "ermission denied");
  check_untouched(comm, root, 1);
}

TEST_CASE("no permission on a rank that only writes") {
  const auto comm = mpi::Communicator::world();
  if (geteuid() != 0 || comm.size() == 1) return;
  const auto root = scratch(comm, "no_rights_writer");
  checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 1));
  std::string problem;
  {
    std::optional<NoRights> nobody;
    if (comm.rank() == comm.size() - 1) nobody.emplace(root);
    problem = error_of([&] { checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 2)); });
  }
  check_all_threw(comm, problem, "ermission denied");
  check_untouched(comm, root, 1);
}

TEST_CASE("a folder that is not ours to replace") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "strangers");
  if (comm.rank() == 0) {
    std::filesystem::create_directory(root / "checkpoint");
    std::ofstream(root / "checkpoint" / "thesis.tex") << "years";
  }
  const auto problem = error_of([&] { checkpoint::save(comm, root / "checkpoint", snapshot(comm.rank(), 2)); });
  check_all_threw(comm, problem, "thesis.tex");
  CHECK(std::filesystem::exists(root / "checkpoint" / "thesis.tex"));
  CHECK(entries(root) == 1);
  check_all_threw(comm, error_of([&] { checkpoint::save(comm, "", {}); }), "No folder");
}

TEST_CASE("states that differ between ranks are refused before any file exists, with the entry") {
  const auto comm = mpi::Communicator::world();
  if (comm.size() == 1) return;
  const auto root = scratch(comm, "differing");
  const bool last = comm.rank() == comm.size() - 1;
  const auto save = [&](auto change) {
    auto made = snapshot(comm.rank(), 1);
    if (last) change(made);
    return error_of([&] { checkpoint::save(comm, root / "checkpoint", made); });
  };
  check_all_threw(comm, save([](auto& made) { made.common.put("epoch", 7); }), "'epoch' is 1 here and 7 there");
  check_all_threw(comm, save([](auto& made) { made.common.put("extra", at::ones({2})); }),
                  "'extra' is there and not here");
  check_all_threw(comm, save([](auto& made) { made.common.put("models/0/fc1.bias", at::ones({8})); }),
                  "'models/0/fc1.bias' is bfloat16");
  check_all_threw(comm, save([](auto& made) { made.own.put("a//b", 1); }), "'a//b'");
  check_all_threw(comm, save([](auto& made) { made.common.put("ranks/0/x", 1); }), "'ranks/0/x'");
  check_all_threw(comm, save([](auto& made) { made.common.put("hortator_format", 1); }), "'hortator_format'");
  check_all_threw(comm, save([](auto& made) { made.own.put(std::string("\xff"), 1); }), "UTF-8");
  const auto mine = root / (last ? "other" : "checkpoint");
  check_all_threw(comm, error_of([&] { checkpoint::save(comm, mine, snapshot(comm.rank(), 1)); }),
                  "The folder to save into differs");
  CHECK(entries(root) == 0);
}
