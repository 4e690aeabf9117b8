#include <torch/optim/sgd.h>

#include <hortator/accelerator.hpp>

#include "stored_models.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;

namespace {

/// A run that trains the model `mlp`.
class ExportedRun {
 public:
  ExportedRun(const std::filesystem::path& folder, int stage)
      : accelerator_({.cpu = true, .zero = {.stage = stage}, .project = {.dir = folder}}),
        net_(exported_module(stored_models::file("mlp"))),
        sgd_(net_->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)),
        prepared_(accelerator_.prepare(net_, sgd_)) {}

  void train(int steps) {
    auto& [model, optimizer] = prepared_;
    for (int i = 0; i < steps; ++i) {
      accelerator_.backward(at::mse_loss(model(tensors_.get("input_0"))[0], tensors_.get("target")));
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  at::Tensor output() {
    const at::NoGradGuard no_grad;
    return std::get<0>(prepared_)(tensors_.get("input_0"))[0].clone();
  }
  Accelerator& accelerator() { return accelerator_; }

 private:
  Accelerator accelerator_;
  std::shared_ptr<ExportedModule> net_;
  torch::optim::SGD sgd_;
  decltype(std::declval<Accelerator&>().prepare(net_, sgd_)) prepared_;
  SafetensorsFile tensors_ = stored_models::tensors("mlp");
};

}  // namespace

TEST_CASE("a run with an exported model is saved and resumed") {
  const auto stage = GENERATE(0, 3);
  const test::OwnFolder folder("exported-run");
  at::Tensor expected;
  {
    ExportedRun run(folder.path, stage);
    run.train(2);
    run.accelerator().save_state();
    run.train(2);
    expected = run.output();
  }
  ExportedRun resumed(folder.path, stage);
  resumed.accelerator().load_state();
  CHECK_FALSE(resumed.output().equal(expected));
  resumed.train(2);
  CHECK(resumed.output().equal(expected));
}
