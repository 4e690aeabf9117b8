#include "machine/energy/energy_meter.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/files.hpp"

using namespace hortator;
using Catch::Matchers::WithinAbs;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << content << '\n';
}

/// A zone of powercap.
void write_zone(const fs::path& root, const char* zone, const char* name, std::uint64_t microjoules) {
  const auto folder = root / "sys/class/powercap" / zone;
  write(folder / "name", name);
  write(folder / "energy_uj", std::to_string(microjoules));
  write(folder / "max_energy_range_uj", "262143328850");
}

}  // namespace

TEST_CASE("a node without counters measures nothing, and neither does one that may not be asked") {
  const test::OwnFolder folder("energy");
  machine::EnergyMeter none(folder.path);
  CHECK_FALSE(none.joules().has_value());
  CHECK(none.source().empty());
  write_zone(folder.path, "intel-rapl:0", "package-0", 1000);
  machine::EnergyMeter off("");
  CHECK_FALSE(off.joules().has_value());
  // What the kernel gives to root only looks like a folder to everyone here.
  fs::remove(folder.path / "sys/class/powercap/intel-rapl:0/energy_uj");
  fs::create_directory(folder.path / "sys/class/powercap/intel-rapl:0/energy_uj");
  machine::EnergyMeter unreadable(folder.path);
  CHECK_FALSE(unreadable.joules().has_value());
}

TEST_CASE("powercap: the packages and the memory beside them count, what is in them does not") {
  const test::OwnFolder folder("energy");
  const auto set = [&](std::uint64_t add) {
    write_zone(folder.path, "intel-rapl:0", "package-0", 1'000'000 + add);
    write_zone(folder.path, "intel-rapl:1", "package-1", 2'000'000 + 2 * add);
    write_zone(folder.path, "intel-rapl:0:0", "core", 500'000 + 100 * add);
    write_zone(folder.path, "intel-rapl:0:1", "dram", 100'000 + 3 * add);
    write_zone(folder.path, "intel-rapl:2", "psys", 9'000'000 + 100 * add);
    write_zone(folder.path, "intel-rapl-mmio:0", "package-0", 1'000'000 + add);
  };
  set(0);
  machine::EnergyMeter meter(folder.path);
  CHECK(meter.source() == "powercap");
  CHECK_FALSE(meter.includes_devices());
  CHECK(meter.joules() == 0);
  set(1'000'000);
  CHECK_THAT(*meter.joules(), WithinAbs(6, 1e-9));
  set(3'000'000);
  CHECK_THAT(*meter.joules(), WithinAbs(18, 1e-9));
}

TEST_CASE("powercap: a counter that begins again from 0 is followed") {
  const test::OwnFolder folder("energy");
  write_zone(folder.path, "intel-rapl:0", "package-0", 262'143'000'000);
  machine::EnergyMeter meter(folder.path);
  write_zone(folder.path, "intel-rapl:0", "package-0", 671'150);
  CHECK_THAT(*meter.joules(), WithinAbs(1.0, 1e-9));
  CHECK_THAT(*meter.joules(), WithinAbs(1.0, 1e-9));
  write_zone(folder.path, "intel-rapl:0", "package-0", 1'671'150);
  CHECK_THAT(*meter.joules(), WithinAbs(2.0, 1e-9));
}

TEST_CASE("Cray's counters come first, and include the accelerators") {
  const test::OwnFolder folder("energy");
  write_zone(folder.path, "intel-rapl:0", "package-0", 0);
  const auto file = folder.path / "sys/cray/pm_counters/energy";
  write(file, "84593 J 1795903000000 us");
  machine::EnergyMeter meter(folder.path);
  CHECK(meter.source() == "pm_counters");
  CHECK(meter.includes_devices());
  write(file, "84693 J 1795903100000 us");
  CHECK(meter.joules() == 100);
  write(file, "12 J 5 us");  // the node's controller was restarted
  CHECK(meter.joules() == 112);
}
