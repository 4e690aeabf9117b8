#include "accelerator/training/complete_checkpoints.hpp"

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "checkpoint/read/reader.hpp"
#include "support/catch.hpp"
#include "support/environment_copy.hpp"
#include "support/files.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;
using test::Folder;
using test::Net;
namespace fs = std::filesystem;

namespace {

/// A training that saves, and notes the checkpoints that it hears of.
struct SavingRun {
  SavingRun(const fs::path& project, bool asynchronous)
      : accelerator({.project = {.dir = project, .iteration = 0},
                     .checkpoint = {.asynchronous = asynchronous, .on_complete = [this](const fs::path& folder) {
                                      is_whole = is_whole && checkpoint::is_whole(folder);
                                      heard.push_back(folder);
                                      if (throws) throw std::runtime_error("no route to the archive");
                                    }}}) {
    prepared.emplace(accelerator.prepare(net, sgd));
  }
  void step() {
    auto& [model, optimizer] = *prepared;
    accelerator.backward(model(at::ones({2, 3})).sum());
    optimizer.step();
    optimizer.zero_grad();
  }

  std::vector<fs::path> heard;
  bool is_whole = true;
  bool throws = false;
  Net net;
  torch::optim::SGD sgd{net->parameters(), 0.1};
  Accelerator accelerator;
  std::optional<decltype(std::declval<Accelerator&>().prepare(std::declval<Net&>(),
                                                              std::declval<torch::optim::SGD&>()))>
      prepared;
};

}  // namespace

TEST_CASE("the main process hears of each complete checkpoint once, and of none before") {
  const State state;
  for (const bool asynchronous : {false, true}) {
    const Folder folder(state, "complete_checkpoints");
    SavingRun run(folder.path(), asynchronous);
    std::vector<fs::path> saved;
    for (int i = 0; i < 3; ++i) {
      run.step();
      saved.push_back(run.accelerator.save_state(folder.path() / ("saved" + std::to_string(i))));
      if (!asynchronous && state.is_main_process()) CHECK(run.heard == saved);
    }
    run.accelerator.wait_for_checkpoint();
    run.accelerator.wait_for_checkpoint();
    CHECK(run.heard == (state.is_main_process() ? saved : std::vector<fs::path>()));
    CHECK(run.is_whole);
  }
}

TEST_CASE("a training step hears of an asynchronous save that has become complete beside it") {
  const State state;
  const Folder folder(state, "complete_checkpoints");
  SavingRun run(folder.path(), true);
  const auto saved = run.accelerator.save_state(folder.path() / "saved");
  while (!checkpoint::is_whole(saved)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (int i = 0; i < 500; ++i) {
    run.step();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(run.heard.size() == (state.is_main_process() ? 1 : 0));
  CHECK(run.is_whole);
}

TEST_CASE("a save that fails is not announced, and what fails about an announcement does not end the run") {
  const State state;
  const Folder folder(state, "complete_checkpoints");
  const test::EnvironmentCopy variables;
  setenv("HORTATOR_CHECKPOINT_NOTE", (folder.path() / "missing" / "note").c_str(), 1);
  for (const bool asynchronous : {false, true}) {
    SavingRun run(folder.path(), asynchronous);
    run.throws = true;
    const auto foreign = folder.path() / "foreign";
    if (state.is_main_process()) {
      fs::create_directories(foreign);
      std::ofstream(foreign / "thesis.tex") << "all of it";
    }
    state.wait_for_everyone();
    CHECK_THROWS_AS(run.accelerator.save_state(foreign), Error);
    run.accelerator.wait_for_checkpoint();
    CHECK(run.heard.empty());
    run.accelerator.save_state(folder.path() / "saved");
    run.accelerator.wait_for_checkpoint();
    CHECK(run.heard.size() == (state.is_main_process() ? 1 : 0));
  }
  variables.restore();
}

TEST_CASE("the launcher gets whole names, whatever characters they have") {
  const State state;
  const Folder folder(state, "complete_checkpoints");
  const test::EnvironmentCopy variables;
  SavingRun run(folder.path(), false);
  const auto note = folder.path() / "note";
  if (state.is_main_process()) {
    fs::create_directories(folder.path());
    std::ofstream(note).flush();
  }
  state.wait_for_everyone();
  setenv("HORTATOR_CHECKPOINT_NOTE", note.c_str(), 1);
  const auto odd = run.accelerator.save_state(folder.path() / "a b\n$(id)");
  const auto plain = run.accelerator.save_state(folder.path() / "plain");
  state.wait_for_everyone();
  CHECK(test::content_of(note) == odd.string() + '\0' + plain.string() + '\0');
  variables.restore();
}
