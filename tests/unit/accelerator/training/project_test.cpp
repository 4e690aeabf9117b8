#include "accelerator/training/project.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using accelerator::checkpoint_number;

TEST_CASE("only checkpoint_<number> is a checkpoint's name") {
  CHECK(checkpoint_number("a/checkpoint_12") == 12);
  CHECK(checkpoint_number("checkpoint_0") == 0);
  for (const auto* name :
       {"checkpoint_", "checkpoint_1x", "checkpoint_-1", "checkpoint", "other_1", "checkpoint_1.old-ab"}) {
    CHECK_FALSE(checkpoint_number(name).has_value());
  }
}

TEST_CASE("automatic names count up, also after a restart, and the newest checkpoint is loaded") {
  test::Folder folder(State(), "naming");
  const AcceleratorOptions options{.project = {.dir = folder.path(), .automatic_checkpoint_naming = true}};
  torch::nn::Linear net(2, 1);
  {
    Accelerator accelerator(options);
    auto model = accelerator.prepare(net);
    CHECK_FALSE(accelerator.has_checkpoint());
    CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("There is no checkpoint in"));
    for (int i = 0; i < 11; ++i) {
      CHECK(accelerator.save_state() == folder.path() / "checkpoints" / ("checkpoint_" + std::to_string(i)));
    }
    const at::NoGradGuard no_grad;
    net->weight.fill_(9);
    accelerator.save_state();
    net->weight.fill_(0);
  }
  Accelerator accelerator(options);
  auto model = accelerator.prepare(net);
  CHECK(accelerator.has_checkpoint());
  accelerator.load_state();
  CHECK(net->weight[0][0].item<double>() == 9);
  CHECK(accelerator.save_state().filename() == "checkpoint_12");
}

TEST_CASE("the next save reuses the number of a killed save, and removes what that left") {
  test::Folder folder(State(), "killed");
  Accelerator accelerator({.project = {.dir = folder.path(), .automatic_checkpoint_naming = true}});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  accelerator.save_state();
  const auto killed = folder.path() / "checkpoints" / "checkpoint_1.new-20261121T075530.123456-9f3a51c2";
  if (accelerator.is_main_process()) {
    std::filesystem::create_directory(killed);
    std::ofstream(killed / "state.h5") << "half";
  }
  accelerator.wait_for_everyone();
  CHECK(accelerator.save_state().filename() == "checkpoint_1");
  CHECK_FALSE(std::filesystem::exists(killed));
}

TEST_CASE("without automatic names one checkpoint is replaced each time; a given folder is used") {
  test::Folder folder(State(), "single");
  Accelerator accelerator({.project = {.dir = folder.path()}});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  CHECK(accelerator.save_state() == folder.path() / "checkpoint");
  CHECK(accelerator.save_state() == folder.path() / "checkpoint");
  CHECK(accelerator.has_checkpoint());
  CHECK(accelerator.save_state(folder.path() / "mine") == folder.path() / "mine");
  accelerator.load_state(folder.path() / "mine");
  CHECK_THROWS_AS(accelerator.load_state(folder.path() / "nowhere"), Error);
}

namespace {

std::vector<std::int64_t> numbers_in(const std::filesystem::path& project) {
  std::vector<std::int64_t> numbers;
  for (const auto& entry : std::filesystem::directory_iterator(project / "checkpoints")) {
    numbers.push_back(checkpoint_number(entry.path()).value_or(-1));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

TEST_CASE("older checkpoints are removed once newer ones are durable, except kept ones and foreign files") {
  test::Folder folder(State(), "limit");
  Accelerator accelerator(
      {.project = {.dir = folder.path(), .automatic_checkpoint_naming = true, .total_limit = 2, .keep_every = 4}});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  for (int i = 0; i < 3; ++i) accelerator.save_state();
  CHECK(numbers_in(folder.path()) == std::vector<std::int64_t>{0, 1, 2});
  const auto foreign = folder.path() / "checkpoints" / "checkpoint_1" / "notes.txt";
  if (accelerator.is_main_process()) std::ofstream(foreign) << "mine";
  accelerator.wait_for_everyone();
  for (int i = 3; i < 8; ++i) accelerator.save_state();
  accelerator.wait_for_everyone();
  // Checkpoint 1 was moved aside, and still exists with the foreign file.
  CHECK(numbers_in(folder.path()) == std::vector<std::int64_t>{-1, 0, 4, 6, 7});
  accelerator.wait_for_everyone();
}

TEST_CASE(
    "a run never takes another run's number, neither when it starts from scratch nor when it resumes from an older "
    "checkpoint") {
  test::Folder folder(State(), "numbers");
  const AcceleratorOptions options{.project = {.dir = folder.path(), .automatic_checkpoint_naming = true}};
  torch::nn::Linear net(2, 1);
  {
    Accelerator accelerator({.project = {.dir = folder.path(), .automatic_checkpoint_naming = true, .iteration = 8}});
    auto model = accelerator.prepare(net);
    CHECK(accelerator.save_state().filename() == "checkpoint_8");
    CHECK(accelerator.save_state().filename() == "checkpoint_9");
  }
  {
    Accelerator accelerator(options);
    auto model = accelerator.prepare(net);
    CHECK(accelerator.save_state().filename() == "checkpoint_10");
  }
  Accelerator accelerator(options);
  auto model = accelerator.prepare(net);
  accelerator.load_state(folder.path() / "checkpoints" / "checkpoint_8");
  CHECK(accelerator.save_state().filename() == "checkpoint_11");
}

TEST_CASE("invalid limits are refused") {
  const auto with = [](ProjectOptions project) { return [project] { Accelerator({.project = project}); }; };
  CHECK_THROWS_WITH(with({.total_limit = 2})(), ContainsSubstring("without automatic_checkpoint_naming"));
  CHECK_THROWS_WITH(with({.automatic_checkpoint_naming = true, .total_limit = 0})(),
                    ContainsSubstring("total_limit is 0"));
  CHECK_THROWS_WITH(with({.automatic_checkpoint_naming = true, .iteration = -1})(),
                    ContainsSubstring("iteration is -1"));
}

namespace {

/// For its lifetime, rank 0 cannot list `folder`: root becomes the user nobody, other users remove their own
/// permission.
/// @collective
class Unlistable {
 public:
  Unlistable(const State& state, std::filesystem::path folder)
      : state_(state), folder_(std::move(folder)), root_(geteuid() == 0) {
    set(std::filesystem::perms::owner_write | std::filesystem::perms::owner_exec);
    if (state_.is_main_process() && root_ && seteuid(65534) != 0) throw std::runtime_error("seteuid");
    state_.wait_for_everyone();
  }
  ~Unlistable() {
    state_.wait_for_everyone();
    if (state_.is_main_process() && root_ && seteuid(0) != 0) std::abort();
    set(std::filesystem::perms::owner_all);
    state_.wait_for_everyone();
  }
  Unlistable(const Unlistable&) = delete;
  Unlistable& operator=(const Unlistable&) = delete;

 private:
  void set(std::filesystem::perms rights) const {
    if (state_.is_main_process()) std::filesystem::permissions(folder_, rights);
  }

  State state_;
  std::filesystem::path folder_;
  bool root_;
};

}  // namespace

TEST_CASE("a checkpoint folder that cannot be listed is an error on all ranks, and not taken for an empty one") {
  test::Folder folder(State(), "unlistable");
  const ProjectOptions options{.dir = folder.path(), .automatic_checkpoint_naming = true, .total_limit = 1};
  Accelerator accelerator({.log_with = {}, .project = options});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  accelerator.save_state();
  {
    const Unlistable locked(accelerator, folder.path() / "checkpoints");
    CHECK_THROWS_WITH(accelerator.has_checkpoint(), ContainsSubstring("ermission denied"));
    CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("ermission denied"));
    CHECK_THROWS_WITH(accelerator.save_state(), ContainsSubstring("ermission denied"));
    // No caller waits for the removal, so that it does not throw.
    if (accelerator.is_main_process()) accelerator::Project(options).prune();
  }
  CHECK(accelerator.has_checkpoint());
  CHECK(accelerator.save_state().filename() == "checkpoint_1");
}

TEST_CASE("a dangling link is not taken for a checkpoint, and does not disturb loading and saving") {
  test::Folder folder(State(), "stray_link");
  Accelerator accelerator({.project = {.dir = folder.path(), .automatic_checkpoint_naming = true, .total_limit = 1}});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  accelerator.save_state();
  const auto link = folder.path() / "checkpoints" / "checkpoint_7";
  if (accelerator.is_main_process()) std::filesystem::create_symlink("checkpoint_7", link);
  accelerator.wait_for_everyone();
  CHECK(accelerator.has_checkpoint());
  CHECK_NOTHROW(accelerator.load_state());
  CHECK(accelerator.save_state().filename() == "checkpoint_8");
  accelerator.wait_for_everyone();
  CHECK(numbers_in(folder.path()) == std::vector<std::int64_t>{7, 8});
  accelerator.wait_for_everyone();
}

TEST_CASE("with a checkpoint over the limit, the copy that a killed save of its name had moved aside is removed, too") {
  test::Folder folder(State(), "aside");
  Accelerator accelerator({.project = {.dir = folder.path(), .automatic_checkpoint_naming = true, .total_limit = 1}});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  const auto first = accelerator.save_state();
  const auto aside = std::filesystem::path(first) += ".old-20261121T075530.123456-9f3a51c2";
  if (accelerator.is_main_process()) std::filesystem::rename(first, aside);
  accelerator.wait_for_everyone();
  CHECK(accelerator.has_checkpoint());
  accelerator.save_state();
  accelerator.wait_for_everyone();
  CHECK(numbers_in(folder.path()) == std::vector<std::int64_t>{1});
  accelerator.wait_for_everyone();
}

namespace {

struct FullTracker final : Tracker {
  std::string name() const override { return "full"; }
  void log(const TrackerRecord& /*record*/) override {}
  void flush() override { throw std::runtime_error("no room for numbers"); }
};

}  // namespace

TEST_CASE("a user's tracker that throws while a checkpoint is saved is an error on all ranks") {
  test::Folder folder(State(), "full_tracker");
  Accelerator accelerator({.log_with = {std::make_shared<FullTracker>()}, .project = {.dir = folder.path()}});
  torch::nn::Linear net(2, 1);
  auto model = accelerator.prepare(net);
  accelerator.log({{"loss", 1.0}});
  CHECK_THROWS_WITH(accelerator.save_state(), ContainsSubstring("no room for numbers"));
  CHECK_FALSE(accelerator.has_checkpoint());
}

TEST_CASE(
    "of Accelerators on different ranks with one project folder, one saves there, and the others get its name in an "
    "error") {
  Accelerator state;
  if (state.num_processes() == 1) return;
  const test::Folder folder(state, "one_for_all");
  const auto error_of_save = [](Accelerator& accelerator, const std::filesystem::path& target) -> std::string {
    try {
      accelerator.save_state(target);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  torch::nn::Linear net(2, 1);
  {
    Accelerator mine({.project = {.dir = folder.path()}, .communicator = MPI_Comm_c2f(MPI_COMM_SELF)});
    auto model = mine.prepare(net);
    state.wait_for_everyone();
    const auto error = error_of_save(mine, "");
    if (!error.empty())
      CHECK_THAT(error, ContainsSubstring("Another run of this job uses the folder " + folder.path().string() +
                                          ": the Accelerator of 1 rank, pid ") &&
                            ContainsSubstring("a project.dir of its own"));
    CHECK(state.reduce(at::tensor(error.empty() ? 1 : 0)).item<int>() == 1);
    CHECK(error_of_save(mine, folder.path() / std::to_string(state.process_index())).empty());
    state.wait_for_everyone();
  }
  Accelerator all({.project = {.dir = folder.path()}});
  auto model = all.prepare(net);
  CHECK(error_of_save(all, "").empty());
}
