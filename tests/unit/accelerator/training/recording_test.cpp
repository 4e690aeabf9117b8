// RecordOptions: which ranks record, and what ends the step.
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <filesystem>

#include "core/whole_file.hpp"
#include "observe/operators/operator_record.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

observe::StepRecord record_in(const std::filesystem::path& folder, int rank) {
  const auto file = folder / observe::record_file(rank);
  const auto text = core::read_whole(file);
  REQUIRE(text);
  return observe::parse_step_record(*text, file);
}

auto count(const observe::StepRecord& record, std::string_view name) {
  return std::ranges::count(record.operators, name, &observe::OperatorRecord::name);
}

}  // namespace

TEST_CASE("a rank that records alone does not wait for the others") {
  const State state;
  const test::Folder folder(state, "recorded_alone");
  const auto path = state.is_last_process() ? folder.path() / "here" : std::filesystem::path();
  Accelerator accelerator({.cpu = true, .record = {.operators = path}});
  test::Net net;
  torch::optim::SGD sgd(net->parameters(), 0.1);
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  accelerator.backward(model(at::ones({2, 3})).sum());
  optimizer.step();
  if (state.is_last_process()) {
    const auto record = record_in(path, state.process_index());
    CHECK(record.ranks == state.num_processes());
    CHECK(count(record, "updated parameter") == 4);
  }
}

TEST_CASE("a folder that one rank cannot write is an error on all ranks, and so is a step below 1") {
  const State state;
  const test::Folder folder(state, "recorded_nowhere");
  std::filesystem::create_directories(folder.path());
  const auto file = folder.path() / "file";
  if (state.is_main_process()) core::write_whole(file, file.string() + ".new", "no folder");
  state.wait_for_everyone();
  const auto path = state.is_last_process() ? file : folder.path() / "records";
  CHECK_THROWS_WITH(Accelerator({.cpu = true, .record = {.operators = path}}),
                    ContainsSubstring("not a folder that can be written"));
  CHECK_THROWS_WITH(Accelerator({.cpu = true, .record = {.operators = folder.path() / "records", .step = 0}}),
                    ContainsSubstring("record.step = 0"));
}

TEST_CASE("a step to record without a folder is refused") {
  CHECK_THROWS_WITH(Accelerator({.cpu = true, .record = {.step = 3}}),
                    ContainsSubstring("record.operators is not set"));
  setenv("HORTATOR_RECORD_STEP", "2", 1);
  CHECK_THROWS_WITH(Accelerator({.cpu = true}), ContainsSubstring("--record-operators FOLDER"));
  unsetenv("HORTATOR_RECORD_STEP");
}

TEST_CASE("a step with a closure ends the step that is recorded") {
  const State state;
  const test::Folder folder(state, "recorded_closure");
  Accelerator accelerator({.cpu = true, .record = {.operators = folder.path(), .step = 2}});
  test::Net net;
  torch::optim::LBFGS lbfgs(net->parameters(), torch::optim::LBFGSOptions(0.1).max_iter(3));
  auto [model, optimizer] = accelerator.prepare(net, lbfgs);
  for (int update = 0; update < 3; ++update) {
    optimizer.step([&] {
      optimizer.zero_grad();
      auto loss = model(at::ones({2, 3})).square().sum();
      accelerator.backward(loss);
      return loss;
    });
  }
  const auto record = record_in(folder.path(), state.process_index());
  CHECK(record.step == 2);
  CHECK(count(record, "parameter") == 4);
  CHECK(count(record, "gradient") >= 4);
  CHECK(count(record, "updated parameter") == 4);
}
