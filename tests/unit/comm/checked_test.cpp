#include "comm/checked_communicator.hpp"

#include <hortator/error.hpp>

#include "backends.hpp"
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

TEST_CASE("in debug mode ranks that call differently all get the same error, which names the difference") {
  const auto communicator = test::make_backend("mpi checked");
  if (communicator->size() == 1) return;
  const bool last = communicator->rank() == communicator->size() - 1;

  const auto shapes = error_of([&] { communicator->all_reduce(at::ones({last ? 4 : 3}), ReduceOp::sum); });
  CHECK_THAT(shapes, ContainsSubstring("rank 0 has 'all_reduce sum of Float [3]'"));
  CHECK_THAT(shapes, ContainsSubstring("has 'all_reduce sum of Float [4]'"));

  const auto types = error_of([&] { communicator->broadcast(at::ones({2}, last ? at::kDouble : at::kFloat), 0); });
  CHECK_THAT(types, ContainsSubstring("Double [2]"));

  const auto lists =
      error_of([&] { communicator->broadcast_all(std::vector<at::Tensor>(last ? 2 : 1, at::ones({3})), 0); });
  CHECK_THAT(lists, ContainsSubstring("has 'broadcast from 0 of Float [3]; Float [3]'"));

  const auto verbs = error_of([&] {
    if (last) {
      communicator->barrier();
    } else {
      communicator->all_reduce(at::ones({3}), ReduceOp::sum);
    }
  });
  CHECK_THAT(verbs, ContainsSubstring("has 'barrier'"));

  auto fine = at::ones({2});
  communicator->all_reduce(fine, ReduceOp::sum).wait();
  CHECK(fine[0].item<int>() == communicator->size());
}
