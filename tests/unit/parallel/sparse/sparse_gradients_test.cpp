// Gradients of torch::nn::Embedding with sparse(true): their rows are gathered from all ranks.
#include "parallel/sparse/sparse_gradients.hpp"

#include <ATen/ATen.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <hortator/hortator.hpp>

#include "support/catch.hpp"
#include "unit/parallel/reducer_fixture.hpp"

using namespace hortator;
using test::all_are;
using test::parameter;
using test::ReducerFixture;

namespace {

at::Tensor look_up(const at::Tensor& table, std::vector<std::int64_t> rows, bool sparse = true) {
  return at::embedding(table, at::tensor(rows), -1, false, sparse);
}

/// Some rows are common to all ranks, some are not, and one comes twice.
std::vector<std::int64_t> rows_of(int rank) { return {0, 2, 2, 3 + rank}; }

}  // namespace

TEST_CASE("the average of sparse gradients is that of dense ones, and the same on all ranks") {
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf}) {
    ReducerFixture f;
    INFO(type);
    const auto table = parameter({9, 3}, type);
    const auto scale = static_cast<double>(f.rank + 1);
    const auto gradient_of = [&](bool sparse) {
      (look_up(table, rows_of(f.rank), sparse) * scale).sum().backward();
      return std::exchange(table.mutable_grad(), at::Tensor());
    };
    const auto dense = gradient_of(false);
    f.communicator.all_reduce(dense.view({-1}), comm::ReduceOp::mean).wait();
    const auto average = parallel::average_rows(f.communicator, table, gradient_of(true));
    CHECK(average.is_coalesced());
    CHECK(average.scalar_type() == type);
    CHECK(average._nnz() == 2 + f.size);
    CHECK(at::allclose(average.to_dense(), dense, 1e-3));
    const auto whole = average.to_dense().contiguous();
    const auto of_first = whole.clone();
    f.communicator.broadcast(of_first, 0).wait();
    CHECK(at::equal(whole, of_first));
  }
}

TEST_CASE("a rank without rows counts as zeros, and ranks may all have none") {
  ReducerFixture f;
  const auto table = parameter({4, 2});
  if (f.rank == 0) look_up(table, {1, 1}).sum().backward();
  const auto average = parallel::average_rows(f.communicator, table, table.grad()).to_dense();
  CHECK(all_are(average[1], 2.0 / f.size));
  CHECK(all_are(average[0], 0));
  CHECK(parallel::average_rows(f.communicator, table, {})._nnz() == 0);
}

TEST_CASE("sparse and dense gradients of a model become means over the ranks, in each pass") {
  for (const double megabytes : {test::one_byte_buckets, 25.0}) {
    ReducerFixture f;
    f.options.bucket_cap_mb = megabytes;
    auto table = parameter({9, 3});
    auto weight = parameter({3});
    parallel::GradientReducer reducer({{"table", table}, {"weight", weight}}, f.parallel());
    for (int step = 1; step <= 4; ++step) {
      table.mutable_grad().reset();
      weight.mutable_grad().reset();
      (look_up(table, {0, 1 + f.rank}) * weight * (f.rank + step)).sum().backward();
      CHECK(all_are(weight.grad(), 2 * (f.mean_rank + step)));
      REQUIRE(table.grad().is_sparse());
      const auto gradient = table.grad().to_dense();
      CHECK(all_are(gradient[0], f.mean_rank + step));
      for (int rank = 0; rank < f.size; ++rank)
        CHECK(all_are(gradient[1 + rank], static_cast<double>(rank + step) / f.size));
      CHECK(all_are(gradient[8], 0));
    }
    if (!f.alone()) CHECK(reducer.buckets() == std::vector<std::vector<std::string>>{{"weight"}});
  }
}

TEST_CASE("a model whose gradients are all sparse is averaged as well") {
  ReducerFixture f;
  auto tokens = parameter({9, 3});
  auto contexts = parameter({9, 3});
  parallel::GradientReducer reducer({{"tokens", tokens}, {"contexts", contexts}}, f.parallel());
  for (int step = 1; step <= 3; ++step) {
    tokens.mutable_grad().reset();
    contexts.mutable_grad().reset();
    (look_up(tokens, {f.rank}) * look_up(contexts, {5}) * step).sum().backward();
    CHECK(all_are(tokens.grad().to_dense()[f.size - 1], static_cast<double>(step) / f.size));
    CHECK(all_are(contexts.grad().to_dense()[5], step));
  }
}

TEST_CASE("paused, sparse gradients add up on their rank; the next pass averages the sum") {
  ReducerFixture f;
  auto table = parameter({4, 2});
  parallel::GradientReducer reducer({{"table", table}}, f.parallel());
  for (int round = 0; round < 2; ++round) {
    table.mutable_grad().reset();
    reducer.pause();
    (look_up(table, {1}) * (f.rank + 1)).sum().backward();
    reducer.resume();
    (look_up(table, {1, 2}) * (f.rank + 1)).sum().backward();
    const auto gradient = table.grad().to_dense();
    CHECK(all_are(gradient[1], 2 * (f.mean_rank + 1)));
    CHECK(all_are(gradient[2], f.mean_rank + 1));
  }
}

TEST_CASE("with find_unused_parameters a rank may leave a table out, also in the first pass") {
  ReducerFixture f;
  f.options.find_unused_parameters = true;
  auto table = parameter({4, 2});
  auto weight = parameter({2});
  parallel::GradientReducer reducer({{"table", table}, {"weight", weight}}, f.parallel());
  for (int step = 0; step < 3; ++step) {
    table.mutable_grad().reset();
    weight.mutable_grad().reset();
    const bool uses_table = f.rank == step % f.size;
    auto loss = weight.sum();
    if (uses_table) loss = loss + look_up(table, {3}).sum();
    loss.backward();
    CHECK(all_are(table.grad().to_dense()[3], 1.0 / f.size));
    CHECK(all_are(weight.grad(), 1));
  }
}

TEST_CASE("without find_unused_parameters all ranks name a table without a gradient") {
  ReducerFixture f;
  if (f.alone()) return;
  auto table = parameter({4, 2});
  auto weight = parameter({2});
  parallel::GradientReducer reducer({{"table", table}, {"weight", weight}}, f.parallel());
  auto loss = weight.sum();
  if (f.rank == 0) loss = loss + look_up(table, {3}).sum();
  CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("Backward gave no gradient to table"));
}

TEST_CASE("a gradient that was sparse and is dense now is an error that names it, and so is the reverse") {
  ReducerFixture f;
  if (f.alone()) return;
  for (const bool first : {true, false}) {
    auto table = parameter({4, 2});
    parallel::GradientReducer reducer({{"table", table}}, f.parallel());
    look_up(table, {1}, first).sum().backward();
    table.mutable_grad().reset();
    CHECK_THROWS_WITH(look_up(table, {1}, !first).sum().backward(),
                      ContainsSubstring("The gradient of 'table' is") && ContainsSubstring(" before"));
  }
}

TEST_CASE("sparse gradients that are not of whole rows are refused by name") {
  ReducerFixture f;
  if (f.alone()) return;
  auto table = parameter({4, 2});
  parallel::GradientReducer reducer({{"table", table}}, f.parallel());
  const auto rows = at::zeros({1, 2}, at::kLong);
  CHECK_THROWS_WITH(at::gather(table, 0, rows, /*sparse_grad=*/true).sum().backward(),
                    ContainsSubstring("The gradient of 'table' is sparse"));
}

namespace {

struct TokensImpl : torch::nn::Module {
  explicit TokensImpl(bool sparse) {
    at::manual_seed(4);
    table = register_module("table", torch::nn::Embedding(torch::nn::EmbeddingOptions(20, 6).sparse(sparse)));
    head = register_module("head", torch::nn::Linear(6, 2));
  }
  at::Tensor forward(const at::Tensor& tokens) { return head(table(tokens)); }
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Tokens);

template <typename Optimizer, typename Options>
std::vector<at::Tensor> train_tokens(bool sparse, const Options& options, int stage = 0) {
  Accelerator accelerator({.gradient_accumulation_steps = 2, .zero = {.stage = stage}});
  Tokens net(sparse);
  Optimizer chosen(net->parameters(), options);
  auto [model, optimizer] = accelerator.prepare(net, chosen);
  for (int step = 0; step < 8; ++step) {
    auto micro_step = accelerator.accumulate(model);
    const auto tokens = (at::arange(7, at::kLong) * (step + 2) + 3 * accelerator.process_index()).remainder(20);
    accelerator.backward(model(tokens).square().mean());
    optimizer.step();
    optimizer.zero_grad();
  }
  std::vector<at::Tensor> parameters;
  for (const auto& one : net->parameters()) parameters.push_back(one.detach().clone());
  return parameters;
}

bool are_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) { return at::allclose(x, y, 1e-5, 1e-6); });
}

}  // namespace

TEST_CASE("an embedding with sparse gradients trains as a dense one") {
  const torch::optim::SGDOptions sgd(0.5);
  CHECK(are_close(train_tokens<torch::optim::SGD>(true, sgd), train_tokens<torch::optim::SGD>(false, sgd)));
  const torch::optim::AdagradOptions adagrad(0.1);
  CHECK(are_close(train_tokens<torch::optim::Adagrad>(true, adagrad),
                  train_tokens<torch::optim::Adagrad>(false, adagrad)));
}

TEST_CASE("under ZeRO sparse gradients are refused by name") {
  if (State().num_processes() == 1) return;
  for (const int stage : {1, 2, 3}) {
    CHECK_THROWS_WITH(train_tokens<torch::optim::SGD>(true, torch::optim::SGDOptions(0.5), stage),
                      ContainsSubstring("The gradient of 'table.weight' is sparse") && ContainsSubstring("ZeRO"));
  }
}
