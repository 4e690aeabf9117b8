#include "comm/decorators/watched_communicator.hpp"

#include <ATen/record_function.h>

#include <algorithm>

#include "comm/backends/make_communicator.hpp"
#include "comm/self/self_communicator.hpp"
#include "support/catch.hpp"

using namespace hortator;
using activity::Operation;
using comm::ReduceOp;
using comm::Work;

namespace {

std::vector<Operation> operations_now() {
  std::vector<Operation> all;
  for (const auto& thread : activity::view().threads) {
    if (thread.inside) all.push_back(thread.operation);
  }
  return all;
}

/// A back end that starts and waits at different times, and keeps what was seen meanwhile.
class Slow final : public comm::Communicator {
 public:
  explicit Slow(std::vector<Operation>& seen) : seen_(seen) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string_view name() const override { return "slow"; }
  comm::Traits traits() const override { return {.device = at::kCPU}; }
  Work all_reduce(at::Tensor, ReduceOp) override { return work(); }
  Work reduce_scatter(at::Tensor, const at::Tensor&, ReduceOp) override { return work(); }
  Work all_gather(at::Tensor, const at::Tensor&) override { return work(); }
  Work broadcast(at::Tensor, int) override { return work(); }
  Work exchange(std::vector<comm::PeerTensor>, std::vector<comm::PeerTensor>) override { return work(); }
  void barrier() override { see(); }
  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override { return at::empty({elements}, type); }
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override { return allocate(elements, type); }
  std::unique_ptr<Communicator> split(int, int) const override { return std::make_unique<Slow>(seen_); }

 private:
  void see() const {
    const auto now = operations_now();
    seen_.insert(seen_.end(), now.begin(), now.end());
  }
  Work work() const {
    see();
    return Work([this] { see(); });
  }

  std::vector<Operation>& seen_;
};

}  // namespace

TEST_CASE("the watchdog sees a tensor collective while it starts and while it is waited for, not in between") {
  std::vector<Operation> seen;
  comm::WatchedCommunicator watched(std::make_unique<Slow>(seen), activity::Membership(77, 76, 2));
  auto work = watched.all_reduce(at::ones({8}), ReduceOp::sum);
  CHECK(operations_now().empty());
  work.wait();
  CHECK(operations_now().empty());
  REQUIRE(seen.size() == 2);
  for (const auto& operation : seen) {
    CHECK(operation.name.text() == "all_reduce");
    CHECK(operation.bytes == 32);
    CHECK(operation.communicator == 77);
    CHECK(operation.sequence == 1);
    CHECK(operation.size == 2);
  }
}

TEST_CASE("Works that are waited for in another order keep their sequence numbers") {
  std::vector<Operation> seen;
  comm::WatchedCommunicator watched(std::make_unique<Slow>(seen), activity::Membership(78, 76, 2));
  auto first = watched.all_reduce(at::ones({8}), ReduceOp::sum);
  auto second = watched.broadcast(at::ones({4}), 0);
  seen.clear();
  auto moved = std::move(second);
  moved.wait();
  first.wait();
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].sequence == 2);
  CHECK(seen[0].name.text() == "broadcast");
  CHECK(seen[1].sequence == 1);
  { const auto dropped = watched.all_gather(at::ones({8}), at::ones({4})); }
  CHECK(seen.back().name.text() == "all_gather");
  CHECK(seen.size() == 4);
}

TEST_CASE("every verb is counted, and split communicators count separately") {
  std::vector<Operation> seen;
  comm::WatchedCommunicator watched(std::make_unique<Slow>(seen), activity::Membership(79, 76, 2));
  watched.reduce_scatter(at::ones({4}), at::ones({8}), ReduceOp::sum).wait();
  watched.barrier();
  CHECK(seen.back().name.text() == "barrier");
  CHECK(seen.back().sequence == 2);
  const auto part = watched.split(1, 0);
  part->barrier();
  CHECK(seen.back().sequence == 1);
  CHECK(seen.back().communicator != 79);
  CHECK(seen.back().family == 76);
}

TEST_CASE("profilers see a range for the start of a collective and for the wait") {
  static std::vector<std::string> ranges;
  ranges.clear();
  std::vector<Operation> seen;
  comm::WatchedCommunicator watched(std::make_unique<Slow>(seen), activity::Membership(80, 76, 2));
  watched.all_reduce(at::ones({8}), ReduceOp::sum).wait();
  CHECK(ranges.empty());
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& range) -> std::unique_ptr<at::ObserverContext> {
        if (std::string(range.name()).starts_with("hortator::")) ranges.emplace_back(range.name());
        return nullptr;
      }));
  auto work = watched.all_reduce(at::ones({1 << 20}), ReduceOp::sum);
  work.wait();
  watched.barrier();
  at::removeCallback(handle);
  CHECK(ranges == std::vector<std::string>{"hortator::all_reduce (slow, 4.0 MiB)",
                                           "hortator::all_reduce wait (slow, 4.0 MiB)",
                                           "hortator::barrier (slow, 0 B)"});
}

TEST_CASE("make_communicator gives a communicator of the world's family, with the same number on all ranks") {
  const auto world = mpi::Communicator::world();
  const auto made = comm::make_communicator(world, at::kCPU, comm::Checks::off);
  if (world.size() == 1) return;
  made->barrier();
  const auto standings = activity::view().progress;
  const auto ours = std::ranges::count_if(
      standings, [&](const auto& standing) { return standing.family == world.membership().family(); });
  CHECK(ours >= 2);  // the world, what watches, and what the back end made for itself
}
