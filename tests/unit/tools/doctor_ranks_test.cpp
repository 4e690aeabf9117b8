#include "doctor_fixture.hpp"

using namespace hortator::test;

TEST_CASE("GPUs are judged beside the ranks of the node") {
  const auto with = [](auto change) {
    auto devices = good_devices();
    change(devices);
    return devices;
  };
  finds(with([](Devices& all) { all.is_built = false; }), "GPUs", Severity::warning, "without CUDA", "with CUDA");
  finds(with([](Devices& all) { all.visible = all.distinct = 0; }), "GPUs", Severity::error, "shows none",
        "--gpus-per-node");
  finds(with([](Devices& all) { all.openable = 1; }), "GPUs", Severity::warning, "1 of 4", "without --gpus-per-task");
  is_well(Devices{.is_built = true, .files = 4, .openable = 1, .visible = 1, .distinct = 1, .local_ranks = 1});
  finds(with([](Devices& all) { all.local_ranks = 8; }), "GPUs", Severity::error, "4 GPUs for 8 ranks",
        "one rank a GPU");
  finds(with([](Devices& all) { all.local_ranks = 1; }), "GPUs", Severity::note, "3 of 4 stay idle", "one rank a GPU");
}

TEST_CASE("CPUs are judged beside the ranks of the node") {
  finds(Binding{.of_ranks = {{3}, {3}}, .machine_cpus = 8}, "CPU binding", Severity::error,
        "2 ranks of this node on 1 CPU", "--cpus-per-task");
  finds(Binding{.of_ranks = {{0}, {0}}, .machine_cpus = 1}, "CPU binding", Severity::warning, "wait for each other",
        "fewer ranks");
  finds(Binding{.of_ranks = {{0}, {1, 2, 3}}, .machine_cpus = 4}, "CPU binding", Severity::note, "one alone",
        "--cpus-per-task=2");
  is_well(Binding{.of_ranks = {{0}, {1}}, .machine_cpus = 2});
  is_well(Binding{.of_ranks = {{0, 1, 2}, {0, 1, 2}}, .machine_cpus = 3});
}

TEST_CASE("clocks that differ by more than a second are named") {
  finds(Clocks{.max_behind = 30, .worst = "n7"}, "clocks", Severity::warning, "n7 is 30 s behind", "chronyc");
  finds(Clocks{.max_behind = 1, .max_ahead = 5, .worst = "n8"}, "clocks", Severity::warning, "n8 is 5 s ahead of",
        "chronyc");
}

TEST_CASE("a fast network is of use only with what can drive it") {
  const auto with = [](auto change) {
    auto fabric = good_fabric();
    change(fabric);
    return fabric;
  };
  finds(with([](Fabric& all) { all.mpi_knows = false; }), "fabric", Severity::warning, "mlx5_0", "UCX");
  is_well(with([](Fabric& all) { all.mpi_knows = {}; }));
  finds(with([](Fabric& all) { all.devices = {"cxi0"}; }), "fabric", Severity::error, "libnccl-net", "aws-ofi-nccl");
  is_well(with([](Fabric& all) { all = {.devices = {"cxi0"}, .has_nccl = true, .nccl_plugin = true}; }));
  is_well(with([](Fabric& all) { all = {.devices = {"cxi0"}}; }));
  finds(with([](Fabric& all) { all.locked_memory = 64 * 1024; }), "fabric", Severity::error, "ulimit -l",
        "LimitMEMLOCK");
}
