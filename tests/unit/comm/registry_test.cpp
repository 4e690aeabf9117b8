#include "comm/backends/registry.hpp"

#include <set>

#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("each back end of the table makes a communicator of its name and traits") {
  const auto world = mpi::Communicator::world();
  for (const auto& backend : comm::backends()) {
    if (!backend.traits.carries(at::kCPU)) continue;  // a device may be missing
    INFO(std::string(backend.name));
    const auto made = backend.make(world, at::kCPU, std::chrono::seconds(30));
    CHECK(made->name() == backend.name);
    CHECK(made->traits() == backend.traits);
    CHECK(made->size() == (backend.name == "self" ? 1 : world.size()));
    CHECK(made->split(0, made->rank())->traits() == backend.traits);
  }
}

TEST_CASE("each back end is found by its name, which is unique") {
  std::set<std::string_view> names;
  for (const auto& backend : comm::backends()) {
    CHECK(comm::find_backend(backend.name) == &backend);
    CHECK(names.insert(backend.name).second);
  }
  CHECK(comm::find_backend("nothing") == nullptr);
  CHECK(comm::backend_names() == std::vector<std::string>{"self", "mpi", "node", "nccl"});
}

TEST_CASE("traits give the devices whose tensors a back end carries") {
  const c10::Device cuda(c10::kCUDA, 0);
  CHECK((comm::find_backend("self")->traits.carries(at::kCPU) && comm::find_backend("self")->traits.carries(cuda)));
  CHECK((comm::find_backend("node")->traits.carries(at::kCPU) && !comm::find_backend("node")->traits.carries(cuda)));
  CHECK((!comm::find_backend("nccl")->traits.carries(at::kCPU) && comm::find_backend("nccl")->traits.carries(cuda)));
}
