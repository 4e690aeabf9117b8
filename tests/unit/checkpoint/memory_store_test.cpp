// Checkpoints in the memory of nodes, which are imitated by folders.
#include "checkpoint/memory/memory_store.hpp"

#include <sys/stat.h>

#include <fstream>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/read/verify.hpp"
#include "mpi/environment.hpp"
#include "scratch.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::testing;
using checkpoint::MemoryLimits;
using checkpoint::MemoryNode;
using checkpoint::MemoryStore;

namespace {

namespace fs = std::filesystem;

/// The folders of nodes of `ranks` ranks each.
class Nodes {
 public:
  Nodes(const mpi::Communicator& comm, const fs::path& root, int ranks)
      : comm_(comm), root_(root), ranks_(ranks), count_((comm.size() + ranks - 1) / ranks) {
    if (comm.rank() == 0) {
      for (int node = 0; node < count_; ++node) fs::create_directories(folder(node));
    }
    mpi::barrier(comm);
  }

  int count() const { return count_; }
  fs::path folder(int node) const { return root_ / ("node" + std::to_string(node)); }
  MemoryNode mine() const {
    return {.folder = folder(comm_.rank() / ranks_),
            .node = comm_.rank() / ranks_,
            .nodes = count_,
            .is_leader = comm_.rank() % ranks_ == 0};
  }
  /// The node's memory is lost, and another node takes its place.
  void lose(int node) const {
    mpi::barrier(comm_);
    if (comm_.rank() == 0) {
      fs::remove_all(folder(node));
      fs::create_directories(folder(node));
    }
    mpi::barrier(comm_);
  }

 private:
  const mpi::Communicator& comm_;
  fs::path root_;
  int ranks_;
  int count_;
};

void save(MemoryStore& store, const mpi::Communicator& comm, std::int64_t updates) {
  store.save(snapshot(comm.rank(), static_cast<int>(updates)), {.step = 1, .updates = updates});
}

/// Loads the newest one on each rank and compares it with what was saved after `updates` updates.
void check_newest(const mpi::Communicator& comm, MemoryStore& store, std::int64_t updates) {
  const auto found = store.recoveries();
  REQUIRE(!found.empty());
  CHECK(found[0].updates == updates);
  const auto folder = store.fetch(found[0]);
  const checkpoint::Reader reader(comm, folder);
  const auto saved = snapshot(comm.rank(), static_cast<int>(updates));
  for (const auto& [name, value] : saved.common.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) CHECK(bitwise_equal(reader.read(name), *tensor));
  }
  CHECK(reader.manifest().updates == updates);
  store.drop_fetched();
}

void flip_a_bit(const fs::path& path) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto at = static_cast<std::streamoff>(fs::file_size(path)) - 9;
  file.seekg(at);
  const auto byte = static_cast<char>(file.get() ^ 4);
  file.seekp(at);
  file.put(byte);
}

}  // namespace

TEST_CASE("checkpoints in memory are found again by the next run, and only the newest two stay") {
  const auto comm = mpi::Communicator::world();
  for (const int ranks_a_node : {1, 2, 4}) {
    const auto root = scratch(comm, "memory_store");
    const Nodes nodes(comm, root, ranks_a_node);
    {
      MemoryStore store(comm, nodes.mine(), {});
      CHECK(store.recoveries().empty());
      for (const int updates : {10, 20, 30}) save(store, comm, updates);
    }
    MemoryStore store(comm, nodes.mine(), {});
    check_newest(comm, store, 30);
    CHECK(store.recoveries().size() == 2);
    CHECK(entries(nodes.mine().folder) == 2);
    save(store, comm, 40);
    check_newest(comm, store, 40);
    mpi::barrier(comm);
    CHECK(entries(nodes.mine().folder) == 2);
  }
}

TEST_CASE("any node's memory may be lost with one partner, and neighbours only with more") {
  const auto comm = mpi::Communicator::world();
  for (const int partners : {0, 1, 2}) {
    const auto root = scratch(comm, "memory_store");
    const Nodes nodes(comm, root, 1);
    for (int node = 0; node < nodes.count(); ++node) {
      MemoryStore store(comm, nodes.mine(), {.partners = partners});
      save(store, comm, 10 + node);
      for (int lost = 0; lost <= partners && lost < nodes.count(); ++lost) {
        nodes.lose((node + lost) % nodes.count());
        MemoryStore after(comm, nodes.mine(), {.partners = partners});
        if (lost < std::min(partners, nodes.count() - 1)) {
          check_newest(comm, after, 10 + node);
        } else {
          CHECK(after.recoveries().empty());
        }
      }
    }
  }
}

TEST_CASE("a part that a node has damaged comes from its partner, and without one the checkpoint before counts") {
  const auto comm = mpi::Communicator::world();
  for (const int partners : {0, 1}) {
    const auto root = scratch(comm, "memory_store");
    const Nodes nodes(comm, root, 1);
    MemoryStore store(comm, nodes.mine(), {.partners = partners});
    save(store, comm, 10);
    save(store, comm, 20);
    mpi::barrier(comm);
    const int damaged = nodes.count() - 1;
    if (comm.rank() == damaged) {
      const auto name =
          checkpoint::data_file(static_cast<std::size_t>(damaged), static_cast<std::size_t>(nodes.count()));
      flip_a_bit(nodes.mine().folder / "checkpoint_1" / name);
    }
    const auto found = store.recoveries();
    store.fetch(found[0]);
    const auto [repaired, hosts] = store.repair(found[0]);
    CHECK(hosts == std::vector<std::string>{mpi::host_name()});  // of the node whose file was changed
    CHECK(repaired.has_value() == (partners > 0 && nodes.count() > 1));
    if (repaired) {
      const checkpoint::Reader reader(comm, store.fetch(*repaired));
      checkpoint::verify_on_all_ranks(comm, reader.folder(), reader.manifest(), true);
      CHECK_FALSE(store.repair(*repaired).recovery.has_value());  // nothing is damaged
      mpi::barrier(comm);
    }
    check_newest(comm, store, repaired ? 20 : 10);
  }
}

TEST_CASE("frozen tensors stay in the memory of nodes once, and are written again only on other nodes") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "memory_store");
  const Nodes nodes(comm, root, 1);
  const auto inode_of = [&](int number) {
    const auto mine = nodes.mine();
    const auto name =
        checkpoint::frozen_file(static_cast<std::size_t>(mine.node), static_cast<std::size_t>(mine.nodes));
    struct stat facts {};
    REQUIRE(stat((mine.folder / ("checkpoint_" + std::to_string(number)) / name).c_str(), &facts) == 0);
    return facts.st_ino;
  };
  const auto save_frozen = [&](MemoryStore& store, int updates) {
    auto made = snapshot(comm.rank(), updates);
    for (const auto* name : {"models/0/strided", "models/0/fc1.weight"}) {
      made.common.put(name, snapshot(comm.rank(), 0).common.get<at::Tensor>(name));
      made.frozen.insert(name);
    }
    store.save(made, {.step = 1, .updates = updates, .shares_frozen = true});
  };
  const auto check_loaded = [&](MemoryStore& store, int updates) {
    const auto found = store.recoveries();
    REQUIRE(!found.empty());
    CHECK(found[0].updates == updates);
    const checkpoint::Reader reader(comm, store.fetch(found[0]));
    CHECK(bitwise_equal(reader.read("models/0/strided"), snapshot(0, 0).common.get<at::Tensor>("models/0/strided")));
    CHECK(bitwise_equal(reader.read("models/0/fc1.bias"),
                        snapshot(0, updates).common.get<at::Tensor>("models/0/fc1.bias")));
    store.drop_fetched();
  };
  MemoryStore store(comm, nodes.mine(), {});
  for (const int updates : {10, 20, 30, 40}) save_frozen(store, updates);
  CHECK(inode_of(2) == inode_of(3));
  check_loaded(store, 40);
  nodes.lose(0);
  MemoryStore after(comm, nodes.mine(), {});
  if (nodes.count() == 1) {
    CHECK(after.recoveries().empty());
    return;
  }
  check_loaded(after, 40);
  save_frozen(after, 50);
  save_frozen(after, 60);
  CHECK(inode_of(4) == inode_of(5));
  check_loaded(after, 60);
  nodes.lose(1);
  MemoryStore last(comm, nodes.mine(), {});
  check_loaded(last, 60);
}

TEST_CASE("frozen tensors that have changed do not overwrite those of the checkpoint before") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "memory_store");
  const Nodes nodes(comm, root, 1);
  MemoryStore store(comm, nodes.mine(), {});
  for (const int updates : {10, 20, 30}) {
    auto made = snapshot(comm.rank(), updates);
    const auto* const name = "models/0/fc1.weight";
    made.common.put(name, snapshot(comm.rank(), updates / 30).common.get<at::Tensor>(name));
    made.frozen.insert(name);
    store.save(made, {.step = 1, .updates = updates, .shares_frozen = true});
  }
  mpi::barrier(comm);
  if (nodes.mine().is_leader) fs::remove_all(nodes.mine().folder / "checkpoint_2");
  mpi::barrier(comm);
  const auto found = store.recoveries();
  REQUIRE(found.size() == 1);
  CHECK(found[0].updates == 20);
  const checkpoint::Reader reader(comm, store.fetch(found[0]));
  checkpoint::verify_on_all_ranks(comm, reader.folder(), reader.manifest(), true);
}

TEST_CASE("a node without room keeps its last checkpoint in memory, and all ranks learn why there is no other") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "memory_store");
  const Nodes nodes(comm, root, 1);
  {
    MemoryStore store(comm, nodes.mine(), {});
    save(store, comm, 10);
  }
  const bool is_last = comm.rank() == comm.size() - 1;
  MemoryStore store(comm, nodes.mine(), {.max_bytes = is_last ? 1000 : std::uint64_t{1} << 30});
  REQUIRE(store.recoveries().size() == 1);
  if (nodes.count() > 2) CHECK_THROWS_WITH(store.fetch(store.recoveries()[0]), Catch::Contains("its limit of 1000 B"));
  CHECK_THROWS_WITH(save(store, comm, 20), Catch::Contains("needs") && Catch::Contains("its limit of 1000 B"));
  MemoryStore after(comm, nodes.mine(), {});
  check_newest(comm, after, 10);
  mpi::barrier(comm);
  CHECK(entries(nodes.mine().folder) == 1);
}

TEST_CASE("what a killed save has left in memory is removed by the next one") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "memory_store");
  const Nodes nodes(comm, root, 1);
  if (comm.rank() == 0) {
    fs::create_directory(nodes.folder(0) / "checkpoint_7.new-20261121T075530.123456-9f3a51c2");
    std::ofstream(nodes.folder(0) / "checkpoint_7.new-20261121T075530.123456-9f3a51c2" / "state.h5") << "partial";
  }
  MemoryStore store(comm, nodes.mine(), {});
  CHECK(store.recoveries().empty());
  save(store, comm, 10);
  mpi::barrier(comm);
  CHECK(entries(nodes.folder(0)) == 1);
}

TEST_CASE("a damaged manifest in memory counts as none") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "memory_store");
  const Nodes nodes(comm, root, 1);
  MemoryStore store(comm, nodes.mine(), {});
  save(store, comm, 10);
  save(store, comm, 20);
  mpi::barrier(comm);
  if (comm.rank() == 0) {
    for (int node = 0; node < nodes.count(); ++node)
      std::ofstream(nodes.folder(node) / "checkpoint_1" / "manifest.json", std::ios::trunc) << "{";
  }
  mpi::barrier(comm);
  check_newest(comm, store, 10);
}

TEST_CASE("checkpoints in memory need their folder on each node") {
  const auto comm = mpi::Communicator::world();
  const auto root = scratch(comm, "memory_store");
  MemoryNode node{.folder = root};
  if (comm.rank() == comm.size() - 1) node.folder /= "missing";
  CHECK_THROWS_WITH(MemoryStore(comm, node, {}), Catch::Contains("There is no folder"));
}
