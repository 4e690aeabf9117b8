#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <hortator/datasets/staging.hpp>
#include <hortator/error.hpp>

#include "data/files/staged_file.hpp"
#include "formats/file/file_error.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

ino_t inode(const fs::path& path) {
  struct stat facts {};
  REQUIRE(::stat(path.c_str(), &facts) == 0);
  return facts.st_ino;
}

std::size_t files_in(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) count += entry.is_regular_file() ? 1 : 0;
  return count;
}

/// Two folders of this test: the files' origin, and a node's disk.
struct Disks {
  explicit Disks(const State& with) : state(with) { empty(true); }
  ~Disks() { empty(false); }
  Disks(const Disks&) = delete;
  Disks& operator=(const Disks&) = delete;

  void empty(bool make) const {
    state.wait_for_everyone();
    if (state.is_main_process()) {
      for (const auto& folder : {shared, node}) {
        fs::remove_all(folder);
        if (make) fs::create_directories(folder);
      }
    }
    state.wait_for_everyone();
  }
  /// Runs `work` on one rank while the others wait.
  template <typename Work>
  void alone(const Work& work) const {
    state.main_process_first([&] {
      if (state.is_main_process()) work();
    });
  }

  State state;
  fs::path shared = fs::absolute("shared_disk");
  fs::path node = fs::absolute("node_disk");
};

std::string problem_of(const Disks& disks, const fs::path& file, const fs::path& folder) {
  try {
    stage_to_node(disks.state, file, folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("a file is copied to the node once, and again only when it has changed") {
  const Disks disks{State()};
  const auto file = disks.shared / "train.bin";
  disks.alone([&] { write(file, "first"); });
  const auto path = stage_to_node(disks.state, file, disks.node);
  CHECK(test::content_of(path) == "first");
  CHECK(path.parent_path().parent_path() == disks.node);
  CHECK(path.filename().string().ends_with("train.bin"));
  const auto copy = inode(path);
  CHECK(stage_to_node(disks.state, disks.shared / "." / "train.bin", disks.node) == path);
  CHECK(inode(path) == copy);
  disks.state.wait_for_everyone();

  disks.alone([&] {
    write(file, "other");
    fs::last_write_time(file, fs::last_write_time(path) + std::chrono::hours(1));
  });
  CHECK(stage_to_node(disks.state, file, disks.node) == path);
  CHECK(test::content_of(path) == "other");
  disks.state.wait_for_everyone();

  // A truncated copy with the right time.
  disks.alone([&] {
    const auto time = fs::last_write_time(path);
    write(path, "oth");
    fs::last_write_time(path, time);
  });
  stage_to_node(disks.state, file, disks.node);
  CHECK(test::content_of(path) == "other");
  CHECK(files_in(disks.node) == 1);
}

TEST_CASE("files of the same name from different folders are different files") {
  const Disks disks{State()};
  disks.alone([&] {
    for (const auto* folder : {"a", "b"}) {
      fs::create_directories(disks.shared / folder);
      write(disks.shared / folder / "data.h5", folder);
    }
  });
  const auto a = stage_to_node(disks.state, disks.shared / "a" / "data.h5", disks.node);
  const auto b = stage_to_node(disks.state, disks.shared / "b" / "data.h5", disks.node);
  CHECK(test::content_of(a) == "a");
  CHECK(test::content_of(b) == "b");
}

TEST_CASE("what cannot be copied is an error on all ranks, and leaves nothing") {
  const Disks disks{State()};
  CHECK_THAT(problem_of(disks, disks.shared / "absent", disks.node),
             ContainsSubstring("absent") && ContainsSubstring("No such file"));
  CHECK_THAT(problem_of(disks, disks.shared, disks.node), ContainsSubstring("is not a file"));
  const auto file = disks.shared / "file";
  disks.alone([&] { write(file, "x"); });
  CHECK_THAT(problem_of(disks, file, disks.node / "absent"), ContainsSubstring("create the folder"));

  // A file of a length that nothing is behind, a bit longer than the room that is left.
  disks.alone([&] { fs::resize_file(file, fs::space(disks.node).available + (std::uintmax_t{1} << 36)); });
  CHECK_THAT(problem_of(disks, file, disks.node),
             ContainsSubstring("no space for") && ContainsSubstring("are needed") && ContainsSubstring("are free"));
  CHECK(files_in(disks.node) == 0);
}

TEST_CASE("a folder that is not this user's alone is not taken") {
  const Disks disks{State()};
  const auto file = disks.shared / "file";
  disks.alone([&] {
    write(file, "x");
    fs::create_directories(disks.shared / "elsewhere");
    fs::create_directory_symlink(disks.shared / "elsewhere", disks.node / ("hortator-" + std::to_string(::geteuid())));
  });
  CHECK_THAT(problem_of(disks, file, disks.node), ContainsSubstring("is not a folder of this user's"));
}

TEST_CASE("the node's folder is the scheduler's, the user's, or /tmp") {
  const auto chosen = [](std::map<std::string, std::string> variables) {
    return data::node_folder([variables](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  CHECK(chosen({{"SLURM_TMPDIR", "/scratch/7"}, {"TMPDIR", "/var/tmp"}}) == "/scratch/7");
  CHECK(chosen({{"TMPDIR", "/var/tmp"}}) == "/var/tmp");
  CHECK(chosen({{"TMPDIR", ""}}) == "/tmp");
}
