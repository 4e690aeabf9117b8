#include "machine/cpu/device_locality.hpp"

#include <fstream>

#include "machine/cpu/device_binding.hpp"
#include "support/catch.hpp"

using namespace hortator;
using machine::CpuSet;
using machine::DeviceBinding;
namespace fs = std::filesystem;

namespace {

/// A tree like sysfs's: two sockets, each with a switch that has two GPUs and one network device behind it.
class FakeSys {
 public:
  FakeSys() { fs::remove_all(root_); }
  ~FakeSys() { fs::remove_all(root_); }
  FakeSys(const FakeSys&) = delete;
  FakeSys& operator=(const FakeSys&) = delete;
  const fs::path& root() const { return root_; }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  /// `path` within devices/; the last part is its address.
  void add_device(const fs::path& path, int numa_node, const std::string& cpus) const {
    const auto folder = fs::path("devices") / path;
    write(folder / "numa_node", std::to_string(numa_node));
    write(folder / "local_cpulist", cpus);
    link(root_ / folder, fs::path("bus/pci/devices") / path.filename());
  }
  void add_to_class(const std::string& kind, const std::string& name, const fs::path& path) const {
    link(root_ / "devices" / path, fs::path("class") / kind / name / "device");
  }

 private:
  void link(const fs::path& to, const fs::path& at) const {
    fs::create_directories((root_ / at).parent_path());
    fs::create_directory_symlink(fs::absolute(to), root_ / at);
  }

  fs::path root_ = "folder_fake_sys";
};

void add_sockets(const FakeSys& sys) {
  for (const int socket : {0, 1}) {
    const std::string root = socket == 0 ? "pci0000:10" : "pci0000:80";
    const std::string bus = socket == 0 ? "0000:1" : "0000:8";
    const auto behind_switch = fs::path(root) / (bus + "0:01.0") / (bus + "1:00.0");
    const std::string cpus = socket == 0 ? "0-3,8-11" : "4-7,12-15";
    sys.add_device(behind_switch / (bus + "2:00.0"), socket, cpus);
    sys.add_device(behind_switch / (bus + "3:00.0"), socket, cpus);
    sys.add_device(behind_switch / (bus + "4:00.0"), socket, cpus);
    sys.add_to_class("infiniband", socket == 0 ? "mlx5_1" : "mlx5_0", behind_switch / (bus + "4:00.0"));
  }
  sys.write("devices/system/cpu/online", "0-15");
}

const CpuSet all_cpus = machine::from_ranges("0-15");
const CpuSet left_cpus = machine::from_ranges("0-3,8-11");

}  // namespace

TEST_CASE("the locality of a device is its NUMA node, the CPUs near it and the network device behind the same switch") {
  const FakeSys sys;
  add_sockets(sys);
  for (const char* gpu : {"0000:12:00.0", "0000:13:00.0"}) {
    const auto locality = machine::find_locality(gpu, sys.root());
    CHECK(locality == machine::DeviceLocality{.numa_node = 0, .cpus = left_cpus, .network = "mlx5_1"});
    CHECK(to_string(locality) == "NUMA node 0, nearest network device mlx5_1");
  }
  const auto other = machine::find_locality("0000:82:00.0", sys.root());
  CHECK(other.numa_node == 1);
  CHECK(other.network == "mlx5_0");
  CHECK(machine::online_cpus(sys.root()) == all_cpus);
}

TEST_CASE(
    "of network devices one of the same NUMA node is nearer than any other, then one with fewer bridges between") {
  const FakeSys sys;
  sys.add_device("pci0000:00/0000:00:01.0/0000:01:00.0", 0, "0-1");
  sys.add_device("pci0000:00/0000:00:02.0/0000:02:00.0", 1, "2-3");
  sys.add_device("pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0", 0, "0-1");
  sys.add_device("pci0000:40/0000:40:01.0/0000:43:00.0", 0, "0-1");
  const auto nearest = [&] { return machine::find_locality("0000:01:00.0", sys.root()).network; };
  CHECK(nearest().empty());
  sys.add_to_class("net", "eth0", "pci0000:00/0000:00:02.0/0000:02:00.0");
  fs::create_directories(sys.root() / "class/net/lo");
  CHECK(nearest() == "eth0");
  sys.add_to_class("net", "eth1", "pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0");
  CHECK(nearest() == "eth1");
  sys.add_to_class("net", "eth2", "pci0000:40/0000:40:01.0/0000:43:00.0");
  CHECK(nearest() == "eth2");
  // The fabric is preferred at any distance.
  sys.add_to_class("cxi", "cxi0", "pci0000:00/0000:00:02.0/0000:02:00.0");
  CHECK(nearest() == "cxi0");
}

TEST_CASE("single NUMA nodes, hidden device trees and empty files are not errors") {
  const FakeSys sys;
  CHECK(machine::find_locality("0000:01:00.0", sys.root()) == machine::DeviceLocality{});
  CHECK(machine::online_cpus(sys.root()).empty());
  sys.add_device("pci0000:00/0000:01:00.0", -1, "not a list");
  const auto locality = machine::find_locality("0000:01:00.0", sys.root());
  CHECK(locality == machine::DeviceLocality{});
  CHECK(to_string(locality).empty());
}

TEST_CASE("unbound ranks keep the CPUs near their device") {
  const std::vector<CpuSet> alike(4, all_cpus);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(machine::bind_to_device(alike, rank, all_cpus, left_cpus) ==
          DeviceBinding{.outcome = DeviceBinding::Outcome::bind, .cpus = left_cpus});
  }
  // A job with a part of the node.
  const std::vector<CpuSet> part(2, CpuSet{2, 3, 4, 5});
  CHECK(machine::bind_to_device(part, 1, all_cpus, left_cpus).cpus == CpuSet{2, 3});
  CHECK(machine::bind_to_device(std::vector<CpuSet>{all_cpus}, 0, all_cpus, left_cpus).cpus == left_cpus);
}

TEST_CASE("a binding by the launcher stays, and is reported") {
  using Outcome = DeviceBinding::Outcome;
  const auto outcome_of = [](const std::vector<CpuSet>& sets, int rank, const CpuSet& near = left_cpus) {
    const auto binding = machine::bind_to_device(sets, rank, all_cpus, near);
    CHECK(binding.cpus == sets[static_cast<std::size_t>(rank)]);
    return binding.outcome;
  };
  const std::vector<CpuSet> by_launcher = {{0, 1}, {2, 3, 4}, {5, 6}};
  CHECK(outcome_of(by_launcher, 0) == Outcome::near);
  CHECK(outcome_of(by_launcher, 1) == Outcome::launcher);
  CHECK(outcome_of(by_launcher, 2) == Outcome::launcher_far);
  CHECK(outcome_of({{3, 4}}, 0) == Outcome::launcher);                            // alone, with a part of the node
  CHECK(outcome_of({{0, 4, 5, 6, 7}, {0, 4, 5, 6, 7}}, 0) == Outcome::launcher);  // one near CPU for two ranks
  CHECK(outcome_of(by_launcher, 1, {}) == Outcome::unknown);
  CHECK(outcome_of({all_cpus, all_cpus}, 0, all_cpus) == Outcome::near);
  CHECK(to_string(Outcome::unknown).empty());
  for (const auto outcome : {Outcome::near, Outcome::bind, Outcome::launcher, Outcome::launcher_far})
    CHECK_FALSE(to_string(outcome).empty());
}
