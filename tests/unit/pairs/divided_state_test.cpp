// States of models that are divided among ranks: averages, rollbacks and loads in the middle of a run, against one
// rank.
#include <filesystem>
#include <limits>
#include <vector>

#include "divided_run.hpp"
#include "parallel/tensor/divided_tensor.hpp"

using namespace hortator;
using test::append_weights;
using test::check_near;
using test::DividedByExperts;
using test::DividedByTensor;
using test::DividedRun;
using test::on_first;

namespace {

std::string name_of(const AcceleratorOptions& options) { return options.communicator ? "alone" : "divided"; }
std::string name_of_other(const AcceleratorOptions& options) { return options.communicator ? "divided" : "alone"; }

/// Three steps with averages. Saves them as a checkpoint and as a model.
template <typename Division>
std::vector<double> average(const AcceleratorOptions& options, const std::filesystem::path& folder) {
  DividedRun<Division> run(options);
  Ema ema(run.accelerator, run.model, {.decay = 0.5});
  std::vector<double> numbers;
  for (int step = 0; step < 3; ++step) {
    numbers.push_back(run.step(step));
    ema.update();
  }
  run.accelerator.save_state(folder / name_of(options));
  {
    const auto scope = ema.use();
    numbers.push_back(run.mean(run.loss(0)));
    run.accelerator.save_model(run.model, folder / (name_of(options) + "-averages"));
    append_weights(numbers, run.accelerator, run.model);
  }
  numbers.push_back(run.step(3));
  append_weights(numbers, run.accelerator, run.model);
  return numbers;
}

/// Two more steps, from the averages that the other arrangement has saved.
template <typename Division>
std::vector<double> resume_average(const AcceleratorOptions& options, const std::filesystem::path& folder) {
  DividedRun<Division> run(options);
  Ema ema(run.accelerator, run.model, {.decay = 0.5});
  run.accelerator.load_state(folder / name_of_other(options));
  std::vector<double> numbers;
  for (int step = 3; step < 5; ++step) {
    numbers.push_back(run.step(step));
    ema.update();
  }
  numbers.push_back(static_cast<double>(ema.updates()));
  const auto scope = ema.use();
  append_weights(numbers, run.accelerator, run.model);
  return numbers;
}

template <typename Division>
void check_averages(const std::string& name) {
  const State state;
  const test::Folder folder(state, name);
  const auto first = [&](const auto& options) { return average<Division>(options, folder.path()); };
  const auto second = [&](const auto& options) { return resume_average<Division>(options, folder.path()); };
  const auto expected = on_first(1, first);
  check_near(first(Division::on_two({})), expected);
  const auto alone = test::tensors_in(folder.path() / "alone"), divided = test::tensors_in(folder.path() / "divided");
  REQUIRE(alone.size() == divided.size());
  for (const auto& [tensor, values] : alone) {
    INFO(tensor);
    REQUIRE(divided.at(tensor).sizes() == values.sizes());
    CHECK(at::allclose(divided.at(tensor), values, 1e-4, 1e-5));
  }
  Accelerator reader;
  auto averages = Division::make(), others = Division::make();
  reader.load_checkpoint_in_model(*averages, folder.path() / "alone-averages");
  reader.load_checkpoint_in_model(*others, folder.path() / "divided-averages");
  CHECK_FALSE(test::same_parameters(*others, *Division::make()));
  for (const auto& item : averages->named_parameters()) {
    INFO(item.key());
    CHECK(at::allclose(others->named_parameters()[item.key()], item.value(), 1e-4, 1e-5));
  }
  const auto next = on_first(1, second);
  check_near(second(Division::on_two({})), next);
}

enum class Fault { skipped, rolled_back };

/// Seven updates. The gradient of another one in the middle is not finite in the last rank's part of one parameter.
template <typename Division>
std::vector<double> spoil(AcceleratorOptions options, Fault fault) {
  options.protection.on_nonfinite = fault == Fault::skipped ? OnNonfinite::skip : OnNonfinite::rollback;
  if (fault == Fault::rolled_back) options.protection.snapshot_every = 2;
  DividedRun<Division> run(options);
  std::vector<double> numbers;
  run.steps(numbers, 0, fault == Fault::skipped ? 4 : 5);  // the copy is made after four
  numbers.resize(4);
  run.accelerator.backward(run.loss(5));
  if (run.accelerator.is_last_process()) {
    const parallel::PartsOnly here;
    run.net->named_parameters()[Division::divided].mutable_grad().view({-1})[0] =
        std::numeric_limits<float>::infinity();
  }
  run.optimizer.step();
  run.optimizer.zero_grad();
  CHECK(run.optimizer.step_was_skipped());
  CHECK(run.accelerator.rollbacks() == (fault == Fault::rolled_back ? 1 : 0));
  run.steps(numbers, 6, 3);
  append_weights(numbers, run.accelerator, run.model);
  return numbers;
}

template <typename Division>
void check_protection() {
  const auto undisturbed = [](const AcceleratorOptions& options) {
    DividedRun<Division> run(options);
    std::vector<double> numbers;
    run.steps(numbers, 0, 4);
    run.steps(numbers, 6, 3);
    append_weights(numbers, run.accelerator, run.model);
    return numbers;
  };
  const auto alone = on_first(1, undisturbed);
  const auto expected = undisturbed(Division::on_two({}));
  check_near(expected, alone);
  for (const auto fault : {Fault::skipped, Fault::rolled_back}) {
    INFO((fault == Fault::skipped ? "skipped" : "rolled back"));
    CHECK(spoil<Division>(Division::on_two({}), fault) == expected);
  }
}

/// Steps 2 and 3, from a checkpoint after two steps that is loaded after four others.
template <typename Division>
std::vector<double> load_later(const AcceleratorOptions& options, const std::filesystem::path& folder) {
  DividedRun<Division> run(options);
  std::vector<double> before, after;
  run.steps(before, 0, 2);
  run.accelerator.save_state(folder / name_of(options));
  run.accelerator.wait_for_checkpoint();
  before.clear();
  run.steps(before, 2, 2);
  append_weights(before, run.accelerator, run.model);
  run.step(4);
  run.step(0);
  run.accelerator.load_state(folder / name_of(options));
  run.steps(after, 2, 2);
  append_weights(after, run.accelerator, run.model);
  CHECK(after == before);
  return after;
}

template <typename Division>
void check_loads(const std::string& name) {
  const State state;
  const test::Folder folder(state, name);
  const auto scenario = [&](const auto& options) { return load_later<Division>(options, folder.path()); };
  const auto expected = on_first(1, scenario);
  check_near(scenario(Division::on_two({})), expected);
}

}  // namespace

TEST_CASE("averages of parameters that are divided among tensor ranks are those of one rank, also saved and resumed") {
  check_averages<DividedByTensor>("pairs_ema_tensor");
}

TEST_CASE("averages of divided experts are those of one rank, also saved and resumed") {
  check_averages<DividedByExperts>("pairs_ema_experts");
}

TEST_CASE("a bad gradient in one tensor rank's part skips the update on all, or rolls parts and moments back") {
  check_protection<DividedByTensor>();
}

TEST_CASE("a bad gradient of one rank's experts skips the update on all, or rolls experts and moments back") {
  check_protection<DividedByExperts>();
}

TEST_CASE("a load after some updates replaces the parts and moments of tensor ranks") {
  check_loads<DividedByTensor>("pairs_load_tensor");
}

TEST_CASE("a load after some updates replaces divided experts and their moments") {
  check_loads<DividedByExperts>("pairs_load_experts");
}
