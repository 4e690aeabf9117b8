#include "train/gradient_reducer.hpp"

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <hortator/error.hpp>

#include "comm/mpi_communicator.hpp"
#include "comm/self_communicator.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

struct Fixture {
  mpi::Communicator host = mpi::Communicator::world();
  comm::MpiCommunicator communicator{mpi::Communicator::world()};
  int rank = host.rank();
  int size = host.size();
};

at::Tensor parameter(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return at::ones(sizes, at::TensorOptions().dtype(type)).requires_grad_();
}

}  // namespace

TEST_CASE("gradients become means over the ranks, whatever the bucket size") {
  Fixture f;
  for (const std::int64_t bytes : {1, 40, 1 << 20}) {
    auto a = parameter({3});
    auto b = parameter({2, 5});
    auto c = parameter({4}, at::kDouble);
    auto d = parameter({2, 3, 4, 4});
    {
      const at::NoGradGuard no_grad;
      d.set_data(d.contiguous(at::MemoryFormat::ChannelsLast));
    }
    train::GradientReducer reducer({{"a", a}, {"b", b}, {"c", c}, {"d", d}}, f.communicator, f.host,
                                   {.first_bytes = bytes, .bytes = bytes});
    for (int pass = 1; pass <= 3; ++pass) {
      const double mine = f.rank + pass;
      const double mean = (f.size - 1) / 2.0 + pass;
      for (auto* p : {&a, &b, &c, &d}) p->mutable_grad().reset();
      (a.sum() * mine + (b * mine).sum() + (c * mine).sum().to(at::kFloat) + (d * mine).sum()).backward();
      reducer.finish();
      for (const auto* p : {&a, &b, &c, &d}) CHECK(at::allclose(p->grad(), at::full_like(*p, mean)));
    }
  }
}

TEST_CASE("gradients that are kept between passes add up as those of one rank would") {
  Fixture f;
  auto a = parameter({3});
  train::GradientReducer reducer({{"a", a}}, f.communicator, f.host);
  double expected = 0;
  for (int pass = 0; pass < 3; ++pass) {
    (a.sum() * (f.rank + 1)).backward();
    reducer.finish();
    expected += (f.size + 1) / 2.0;
    CHECK(at::allclose(a.grad(), at::full({3}, expected)));
  }
}

TEST_CASE("zero_grad works on gradients in buckets, both ways") {
  Fixture f;
  torch::nn::Linear model(3, 2);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  train::GradientReducer reducer({{"weight", model->weight}, {"bias", model->bias}}, f.communicator, f.host);
  for (const bool set_to_none : {false, true, false}) {
    model->forward(at::full({1, 3}, f.rank + 1.0)).sum().backward();
    reducer.finish();
    CHECK(at::allclose(model->weight.grad(), at::full({2, 3}, (f.size + 1) / 2.0)));
    optimizer.zero_grad(set_to_none);
    CHECK(model->weight.grad().defined() != set_to_none);
  }
}

TEST_CASE("a backward that does not reach the model sends nothing") {
  Fixture f;
  auto a = parameter({3});
  auto other = parameter({3});
  train::GradientReducer reducer({{"a", a}}, f.communicator, f.host);
  // Only rank 0 calls finish: were it to communicate, it would wait for ever.
  other.sum().backward();
  if (f.rank == 0) reducer.finish();
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("a parameter without gradient, on one rank or on all, is named on all ranks, and the next pass works") {
  Fixture f;
  if (f.size == 1) return;
  auto used = parameter({3});
  auto sometimes = parameter({2});
  train::GradientReducer reducer({{"used", used}, {"sometimes", sometimes}}, f.communicator, f.host,
                                 {.first_bytes = 1, .bytes = 1});
  for (int culprit = 0; culprit <= f.size; ++culprit) {
    const bool unused_here = culprit == f.rank || culprit == f.size;
    std::string text;
    int rank = -1;
    try {
      (unused_here ? used.sum() : used.sum() + sometimes.sum()).backward();
      reducer.finish();
    } catch (const Error& error) {
      text = error.what();
      rank = error.rank().value_or(-1);
    }
    CHECK_THAT(text, ContainsSubstring("backward gave no gradient to sometimes on rank"));
    CHECK(rank == (culprit == f.size ? 0 : culprit));

    used.mutable_grad().reset();
    sometimes.mutable_grad().reset();
    ((used.sum() + sometimes.sum()) * (f.rank + 1)).backward();
    reducer.finish();
    CHECK(at::allclose(sometimes.grad(), at::full({2}, (f.size + 1) / 2.0)));
  }
}

TEST_CASE("a second backward before the first is finished is refused, not averaged twice") {
  Fixture f;
  if (f.size == 1) return;
  auto a = parameter({3});
  auto b = parameter({3});
  train::GradientReducer reducer({{"a", a}, {"b", b}}, f.communicator, f.host, {.first_bytes = 1, .bytes = 1});
  (a.sum() + b.sum()).backward();
  CHECK_THROWS_WITH((a.sum() + b.sum()).backward(), ContainsSubstring("backward reached b again"));
}

TEST_CASE("sparse gradients are refused by name") {
  Fixture f;
  if (f.size == 1) return;
  auto a = parameter({4, 2});
  train::GradientReducer reducer({{"table", a}}, f.communicator, f.host);
  CHECK_THROWS_WITH(at::embedding(a, at::zeros({1}, at::kLong), -1, false, true).sum().backward(),
                    ContainsSubstring("the gradient of table is sparse"));
}

TEST_CASE("one rank: gradients are left exactly as backward made them") {
  Fixture f;
  comm::SelfCommunicator self(at::kCPU);
  auto a = parameter({3});
  train::GradientReducer reducer({{"a", a}}, self, f.host);
  (a.sum() * 2).backward();
  reducer.finish();
  CHECK(at::equal(a.grad(), at::full({3}, 2.0)));
}
