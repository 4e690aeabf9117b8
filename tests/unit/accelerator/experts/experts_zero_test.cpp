// ZeRO's shards of a model whose experts are divided among ranks, against the same model on one rank.
#include <hortator/error.hpp>
#include <limits>

#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "unit/accelerator/experts/experts_course.hpp"
#include "unit/accelerator/state/stored_tensors.hpp"

using namespace hortator;
using test::check_equal;
using test::check_near;
using test::divisions;
using test::tensors_in;
using test::train;
using test::train_alone;

namespace {

AcceleratorOptions arranged(int experts, int stage, std::optional<int> shard_group = {}) {
  return {.zero = {.stage = stage, .shard_group = shard_group}, .parallel = {.experts = experts}};
}

std::string text_of(const AcceleratorOptions& options) {
  return text::concat("experts ", options.parallel.experts.value_or(1), ", stage ", options.zero.stage.value_or(0),
                      ", groups of ", options.zero.shard_group.value_or(0));
}

/// Each stage with each division; on four ranks also in groups: one has its experts for itself, or all ranks
/// of a group have different experts.
std::vector<AcceleratorOptions> arrangements() {
  std::vector<AcceleratorOptions> all;
  for (const int stage : {1, 2, 3}) {
    for (const int experts : divisions()) {
      all.push_back(arranged(experts, stage));
      if (State().num_processes() == 4) all.push_back(arranged(experts, stage, 2));
    }
    if (State().num_processes() == 4) all.push_back(arranged(2, stage, 1));
  }
  return all;
}

/// The norm of all gradients in the first step. `norm_type`: 1 for the sum of absolute values, infinity for the
/// largest.
double norm_of_first_step(const AcceleratorOptions& options, double norm_type) {
  Accelerator accelerator(options);
  test::ExpertNet net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1));
  auto [model, optimizer] = accelerator.prepare(net, sgd);
  const auto& data = accelerator::Training::of(accelerator).data();
  const test::ExpertBatch batch(0, data.index(), data.size());
  accelerator.backward(test::token_losses(model(batch.ids), batch.targets, at::Reduction::Mean));
  return accelerator.clip_grad_norm_(model.parameters(), 1e9, norm_type).item<double>();
}

}  // namespace

TEST_CASE("fifty steps with sharded experts have the losses, norms and weights of one rank") {
  for (const bool is_mixtral : {true, false}) {
    const auto expected = train_alone({.is_mixtral = is_mixtral});
    for (const auto& options : arrangements()) {
      INFO((is_mixtral ? "Mixtral, " : "own model, ") << text_of(options));
      const auto found = train({.is_mixtral = is_mixtral, .options = options});
      check_near(found.losses, expected.losses);
      check_near(found.norms, expected.norms, 1e-3);
      check_near({found.norms.front()}, {expected.norms.front()});
      check_near(found.weights, expected.weights, 1e-4);
    }
  }
}

TEST_CASE(
    "over nodes, experts that are gathered in int8 follow the losses of whole gathers, and checkpoints keep them") {
  const State state;
  if (state.num_nodes() == 1) return;
  const test::Folder folder(state, "experts_zero_int8");
  auto options = arranged(2, 3);
  const auto whole = train({.options = options, .steps = 20}).losses;
  options.zero.int8_gathers = true;
  const auto int8 = train({.options = options, .steps = 20, .save = folder.path() / "first"}).losses;
  CHECK(int8 != whole);
  for (std::size_t step = 0; step < whole.size(); ++step) CHECK(std::abs(int8[step] - whole[step]) < 0.048 * whole[0]);
  train({.options = options, .steps = 0, .load = folder.path() / "first", .save = folder.path() / "second"});
  check_equal(tensors_in(folder.path() / "second"), tensors_in(folder.path() / "first"));
}

TEST_CASE("norms of other types count each sharded expert once") {
  for (const double type : {1.0, 2.0, std::numeric_limits<double>::infinity()}) {
    std::vector<double> alone;
    {
      const test::FirstRanks first(1);
      if (first.is_in()) alone.push_back(norm_of_first_step({.communicator = first.handle()}, type));
    }
    const auto expected = test::from_first(alone).front();
    for (const auto& options : arrangements()) {
      INFO("norm " << type << ", " << text_of(options));
      CHECK(norm_of_first_step(options, type) == Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("a checkpoint goes through all arrangements of experts and ZeRO and stays the same, bit by bit") {
  const State state;
  const test::Folder folder(state, "experts_zero");
  auto last = folder.path() / "first";
  train_alone({.steps = 3, .save = last});
  const auto expected = tensors_in(last);
  auto all = arrangements();
  for (const int experts : divisions()) all.push_back(test::divided_by(experts));
  all.push_back(arranged(1, 2));
  for (const auto& options : all) {
    INFO(text_of(options));
    const auto next = folder.path() / text_of(options);
    train({.options = options, .steps = 0, .load = last, .save = next});
    check_equal(tensors_in(next), expected);
    last = next;
  }
  train_alone({.steps = 0, .load = last, .save = folder.path() / "last"});
  check_equal(tensors_in(folder.path() / "last"), expected);
}

TEST_CASE("a resumed run with sharded experts continues as the one that was saved") {
  const State state;
  const test::Folder folder(state, "experts_zero_resumed");
  const auto next = train_alone({.steps = 6}).losses;
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    const auto saved = folder.path() / text_of(options);
    train({.options = options, .steps = 3, .save = saved});
    const auto found = train({.options = options, .first = 3, .steps = 3, .load = saved}).losses;
    check_near(found, {next.begin() + 3, next.end()});
  }
}

TEST_CASE("a module and its optimizer leave sharded experts for another arrangement") {
  const auto expected = train_alone({.is_mixtral = false, .steps = 6});
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    test::ExpertNet net;
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    std::vector<double> losses;
    for (const auto& half : {options, AcceleratorOptions()}) {
      Accelerator accelerator(half);
      const test::ExpertRun run{.is_mixtral = false, .first = static_cast<std::int64_t>(losses.size()), .steps = 3};
      const auto found = test::train_with(accelerator, run, net, sgd).losses;
      losses.insert(losses.end(), found.begin(), found.end());
      accelerator.free_memory();
    }
    check_near(losses, expected.losses);
  }
}

TEST_CASE("exports of sharded experts are whole, and weights load into them") {
  const State state;
  const test::Folder folder(state, "experts_zero_export");
  const auto whole = test::mixtral();
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    auto net = test::mixtral();
    Accelerator accelerator(options);
    auto model = accelerator.prepare(*net);
    const auto dict = accelerator.get_state_dict(model);
    const auto saved = folder.path() / text_of(options);
    accelerator.save_model(model, saved);
    {
      const auto summoned = accelerator.summon_full_parameters(model);
      const at::NoGradGuard no_grad;
      for (const auto& parameter : net->parameters()) parameter.zero_();
    }
    accelerator.load_checkpoint_in_model(model, saved);
    const auto summoned = accelerator.summon_full_parameters(model);
    const auto found = net->named_parameters();
    for (const auto& item : whole->named_parameters()) {
      INFO(item.key());
      if (accelerator.is_main_process()) CHECK(at::equal(dict.get<at::Tensor>(item.key()), item.value()));
      CHECK(at::equal(found[item.key()], item.value()));
    }
    accelerator.wait_for_everyone();
  }
}

TEST_CASE("a gradient of one rank's sharded experts that is not finite skips the update on all ranks") {
  for (auto options : arrangements()) {
    INFO(text_of(options));
    options.protection.on_nonfinite = OnNonfinite::skip;
    Accelerator accelerator(options);
    test::ExpertNet net;
    torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    auto [model, optimizer] = accelerator.prepare(net, sgd);
    const auto& data = accelerator::Training::of(accelerator).data();
    bool spoils = false;
    if (accelerator.is_last_process()) {
      net->first->experts->down_proj.register_hook(
          [&spoils](const at::Tensor& g) { return spoils ? g * std::numeric_limits<double>::infinity() : g; });
    }
    for (int step = 0; step < 4; ++step) {
      spoils = step % 2 == 1;
      const test::ExpertBatch batch(step, data.index(), data.size());
      accelerator.backward(test::token_losses(model(batch.ids), batch.targets, at::Reduction::Mean));
      optimizer.step();
      optimizer.zero_grad();
      CHECK(optimizer.step_was_skipped() == spoils);
    }
    accelerator.wait_for_everyone();
  }
}
