// Reproducible runs: a step on some meshes beside the same step of a run that is not reproducible.
#include <ATen/ops/randn.h>
#include <torch/optim/adamw.h>

#include <array>
#include <memory>
#include <utility>

#include "bench/bare_step.hpp"
#include "bench/parallel/blocks.hpp"
#include "core/text/text.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t repeated_layers = 4, rows_of_shard = 2, repeated_tokens = 128;
constexpr int repeated_shards = 8;

/// The same few rows in any number.
struct RepeatedRows {
  at::Tensor rows = at::randn({16, repeated_tokens, block_width});
  std::size_t size() const { return 1 << 20; }
  at::Tensor get(std::int64_t i) const { return rows[i % rows.size(0)]; }
};

struct RepeatedMesh {
  const char* name;
  int stage;
  bool is_pipeline;
};
constexpr std::array<RepeatedMesh, 5> repeated_meshes = {
    {{"replicate", 0, false}, {"zero_1", 1, false}, {"zero_2", 2, false}, {"zero_3", 3, false}, {"pipeline", 0, true}}};

/// A training whose steps have the rows of all shards.
class RepeatedTraining {
 public:
  /// @collective
  RepeatedTraining(const RepeatedMesh& mesh, int ranks, bool is_reproducible)
      : is_pipeline_(mesh.is_pipeline),
        accelerator_({.cpu = true,
                      .zero = {.stage = mesh.stage},
                      .parallel = {.pipeline = mesh.is_pipeline ? ranks : 1},
                      .reproducible = is_reproducible,
                      .virtual_shards = repeated_shards,
                      .log_with = {}}),
        net_(make_blocks(repeated_layers * ranks)),
        adam_(net_->parameters(), torch::optim::AdamWOptions(1e-4)),
        loader_(accelerator_.prepare(
            data_loader(RepeatedRows(), {.batch_size = rows_of_batch(mesh.is_pipeline ? 1 : ranks, is_reproducible)}))),
        model_(accelerator_.prepare(net_)),
        optimizer_(accelerator_.prepare(adam_)),
        batch_(loader_.begin()) {}

  void step() {
    do {
      if (batch_ == loader_.end()) batch_ = loader_.begin();
      compute(*batch_);
      optimizer_.step();
      optimizer_.zero_grad();
      is_whole_ = accelerator_.sync_gradients();
      ++batch_;
    } while (!is_whole_);
  }

 private:
  static std::int64_t rows_of_batch(int data_ranks, bool is_reproducible) {
    return is_reproducible ? rows_of_shard : rows_of_shard * repeated_shards / data_ranks;
  }
  void compute(const at::Tensor& batch) {
    const auto loss_of = [](auto& model, const at::Tensor& part) { return model(part).square().mean(); };
    if (is_pipeline_) {
      accelerator_.pipeline_step(model_, batch, loss_of);
    } else {
      accelerator_.backward(loss_of(model_, batch));
    }
  }

  bool is_pipeline_, is_whole_ = false;
  Accelerator accelerator_;
  std::shared_ptr<PipelineModule> net_;
  torch::optim::AdamW adam_;
  decltype(data_loader(RepeatedRows(), LoaderOptions())) loader_;
  decltype(std::declval<Accelerator&>().prepare(std::declval<std::shared_ptr<PipelineModule>&>())) model_;
  Optimizer optimizer_;
  decltype(loader_.begin()) batch_;
};

/// @collective
Result reproducible_step(Accelerator& all, const Plan& plan, const RepeatedMesh& mesh) {
  const int ranks = all.num_processes();
  RepeatedTraining ours(mesh, ranks, true), reference(mesh, ranks, false);
  return {.name = text::concat("reproducible_", mesh.name),
          .params = {{"ranks", ranks},
                     {"shards", repeated_shards},
                     {"width", block_width},
                     {"layers", repeated_layers * ranks},
                     {"tokens", repeated_shards * rows_of_shard * repeated_tokens}},
          .reference = "the same mesh, not reproducible",
          .timing = time_in_pairs(
              {.ours = [&] { ours.step(); }, .reference = [&] { reference.step(); }, .line_up = [&] { line_up(all); }},
              plan)};
}

}  // namespace

std::vector<Result> reproducible(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  std::vector<std::string> names;
  for (const auto& one : repeated_meshes) names.emplace_back(one.name);
  check_known("--case", selection.cases, names);
  std::vector<Result> results;
  for (const auto& one : repeated_meshes) {
    if (selection.wants(one.name)) results.push_back(reproducible_step(accelerator, plan, one));
  }
  return results;
}

}  // namespace hortator::bench
