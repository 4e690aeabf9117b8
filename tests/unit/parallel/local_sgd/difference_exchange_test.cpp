#include "parallel/local_sgd/difference_exchange.hpp"

#include <ATen/ATen.h>

#include "comm/mpi/mpi_communicator.hpp"
#include "mpi/collectives.hpp"
#include "parallel/local_sgd/sparse_codes.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

at::Tensor random(std::uint64_t seed, std::int64_t size) {
  return at::randn({size}, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

/// Ranks of nodes with `per_node` ranks each.
struct Ranks {
  explicit Ranks(int per_node) : node(world.split(world.rank() / per_node, world.rank())) {}
  at::Tensor sum(const at::Tensor& mine) {
    auto all = mine.clone();
    on_device.all_reduce(all, comm::ReduceOp::sum).wait();
    return all;
  }
  mpi::Communicator world = mpi::Communicator::world();
  mpi::Communicator node;
  comm::MpiCommunicator on_device{mpi::Communicator::world()};
};

}  // namespace

TEST_CASE("the largest numbers of a chunk come back at their places, with their signs and about their sizes") {
  auto values = random(1, 3 * parallel::sparse_chunk) * 0.01;
  values[5] = 8.0;
  values[4095] = -10.0;
  values[4096] = -3.0;
  values.narrow(0, 2 * parallel::sparse_chunk, parallel::sparse_chunk).zero_();
  const auto codes = parallel::pack_sparse(values);
  CHECK(codes.entries.nbytes() + codes.levels.nbytes() < values.nbytes() / 100);
  const auto found = at::zeros_like(values);
  parallel::add_sparse(codes, found);
  CHECK(found[5].item<float>() == 9.0F);  // the mean of the larger numbers of its chunk
  CHECK(found[4095].item<float>() == -9.0F);
  CHECK(found[4096].item<float>() == -3.0F);
  CHECK((found != 0).sum().item<std::int64_t>() == 2 * parallel::sparse_kept);
  const auto sent = found != 0;
  CHECK((found.sign() == values.sign()).masked_select(sent).all().item<bool>());
  for (const auto chunk : {0, 1}) {
    const auto of = [&](const at::Tensor& all) {
      return all.narrow(0, chunk * parallel::sparse_chunk, parallel::sparse_chunk);
    };
    const auto smallest_sent = of(values).abs().masked_select(of(sent)).min().item<float>();
    CHECK(of(values).abs().masked_select(of(sent).logical_not()).max().item<float>() <= smallest_sent);
  }
}

TEST_CASE("whole differences are the mean, those in 8 bits are near to it, on any number of nodes") {
  for (const int per_node : {1, 2}) {
    Ranks ranks(per_node);
    const auto mine = random(10 + static_cast<std::uint64_t>(ranks.world.rank()), 5000 * 4096 / 4096);
    const auto mean = ranks.sum(mine) / ranks.world.size();
    for (const auto wire : {OuterWire::whole, OuterWire::int8}) {
      parallel::DifferenceExchange exchange(ranks.on_device, ranks.node, wire);
      auto row = at::zeros({exchange.padded(mine.numel())});
      CHECK(row.numel() == 8192);
      row.narrow(0, 0, mine.numel()).copy_(mine);
      at::Tensor unsent;
      exchange.average(row, unsent, 1);
      CHECK(at::allclose(row.narrow(0, 0, mine.numel()), mean, 0, wire == OuterWire::whole ? 1e-6 : 0.05));
      CHECK(row.narrow(0, mine.numel(), row.numel() - mine.numel()).eq(0).all().item<bool>());
      auto of_first = row.clone();
      ranks.on_device.broadcast(of_first, 0).wait();
      CHECK(at::equal(row, of_first));
    }
  }
}

TEST_CASE("what sparse differences do not send stays on the nodes, and arrives later") {
  for (const int per_node : {1, 2}) {
    Ranks ranks(per_node);
    parallel::DifferenceExchange exchange(ranks.on_device, ranks.node, OuterWire::sparse);
    const auto size = 5 * parallel::sparse_chunk;
    at::Tensor unsent;
    auto means = at::zeros({size}), results = at::zeros({size});
    for (std::uint64_t step = 0; step < 6; ++step) {
      auto row = random(100 * step + static_cast<std::uint64_t>(ranks.world.rank()), size);
      means += ranks.sum(row) / ranks.world.size();
      exchange.average(row, unsent, 1);
      auto of_first = row.clone();
      ranks.on_device.broadcast(of_first, 0).wait();
      CHECK(at::equal(row, of_first));
      results += row;
    }
    CHECK(unsent.defined() == (ranks.node.rank() == 0));
    const auto left = ranks.sum(unsent.defined() ? unsent : at::zeros({size}));
    CHECK(left.norm().item<double>() > 1);
    CHECK(at::allclose(results + left, means, 1e-4, 1e-5));
    for (int step = 0; step < 400 / ranks.world.size(); ++step) {
      auto row = at::zeros({size});
      exchange.average(row, unsent, 1);
      results += row;
    }
    CHECK((results - means).norm().item<double>() < 0.3 * left.norm().item<double>());
  }
}
