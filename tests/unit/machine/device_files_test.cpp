#include "machine/device/device.hpp"

#include <fstream>

#include "support/catch.hpp"

using namespace hortator;
namespace fs = std::filesystem;

TEST_CASE("only device files that may be opened are counted") {
  const fs::path folder = "device_files";
  fs::remove_all(folder);
  CHECK(machine::device_files(folder).all == 0);
  fs::create_directory(folder);
  for (const char* name : {"nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia", "sda1"}) {
    std::ofstream(folder / name) << "";
  }
  CHECK(machine::device_files(folder).all == 2);
  CHECK(machine::device_files(folder).openable == 2);
  fs::create_symlink("nowhere", folder / "nvidia3");  // cannot be opened, not even by root
  CHECK(machine::device_files(folder).all == 3);
  CHECK(machine::device_files(folder).openable == 2);
}
