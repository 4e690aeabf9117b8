// Whatever one rank of a node does wrong, all of them throw, and the next collective works.
#include <hortator/error.hpp>

#include "comm/decorators/staged_communicator.hpp"
#include "comm/shm/communicator.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::NodeCommunicator;
using comm::ReduceOp;

namespace {

template <typename Call>
std::string rank_and_error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return text::concat(error.rank().value_or(-1), " ", error.what());
  }
  return "nothing was thrown";
}

void check_next_works(comm::Communicator& communicator) {
  auto tensor = at::ones({10});
  communicator.all_reduce(tensor, ReduceOp::sum).wait();
  CHECK(tensor[9].item<float>() == static_cast<float>(communicator.size()));
}

}  // namespace

TEST_CASE("ranks that differ in operation or size all throw, and both sides are named") {
  NodeCommunicator communicator(mpi::Communicator::world());
  if (communicator.size() == 1) return;
  const bool last = communicator.rank() == communicator.size() - 1;
  const auto culprit = std::to_string(communicator.size() - 1);

  auto text = rank_and_error_of([&] { communicator.all_reduce(at::ones({last ? 11 : 10}), ReduceOp::sum).wait(); });
  CHECK_THAT(text,
             StartsWith(culprit + " ") && ContainsSubstring("rank " + culprit + ": all_reduce (sum) of Float [11]"));
  check_next_works(communicator);

  text = rank_and_error_of([&] {
    if (last) return communicator.barrier();
    communicator.all_reduce(at::ones({10}), ReduceOp::max).wait();
  });
  CHECK_THAT(text,
             ContainsSubstring("all_reduce (max) of Float [10]") && ContainsSubstring("rank " + culprit + ": barrier"));
  check_next_works(communicator);
}

TEST_CASE("a tensor that one rank cannot send makes all ranks throw that rank's reason") {
  NodeCommunicator communicator(mpi::Communicator::world());
  const bool last = communicator.rank() == communicator.size() - 1;
  const auto culprit = std::to_string(communicator.size() - 1);
  const auto check = [&](const at::Tensor& bad, const std::string& reason) {
    const auto text = rank_and_error_of([&] { communicator.broadcast(last ? bad : at::ones({3}), 0).wait(); });
    CHECK_THAT(text, StartsWith(culprit + " broadcast ") && ContainsSubstring(reason));
    check_next_works(communicator);
  };
  check(at::Tensor(), "broadcast got an undefined tensor");
  check(at::empty({3}, at::kMeta), "a tensor on meta");
  check(at::ones({3}).to_sparse(), "a tensor of layout Sparse");
  check(at::ones({3}).requires_grad_(), "requires a gradient");
}

TEST_CASE("a tensor that one rank cannot stage makes all ranks throw that rank's reason, whatever the verb") {
  comm::StagedCommunicator communicator(std::make_unique<NodeCommunicator>(mpi::Communicator::world()), at::kCPU);
  const int n = communicator.size();
  const bool last = communicator.rank() == n - 1;
  const auto culprit = std::to_string(n - 1);
  const auto check = [&](const auto& call, const std::string& reason) {
    CHECK_THAT(rank_and_error_of([&] { call().wait(); }), StartsWith(culprit + " ") && ContainsSubstring(reason));
    check_next_works(communicator);
  };
  const auto recorded = at::ones({3}).requires_grad_();
  const auto wrong = [&](const at::Tensor& bad) { return last ? bad : at::ones({3}); };
  check([&] { return communicator.all_reduce(wrong(at::Tensor()), ReduceOp::sum); }, "an undefined tensor");
  check([&] { return communicator.all_reduce(wrong(recorded), ReduceOp::sum); }, "requires a gradient");
  check([&] { return communicator.broadcast(wrong(at::ones({3}).to_sparse()), 0); }, "a tensor of layout Sparse");
  check([&] { return communicator.broadcast_all({at::ones({3}), wrong(recorded)}, 0); }, "requires a gradient");
  check([&] { return communicator.broadcast(at::ones({3}), last ? n : 0); },
        "Broadcast from rank " + std::to_string(n));
  check([&] { return communicator.all_gather(at::ones({last ? 1 : 3 * n}), at::ones({3})); }, "a whole of Float [1]");
  check([&] { return communicator.reduce_scatter(wrong(recorded), at::ones({3 * n}), ReduceOp::sum); },
        "requires a gradient");
}

TEST_CASE("types that cannot be reduced are refused, and the next collective works") {
  NodeCommunicator communicator(mpi::Communicator::world());
  const auto text =
      rank_and_error_of([&] { communicator.all_reduce(at::empty({2}, at::kFloat8_e4m3fn), ReduceOp::sum).wait(); });
  CHECK_THAT(text, ContainsSubstring("there is no arithmetic for it"));
  check_next_works(communicator);
}

TEST_CASE("an error belongs to its collective: a later one that is waited for first gives its result") {
  NodeCommunicator communicator(mpi::Communicator::world());
  if (communicator.size() == 1) return;
  auto good = at::ones({4});
  auto bad = communicator.all_reduce(at::ones({communicator.rank() == 0 ? 2 : 3}), ReduceOp::sum);
  auto later = communicator.all_reduce(good, ReduceOp::sum);
  later.wait();
  CHECK(good.eq(communicator.size()).all().item<bool>());
  CHECK_THROWS_WITH(bad.wait(), ContainsSubstring("different shapes"));
}

TEST_CASE("the error of a collective does not affect the result of a later one") {
  NodeCommunicator communicator(mpi::Communicator::world());
  if (communicator.size() == 1) return;
  auto good = communicator.allocate(100, at::kFloat).fill_(1);
  auto bad = communicator.all_reduce(at::ones({communicator.rank() == 0 ? 2 : 3}), ReduceOp::sum);
  auto later = communicator.all_reduce(good, ReduceOp::sum);
  CHECK_THROWS_WITH(bad.wait(), ContainsSubstring("different shapes"));
  later.wait();
  CHECK(good.eq(communicator.size()).all().item<bool>());
}

TEST_CASE("a rank that leaves by an exception does not keep the others waiting") {
  if (mpi::Communicator::world().size() == 1) return;
  const bool leaves = mpi::Communicator::world().rank() == 0;
  const auto text = rank_and_error_of([&] {
    NodeCommunicator communicator(mpi::Communicator::world());
    if (leaves) throw Error({.what = "out of memory"});
    communicator.barrier();
  });
  CHECK_THAT(text, ContainsSubstring(leaves ? "out of memory" : "Rank 0 has left a collective"));
}

TEST_CASE("a rank that abandons its communicator releases those that wait for it and can call nothing more") {
  const auto world = mpi::Communicator::world();
  NodeCommunicator communicator(mpi::Communicator::world());
  if (communicator.size() == 1) return;
  auto tensor = at::ones({10});
  if (communicator.rank() == 0) {
    auto begun = communicator.all_reduce(tensor, ReduceOp::sum);
    CHECK(communicator.abandon("it is out of memory"));
    CHECK_THROWS_WITH(begun.wait(), ContainsSubstring("it is out of memory"));
  } else {
    const auto text = rank_and_error_of([&] { communicator.all_reduce(tensor, ReduceOp::sum).wait(); });
    CHECK_THAT(text, StartsWith("0 ") && ContainsSubstring("it is out of memory"));
  }
  mpi::barrier(world);
}
