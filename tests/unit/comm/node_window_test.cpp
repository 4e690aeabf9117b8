// What only the node back end promises: work in place on window memory, many collectives under way, no bytes moved.
#include <fstream>
#include <hortator/error.hpp>
#include <string>

#include "comm/shm/communicator.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::NodeCommunicator;
using comm::ReduceOp;

namespace {

at::Tensor values(int rank, std::int64_t elements, at::ScalarType type) {
  return at::arange(elements, at::kFloat).mul(0.37).sin().mul(rank + 1).to(type);
}

// What this process has ever touched of the memory by which ranks pass each other what lies outside the window.
long touched_staging_kb() {
  std::ifstream maps("/proc/self/smaps");
  long kb = -1;
  bool is_it = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) is_it = line.find("-staging") != std::string::npos;
    if (is_it && line.starts_with("Rss:")) kb = std::max(kb, 0L) + std::stol(line.substr(4));
  }
  return kb;
}

}  // namespace

TEST_CASE("tensors in the window and elsewhere are reduced bitwise as one rank would in rank order") {
  NodeCommunicator communicator(mpi::Communicator::world());
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const std::int64_t elements : {1, 1000, 5000, 1 << 20}) {
      auto tensor = communicator.allocate(elements, type);
      CHECK(tensor.eq(0).all().item<bool>());
      tensor.copy_(values(communicator.rank(), elements, type));
      communicator.all_reduce(tensor, ReduceOp::mean).wait();
      const auto wide = type == at::kDouble ? at::kDouble : at::kFloat;
      auto sum = values(0, elements, type).to(wide);
      for (int rank = 1; rank < communicator.size(); ++rank) sum = sum + values(rank, elements, type).to(wide);
      const auto expected = (sum / communicator.size()).to(type);
      CHECK(at::equal(tensor, expected));
      auto elsewhere = values(communicator.rank(), elements, type);  // staged
      communicator.all_reduce(elsewhere, ReduceOp::mean).wait();
      CHECK(at::equal(elsewhere, expected));
    }
  }
}

TEST_CASE("tensors in the window are reduced without the staging memory") {
  NodeCommunicator communicator(mpi::Communicator::world());
  const int n = communicator.size();
  if (n == 1) return;
  const auto before = touched_staging_kb();
  REQUIRE(before >= 0);
  auto window = communicator.allocate(n * 100000, at::kFloat);
  auto part = communicator.allocate(100000, at::kFloat);
  communicator.all_reduce(window, ReduceOp::sum).wait();
  communicator.reduce_scatter(part, window, ReduceOp::sum).wait();
  communicator.all_gather(window, part).wait();
  communicator.broadcast(window, 0).wait();
  CHECK(touched_staging_kb() == before);
  communicator.all_reduce(at::ones({100000}), ReduceOp::sum).wait();
  CHECK(touched_staging_kb() > before);
}

TEST_CASE("ranks with tensors at different positions get the same result") {
  NodeCommunicator communicator(mpi::Communicator::world());
  auto window = communicator.allocate(100000, at::kFloat);
  auto own = at::empty({50000});
  // Another place in the window, or none at all.
  auto tensor = communicator.rank() == 0 ? own : window.narrow(0, 100 * communicator.rank(), 50000);
  tensor.fill_(communicator.rank() + 1);
  communicator.all_reduce(tensor, ReduceOp::sum).wait();
  const int n = communicator.size();
  CHECK(tensor.eq(n * (n + 1) / 2).all().item<bool>());
}

TEST_CASE("many collectives run at once and can be waited for in any order") {
  NodeCommunicator communicator(mpi::Communicator::world());
  std::vector<at::Tensor> tensors;
  std::vector<comm::Work> works;
  for (int i = 0; i < 150; ++i) {  // more than the board has places
    tensors.push_back(i % 3 == 0 ? at::full({1000}, i) : communicator.allocate(1000, at::kFloat).fill_(i));
    works.push_back(communicator.all_reduce(tensors.back(), ReduceOp::sum));
  }
  while (!works.empty()) {
    works.back().wait();
    works.pop_back();
  }
  for (int i = 0; i < 150; ++i) {
    CHECK(tensors[static_cast<std::size_t>(i)].eq(i * communicator.size()).all().item<bool>());
  }
}

TEST_CASE("an all_gather into common memory fills one array for the node and moves no data that is there") {
  NodeCommunicator communicator(mpi::Communicator::world());
  const int n = communicator.size();
  auto common = communicator.allocate_common(1000 * n, at::kFloat);
  auto part = common.narrow(0, 1000 * communicator.rank(), 1000);
  part.fill_(communicator.rank() + 1);
  communicator.all_gather(common, part).wait();
  for (int rank = 0; rank < n; ++rank) CHECK(common.narrow(0, 1000 * rank, 1000).eq(rank + 1).all().item<bool>());
  communicator.barrier();
  // What one rank writes all see: it is one array.
  if (communicator.rank() == n - 1) common.fill_(42);
  communicator.barrier();
  CHECK(common.eq(42).all().item<bool>());
}

TEST_CASE("reduce_scatter and broadcast work from window memory") {
  NodeCommunicator communicator(mpi::Communicator::world());
  const int n = communicator.size();
  auto input = communicator.allocate(3000 * n, at::kFloat);
  input.copy_(at::arange(3000 * n, at::kFloat));
  auto output = at::empty({3000});
  communicator.reduce_scatter(output, input, ReduceOp::sum).wait();
  CHECK(at::equal(output, at::arange(3000 * n, at::kFloat).narrow(0, 3000 * communicator.rank(), 3000) * n));

  for (int root = 0; root < n; ++root) {
    input.fill_(communicator.rank());
    communicator.broadcast(input, root).wait();
    CHECK(input.eq(root).all().item<bool>());
    communicator.barrier();
  }
}

TEST_CASE("window memory may be freed in any order, and tensors outlive the communicator") {
  at::Tensor survivor;
  {
    NodeCommunicator communicator(mpi::Communicator::world());
    auto first = communicator.allocate(1000, at::kFloat).fill_(1);
    auto second = communicator.allocate(1000, at::kFloat).fill_(1);
    if (communicator.rank() == 0) first.reset();
    communicator.all_reduce(second, ReduceOp::sum).wait();
    CHECK(second.eq(communicator.size()).all().item<bool>());
    survivor = second;
  }
  CHECK(survivor.sum().item<float>() == 1000.0F * static_cast<float>(mpi::Communicator::world().size()));
}
