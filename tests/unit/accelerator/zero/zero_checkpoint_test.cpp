// Checkpoints of one ZeRO stage and number of ranks resume at any other.
#include "support/catch.hpp"
#include "unit/accelerator/first_ranks.hpp"
#include "unit/accelerator/fixtures.hpp"
#include "unit/accelerator/zero/zero_fixture.hpp"

using namespace hortator;
using test::are_close;
using test::are_equal;
using test::copies_of;
using test::FirstRanks;
using test::Shardable;

namespace {

AcceleratorOptions options_of(int stage, const std::filesystem::path& folder, const FirstRanks& first_ranks) {
  return {.ddp = {.bucket_cap_mb = 3e-3},
          .zero = {.stage = stage},
          .project = {.dir = folder},
          .communicator = first_ranks.handle()};
}

/// Trains two steps on `ranks` ranks, from the checkpoint if there is one, and saves. All ranks have the same batches,
/// so that their number does not matter. @collective
std::vector<at::Tensor> resume(const std::filesystem::path& folder, int ranks, int stage,
                               const AcceleratorOptions& changes = {}, at::ScalarType type = at::kFloat) {
  const FirstRanks first_ranks(ranks);
  if (!first_ranks.is_in()) return {};
  auto options = options_of(stage, folder, first_ranks);
  options.checkpoint = changes.checkpoint;
  options.zero.shard_group = changes.zero.shard_group;
  return test::resume(
      options,
      [type](const State&, int step) {
        return at::sin(at::arange(6 * 7, at::kFloat).view({6, 7}) + step).to(type);
      },
      type);
}

std::vector<at::Tensor> run(const std::string& name, const std::vector<std::pair<int, int>>& ranks_and_stages,
                            const AcceleratorOptions& changes = {}, at::ScalarType type = at::kFloat) {
  const test::Folder folder(State(), name);
  std::vector<at::Tensor> parameters;
  for (const auto& [ranks, stage] : ranks_and_stages) parameters = resume(folder.path(), ranks, stage, changes, type);
  return parameters;
}

int ranks_of_all() { return State().num_processes(); }

}  // namespace

TEST_CASE("any stage resumes from any other stage's checkpoint as a run that never stopped") {
  const int all = ranks_of_all();
  const auto expected = run("zero_plain", {{all, 0}, {all, 0}, {all, 0}});
  CHECK(are_close(run("zero_chain", {{all, 1}, {all, 0}, {all, 2}}), expected, 1e-6));
  CHECK(are_close(run("zero_back", {{all, 3}, {all, 1}, {all, 0}}), expected, 1e-6));
  CHECK(are_close(run("zero_into", {{all, 0}, {all, 2}, {all, 3}}), expected, 1e-6));
}

TEST_CASE("any number of ranks resumes from any other number's checkpoint") {
  const int all = ranks_of_all();
  if (all == 1) return;
  const State world;
  const auto expected = run("zero_plain", {{1, 0}, {1, 0}, {1, 0}});
  for (const int stage : {1, 2}) {
    for (const auto& sequence : {std::vector<std::pair<int, int>>{{all, stage}, {1, stage}, {all, stage}},
                                 std::vector<std::pair<int, int>>{{1, 0}, {all, stage}, {all - 1, stage}},
                                 std::vector<std::pair<int, int>>{{all - 1, stage}, {all, 0}, {1, 0}}}) {
      const auto parameters = run("zero_elastic", sequence);
      if (world.is_main_process()) CHECK(are_close(parameters, expected, 1e-5));
    }
  }
}

TEST_CASE("checkpoints written by MPI-IO, in the background, and from replicas of shards are resumed") {
  const int all = ranks_of_all();
  const auto expected = run("zero_plain", {{all, 2}, {all, 2}});
  CHECK(
      are_equal(run("zero_mpio", {{all, 2}, {all, 2}}, {.checkpoint = {.writer = CheckpointWriter::mpio}}), expected));
  CHECK(are_equal(run("zero_async", {{all, 2}, {all, 2}}, {.checkpoint = {.asynchronous = true}}), expected));
  if (all % 2 == 0)
    CHECK(are_close(run("zero_hybrid", {{all, 2}, {all, 2}}, {.zero = {.shard_group = all / 2}}), expected, 1e-5));
}

TEST_CASE("fp32 copies of 16-bit parameters are saved, and are made if a checkpoint has none") {
  const int all = ranks_of_all();
  const auto whole = [&] {
    const test::Folder folder(State(), "zero_masters_once");
    const FirstRanks first_ranks(all);
    Accelerator accelerator(options_of(1, folder.path(), first_ranks));
    Shardable net(at::kBFloat16);
    {
      const at::NoGradGuard no_grad;
      for (auto& parameter : net->parameters()) parameter.mul_(1.5);
    }
    auto adamw = test::make_adamw(net);
    auto [model, optimizer] = accelerator.prepare(net, *adamw);
    for (int step = 0; step < 4; ++step) {
      const auto x = at::sin(at::arange(6 * 7, at::kFloat).view({6, 7}) + step % 2).to(at::kBFloat16);
      accelerator.backward(model(x).square().mean());
      optimizer.step();
      optimizer.zero_grad();
    }
    auto parameters = copies_of(*net);
    accelerator.wait_for_everyone();
    return parameters;
  }();
  CHECK(are_equal(run("zero_masters", {{all, 1}, {all, 1}}, {}, at::kBFloat16), whole));
  CHECK(are_close(run("zero_no_masters", {{all, 0}, {all, 1}, {all, 0}}, {}, at::kBFloat16),
                  run("zero_no_masters", {{all, 0}, {all, 0}, {all, 0}}, {}, at::kBFloat16), 5e-2));
}

TEST_CASE("a damaged checkpoint of shards is skipped, and an older one is loaded") {
  const test::Folder folder(State(), "zero_damaged");
  Accelerator accelerator(
      {.zero = {.stage = 2}, .project = {.dir = folder.path(), .automatic_checkpoint_naming = true}});
  Shardable net;
  auto adamw = test::make_adamw(net);
  auto [model, optimizer] = accelerator.prepare(net, *adamw);
  std::vector<std::vector<at::Tensor>> saved;
  for (int i = 0; i < 2; ++i) {
    accelerator.backward(model(test::batch(accelerator, i)).square().mean());
    optimizer.step();
    optimizer.zero_grad();
    const auto path = accelerator.save_state();
    saved.push_back(copies_of(*net));
    if (i == 1 && accelerator.is_main_process()) std::filesystem::remove(path / "manifest.json");
    accelerator.wait_for_everyone();
  }
  accelerator.load_state();
  CHECK(are_equal(copies_of(*net), saved[0]));
  accelerator.wait_for_everyone();
}

TEST_CASE("a checkpoint of a model with other sizes is refused before anything is changed") {
  const test::Folder folder(State(), "zero_other");
  Accelerator accelerator({.zero = {.stage = 1}, .project = {.dir = folder.path()}});
  {
    torch::nn::Linear small(3, 3);
    torch::optim::AdamW adamw(small->parameters(), 1e-2);
    auto [model, optimizer] = accelerator.prepare(small, adamw);
    accelerator.backward(model(at::ones({2, 3})).sum());
    optimizer.step();
    accelerator.save_state();
    accelerator.free_memory();
  }
  torch::nn::Linear large(3, 5);
  torch::optim::AdamW adamw(large->parameters(), 1e-2);
  auto [model, optimizer] = accelerator.prepare(large, adamw);
  const auto before = copies_of(*large);
  CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("does not fit"));
  CHECK(are_equal(copies_of(*large), before));
}
