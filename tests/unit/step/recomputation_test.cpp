// Backward within backward: layers whose forward runs again when their gradients are needed.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/modules/linear.h>

#include <hortator/error.hpp>

#include "parallel/data_parallel/gradient_reducer.hpp"
#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::ReducerFixture;

namespace {

using Layer = std::function<at::Tensor(const at::Tensor&)>;

struct Recompute : torch::autograd::Function<Recompute> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const Layer* layer) {
    const at::AutoGradMode without(false);
    context->save_for_backward({x});
    context->saved_data["layer"] = reinterpret_cast<std::int64_t>(layer);
    return (*layer)(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const at::AutoGradMode with(true);
    auto x = context->get_saved_variables()[0].detach().requires_grad_();
    const auto& layer = *reinterpret_cast<const Layer*>(context->saved_data["layer"].toInt());
    torch::autograd::backward({layer(x)}, {gradients[0]});
    return {x.grad(), at::Tensor()};
  }
};

struct Layers {
  at::Tensor forward(const at::Tensor& x, const std::string& plan) {
    auto h = x.detach().requires_grad_();
    for (const char step : plan) {
      const auto& layer = step == 'a' || step == 'A' ? a : step == 'b' || step == 'B' ? b : c;
      h = step >= 'a' ? layer(h) : Recompute::apply(h, &layer);
    }
    return h.sum();
  }
  std::vector<parallel::NamedParameter> parameters() const {
    return {{"a", linear_a->weight}, {"b", linear_b->weight}, {"c", linear_c->weight}};
  }

  torch::nn::Linear make() { return torch::nn::Linear(torch::nn::LinearOptions(3, 3).bias(false)); }
  torch::nn::Linear linear_a = make();
  torch::nn::Linear linear_b = make();
  torch::nn::Linear linear_c = make();
  Layer a = [this](const at::Tensor& x) { return at::tanh(linear_a(x)); };
  Layer b = [this](const at::Tensor& x) { return at::tanh(linear_b(x)); };
  Layer c = [this](const at::Tensor& x) { return at::tanh(linear_c(x)); };
};

at::Tensor input(int rank) { return at::full({2, 3}, 0.1 * (rank + 1)); }

// The mean of all ranks' gradients, computed on one process.
std::vector<at::Tensor> expected(Layers& layers, const std::string& plan, int ranks) {
  std::vector<at::Tensor> inputs;
  for (const auto& one : layers.parameters()) inputs.push_back(one.tensor);
  at::Tensor loss = at::zeros({});
  std::string plain;
  for (const char step : plan) plain += static_cast<char>(std::tolower(step));
  for (int rank = 0; rank < ranks; ++rank) loss = loss + layers.forward(input(rank), plain) / ranks;
  return torch::autograd::grad({loss}, inputs);
}

}  // namespace

// Capital letters are recomputed: all, the last, the first, two layers with shared parameters, and a layer that is used
// both ways, before and after.
TEST_CASE("recomputed layers, including shared ones, are averaged once, after the outermost backward") {
  for (const std::string plan : {"abc", "aBC", "abC", "ABC", "Abc", "abcAB", "aAbBcC", "AaBbCc", "ABCABC", "cAbcA"}) {
    for (const bool by_pass : {false, true}) {
      for (const double megabytes : {test::one_byte_buckets, 25.0}) {
        INFO(plan << " " << by_pass << " " << megabytes);
        ReducerFixture f;
        f.options.bucket_cap_mb = megabytes;
        at::manual_seed(1);
        Layers layers;
        const auto mean = expected(layers, plan, f.size);
        parallel::GradientReducer reducer(layers.parameters(), f.parallel());
        for (int pass = 0; pass < 3; ++pass) {
          for (auto& one : layers.parameters()) one.tensor.mutable_grad().reset();
          const auto loss = layers.forward(input(f.rank), plan);
          by_pass ? f.pass.run(loss) : loss.backward();
          reducer.finish();
          for (std::size_t i = 0; i < mean.size(); ++i)
            CHECK(at::allclose(layers.parameters()[i].tensor.grad(), mean[i], 1e-4, 1e-6));
        }
      }
    }
  }
}

TEST_CASE("recomputation in later passes only is averaged correctly if the begin of the pass is known") {
  ReducerFixture f;
  f.options.bucket_cap_mb = test::one_byte_buckets;
  at::manual_seed(1);
  Layers layers;
  parallel::GradientReducer reducer(layers.parameters(), f.parallel());
  for (const std::string plan : {"abc", "ABC", "abc", "ABCABC", "abc"}) {
    INFO(plan);
    const auto mean = expected(layers, plan, f.size);
    for (auto& one : layers.parameters()) one.tensor.mutable_grad().reset();
    f.pass.run(layers.forward(input(f.rank), plan));
    reducer.finish();
    for (std::size_t i = 0; i < mean.size(); ++i)
      CHECK(at::allclose(layers.parameters()[i].tensor.grad(), mean[i], 1e-4, 1e-6));
  }
}

TEST_CASE("a gradient that grows after it was sent is an error, not a wrong average") {
  ReducerFixture f;
  if (f.alone()) return;
  f.options.bucket_cap_mb = test::one_byte_buckets;
  Layers layers;
  parallel::GradientReducer reducer(layers.parameters(), f.parallel());
  f.pass.run(layers.forward(input(f.rank), "abc"));
  reducer.finish();
  // Used in the outer graph and, earlier in forward, in a recomputed part that the first pass did not have.
  CHECK_THROWS_WITH(f.pass.run(layers.forward(input(f.rank), "Cabc")),
                    ContainsSubstring("Backward reached 'c' again after its gradient was sent"));
}

TEST_CASE("no graph task runs outside backward") { CHECK(parallel::current_graph_task() == parallel::no_graph_task); }
