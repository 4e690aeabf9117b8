// Collectives with gradients: what n ranks compute together is what one rank computes with all ranks' tensors.
#include "parallel/collectives/differentiable.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/parallel/collectives.hpp>
#include <vector>

#include "comm/backends/make_communicator.hpp"
#include "mpi/communicator.hpp"
#include "support/catch.hpp"

using namespace hortator;
using parallel::Axis;
using parallel::ResultUse;

namespace {

at::Tensor noise(std::uint64_t seed, at::IntArrayRef sizes) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn(sizes, generator, at::kDouble);
}

/// A collective over ranks, and the same computation on one rank that has the inputs of all.
struct Case {
  std::string name;
  std::function<at::Tensor(const at::Tensor& mine, comm::Communicator& over)> over_ranks;
  std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& all)> on_one;
};

at::Tensor total(const std::vector<at::Tensor>& all) {
  auto sum = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) sum = sum + all[i];
  return sum;
}

std::vector<at::Tensor> on_each(const at::Tensor& tensor, std::size_t ranks) { return {ranks, tensor}; }

std::vector<Case> cases() {
  return {
      {"all_reduce", [](const auto& mine, auto& over) { return parallel::all_reduce(mine, over, ResultUse::differs); },
       [](const auto& all) { return on_each(total(all), all.size()); }},
      {"all_gather along 1",
       [](const auto& mine, auto& over) { return parallel::all_gather(mine, over, 1, ResultUse::differs); },
       [](const auto& all) { return on_each(at::cat(all, 1), all.size()); }},
      {"reduce_scatter along 0", [](const auto& mine, auto& over) { return parallel::reduce_scatter(mine, over, 0); },
       [](const auto& all) { return total(all).chunk(static_cast<std::int64_t>(all.size()), 0); }},
      {"reduce_scatter along -1", [](const auto& mine, auto& over) { return parallel::reduce_scatter(mine, over, -1); },
       [](const auto& all) { return total(all).chunk(static_cast<std::int64_t>(all.size()), -1); }},
      {"all_to_all from 0 to 1", [](const auto& mine, auto& over) { return parallel::all_to_all(mine, over, 0, 1); },
       [](const auto& all) { return at::cat(all, 1).chunk(static_cast<std::int64_t>(all.size()), 0); }},
      {"all_to_all of rows",
       [](const auto& mine, auto& over) {
         // To itself all rows but one for each other rank.
         const auto ranks = static_cast<std::size_t>(over.size());
         std::vector<std::int64_t> rows(ranks, 1);
         rows[static_cast<std::size_t>(over.rank())] = mine.size(0) - over.size() + 1;
         return parallel::all_to_all(mine, over, rows, rows);
       },
       [](const auto& all) {
         std::vector<at::Tensor> results;
         for (std::size_t rank = 0; rank < all.size(); ++rank) {
           std::vector<at::Tensor> parts;
           for (std::size_t from = 0; from < all.size(); ++from) {
             const auto own = all[from].size(0) - static_cast<std::int64_t>(all.size()) + 1;
             const auto begin = static_cast<std::int64_t>(rank) + (rank > from ? own - 1 : 0);
             parts.push_back(all[from].narrow(0, begin, rank == from ? own : 1));
           }
           results.push_back(at::cat(parts));
         }
         return results;
       }},
      {"broadcast from the last",
       [](const auto& mine, auto& over) {
         return parallel::broadcast(mine, over, over.size() - 1, ResultUse::differs);
       },
       [](const auto& all) { return on_each(all.back(), all.size()); }},
  };
}

/// A loss that is different on each rank, and not linear.
at::Tensor loss_of(const at::Tensor& result, int rank) {
  const auto weights = noise(100 + static_cast<std::uint64_t>(rank), result.sizes());
  return (result.sin() * weights).sum() + result.pow(3).sum();
}

std::vector<at::Tensor> inputs_of_all(int ranks) {
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(noise(static_cast<std::uint64_t>(rank) + 1, {2 * ranks, 3 * ranks}).requires_grad_());
  return all;
}

/// Zeros for inputs that the loss does not depend on.
std::vector<at::Tensor> gradients_of(const at::Tensor& loss, const std::vector<at::Tensor>& inputs) {
  auto gradients = torch::autograd::grad({loss}, inputs, {}, true, true, true);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(inputs[i]);
  }
  return gradients;
}

struct Run {
  comm::Communicator& over() { return *communicator; }
  mpi::Communicator world = mpi::Communicator::world();
  std::unique_ptr<comm::Communicator> communicator = comm::make_communicator(world, at::kCPU, comm::Checks::off);
  int rank = world.rank();
  int ranks = world.size();
};

}  // namespace

TEST_CASE("values, gradients and second derivatives of every collective are those of one rank") {
  Run run;
  for (const auto& one : cases()) {
    INFO(one.name);
    const auto all = inputs_of_all(run.ranks);
    const auto results = one.on_one(all);
    auto loss = loss_of(results[0], 0);
    for (int rank = 1; rank < run.ranks; ++rank) loss = loss + loss_of(results[static_cast<std::size_t>(rank)], rank);
    const auto expected = gradients_of(loss, all);
    auto penalty = expected[0].pow(2).sum();
    for (std::size_t rank = 1; rank < expected.size(); ++rank) penalty = penalty + expected[rank].pow(2).sum();
    const auto expected_second = gradients_of(penalty, all);

    const auto own = static_cast<std::size_t>(run.rank);
    const auto mine = inputs_of_all(run.ranks)[own];
    const auto result = one.over_ranks(mine, run.over());
    CHECK(at::allclose(result, results[own], 1e-12, 1e-12));
    const auto first = torch::autograd::grad({loss_of(result, run.rank)}, {mine}, {}, true, true)[0];
    CHECK(at::allclose(first, expected[own], 1e-10, 1e-10));
    const auto second = torch::autograd::grad({first.pow(2).sum()}, {mine})[0];
    CHECK(at::allclose(second, expected_second[own], 1e-9, 1e-9));
  }
}

TEST_CASE("a layer whose features are divided has the gradients of one rank, with one loss on all ranks") {
  Run run;
  const auto n = run.ranks;
  const auto input = noise(1, {5, 4}).requires_grad_();
  const auto up = noise(2, {3 * n, 4}).requires_grad_();
  const auto down = noise(3, {6 * n, 3 * n}).requires_grad_();
  const auto out = noise(4, {7, 6 * n});
  const auto loss_of_whole = [&](const at::Tensor& hidden) {
    return hidden.matmul(down.t()).matmul(out.t()).sin().sum();
  };
  const auto expected = torch::autograd::grad({loss_of_whole(input.matmul(up.t()).tanh())}, {input, up, down});

  const auto x = input.detach().requires_grad_();
  const auto own_up = up.detach().chunk(n, 0)[static_cast<std::size_t>(run.rank)].clone().requires_grad_();
  const auto own_down = down.detach().chunk(n, 1)[static_cast<std::size_t>(run.rank)].clone().requires_grad_();
  const auto hidden = parallel::enter(x, run.over()).matmul(own_up.t()).tanh();
  const auto y = parallel::all_reduce(hidden.matmul(own_down.t()), run.over(), ResultUse::same);
  // Out of and back into a divided tensor, in both ways.
  const auto part = parallel::own_part(y, run.over(), 1);
  const auto whole = parallel::all_gather(part, run.over(), 1, ResultUse::same);
  const auto loss = whole.matmul(out.t()).sin().sum();
  CHECK(at::allclose(loss, loss_of_whole(input.matmul(up.t()).tanh()), 1e-12, 1e-12));
  const auto own = static_cast<std::size_t>(run.rank);
  const auto gradients = torch::autograd::grad({loss}, {x, own_up, own_down});
  CHECK(at::allclose(gradients[0], expected[0], 1e-10, 1e-10));
  CHECK(at::allclose(gradients[1], expected[1].chunk(n, 0)[own], 1e-10, 1e-10));
  CHECK(at::allclose(gradients[2], expected[2].chunk(n, 1)[own], 1e-10, 1e-10));
}

TEST_CASE("broadcast of a value from which all ranks make one loss: the root has the gradient") {
  Run run;
  const auto mine = noise(static_cast<std::uint64_t>(run.rank), {3}).requires_grad_();
  const int root = run.ranks - 1;
  const auto loss = parallel::broadcast(mine, run.over(), root, ResultUse::same).pow(2).sum();
  const auto first = torch::autograd::grad({loss}, {mine}, {}, true, true)[0];
  CHECK(at::allclose(first, run.rank == root ? mine * 2 : at::zeros_like(mine)));
  const auto second = torch::autograd::grad({first.sum()}, {mine})[0];
  CHECK(second.eq(run.rank == root ? 2 : 0).all().item<bool>());
}

TEST_CASE("sequence parallelism: gathered and reduced along the sequence, with one rank's gradients") {
  Run run;
  const auto n = run.ranks;
  const auto own = static_cast<std::size_t>(run.rank);
  const auto input = noise(1, {2 * n, 4}).requires_grad_();
  const auto up = noise(2, {3 * n, 4}).requires_grad_();
  const auto down = noise(3, {4, 3 * n}).requires_grad_();
  const auto weights = noise(4, {2 * n, 4});
  const auto value = (input.matmul(up.t()).tanh().matmul(down.t()) + input).sin() * weights;
  const auto expected = torch::autograd::grad({value.sum()}, {input, up, down});

  const auto rows = input.detach().chunk(n, 0)[own].clone().requires_grad_();
  const auto own_up = up.detach().chunk(n, 0)[own].clone().requires_grad_();
  const auto own_down = down.detach().chunk(n, 1)[own].clone().requires_grad_();
  const auto gathered = parallel::all_gather(rows, run.over(), 0, ResultUse::differs);
  const auto hidden = gathered.matmul(own_up.t()).tanh().matmul(own_down.t());
  const auto y = parallel::reduce_scatter(hidden, run.over(), 0) + rows;
  const auto loss = (y.sin() * weights.chunk(n, 0)[own]).sum();
  const auto gradients = torch::autograd::grad({loss}, {rows, own_up, own_down});
  CHECK(at::allclose(gradients[0], expected[0].chunk(n, 0)[own], 1e-10, 1e-10));
  CHECK(at::allclose(gradients[1], expected[1].chunk(n, 0)[own], 1e-10, 1e-10));
  CHECK(at::allclose(gradients[2], expected[2].chunk(n, 1)[own], 1e-10, 1e-10));
}

TEST_CASE("a size that the ranks do not divide is refused with the reason") {
  Run run;
  if (run.ranks == 1) return;
  const auto odd = at::ones({run.ranks + 1, 2});
  CHECK_THROWS_WITH(parallel::own_part(odd, run.over(), 0), ContainsSubstring("must be a multiple of"));
  CHECK_THROWS_WITH(parallel::all_to_all(odd, run.over(), 0, 1), ContainsSubstring("must be a multiple of"));
}

TEST_CASE("without an Accelerator the public functions say what is missing") {
  CHECK_THROWS_WITH(parallel::all_reduce(at::ones({1}), Axis::tensor), ContainsSubstring("without an Accelerator"));
  CHECK_THROWS_WITH(parallel::ranks_along(Axis::tensor), ContainsSubstring("construct the Accelerator first"));
}

TEST_CASE("the public functions work over the axes of the Accelerator's mesh") {
  const Accelerator accelerator;
  const int ranks = accelerator.num_processes();
  CHECK(parallel::ranks_along(Axis::replicate) == ranks);
  CHECK(parallel::ranks_along(Axis::tensor) == 1);
  CHECK(parallel::index_along(Axis::replicate) == accelerator.process_index());
  const auto one = at::ones({2});
  CHECK(parallel::all_reduce(one, Axis::replicate).eq(ranks).all().item<bool>());
  CHECK(parallel::all_reduce(one, Axis::tensor).eq(1).all().item<bool>());
  CHECK(parallel::all_gather(one, Axis::replicate).size(0) == 2 * ranks);
}
