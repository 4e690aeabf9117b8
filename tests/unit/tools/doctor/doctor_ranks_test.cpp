#include "unit/tools/doctor/doctor_fixture.hpp"

using namespace hortator::test;

TEST_CASE("GPUs are compared with the ranks of the node") {
  const auto with = [](auto change) {
    auto devices = good_devices();
    change(devices);
    return devices;
  };
  expect_finding(with([](DeviceFacts& all) { all.is_built = false; }), "GPUs", Severity::warning, "without CUDA",
                 "with CUDA");
  expect_finding(with([](DeviceFacts& all) { all.visible = all.distinct = 0; }), "GPUs", Severity::error, "shows none",
                 "--gpus-per-node");
  expect_finding(with([](DeviceFacts& all) { all.openable = 1; }), "GPUs", Severity::warning, "1 of 4",
                 "without --gpus-per-task");
  expect_ok(DeviceFacts{.is_built = true, .files = 4, .openable = 1, .visible = 1, .distinct = 1, .local_ranks = 1});
  expect_finding(with([](DeviceFacts& all) { all.local_ranks = 8; }), "GPUs", Severity::error, "4 GPUs for 8 ranks",
                 "one rank for each GPU");
  expect_finding(with([](DeviceFacts& all) { all.local_ranks = 1; }), "GPUs", Severity::note, "3 of 4 stay idle",
                 "one rank for each GPU");
}

TEST_CASE("CPUs are compared with the ranks of the node") {
  expect_finding(BindingFacts{.of_ranks = {{3}, {3}}, .machine_cpus = 8}, "CPU binding", Severity::error,
                 "2 ranks of this node on 1 CPU", "--cpus-per-task");
  expect_finding(BindingFacts{.of_ranks = {{0}, {0}}, .machine_cpus = 1}, "CPU binding", Severity::warning,
                 "wait for each other", "fewer ranks");
  expect_finding(BindingFacts{.of_ranks = {{0}, {1, 2, 3}}, .machine_cpus = 4}, "CPU binding", Severity::note,
                 "only one", "--cpus-per-task=2");
  expect_ok(BindingFacts{.of_ranks = {{0}, {1}}, .machine_cpus = 2});
  expect_ok(BindingFacts{.of_ranks = {{0, 1, 2}, {0, 1, 2}}, .machine_cpus = 3});
}

TEST_CASE("clocks that differ by more than a second are reported") {
  expect_finding(ClockFacts{.max_behind = 30, .worst = "n7"}, "clocks", Severity::warning, "n7 is 30 s behind",
                 "chronyc");
  expect_finding(ClockFacts{.max_behind = 1, .max_ahead = 5, .worst = "n8"}, "clocks", Severity::warning,
                 "n8 is 5 s ahead of", "chronyc");
}

TEST_CASE("a fast network needs a library that supports it") {
  const auto with = [](auto change) {
    auto fabric = good_fabric();
    change(fabric);
    return fabric;
  };
  expect_finding(with([](FabricFacts& all) { all.mpi_supports_fabrics = false; }), "fabric", Severity::warning,
                 "mlx5_0", "UCX");
  expect_ok(with([](FabricFacts& all) { all.mpi_supports_fabrics = {}; }));
  expect_finding(with([](FabricFacts& all) { all.devices = {"cxi0"}; }), "fabric", Severity::error, "libnccl-net",
                 "aws-ofi-nccl");
  expect_ok(with([](FabricFacts& all) { all = {.devices = {"cxi0"}, .has_nccl = true, .nccl_plugin = true}; }));
  expect_ok(with([](FabricFacts& all) { all = {.devices = {"cxi0"}}; }));
  expect_finding(with([](FabricFacts& all) { all.locked_memory = 64 * 1024; }), "fabric", Severity::error, "ulimit -l",
                 "LimitMEMLOCK");
}
