#include "unit/tools/doctor/doctor_fixture.hpp"

using namespace hortator::test;

TEST_CASE("kernels older than 5.5 are noted, newer and unknown ones are not") {
  for (const auto* old : {"5.4.0-150-generic", "4.18.0-553.el8_10.x86_64", "3.10.0"}) {
    auto machine = good_machine();
    machine.kernel = old;
    expect_finding(machine, "kernel", Severity::note, old, "newer kernel");
  }
  for (const auto* fine : {"5.5.0", "5.14.0-427.el9", "6.8", "10.0.1", "odd", ""}) {
    auto machine = good_machine();
    machine.kernel = fine;
    CHECK(finding(machine, "kernel").severity == Severity::ok);
  }
}

TEST_CASE("several RTX 40 cards with an old driver are an error, unless NCCL's transfers between them are off") {
  const CardFacts old{.models = {"NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"}, .driver = "535.129.03"};
  expect_finding(old, "cards", Severity::error, "2 cards, driver 535.129.03", "NCCL_P2P_DISABLE=1");
  const auto with = [&](auto change) {
    auto cards = old;
    change(cards);
    return cards;
  };
  for (const auto* fine : {"550.40.07", "550.54.14", "560.1", "1000.0.0"})
    CHECK(finding(with([&](CardFacts& cards) { cards.driver = fine; }), "cards").severity == Severity::ok);
  for (const auto* bad : {"550.40.06", "550.40", "550", "470.256.02"})
    CHECK(finding(with([&](CardFacts& cards) { cards.driver = bad; }), "cards").severity == Severity::error);
  CHECK(finding(with([](CardFacts& cards) {
                  cards.models = {"NVIDIA H100", "NVIDIA H100"};
                }),
                "cards")
            .severity == Severity::ok);
  CHECK(finding(with([](CardFacts& cards) { cards.is_p2p_off = cards.is_ib_off = true; }), "cards").severity ==
        Severity::ok);
  CHECK(finding(with([](CardFacts& cards) { cards.is_p2p_off = true; }), "cards").severity == Severity::error);
  CHECK(judge(with([](CardFacts& cards) { cards.models.pop_back(); })).empty());
  CHECK(judge(CardFacts()).empty());
}

TEST_CASE("the driver's files are parsed") {
  CHECK(parse_driver_version(
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19\nGCC version: 12.2.0\n") ==
        "535.129.03");
  CHECK(parse_driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build") ==
        "550.54.14");
  CHECK(parse_driver_version("").empty());
  CHECK(parse_card_model("Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 95\n") == "NVIDIA GeForce RTX 4090");
  CHECK(parse_card_model("Model:\n").empty());
}

TEST_CASE("shared memory is judged by the free bytes per rank") {
  auto machine = good_machine();
  machine.free_shared_memory = 4 * 64 * mib;
  CHECK(finding(machine, "shared memory").severity == Severity::ok);
  machine.free_shared_memory = 4 * 64 * mib - 1;
  expect_finding(machine, "shared memory", Severity::warning, "for 4 ranks", "--shm-size");
  machine.free_shared_memory = 4 * 16 * mib - 4;
  expect_finding(machine, "shared memory", Severity::error, "bus error", "--shm-size");
  machine.free_shared_memory = {};
  expect_finding(machine, "shared memory", Severity::error, "/dev/shm does not exist", "larger /dev/shm");
}

TEST_CASE("low limits and an unlimited stack are reported") {
  const auto with = [](auto change) {
    auto machine = good_machine();
    change(machine.limits);
    return machine;
  };
  expect_finding(with([](ProcessLimits& limits) { limits.open_files = 1023; }), "ulimits", Severity::warning,
                 "ulimit -n is 1023", "ulimit -n 4096");
  expect_finding(with([](ProcessLimits& limits) { limits.processes = 100; }), "ulimits", Severity::warning,
                 "ulimit -u is 100", "ulimit -u 4096");
  expect_finding(with([](ProcessLimits& limits) { limits.stack = {}; }), "ulimits", Severity::note, "unlimited",
                 "ulimit -s 8192");
  expect_finding(with([](ProcessLimits& limits) { limits.stack = mib; }), "ulimits", Severity::warning,
                 "1.0 MiB of stack", "ulimit -s 8192");
  expect_finding(with([](ProcessLimits& limits) { limits.address_space = 4 * gib; }), "ulimits", Severity::warning,
                 "4.0 GiB", "ulimit -v unlimited");
  expect_ok(with([](ProcessLimits& limits) { limits = {.stack = 8 * mib}; }));
  const auto both =
      judge(with([](ProcessLimits& limits) { limits = {.open_files = 1, .processes = 1, .stack = 8 * mib}; }));
  CHECK(std::count_if(both.begin(), both.end(), [](const Finding& one) { return one.check == "ulimits"; }) == 2);
}

TEST_CASE("RemoveIPC is reported where logind runs, unless it is off") {
  auto machine = good_machine();
  machine.has_logind = true;
  expect_finding(machine, "RemoveIPC", Severity::warning, "yes by default", "RemoveIPC=no");
  machine.remove_ipc = "yes";
  expect_finding(machine, "RemoveIPC", Severity::warning, "RemoveIPC=yes", "RemoveIPC=no");
  machine.remove_ipc = "no";
  expect_ok(machine);
  CHECK(parse_remove_ipc("[Login]\n#RemoveIPC=no\n").empty());
  CHECK(parse_remove_ipc("RemoveIPC=yes\n  RemoveIPC=no \nOther=1") == "no");
}

TEST_CASE("control groups are judged by memory and CPU time") {
  auto machine = good_machine();
  machine.group = {.memory = 512 * mib};
  expect_finding(machine, "control group", Severity::error, "512.0 MiB", "--mem");
  machine.group = {.memory = 31 * gib};
  expect_finding(machine, "control group", Severity::note, "31.0 GiB", "--mem=0");
  machine.group = {.memory = 32 * gib, .cpus = 16.0};
  expect_ok(machine);
  machine.group = {.cpus = 1.5};
  expect_finding(machine, "control group", Severity::warning, "1.5", "--cpus-per-task");
  CHECK(parse_cpu_max("150000 100000") == 1.5);
  CHECK(!parse_cpu_max("max 100000"));
  CHECK(!parse_cpu_max(""));
  CHECK(!parse_cpu_max("1 0"));
}

TEST_CASE("a folder is judged by all operations that a checkpoint needs") {
  const FolderFacts good{.path = "/scratch", .file_system = "lustre", .free_bytes = 9 * gib};
  const auto with = [&good](auto change) {
    auto folder = good;
    change(folder);
    return folder;
  };
  const auto unwritable = judge(with([](FolderFacts& folder) { folder.writing = "Read-only file system"; }));
  REQUIRE(unwritable.size() == 1);
  CHECK(unwritable.front().severity == Severity::error);
  CHECK_THAT(unwritable.front().message, ContainsSubstring("/scratch (lustre)") && ContainsSubstring("Read-only"));
  expect_finding(with([](FolderFacts& folder) { folder.free_bytes = gib - 1; }), "folder", Severity::warning, "little",
                 "parallel");
  expect_finding(with([](FolderFacts& folder) { folder.file_system = "tmpfs"; }), "folder", Severity::note, "memory",
                 "lost");
  expect_finding(with([](FolderFacts& folder) { folder.renaming = "x"; }), "rename", Severity::error, "by rename: x",
                 "elsewhere");
  expect_finding(with([](FolderFacts& folder) { folder.syncing = "x"; }), "fsync", Severity::error, "fsync: x",
                 "elsewhere");
  expect_finding(with([](FolderFacts& folder) { folder.flock = "x"; }), "file locks", Severity::warning, "flock: x",
                 "HDF5_USE_FILE_LOCKING=FALSE");
  expect_finding(with([](FolderFacts& folder) { folder.fcntl = "x"; }), "byte locks", Severity::warning, "x", "direct");
}

TEST_CASE("file_system_of uses the longest matching mount point") {
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
