#include <algorithm>

#include "cli/doctor/finding.hpp"
#include "cli/doctor/folder.hpp"
#include "cli/doctor/libraries.hpp"
#include "cli/doctor/machine.hpp"
#include "cli/doctor/ranks.hpp"
#include "support/catch.hpp"

using namespace hortator::cli::doctor;

namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

Machine good_machine() {
  return {.kernel = "6.1.0-13-amd64",
          .local_ranks = 4,
          .free_shared_memory = 8 * gib,
          .limits = {.open_files = 1024, .processes = 60000, .stack = 8 * mib},
          .memory = 64 * gib,
          .cpus = 16};
}

Libraries good_libraries() {
  return {.libtorch_built = "2.15.0",
          .libtorch_loaded = "2.15.0",
          .mpi_built = "Open MPI v4.1.4",
          .mpi_loaded = "Open MPI v4.1.4",
          .mpi_files = {"/usr/lib/libmpi.so.40"},
          .mpirun = "mpirun (Open MPI) 4.1.4",
          .hdf5_built = "HDF5 1.10.8",
          .hdf5_loaded = {.version = "HDF5 1.10.8", .files = {"/usr/lib/libhdf5.so.103"}}};
}

Devices good_devices() {
  return {.is_built = true, .files = 4, .openable = 4, .visible = 4, .distinct = 4, .local_ranks = 4};
}

Fabric good_fabric() { return {.devices = {"mlx5_0"}, .mpi_knows = true, .has_nccl = true}; }

/// The one finding of that name; there is none when it is not the only one.
template <typename Facts>
Finding finding(const Facts& facts, const std::string& check) {
  Findings found = judge(facts);
  std::erase_if(found, [&](const Finding& one) { return one.check != check; });
  REQUIRE(found.size() == 1);
  return found.front();
}

template <typename Facts>
void is_well(const Facts& facts) {
  for (const auto& one : judge(facts)) {
    INFO(one.check << ": " << one.says);
    CHECK(one.severity == Severity::ok);
    CHECK(one.remedy.empty());
  }
}

template <typename Facts>
void finds(const Facts& facts, const std::string& check, Severity severity, const std::string& words,
           const std::string& remedy) {
  const auto one = finding(facts, check);
  CHECK(one.severity == severity);
  CHECK_THAT(one.says, ContainsSubstring(words));
  CHECK_THAT(one.remedy, ContainsSubstring(remedy));
}

}  // namespace

TEST_CASE("a good machine has nothing but good news") {
  is_well(good_machine());
  is_well(good_libraries());
  is_well(good_devices());
  is_well(good_fabric());
  is_well(Fabric{});
  is_well(Devices{});
  is_well(Clocks{.most_behind = 0.2, .most_ahead = 0.9});
  is_well(Binding{.of_ranks = {{0, 1}, {2, 3}}, .machine_cpus = 4});
  is_well(Folder{.path = "/scratch", .file_system = "lustre", .free_bytes = 9 * gib});
}

TEST_CASE("kernels older than 5.5 are a note, others and unknown ones are not") {
  for (const auto* old : {"5.4.0-150-generic", "4.18.0-553.el8_10.x86_64", "3.10.0"}) {
    auto machine = good_machine();
    machine.kernel = old;
    finds(machine, "kernel", Severity::note, old, "newer kernel");
  }
  for (const auto* fine : {"5.5.0", "5.14.0-427.el9", "6.8", "10.0.1", "odd", ""}) {
    auto machine = good_machine();
    machine.kernel = fine;
    CHECK(finding(machine, "kernel").severity == Severity::ok);
  }
}

TEST_CASE("shared memory is judged by what is free a rank") {
  auto machine = good_machine();
  machine.free_shared_memory = 4 * 64 * mib;
  CHECK(finding(machine, "shared memory").severity == Severity::ok);
  machine.free_shared_memory = 4 * 64 * mib - 1;
  finds(machine, "shared memory", Severity::warning, "for 4 ranks", "--shm-size");
  machine.free_shared_memory = 4 * 16 * mib - 4;
  finds(machine, "shared memory", Severity::error, "bus error", "--shm-size");
  machine.free_shared_memory = {};
  finds(machine, "shared memory", Severity::error, "no /dev/shm", "larger /dev/shm");
}

TEST_CASE("each low limit is found, and an unlimited stack") {
  const auto with = [](auto change) {
    auto machine = good_machine();
    change(machine.limits);
    return machine;
  };
  finds(with([](Limits& limits) { limits.open_files = 1023; }), "ulimits", Severity::warning, "ulimit -n is 1023",
        "ulimit -n 4096");
  finds(with([](Limits& limits) { limits.processes = 100; }), "ulimits", Severity::warning, "ulimit -u is 100",
        "ulimit -u 4096");
  finds(with([](Limits& limits) { limits.stack = {}; }), "ulimits", Severity::note, "unlimited", "ulimit -s 8192");
  finds(with([](Limits& limits) { limits.stack = mib; }), "ulimits", Severity::warning, "1.0 MiB of stack",
        "ulimit -s 8192");
  finds(with([](Limits& limits) { limits.address_space = 4 * gib; }), "ulimits", Severity::warning, "4.0 GiB",
        "ulimit -v unlimited");
  is_well(with([](Limits& limits) { limits = {.stack = 8 * mib}; }));
  const auto both = judge(with([](Limits& limits) { limits = {.open_files = 1, .processes = 1, .stack = 8 * mib}; }));
  CHECK(std::count_if(both.begin(), both.end(), [](const Finding& one) { return one.check == "ulimits"; }) == 2);
}

TEST_CASE("RemoveIPC matters where logind is, unless it is off") {
  auto machine = good_machine();
  machine.has_logind = true;
  finds(machine, "RemoveIPC", Severity::warning, "yes by default", "RemoveIPC=no");
  machine.remove_ipc = "yes";
  finds(machine, "RemoveIPC", Severity::warning, "RemoveIPC=yes", "RemoveIPC=no");
  machine.remove_ipc = "no";
  is_well(machine);
  CHECK(parse_remove_ipc("[Login]\n#RemoveIPC=no\n").empty());
  CHECK(parse_remove_ipc("RemoveIPC=yes\n  RemoveIPC=no \nOther=1") == "no");
}

TEST_CASE("control groups are judged by memory and by time") {
  auto machine = good_machine();
  machine.group = {.memory = 512 * mib};
  finds(machine, "control group", Severity::error, "512.0 MiB", "--mem");
  machine.group = {.memory = 31 * gib};
  finds(machine, "control group", Severity::note, "31.0 GiB", "--mem=0");
  machine.group = {.memory = 32 * gib, .cpus = 16.0};
  is_well(machine);
  machine.group = {.cpus = 1.5};
  finds(machine, "control group", Severity::warning, "1.5", "--cpus-per-task");
  CHECK(parse_cpu_max("150000 100000") == 1.5);
  CHECK(!parse_cpu_max("max 100000"));
  CHECK(!parse_cpu_max(""));
  CHECK(!parse_cpu_max("1 0"));
}

TEST_CASE("a folder is judged by everything that a checkpoint asks of it") {
  const Folder good{.path = "/scratch", .file_system = "lustre", .free_bytes = 9 * gib};
  const auto with = [&good](auto change) {
    auto folder = good;
    change(folder);
    return folder;
  };
  const auto unwritable = judge(with([](Folder& folder) { folder.writing = "Read-only file system"; }));
  REQUIRE(unwritable.size() == 1);
  CHECK(unwritable.front().severity == Severity::error);
  CHECK_THAT(unwritable.front().says, ContainsSubstring("/scratch (lustre)") && ContainsSubstring("Read-only"));
  finds(with([](Folder& folder) { folder.free_bytes = gib - 1; }), "folder", Severity::warning, "little", "parallel");
  finds(with([](Folder& folder) { folder.file_system = "tmpfs"; }), "folder", Severity::note, "memory", "lost");
  finds(with([](Folder& folder) { folder.renaming = "x"; }), "rename", Severity::error, "by rename: x", "elsewhere");
  finds(with([](Folder& folder) { folder.syncing = "x"; }), "fsync", Severity::error, "fsync: x", "elsewhere");
  finds(with([](Folder& folder) { folder.flock = "x"; }), "file locks", Severity::warning, "flock: x",
        "HDF5_USE_FILE_LOCKING=FALSE");
  finds(with([](Folder& folder) { folder.fcntl = "x"; }), "byte locks", Severity::warning, "x", "direct");
}

TEST_CASE("a folder's file system is that of the longest mount point above it") {
  const std::string mounts =
      "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 24 0:2 / /scratch rw shared:1 - lustre o2ib:/s rw\n"
      "31 30 0:3 / /scratch/me rw - tmpfs tmpfs rw\n";
  CHECK(file_system_of("/home/x", mounts) == "ext4");
  CHECK(file_system_of("/scratch", mounts) == "lustre");
  CHECK(file_system_of("/scratchy", mounts) == "ext4");
  CHECK(file_system_of("/scratch/me/run", mounts) == "tmpfs");
  CHECK(file_system_of("/scratch/men", mounts) == "lustre");
  CHECK(file_system_of("/x", "").empty());
}

TEST_CASE("libraries that do not fit are found, naming both versions") {
  const auto with = [](auto change) {
    auto libraries = good_libraries();
    change(libraries);
    return libraries;
  };
  const auto mismatch = [&](auto change, const char* check, const char* built, const char* loaded) {
    const auto one = finding(with(change), check);
    CHECK(one.severity == Severity::error);
    CHECK_THAT(one.says, ContainsSubstring(built) && ContainsSubstring(loaded));
    CHECK(!one.remedy.empty());
  };
  mismatch([](Libraries& all) { all.libtorch_loaded = "2.14.0"; }, "LibTorch", "2.15.0", "2.14.0");
  mismatch([](Libraries& all) { all.mpi_loaded = "Open MPI v5.0.7"; }, "MPI", "Open MPI v4.1.4", "Open MPI v5.0.7");
  mismatch([](Libraries& all) { all.hdf5_loaded.version = "HDF5 1.14.5"; }, "HDF5", "HDF5 1.10.8", "HDF5 1.14.5");
  mismatch([](Libraries& all) { all.mpirun = "HYDRA build details:"; }, "mpirun", "Open MPI v4.1.4", "HYDRA");
  mismatch([](Libraries& all) { all.mpirun = "mpirun (Open MPI) 5.0.7"; }, "mpirun", "4.1.4", "5.0.7");
  finds(with([](Libraries& all) { all.mpi_files.emplace_back("/opt/libmpi.so.12"); }), "MPI", Severity::error,
        "/opt/libmpi.so.12", "no other");
  finds(with([](Libraries& all) { all.hdf5_loaded.files.emplace_back("/opt/libhdf5.so.310"); }), "HDF5",
        Severity::error, "two HDF5s, /usr/lib/libhdf5.so.103 and /opt/libhdf5.so.310", "no other");
  finds(with([](Libraries& all) { all.hdf5_loaded.is_parallel = false; }), "HDF5", Severity::error, "is serial",
        "load the HDF5 module");
  finds(with([](Libraries& all) { all.mpirun = ""; }), "mpirun", Severity::note, "none", "module");
  is_well(with([](Libraries& all) { all.mpirun = "", all.own_mpirun = "/opt/mpirun"; }));
  finds(with([](Libraries& all) { all.mpirun = "HYDRA build details:", all.own_mpirun = "/opt/mpirun"; }), "mpirun",
        Severity::warning, "each rank would think that it is alone", "hortator launch, which takes /opt/mpirun");
  finds(with([](Libraries& all) { all.torch_in_path = "/opt/torch/lib"; }), "LD_LIBRARY_PATH", Severity::warning,
        "/opt/torch/lib", "take that folder out");
}

TEST_CASE("driver and NCCL are judged where there is CUDA") {
  const auto cuda = [](const char* toolkit, const char* driver) {
    auto libraries = good_libraries();
    libraries.cuda_toolkit = toolkit;
    libraries.nvidia_driver = driver;
    return finding(libraries, "CUDA");
  };
  CHECK(cuda("13.0", "580.65.06").severity == Severity::ok);
  CHECK(cuda("12.4", "525.60").severity == Severity::ok);
  CHECK(cuda("13.0", "").severity == Severity::note);
  CHECK(cuda("13.0", "570.10").severity == Severity::error);
  CHECK_THAT(cuda("13.0", "570.10").remedy, ContainsSubstring("580"));
  CHECK(cuda("12.4", "470.1").severity == Severity::error);
  CHECK(parse_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27") == "580.65.06");
  CHECK(parse_driver("").empty());

  const auto nccl = [](const char* built, const char* loaded) {
    auto libraries = good_libraries();
    libraries.nccl_built = built;
    libraries.nccl_loaded = loaded;
    return finding(libraries, "NCCL").severity;
  };
  CHECK(nccl("2.30.7", "2.30.7") == Severity::ok);
  CHECK(nccl("2.9.7", "2.28.0") == Severity::ok);
  CHECK(nccl("2.30.7", "2.28.9") == Severity::error);
  CHECK(nccl("2.30.7", "3.0.0") == Severity::error);
}

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
  finds(Clocks{.most_behind = 30, .worst = "n7"}, "clocks", Severity::warning, "n7 is 30 s behind", "chronyc");
  finds(Clocks{.most_behind = 1, .most_ahead = 5, .worst = "n8"}, "clocks", Severity::warning, "n8 is 5 s ahead of",
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

TEST_CASE("what several ranks find is said once, and what is well only where all are") {
  const Finding well{"clocks", Severity::ok, "fine"};
  const Finding bad{"clocks", Severity::warning, "late", "NTP"};
  const Finding other{"kernel", Severity::ok, "6.1"};
  CHECK((merge({well, well, other}) == Findings{{"clocks", Severity::ok, "fine", "", 2}, other}));
  CHECK((merge({well, other, bad, well, bad}) == Findings{other, {"clocks", Severity::warning, "late", "NTP", 2}}));
  CHECK(merge({}).empty());
}

TEST_CASE("findings come through the way between ranks, and out for people and for programs") {
  const Findings findings = {{"fsync", Severity::error, "no \"fsync\"\n", "elsewhere", 3},
                             {"kernel", Severity::ok, "6.1"}};
  CHECK((decode(encode(findings)) == findings));
  CHECK(has_errors(findings));
  CHECK(!has_errors({{"kernel", Severity::warning, "x", "y"}}));
  const auto object = for_programs(findings, 4);
  CHECK(object["ranks"] == 4);
  CHECK(object["errors"] == 1);
  CHECK(object["warnings"] == 0);
  CHECK(object["findings"][0]["remedy"] == "elsewhere");
  CHECK(object["findings"][1]["severity"] == "ok");
  const auto text = for_people(findings, 4);
  CHECK_THAT(text, ContainsSubstring("error    fsync") && ContainsSubstring("(3 of 4 ranks)") &&
                       ContainsSubstring("remedy: elsewhere") && ContainsSubstring("1 error, 0 warnings"));
}
