// From the current stream to NCCL's and back: who waits for whom, and that no thread does.
#include <ATen/record_function.h>

#include <algorithm>

#include "backends.hpp"

using namespace hortator;
using Trace = std::vector<std::string>;

namespace {

const std::string follow = "nccl's stream follows the current one";
const std::string mark = "mark";
const std::string hold = "the current stream waits for the mark";

}  // namespace

TEST_CASE("an operation runs after earlier work of the current stream, which waits for it in wait() only") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  const int n = communicator->size();
  struct Case {
    std::string verb;
    std::function<comm::Work()> call;
  };
  auto whole = at::ones({2 * n});
  auto part = at::ones({2});
  const std::vector<Case> cases = {
      {"ncclAllReduce", [&] { return communicator->all_reduce(part, comm::ReduceOp::sum); }},
      {"ncclReduceScatter", [&] { return communicator->reduce_scatter(part, whole, comm::ReduceOp::sum); }},
      {"ncclAllGather", [&] { return communicator->all_gather(whole, part); }},
      {"ncclBroadcast", [&] { return communicator->broadcast(part, 0); }},
  };
  for (const auto& [verb, call] : cases) {
    test::clear_trace();
    auto work = call();
    CHECK(test::trace() == Trace{follow, verb, mark});
    work.wait();
    CHECK(test::trace() == Trace{follow, verb, mark, hold});
    work.wait();
    CHECK(test::trace().size() == 4);
  }
}

TEST_CASE("a device that hangs blocks only those who wait for it") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl(std::chrono::milliseconds(300));
  test::host_device().is_stuck = true;
  auto tensor = at::full({2}, 0.5);
  communicator->all_reduce(tensor, comm::ReduceOp::mean).wait();
  CHECK(tensor[0].item<double>() == 0.5);
  test::host_device().is_stuck = false;
  communicator->barrier();
}

namespace {

/// Writes the operators that this thread calls into the trace while it lives.
class TracedOperators {
 public:
  TracedOperators() {
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& call) -> std::unique_ptr<at::ObserverContext> {
          test::add_to_trace(call.name());
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
  }
  ~TracedOperators() { at::removeCallback(handle_); }
  TracedOperators(const TracedOperators&) = delete;
  TracedOperators& operator=(const TracedOperators&) = delete;

 private:
  at::CallbackHandle handle_ = 0;
};

}  // namespace

TEST_CASE("tensors are packed and unpacked on the current stream, where the pager expects operators") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  auto wide = at::ones({4, 4}).narrow(1, 0, 2);
  const TracedOperators operators;
  test::clear_trace();
  auto work = communicator->all_reduce(wide, comm::ReduceOp::sum);
  const auto before = test::trace();
  CHECK(std::ranges::count(before, "aten::copy_") == 1);
  CHECK(Trace(before.end() - 3, before.end()) == Trace{follow, "ncclAllReduce", mark});
  test::clear_trace();
  work.wait();
  CHECK(test::trace().front() == hold);
  CHECK(wide[3][1].item<int>() == communicator->size());
}

TEST_CASE("a tensor lives until its operation is waited for") {
  const test::CleanMock mock;
  const auto communicator = test::make_nccl();
  auto tensor = at::ones({2});
  auto work = communicator->all_reduce(tensor, comm::ReduceOp::sum);
  CHECK(tensor.use_count() == 2);
  work.wait();
  CHECK(tensor.use_count() == 1);
}
