#include <ATen/ATen.h>

#include <cstdlib>
#include <hortator/error.hpp>
#include <numeric>

#include "comm/rehearsed/rehearsed_communicator.hpp"
#include "comm/rehearsed/traffic.hpp"
#include "mpi/agree.hpp"
#include "mpi/all_to_all.hpp"
#include "mpi/collectives.hpp"
#include "mpi/rehearsed_world.hpp"
#include "parallel/mesh/mesh.hpp"
#include "runtime/identity/topology.hpp"
#include "support/catch.hpp"

namespace hortator::comm {
namespace {

// Before main, which starts MPI.
[[maybe_unused]] const int is_set = setenv("HORTATOR_REHEARSE", "13/24/4", 1);

mpi::Communicator world() { return mpi::Communicator::world(); }

RehearsedCommunicator communicator() {
  return {world(), {.shares_memory = true, .finds_mismatch = true, .device = c10::kCPU}, c10::kCPU};
}

std::uint64_t sent_in(const std::string& verb) {
  std::uint64_t sent = 0;
  for (const auto& one : noted_traffic()) sent += one.verb == verb ? one.sent : 0;
  return sent;
}

}  // namespace

TEST_CASE("a rehearsed world is read from its variable, and other texts are refused") {
  CHECK(mpi::parse_rehearsed_world("317/4096/8") ==
        mpi::RehearsedWorld{.rank = 317, .ranks = 4096, .ranks_of_a_node = 8});
  for (const auto* const text : {"", "3", "3/4", "4/4/1", "-1/4/1", "1/4/0", "1/4/1/1", "a/4/1"})
    CHECK_THROWS_AS(mpi::parse_rehearsed_world(text), UsageError);
}

TEST_CASE("one process is rank 13 of 24 on six nodes") {
  const auto all = world();
  CHECK(all.rank() == 13);
  CHECK(all.size() == 24);
  const auto node = all.node();
  CHECK(node.rank() == 1);
  CHECK(node.size() == 4);
  CHECK(node.family_rank(2) == 14);
  const auto topology = runtime::find_topology(all, node);
  CHECK(topology == runtime::Topology{.rank = 13, .size = 24, .node = 3, .nodes = 6, .local_rank = 1, .local_size = 4});
  CHECK(all.first(20).size() == 20);
}

TEST_CASE("a split needs the colors of the ranks that do not exist") {
  const auto all = world();
  CHECK(all.split(0, 13).size() == 24);
  const mpi::ColorsOfAll colors([](int rank) { return rank % 3; });
  const auto part = all.split(13 % 3, 13);
  CHECK(part.size() == 8);
  CHECK(part.rank() == 4);
  CHECK(mpi::rehearsed_members(part) == std::vector<int>{1, 4, 7, 10, 13, 16, 19, 22});
}

TEST_CASE("collectives on host values give what equal ranks would get") {
  const auto all = world();
  CHECK(mpi::all_gather(all, 5) == std::vector<int>(24, 5));
  CHECK(mpi::all_gather(all, std::string_view("x")) == std::vector<std::string>(24, "x"));
  CHECK(mpi::gather(all, "x", 0).empty());
  CHECK(mpi::gather(all, "x", 13).size() == 24);
  CHECK(mpi::broadcast(all, 7, 3) == 7);
  CHECK(mpi::all_reduce(all, 7, mpi::Op::max) == 7);
  CHECK(mpi::all_to_all(all, std::vector<std::string>(24, "y")) == std::vector<std::string>(24, "y"));
  CHECK(mpi::equal_on_all(all, 3));
  CHECK_THROWS_WITH(mpi::all_or_none(all, [] { throw Error({.what = "No room"}); }),
                    Catch::Matchers::ContainsSubstring("No room"));
  mpi::barrier(all);
}

TEST_CASE("a mesh of a rehearsal has the groups that the ranks would have") {
  const auto all = world();
  auto on_cpu = communicator();
  const parallel::MeshShape shape({.pipeline = 2, .shard = 3, .tensor = 2}, 24);
  parallel::Mesh mesh(shape, {.on_device = on_cpu, .on_cpu = on_cpu, .host = all}, c10::kCPU);
  for (const auto axis : parallel::all_axes) {
    const auto& group = mesh.connect(axis);
    CHECK(group.size() == shape.size(axis));
    CHECK(group.index() == shape.index(axis, 13));
    CHECK(group.on_device.size() == group.size());
    if (group.size() > 1) CHECK(mpi::rehearsed_members(group.host) == shape.ranks_along(axis, 13));
  }
  CHECK(mesh.data().size() == 6);
}

TEST_CASE("tensors keep their shapes, small ones their meaning, and what would be sent is noted") {
  auto over = communicator();
  forget_traffic();
  const auto ones = at::ones({24});
  over.all_reduce(ones, ReduceOp::sum).wait();
  CHECK(ones.sum().item<float>() == 24 * 24);
  const auto gathered = at::zeros({24, 2});
  over.all_gather(gathered, at::tensor({1.0F, 2.0F})).wait();
  CHECK(gathered.sum().item<float>() == 24 * 3);
  const auto part = at::zeros({2});
  over.reduce_scatter(part, at::arange(48, at::kFloat), ReduceOp::mean).wait();
  CHECK(part[0].item<float>() == 26);
  const auto large = at::ones({24, 100000});
  over.all_reduce(large, ReduceOp::mean).wait();
  CHECK(sent_in("all_reduce") == 2 * (24 * 4 / 24 * 23 + 24 * 400000ULL / 24 * 23));
  CHECK(sent_in("all_gather") == 8 * 23);
  CHECK_THROWS_AS(over.all_gather(at::zeros({25}), at::zeros({1})), UsageError);
  CHECK_THROWS_AS(over.broadcast(at::zeros({1}), 24), UsageError);
}

TEST_CASE("what a rank of a ring sends") {
  CHECK(sent_bytes("all_reduce", 80, 4) == 120);
  CHECK(sent_bytes("all_gather", 80, 4) == 60);
  CHECK(sent_bytes("reduce_scatter", 80, 4) == 60);
  CHECK(sent_bytes("broadcast", 80, 4) == 80);
  CHECK(sent_bytes("all_reduce", 80, 1) == 0);
  CHECK(sent_bytes("barrier", 80, 4) == 0);
}

}  // namespace hortator::comm
