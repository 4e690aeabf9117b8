#include "parallel/mesh/mesh.hpp"

#include <ATen/ops/full.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "comm/backends/make_communicator.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "mpi/collectives.hpp"
#include "support/catch.hpp"

using namespace hortator;
using parallel::Axis;
using parallel::Mesh;
using parallel::MeshShape;
using parallel::RankGroup;

namespace {

/// All ranks, with communicators of two kinds.
struct World {
  mpi::Communicator host = mpi::Communicator::world();
  std::unique_ptr<comm::Communicator> chosen = comm::make_communicator(host, at::kCPU, comm::Checks::off);
  comm::MpiCommunicator other{mpi::Communicator::world()};

  /// A run on the CPU.
  RankGroup one_kind() { return {.on_device = *chosen, .on_cpu = *chosen, .host = host}; }
  /// A run on another device, whose tensors the second communicator carries.
  RankGroup two_kinds() { return {.on_device = other, .on_cpu = *chosen, .host = host}; }
};

/// A request with `size` ranks along `axis`, added to `others`.
MeshShape::Request with(Axis axis, int size, MeshShape::Request others = {.replicate = 1}) {
  switch (axis) {
    case Axis::pipeline:
      others.pipeline = size;
      break;
    case Axis::replicate:
      others.replicate = size;
      break;
    case Axis::shard:
      others.shard = size;
      break;
    case Axis::context:
      others.context = size;
      break;
    case Axis::tensor:
      others.tensor = size;
      break;
  }
  return others;
}

/// Every arrangement of `ranks` ranks along two of the axes.
template <typename Check>
void for_each_pair_of_axes(int ranks, const Check& check) {
  for (const auto outer : parallel::all_axes) {
    for (const auto inner : parallel::all_axes) {
      for (int size = 1; outer < inner && size <= ranks; ++size) {
        if (ranks % size == 0) check(MeshShape(with(outer, size, with(inner, ranks / size)), ranks));
      }
    }
  }
}

double bit(int rank) { return static_cast<double>(1 << rank); }

/// Checks that each communicator of `group` has exactly `ranks`, in this order.
void check_ranks(const RankGroup& group, const std::vector<int>& ranks, int own) {
  double expected = 0;
  for (const int rank : ranks) expected += bit(rank);
  REQUIRE(group.size() == static_cast<int>(ranks.size()));
  CHECK(ranks[static_cast<std::size_t>(group.index())] == own);
  CHECK(mpi::all_reduce(group.host, bit(own), mpi::Op::sum) == expected);
  for (auto* communicator : {&group.on_device, &group.on_cpu}) {
    CHECK(communicator->rank() == group.index());
    CHECK(communicator->size() == group.size());
    auto sum = at::full({3}, bit(own), at::kDouble);
    communicator->all_reduce(sum, comm::ReduceOp::sum).wait();
    CHECK(at::equal(sum, at::full({3}, expected, at::kDouble)));
  }
}

}  // namespace

TEST_CASE("the group of each axis reduces over exactly its ranks, on any two axes") {
  World world;
  const int own = world.host.rank();
  for_each_pair_of_axes(world.host.size(), [&](const MeshShape& shape) {
    INFO(shape.text());
    for (const bool one_kind : {true, false}) {
      Mesh mesh(shape, one_kind ? world.one_kind() : world.two_kinds(), one_kind ? at::kCPU : at::kMeta);
      for (const auto axis : parallel::all_axes) {
        const auto& group = mesh.connect(axis);
        check_ranks(group, shape.ranks_along(axis, own), own);
        CHECK(&mesh.connect(axis) == &group);
        CHECK((&group.on_device == &group.on_cpu) == one_kind);
      }
    }
  });
}

TEST_CASE("the data group has exactly the ranks that get different batches") {
  World world;
  const int own = world.host.rank();
  for_each_pair_of_axes(world.host.size(), [&](const MeshShape& shape) {
    INFO(shape.text());
    std::vector<int> ranks;
    for (int rank = 0; rank < shape.ranks(); ++rank) {
      bool differs_in_batches_only = true;
      for (const auto axis : {Axis::pipeline, Axis::context, Axis::tensor})
        differs_in_batches_only &= shape.index(axis, rank) == shape.index(axis, own);
      if (differs_in_batches_only) ranks.push_back(rank);
    }
    const Mesh mesh(shape, world.one_kind(), at::kCPU);
    check_ranks(mesh.data(), ranks, own);
    CHECK(mesh.data().index() == shape.data_index(own));
    CHECK(mesh.data().size() == shape.data_size());
  });
}

TEST_CASE("an axis of all ranks uses their communicators, and one of a single rank a communicator to itself") {
  World world;
  const auto all = world.two_kinds();
  for (const auto axis : parallel::all_axes) {
    Mesh mesh(MeshShape(with(axis, world.host.size()), world.host.size()), all, at::kMeta);
    for (const auto one : parallel::all_axes) {
      const auto& group = mesh.connect(one);
      if (one == axis || world.host.size() == 1) {
        CHECK(&group.on_device == &all.on_device);
        CHECK(&group.on_cpu == &all.on_cpu);
        CHECK(&group.host == &all.host);
      } else {
        CHECK(group.on_device.name() == "self");
        CHECK(group.on_cpu.name() == "self");
      }
    }
    const bool is_data = axis == Axis::replicate || axis == Axis::shard || world.host.size() == 1;
    CHECK((&mesh.data().host == &all.host) == is_data);
  }
}

TEST_CASE(
    "gradients are averaged along replicate, shard and context, and shards are equal along replicate and context") {
  World world;
  const int own = world.host.rank();
  for_each_pair_of_axes(world.host.size(), [&](const MeshShape& shape) {
    INFO(shape.text());
    const auto ranks_with_same = [&](std::initializer_list<Axis> axes) {
      std::vector<int> ranks;
      for (int rank = 0; rank < shape.ranks(); ++rank) {
        const auto is_same = [&](Axis axis) { return shape.index(axis, rank) == shape.index(axis, own); };
        if (std::all_of(axes.begin(), axes.end(), is_same)) ranks.push_back(rank);
      }
      return ranks;
    };
    Mesh mesh(shape, world.one_kind(), at::kCPU);
    check_ranks(mesh.averaging(), ranks_with_same({Axis::pipeline, Axis::tensor}), own);
    check_ranks(mesh.connect_replicas(), ranks_with_same({Axis::pipeline, Axis::shard, Axis::tensor}), own);
    CHECK(mesh.averaging().size() == shape.averaging_size());
    CHECK(mesh.connect_replicas().size() == shape.replicas_size());
  });
}
