#include "comm/decorators/checked_communicator.hpp"

#include <cerrno>
#include <hortator/error.hpp>

#include "backends.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using comm::ReduceOp;

namespace {

template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("in debug mode ranks that call differently all get the same table, whatever carries the tensors") {
  for (const auto* name : {"mpi checked", "node checked"}) {
    const auto communicator = test::make_backend(name);
    if (communicator->size() == 1) return;
    const bool last = communicator->rank() == communicator->size() - 1;
    const auto odd = text::concat("rank ", communicator->size() - 1, ": ");

    const auto shapes = error_of([&] { communicator->all_reduce(at::ones({last ? 4 : 3}), ReduceOp::sum); });
    CHECK_THAT(shapes, ContainsSubstring("all_reduce (sum) of Float [3]"));
    CHECK_THAT(shapes, ContainsSubstring(odd + "all_reduce (sum) of Float [4], its collective 1"));

    CHECK_THAT(shapes, StartsWith("The ranks pass tensors of different shapes: "));

    const auto gathered = error_of([&] {
      communicator->all_gather(at::empty({communicator->size() * 12}),
                               at::ones(last ? std::vector<std::int64_t>{3, 4} : std::vector<std::int64_t>{2, 6}));
    });
    CHECK_THAT(gathered, ContainsSubstring(odd + "all_gather of Float [3, 4], its") &&
                             ContainsSubstring(": all_gather of Float [2, 6], its") &&
                             ContainsSubstring("gather_to_main"));

    const auto outputs =
        error_of([&] { communicator->all_gather(at::empty({last ? 1 : communicator->size()}), at::ones({1})); });
    CHECK_THAT(outputs, ContainsSubstring(odd + "all_gather of Float [1] to Float [1]"));

    const auto types = error_of([&] { communicator->broadcast(at::ones({2}, last ? at::kDouble : at::kFloat), 0); });
    CHECK_THAT(types, ContainsSubstring(odd + "broadcast of Double [2] from rank 0"));

    const auto roots = error_of([&] { communicator->broadcast(at::ones({2}), last ? 1 : 0); });
    CHECK_THAT(roots, ContainsSubstring(odd + "broadcast of Float [2] from rank 1"));

    const auto operations =
        error_of([&] { communicator->all_reduce(at::ones({2}), last ? ReduceOp::max : ReduceOp::sum); });
    CHECK_THAT(operations, ContainsSubstring(odd + "all_reduce (max)"));

    const auto verbs = error_of([&] {
      if (last) {
        communicator->barrier();
      } else {
        communicator->all_reduce(at::ones({3}), ReduceOp::sum);
      }
    });
    CHECK_THAT(verbs, ContainsSubstring(odd + "barrier"));

    const auto undefined =
        error_of([&] { communicator->all_reduce(last ? at::Tensor() : at::ones({3}), ReduceOp::sum); });
    CHECK_THAT(undefined, ContainsSubstring(odd + "all_reduce (sum) of undefined tensor"));

    const auto sparse = error_of(
        [&] { communicator->all_reduce(last ? at::ones({3}).to_sparse() : at::ones({3}), ReduceOp::sum).wait(); });
    CHECK_THAT(sparse, ContainsSubstring(odd + "all_reduce (sum) of Float [3] (layout Sparse)"));

    const auto elsewhere =
        error_of([&] { communicator->broadcast(at::ones({3}, last ? at::kMeta : at::kCPU), 0).wait(); });
    CHECK_THAT(elsewhere, ContainsSubstring(odd + "broadcast of Float [3] (on meta) from rank 0"));

    const auto recorded = error_of([&] {
      communicator->all_gather(at::ones({3 * communicator->size()}).set_requires_grad(last), at::ones({3})).wait();
    });
    CHECK_THAT(recorded, ContainsSubstring(odd + "all_gather of Float [3] (the result requires a gradient)"));

    const auto lists =
        error_of([&] { communicator->broadcast_all(std::vector<at::Tensor>(last ? 2 : 1, at::ones({3})), 0); });
    CHECK_THAT(lists, ContainsSubstring(odd + "broadcast_all of Float [3], Float [3] from rank 0"));

    auto fine = at::ones({2});
    communicator->all_reduce(fine, ReduceOp::sum).wait();
    CHECK(fine[0].item<int>() == communicator->size());
  }
}

TEST_CASE("in debug mode a collective from another line is another collective") {
  const auto communicator = test::make_backend("mpi checked");
  if (communicator->size() == 1) return;
  const int marks[2] = {};
  const auto text = error_of([&] {
    const CallSite site(communicator->rank() == 0 ? __builtin_return_address(0) : static_cast<const void*>(marks));
    communicator->barrier();
  });
  CHECK_THAT(text, ContainsSubstring("different collectives") &&
                       ContainsSubstring(std::string("barrier at ") + program_invocation_short_name + "+0x"));
  CHECK(CallSite::current() == 0);
}
