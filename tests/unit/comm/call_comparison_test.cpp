#include "comm/decorators/call_comparison.hpp"

#include <cerrno>
#include <hortator/error.hpp>

#include "backends.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

mpi::Communicator checked_world() {
  auto world = mpi::Communicator::world();
  world.check_calls(std::make_shared<comm::CallComparison>(mpi::Communicator::world()));
  return world;
}

template <typename Call>
std::string table_of(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("in debug mode ranks that call differently on host values all get the same table") {
  const auto world = checked_world();
  if (world.size() == 1) return;
  const bool last = world.rank() == world.size() - 1;
  const auto odd = text::concat("rank ", world.size() - 1, ": ");

  const auto verbs = table_of([&] { last ? mpi::barrier(world) : mpi::agree(world, {}); });
  CHECK_THAT(verbs, ContainsSubstring(odd + "barrier on the host, its collective 1"));
  CHECK_THAT(verbs, ContainsSubstring("agreement on the host, its collective 1"));

  const auto counts = table_of([&] {
    std::vector<float> values(last ? 3 : 2);
    mpi::all_reduce(world, std::span(values), mpi::Op::sum);
  });
  CHECK_THAT(counts, ContainsSubstring(odd + "all_reduce (sum) of 12 B on the host"));

  const auto operations = table_of([&] { mpi::all_reduce(world, 1, last ? mpi::Op::max : mpi::Op::sum); });
  CHECK_THAT(operations, ContainsSubstring(odd + "all_reduce (max)"));

  const auto roots = table_of([&] { mpi::broadcast(world, std::string_view("words"), last ? 1 : 0); });
  CHECK_THAT(roots, ContainsSubstring(odd + "broadcast on the host from or to rank 1"));

  const auto types = table_of([&] { last ? mpi::broadcast(world, 1) : mpi::broadcast(world, std::int64_t{1}); });
  CHECK_THAT(types, ContainsSubstring(odd + "broadcast of 4 B on the host"));
}

TEST_CASE("in debug mode texts may differ in length, and agreements and comparisons do what they do without it") {
  const auto world = checked_world();
  const auto mine = std::string(static_cast<std::size_t>(world.rank()), 'x');
  CHECK(mpi::all_gather(world, std::string_view(mine)).back().size() == static_cast<std::size_t>(world.size() - 1));
  CHECK(mpi::broadcast(world, std::string_view(mine), world.size() - 1).size() ==
        static_cast<std::size_t>(world.size() - 1));
  mpi::gather(world, mine);
  mpi::same_on_all(world, "the same", "a word");
  if (world.size() == 1) return;
  CHECK_THROWS_WITH(mpi::agree(world, {.failed = world.rank() == 1, .problem = "no room"}),
                    ContainsSubstring("no room"));
  CHECK_THROWS_WITH(mpi::same_on_all(world, mine, "a word"), ContainsSubstring("a word differs"));
  CHECK(mpi::all_reduce(world, 1, mpi::Op::sum) == world.size());
}

TEST_CASE("in debug mode a collective on host values differs from one on tensors") {
  const auto world = mpi::Communicator::world();
  const auto comparison = std::make_shared<comm::CallComparison>(mpi::Communicator::world());
  world.check_calls(comparison);
  comm::CheckedCommunicator tensors(std::make_unique<comm::MpiCommunicator>(mpi::Communicator::world()), comparison);
  if (world.size() == 1) return;
  const auto text = table_of([&] {
    if (world.rank() == 0) {
      mpi::barrier(world);
    } else {
      tensors.all_reduce(at::ones({3}), comm::ReduceOp::sum).wait();
    }
  });
  CHECK_THAT(text,
             ContainsSubstring("rank 0: barrier on the host") && ContainsSubstring("all_reduce (sum) of Float [3]"));
}

TEST_CASE("in debug mode calls that ranks may make from different call sites are compared without the site") {
  const auto world = checked_world();
  const int marks[2] = {};
  const CallSite site(world.rank() == 0 ? __builtin_return_address(0) : static_cast<const void*>(marks));
  {
    const AnyCallSite anywhere;
    CHECK(mpi::all_reduce(world, 1, mpi::Op::sum) == world.size());
  }
  if (world.size() == 1) return;
  CHECK_THAT(table_of([&] { mpi::barrier(world); }),
             ContainsSubstring(std::string("barrier on the host at ") + program_invocation_short_name + "+0x"));
}
