// Any number of ranks reads what any number of ranks wrote.
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::Reader;

namespace {

constexpr int sizes[] = {1, 2, 3, 4, 7};

checkpoint::Snapshot state(at::ScalarType type, int rank) {
  checkpoint::Snapshot made;
  made.common.put("models/0/weight", at::arange(1'300'000).remainder(1013).to(type).reshape({1000, 1300}));
  made.common.put("models/0/bias", at::arange(37).to(type));
  for (const auto* moment : {"exp_avg", "exp_avg_sq"})
    made.common.put(std::string("optimizers/0/state/weight/") + moment,
                    at::arange(1'300'000).reshape({1000, 1300}).to(at::kFloat));
  made.common.put("loaders/0/position", 123);
  made.own.put("rng", at::full({11}, rank, at::kByte));
  return made;
}

std::vector<std::size_t> several_files(int ranks) {
  std::vector<std::size_t> file_of;
  for (int rank = 0; rank < ranks; ++rank) file_of.push_back(static_cast<std::size_t>(rank / 2));
  return file_of;
}

/// Runs `work` on the first `count` ranks, and returns when they are done.
template <typename Work>
void on_first(const mpi::Communicator& world, int count, const Work& work) {
  const auto part = world.split(world.rank() < count ? 0 : 1, world.rank());
  if (world.rank() < count) work(part);
  mpi::barrier(world);
}

}  // namespace

TEST_CASE("from {1,2,3,4,7} ranks to {1,2,3,4,7}, in fp32 and bf16, in one file and in several, bit for bit") {
  const auto world = mpi::Communicator::world();
  const auto root = scratch(world, "elastic");
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto expected = state(type, 0);
    for (const int writers : sizes) {
      if (writers > world.size()) continue;
      for (const bool one_file : {true, false}) {
        on_first(world, writers, [&](const auto& comm) {
          checkpoint::save(comm, root / "checkpoint", state(type, comm.rank()),
                           {.file_of = one_file ? std::vector<std::size_t>{} : several_files(writers)});
        });
        for (const int readers : sizes) {
          if (readers > world.size()) continue;
          INFO(writers << " to " << readers << " ranks");
          on_first(world, readers, [&](const auto& comm) {
            const Reader reader(comm, root / "checkpoint");
            CHECK(reader.world_size() == writers);
            for (const auto& [name, value] : expected.common.values()) {
              const auto* tensor = std::get_if<at::Tensor>(&value);
              if (tensor != nullptr && !bitwise_equal(reader.read(name), *tensor)) FAIL_CHECK(name);
            }
            CHECK(reader.values().template get<int>("loaders/0/position") == 123);
            for (int rank = 0; rank < writers; ++rank)
              CHECK(bitwise_equal(reader.own(rank).template get<at::Tensor>("rng"), at::full({11}, rank, at::kByte)));
          });
        }
      }
    }
  }
}
