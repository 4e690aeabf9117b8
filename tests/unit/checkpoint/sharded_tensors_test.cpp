// Each rank writes its part of a sharded tensor; any part can be read.
#include "checkpoint/read/reader.hpp"
#include "checkpoint/read/verify.hpp"
#include "checkpoint/write/background_save.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::ShardedTensor;
using checkpoint::Snapshot;

namespace {

/// Cuts a tensor at `borders`, one between each two ranks.
ShardedTensor cut(const at::Tensor& whole, const std::vector<std::int64_t>& borders, int rank) {
  ShardedTensor shard{.whole = formats::spec_of(whole)};
  std::int64_t begin = 0;
  for (const auto end : borders) {
    shard.of_ranks.push_back({begin, end});
    begin = end;
  }
  const auto mine = shard.of_ranks[static_cast<std::size_t>(rank)];
  shard.part = whole.reshape({-1}).narrow(0, mine.begin, mine.size()).clone();
  return shard;
}

std::vector<std::int64_t> even(std::int64_t elements, int ranks) {
  std::vector<std::int64_t> borders;
  for (int rank = 1; rank <= ranks; ++rank) borders.push_back(elements * rank / ranks);
  return borders;
}

/// All that the last rank has, or the first.
std::vector<std::int64_t> one_has_all(std::int64_t elements, int ranks, bool last) {
  std::vector<std::int64_t> borders(static_cast<std::size_t>(ranks), last ? 0 : elements);
  borders.back() = elements;
  return borders;
}

struct Wholes {
  // more than a block of checksums, cut within blocks; neighbours of a few bytes; none at all
  at::Tensor large = at::arange(2'500'001).to(at::kFloat);
  at::Tensor square = at::arange(65 * 3).to(at::kFloat).view({65, 3});
  at::Tensor tiny = at::arange(5).to(at::kChar);
  at::Tensor empty = at::empty({0, 4});
};

Snapshot snapshot_of(const Wholes& wholes, const mpi::Communicator& comm) {
  auto made = snapshot(comm.rank(), 1);
  const auto put = [&](const std::string& name, const at::Tensor& whole, const std::vector<std::int64_t>& borders) {
    made.shards.emplace(name, cut(whole, borders, comm.rank()));
  };
  const int ranks = comm.size();
  put("models/0/fc1.a", wholes.large, even(wholes.large.numel(), ranks));
  put("models/0/large", wholes.large, even(wholes.large.numel(), ranks));
  put("models/0/square", wholes.square, even(wholes.square.numel(), ranks));
  put("models/0/tiny1", wholes.tiny, even(wholes.tiny.numel(), ranks));
  put("models/0/tiny2", wholes.tiny, even(wholes.tiny.numel(), ranks));
  put("models/0/tiny3", wholes.tiny, one_has_all(wholes.tiny.numel(), ranks, true));
  put("models/0/tiny4", wholes.tiny, one_has_all(wholes.tiny.numel(), ranks, false));
  put("models/0/nothing", wholes.empty, even(0, ranks));
  return made;
}

void check_read(const std::filesystem::path& folder, const Snapshot& saved, const Wholes& wholes) {
  const checkpoint::Reader reader(folder);
  for (const auto* name : {"models/0/fc1.a", "models/0/large"}) CHECK(bitwise_equal(reader.read(name), wholes.large));
  CHECK(bitwise_equal(reader.read("models/0/square"), wholes.square));
  for (const auto* name : {"models/0/tiny1", "models/0/tiny2", "models/0/tiny3", "models/0/tiny4"})
    CHECK(bitwise_equal(reader.read(name), wholes.tiny));
  CHECK(bitwise_equal(reader.read("models/0/nothing"), wholes.empty));
  CHECK(bitwise_equal(reader.read("models/0/fc1.weight"), saved.common.get<at::Tensor>("models/0/fc1.weight")));
  const core::Range ranges[] = {
      {0, 0}, {0, 1}, {1048575, 1048577}, {1048576, 2097152}, {77, 2'500'001}, {2'500'001, 2'500'001}};
  for (const auto& range : ranges)
    CHECK(bitwise_equal(reader.read_part("models/0/large", range), wholes.large.narrow(0, range.begin, range.size())));
  CHECK(bitwise_equal(reader.read_part("models/0/square", {7, 100}), wholes.square.reshape({-1}).narrow(0, 7, 93)));
}

}  // namespace

TEST_CASE("sharded tensors are read as whole ones and whole ones in parts, with either writer") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "shares");
  const Wholes wholes;
  const auto saved = snapshot_of(wholes, comm);
  for (const auto writer : {CheckpointWriter::direct, CheckpointWriter::mpio}) {
    checkpoint::save(comm, root / "checkpoint", saved, {.writer = writer});
    check_read(root / "checkpoint", saved, wholes);
    mpi::barrier(comm);
  }
  checkpoint::BackgroundSave background;
  auto changing = snapshot_of(wholes, comm);
  background.start(comm, root / "checkpoint", changing, {});
  for (auto& [name, shard] : changing.shards) shard.part.zero_();
  background.wait(comm);
  check_read(root / "checkpoint", saved, wholes);
  mpi::barrier(comm);
}

TEST_CASE("sharded tensors go to several files if the ranks are in file order, otherwise to one") {
  const auto comm = mpi::Communicator::world();
  if (comm.size() < 2) return;
  const auto root = scratch(comm, "shares_files");
  const Wholes wholes;
  const auto saved = snapshot_of(wholes, comm);
  std::vector<std::size_t> in_order;
  std::vector<std::size_t> in_turn;
  for (int rank = 0; rank < comm.size(); ++rank) {
    in_order.push_back(rank * 2 < comm.size() ? 0 : 1);
    in_turn.push_back(static_cast<std::size_t>(rank % 2));
  }
  checkpoint::save(comm, root / "in_order", saved, {.file_of = in_order});
  check_read(root / "in_order", saved, wholes);
  CHECK(checkpoint::Reader(root / "in_order").manifest().files.size() == 2);
  checkpoint::save(comm, root / "in_turn", saved, {.file_of = in_turn});
  check_read(root / "in_turn", saved, wholes);
  mpi::barrier(comm);
}

TEST_CASE("parts that do not cover a tensor exactly once are refused on all ranks") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "shares_bad");
  const Wholes wholes;
  auto saved = snapshot_of(wholes, comm);
  auto& shard = saved.shards.at("models/0/square");
  shard.of_ranks.front().end -= 1;
  const auto problem = error_of([&] { checkpoint::save(comm, root / "checkpoint", saved); });
  CHECK(problem.find("parts of 'models/0/square' do not cover the whole tensor") != std::string::npos);
  CHECK(entries(root) == 0);
}
