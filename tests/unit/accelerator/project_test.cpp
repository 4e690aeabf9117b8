#include "accelerator/project.hpp"

#include "fixtures.hpp"
#include "support/catch.hpp"

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

TEST_CASE("automatic names count up, also after a restart; the newest is loaded") {
  test::Folder folder(State(), "naming");
  const AcceleratorOptions options{.project = {.dir = folder.path(), .automatic_checkpoint_naming = true}};
  torch::nn::Linear net(2, 1);
  {
    Accelerator accelerator(options);
    auto model = accelerator.prepare(net);
    CHECK_FALSE(accelerator.has_checkpoint());
    CHECK_THROWS_WITH(accelerator.load_state(), ContainsSubstring("there is no checkpoint in"));
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

TEST_CASE("without names there is one checkpoint, replaced each time; a folder that is named is used") {
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
