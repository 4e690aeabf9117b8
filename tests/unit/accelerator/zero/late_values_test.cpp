// Parameters whose values are made when prepare() needs them, as those of a checkpoint are.
#include "paging/deferred/late_values.hpp"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "support/catch.hpp"
#include "unit/accelerator/fixtures.hpp"

using namespace hortator;

namespace {

constexpr std::int64_t width = 512;  // matrices of 1 MiB

/// Two layers. The weight of each is filled with its number and counted; `fail` may throw meanwhile.
struct LateNet {
  torch::nn::Sequential net;
  std::shared_ptr<int> fills = std::make_shared<int>(0);

  explicit LateNet(const std::function<void()>& fail = [] {}) {
    for (int number = 1; number <= 2; ++number) {
      torch::nn::Linear layer(torch::nn::LinearOptions(width, width).bias(false));
      paging::fill_later(layer->weight, [fills = fills, fail, number](const at::Tensor& values) {
        fail();
        ++*fills;
        values.fill_(number);
      });
      net->push_back(layer);
    }
  }
};

std::vector<AcceleratorOptions> arrangements() {
  const TensorPlan plan = {{"0", TensorDivision::columns}, {"1", TensorDivision::rows}};
  std::vector<AcceleratorOptions> all;
  for (const int stage : {0, 1, 2, 3}) {
    all.push_back({.zero = {.stage = stage}});
    if (State().num_processes() % 2 == 0)
      all.push_back({.zero = {.stage = stage}, .parallel = {.tensor = 2, .plan = plan}});
  }
  return all;
}

std::string text_of(const AcceleratorOptions& options) {
  return text::concat("stage ", *options.zero.stage, ", tensor ", options.parallel.tensor.value_or(1));
}

}  // namespace

TEST_CASE("values that are made late are made by the first rank only, and all ranks get them") {
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    Accelerator accelerator(options);
    LateNet late;
    auto model = accelerator.prepare(late.net);
    if (accelerator.num_processes() > 1) CHECK(*late.fills == (accelerator.is_main_process() ? 2 : 0));
    const auto whole = accelerator.summon_full_parameters(model);
    CHECK(late.net[0]->as<torch::nn::Linear>()->weight.eq(1).all().item<bool>());
    CHECK(late.net[1]->as<torch::nn::Linear>()->weight.eq(2).all().item<bool>());
  }
}

TEST_CASE("if the first rank cannot make a value, all ranks throw its error") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const auto& options : arrangements()) {
    INFO(text_of(options));
    Accelerator accelerator(options);
    int calls = 0;
    LateNet late([&] {
      if (++calls == 2) throw Error({.what = "the file of the second layer has gone"});
    });
    CHECK_THROWS_WITH(accelerator.prepare(late.net), ContainsSubstring("the file of the second layer has gone"));
    state.wait_for_everyone();
  }
}
