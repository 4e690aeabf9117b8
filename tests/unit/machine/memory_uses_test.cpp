// Memory that is released and handed out again: which uses the next owner has to come after.
#include "machine/races/memory_uses.hpp"

#include <ATen/ops/from_blob.h>

#include <array>
#include <memory>

#include "machine/races/storage_memory.hpp"
#include "support/catch.hpp"

using namespace hortator;
using machine::MemoryOwner;
using machine::MemoryUses;

namespace {

constexpr int stream = 1;
constexpr int other_stream = 2;

/// Storages that are released by hand.
struct Storages {
  MemoryOwner owner(std::uintptr_t begin, std::uintptr_t end, int timeline = stream) {
    auto is_gone = gone.emplace_back(std::make_shared<bool>(false));
    return {.begin = begin, .end = end, .storage = is_gone.get(), .timeline = timeline, .is_gone = [is_gone] {
              return *is_gone;
            }};
  }
  std::vector<std::shared_ptr<bool>> gone;
};

void read(machine::AccessHistory& history, std::uintptr_t begin, std::uintptr_t end, int timeline) {
  history.reads.push_back({.bytes = {begin, end}, .timeline = timeline, .tick = 1});
}

}  // namespace

TEST_CASE("the next storage of a stream gets the uses of the one before, except those that the allocator waited for") {
  for (const bool kept : {false, true}) {
    MemoryUses memory;
    Storages storages;
    auto& history = memory.add(storages.owner(100, 200));
    read(history, 100, 150, stream);
    read(history, 100, 200, other_stream);
    if (kept) memory.keep_for(100, other_stream);
    *storages.gone.back() = true;
    const auto& next = memory.add(storages.owner(100, 200));
    REQUIRE(next.reads.size() == (kept ? 1U : 2U));
    CHECK(next.reads.front().timeline == stream);
  }
}

TEST_CASE("uses are kept while their storage exists, whatever else looks at the memory") {
  MemoryUses memory;
  Storages storages;
  read(memory.add(storages.owner(100, 200)), 100, 200, other_stream);
  memory.keep_for(100, other_stream);
  CHECK(memory.add(storages.owner(100, 150)).reads.size() == 1);
  CHECK(memory.of_range(120, 130).reads.size() == 1);
}

TEST_CASE("memory that comes to another stream or back to the host has no uses to wait for") {
  MemoryUses memory;
  Storages storages;
  read(memory.add(storages.owner(100, 200)), 100, 200, other_stream);
  *storages.gone.back() = true;
  CHECK(memory.add(storages.owner(100, 200, other_stream)).reads.empty());
  read(memory.add(storages.owner(300, 400, machine::host_timeline)), 300, 400, stream);
  *storages.gone.back() = true;
  CHECK(memory.add(storages.owner(300, 400, machine::host_timeline)).reads.empty());
}

TEST_CASE("memory that an allocator cuts otherwise keeps its uses") {
  MemoryUses memory;
  Storages storages;
  read(memory.add(storages.owner(100, 200)), 100, 200, other_stream);
  *storages.gone.back() = true;
  read(memory.add(storages.owner(200, 300)), 200, 300, other_stream);
  *storages.gone.back() = true;
  CHECK(memory.find(150, 250) == nullptr);
  CHECK(memory.add(storages.owner(150, 250)).reads.size() == 2);
  CHECK(memory.find(100, 300) != nullptr);
  CHECK(memory.find(50, 60) == nullptr);
}

TEST_CASE("a storage is known by its address and its memory") {
  MemoryUses memory;
  Storages storages;
  const auto owner = storages.owner(100, 200);
  memory.add(owner);
  CHECK(memory.find(100, 200, owner.storage) != nullptr);
  CHECK(memory.find(100, 200, &memory) == nullptr);
  CHECK(memory.find(100, 300, owner.storage) == nullptr);
}

TEST_CASE("a storage that is released while it is looked at goes after the locks") {
  std::array<float, 4> data = {};
  int released = 0;
  auto tensor = at::from_blob(
      data.data(), {4}, [&](void*) { ++released; }, at::TensorOptions());
  const auto owner = machine::owner_of(tensor, *machine::range_of(tensor), stream);
  {
    const machine::StorageDiscarder discarder;
    CHECK_FALSE(owner.is_gone());
    tensor.reset();
    CHECK(released == 0);
  }
  CHECK(released == 1);
  CHECK(owner.is_gone());
}
