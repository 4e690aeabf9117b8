#include "comm/nccl/devices.hpp"

#include "backends.hpp"
#include "core/text/text.hpp"

using namespace hortator;
using comm::NcclDevice;

namespace {

std::vector<NcclDevice> node(int ranks, int openable) {
  std::vector<NcclDevice> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    devices.push_back(
        {.rank = rank + 8, .uuid = text::concat("GPU-", rank), .name = "NVIDIA H100", .openable = openable});
  }
  return devices;
}

}  // namespace

TEST_CASE("ranks with separate devices are accepted, however many a rank may see") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    CHECK(comm::check_nccl_devices(node(ranks, 8)).empty());
    CHECK(comm::check_nccl_devices(node(ranks, ranks)).empty());
    CHECK(comm::check_nccl_devices(node(ranks, 0)).empty());  // unknown
  }
}

TEST_CASE("a device cgroup for each rank is a warning that names the flags of srun") {
  CHECK(comm::check_nccl_devices(node(1, 1)).empty());
  const auto warning = comm::check_nccl_devices(node(4, 1));
  CHECK_THAT(warning, ContainsSubstring("rank 8 may open 1 GPU only, of a node with 4 ranks"));
  CHECK_THAT(warning, ContainsSubstring("NVLink") &&
                          ContainsSubstring("--gpus-per-node=4, without --gpus-per-task and --gpu-bind"));
  auto one = node(4, 4);
  one[2].openable = 2;
  CHECK_THAT(comm::check_nccl_devices(one), ContainsSubstring("rank 10 may open 2 GPUs only"));
}

TEST_CASE("ranks that share a device are named") {
  auto devices = node(4, 4);
  devices[3].uuid = devices[1].uuid;
  CHECK_THROWS_WITH(comm::check_nccl_devices(devices), ContainsSubstring("Ranks 9 and 11 share the GPU GPU-1") &&
                                                           ContainsSubstring("--ntasks-per-node") &&
                                                           ContainsSubstring("HORTATOR_DEVICE=cpu"));
}

TEST_CASE("slices of a device are refused with the reason") {
  auto devices = node(2, 2);
  devices[1].name = "NVIDIA A100-SXM4-80GB MIG 1g.10gb";
  CHECK_THROWS_WITH(comm::check_nccl_devices(devices),
                    ContainsSubstring("Rank 9 has a slice of a GPU") && ContainsSubstring("no path to each other"));
}
