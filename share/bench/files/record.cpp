// Recording for hortator compare-runs: a step that is recorded beside the same step of a run without a record.
#include <ATen/ops/randn.h>
#include <torch/optim/adamw.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "bench/bare_step.hpp"
#include "bench/parallel/blocks.hpp"

namespace hortator::bench {
namespace {

constexpr std::int64_t recorded_layers = 4, recorded_rows = 8, recorded_tokens = 128;

class RecordedTraining {
 public:
  /// `folder`: where the second step is recorded; empty: it is not. @collective
  explicit RecordedTraining(const std::filesystem::path& folder)
      : accelerator_({.cpu = true, .log_with = {}, .record = {.operators = folder, .step = folder.empty() ? 1 : 2}}),
        net_(make_blocks(recorded_layers)),
        adam_(net_->parameters(), torch::optim::AdamWOptions(1e-4)),
        model_(accelerator_.prepare(net_)),
        optimizer_(accelerator_.prepare(adam_)) {
    step();
  }

  void step() {
    accelerator_.backward(model_(batch_).square().mean());
    optimizer_.step();
    optimizer_.zero_grad();
  }
  /// Seconds of a step that all ranks begin together. @collective
  double time() {
    line_up(accelerator_);
    const auto begin = seconds_now();
    step();
    line_up(accelerator_);
    return seconds_now() - begin;
  }

 private:
  Accelerator accelerator_;
  std::shared_ptr<PipelineModule> net_;
  torch::optim::AdamW adam_;
  decltype(std::declval<Accelerator&>().prepare(std::declval<std::shared_ptr<PipelineModule>&>())) model_;
  Optimizer optimizer_;
  at::Tensor batch_ = at::randn({recorded_rows, recorded_tokens, block_width});
};

}  // namespace

// One step is recorded in each run: there is no block of several.
std::vector<Result> record(Accelerator& all, const Plan& plan, const Selection& selection) {
  check_known("--case", selection.cases, {});
  RecordedTraining reference({});
  std::vector<double> recorded, usual;
  for (int pair = 0; pair < plan.blocks; ++pair) {
    if (pair % 2 == 0) usual.push_back(reference.time());
    recorded.push_back(RecordedTraining(plan.folder / "record").time());
    if (pair % 2 == 1) usual.push_back(reference.time());
  }
  return {{.name = "record",
           .params = {{"ranks", all.num_processes()},
                      {"width", block_width},
                      {"layers", recorded_layers},
                      {"tokens", recorded_rows * recorded_tokens}},
           .reference = "the same step, not recorded",
           .timing = summarize(recorded, usual)}};
}

}  // namespace hortator::bench
