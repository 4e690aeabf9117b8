// All ranks of this test are nodes of their own, or two of them are one (traffic.hpp).
#include "comm/shm/peer_groups.hpp"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <hortator/error.hpp>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi/mpi_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "integration/scale/traffic.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::ReduceOp;

namespace {

// Not a multiple of the ranks, the blocks, or a line of the cache; more blocks than are on their way at once.
constexpr std::int64_t many = 3'000'001;
constexpr std::int64_t some = 40'007;  // one block, and more than MPI's own way is used for
constexpr std::int64_t few = 5;

at::Tensor sample(int rank, std::int64_t elements) {
  return at::arange(elements).remainder(1001).add(rank + 1).to(at::kFloat);
}

at::Tensor expected(int ranks, std::int64_t elements, ReduceOp op) {
  auto result = sample(0, elements);
  for (int rank = 1; rank < ranks; ++rank) {
    op == ReduceOp::max ? result = at::maximum(result, sample(rank, elements)) : result += sample(rank, elements);
  }
  if (op == ReduceOp::mean) result /= ranks;
  return result;
}

// True once `is_there` returns true, without a wait for the operation; false if that takes too long.
bool comes_by_itself(comm::Communicator& communicator, const std::function<bool()>& is_there) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!is_there()) {
    if (std::chrono::steady_clock::now() > end) return false;
    communicator.advance();
  }
  return true;
}

// Sums of these depend on the order.
at::Tensor noise(int rank, std::int64_t elements, at::ScalarType type = at::kFloat) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank) + 1);
  return at::randn({elements}, generator, at::kFloat).to(type);
}

}  // namespace

TEST_CASE("between nodes tensors of every length are reduced, in the window and elsewhere") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    for (const auto elements : {many, some, few}) {
      for (const auto op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max}) {
        INFO(ranks_a_node << " ranks a node, " << elements << " elements, " << comm::name(op));
        const auto window = communicator.allocate(elements, at::kFloat);
        window.copy_(sample(communicator.rank(), elements));
        communicator.all_reduce(window, op).wait();
        CHECK(at::equal(window, expected(communicator.size(), elements, op)));
        const auto elsewhere = sample(communicator.rank(), elements);
        communicator.all_reduce(elsewhere, op).wait();
        CHECK(at::equal(elsewhere, window));
      }
    }
  }
}

TEST_CASE("between nodes an exchange is agreed on by messages that do not grow with the ranks") {
  const auto check_cost = [](comm::Communicator& communicator, std::int64_t calls, std::int64_t bytes) {
    communicator.exchange({}, {}).wait();
    const auto before = scale::traffic();
    communicator.exchange({}, {}).wait();
    const auto after = scale::traffic();
    CHECK(after.calls - before.calls == calls);
    CHECK(after.bytes - before.bytes == bytes);
  };
  scale::pretend_nodes_of(1);
  comm::MpiCommunicator by_mpi(mpi::Communicator::world());
  check_cost(by_mpi, 1, 32);  // 16 bytes into the reduction, and 16 out of it
  comm::NodeCommunicator by_node(mpi::Communicator::world());
  check_cost(by_node, 2, 32 + 64);  // the agreement on the verb
}

TEST_CASE("between nodes large tensors of 16-bit floats and of whole numbers are reduced, also where sums are large") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    const int n = communicator.size();
    for (const auto type : {at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kDouble}) {
      INFO(ranks_a_node << " ranks a node, " << type);
      const auto window = communicator.allocate(many, type);
      const auto ranks_own = at::arange(many).remainder(5).add(communicator.rank()).to(type);
      window.copy_(ranks_own);
      communicator.all_reduce(window, ReduceOp::sum).wait();
      CHECK(at::equal(window, at::arange(many).remainder(5).mul(n).add(n * (n - 1) / 2).to(type)));
      if (!at::isFloatingType(type)) continue;
      const double large = type == at::kHalf ? 60000 : 1e30;  // two of them are infinity in fp16
      window.fill_(large);
      communicator.all_reduce(window, ReduceOp::mean).wait();
      CHECK(at::allclose(window.to(at::kDouble), at::full({many}, large, at::kDouble), 2e-2));
    }
  }
}

TEST_CASE("between nodes work in the window progresses in calls other than Work::wait, in order") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    const int n = communicator.size();
    if (n <= ranks_a_node) continue;
    std::vector<at::Tensor> windows;
    std::vector<at::Tensor> means;  // made once: between two looks nothing moves
    std::vector<comm::Work> works;
    for (const auto elements : {few, many, some, many, few}) {
      means.push_back(expected(n, elements, ReduceOp::mean));
      windows.push_back(communicator.allocate(elements, at::kFloat).copy_(sample(communicator.rank(), elements)));
      works.push_back(communicator.all_reduce(windows.back(), ReduceOp::mean));
    }
    INFO(ranks_a_node << " ranks a node");
    // the last of them may lie in another rank's share alone: it does not say that this one's are done
    CHECK(comes_by_itself(communicator, [&] {
      return std::equal(windows.begin(), windows.end(), means.begin(),
                        [](const at::Tensor& window, const at::Tensor& mean) { return at::equal(window, mean); });
    }));
    for (auto& work : works) work.wait();
  }
}

TEST_CASE("between nodes reduce_scatter and all_gather progress in the background") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    const int n = communicator.size();
    const bool has_even_nodes = n % ranks_a_node == 0;
    if (n <= ranks_a_node || !has_even_nodes) continue;
    for (const auto elements : {few, many / n}) {
      INFO(ranks_a_node << " ranks a node, " << elements << " elements");
      const auto input =
          communicator.allocate(elements * n, at::kFloat).copy_(sample(communicator.rank(), elements * n));
      const auto part = at::zeros({elements});
      const auto all = expected(n, elements * n, ReduceOp::mean);
      auto scatter = communicator.reduce_scatter(part, input, ReduceOp::mean);
      const auto own = all.narrow(0, communicator.rank() * elements, elements);
      CHECK(comes_by_itself(communicator, [&] { return at::equal(part, own); }));
      scatter.wait();
      CHECK(at::equal(input, sample(communicator.rank(), elements * n)));

      const auto common = communicator.allocate_common(elements * n, at::kFloat);
      const auto window = communicator.allocate(elements * n, at::kFloat);
      const auto mine = common.narrow(0, communicator.rank() * elements, elements).copy_(part);
      auto to_common = communicator.all_gather(common, mine);
      auto to_window = communicator.all_gather(window, mine);
      CHECK(comes_by_itself(communicator, [&] { return at::equal(window, all) && at::equal(common, all); }));
      to_common.wait();
      to_window.wait();
    }
  }
}

TEST_CASE("between nodes a reduce_scatter gives the bits of the all_reduce, wherever the tensors are") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    const int n = communicator.size();
    if (n % ranks_a_node != 0) continue;
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto elements = some * n;
      const auto window = communicator.allocate(elements, type).copy_(noise(communicator.rank(), elements, type));
      const auto part = at::empty({some}, type);
      communicator.reduce_scatter(part, window, ReduceOp::mean).wait();
      communicator.all_reduce(window, ReduceOp::mean).wait();
      INFO(ranks_a_node << " ranks a node, " << type);
      CHECK(at::equal(part, window.narrow(0, some * communicator.rank(), some)));
    }
  }
}

TEST_CASE("between nodes an error belongs to its collective and affects none before or after it") {
  for (const int ranks_a_node : {1, 2}) {
    scale::pretend_nodes_of(ranks_a_node);
    comm::NodeCommunicator communicator(mpi::Communicator::world());
    const int n = communicator.size();
    if (n == 1) return;
    const bool is_odd = communicator.rank() == n - 1;
    const auto make = [&] { return communicator.allocate(many, at::kFloat).copy_(sample(communicator.rank(), many)); };
    const auto first = make();
    const auto wrong = communicator.allocate(many, at::kFloat);
    const auto later = make();
    auto one = communicator.all_reduce(first, ReduceOp::sum);
    auto two = communicator.all_reduce(wrong.narrow(0, 0, is_odd ? some : many), ReduceOp::sum);
    auto three = communicator.all_reduce(later, ReduceOp::sum);
    one.wait();
    INFO(ranks_a_node << " ranks a node");
    CHECK(at::equal(first, expected(n, many, ReduceOp::sum)));
    three.wait();
    CHECK(at::equal(later, expected(n, many, ReduceOp::sum)));
    CHECK_THROWS_WITH(two.wait(), ContainsSubstring("rank " + std::to_string(n - 1)) &&
                                      ContainsSubstring("all_reduce (sum) of Float [" + std::to_string(some) + "]"));
  }
}

// For real hosts: tests/tools/two-hosts.sh -b 1gbit build/release/tests/test_comm_lanes '[.two_hosts]'. Backward is
// time in which this rank computes, and calls now and then.
TEST_CASE("between hosts buckets travel during backward", "[.two_hosts]") {
  using std::chrono::steady_clock;
  scale::pretend_nodes_of(0);
  constexpr int buckets = 8;
  constexpr int gradients_a_bucket = 10;
  comm::NodeCommunicator communicator(mpi::Communicator::world());
  std::vector<at::Tensor> memory;
  for (int i = 0; i < buckets; ++i) memory.push_back(communicator.allocate(std::int64_t{2} << 20, at::kFloat));
  const auto seconds = [&](bool starts_at_once) {
    std::vector<comm::Work> works;
    communicator.barrier();
    const auto begin = steady_clock::now();
    for (int i = 0; i < buckets; ++i) {
      for (int gradient = 0; gradient < gradients_a_bucket; ++gradient) {
        std::this_thread::sleep_for(std::chrono::milliseconds(6));
        communicator.advance();
      }
      if (starts_at_once) works.push_back(communicator.all_reduce(memory[static_cast<std::size_t>(i)], ReduceOp::mean));
    }
    const auto computed = steady_clock::now();
    if (!starts_at_once)
      for (const auto& bucket : memory) works.push_back(communicator.all_reduce(bucket, ReduceOp::mean));
    for (auto& work : works) work.wait();
    const auto end = steady_clock::now();
    if (communicator.rank() == 0)
      std::cout << (starts_at_once ? "during backward: " : "after backward:  ")
                << std::chrono::duration<double>(end - begin).count() << " s, waited "
                << std::chrono::duration<double>(end - computed).count() << " s\n";
    return std::chrono::duration<double>(end - begin).count();
  };
  double during = 0;
  double after = 0;
  for (int pair = 0; pair < 7; ++pair) {
    after += seconds(false);
    during += seconds(true);
  }
  CHECK(during < after);
}
