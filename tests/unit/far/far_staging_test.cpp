// Memory into which an asynchronous save copies its tensors.
#include <ATen/ATen.h>

#include "checkpoint/write/source.hpp"
#include "host_device.hpp"
#include "support/catch.hpp"
#include "support/far_device.hpp"

using namespace hortator;

TEST_CASE("memory that was allocated for tensors of the host is not used for copies from a device", "[far]") {
  const auto values = at::arange(64, at::kFloat);
  const auto sources = [](const at::Tensor& tensor) {
    return std::vector<checkpoint::Source>{{.tensor = tensor, .slab = {.tensor = 0, .elements = {0, tensor.numel()}}}};
  };
  const auto page_locked = [] { return test::host_device().page_locked_blocks.load(); };
  const int before = page_locked();
  checkpoint::Staging staging;
  staging.copy(sources(values));
  CHECK(page_locked() == before);
  const auto copies = staging.copy(sources(values.to(test::far_device)));
  CHECK(page_locked() == before + 1);
  CHECK(at::equal(copies[0].tensor, values));
  staging.copy(sources(values));  // usable for these as well
  CHECK(at::equal(staging.copy(sources(values.to(test::far_device)))[0].tensor, values));
  CHECK(page_locked() == before + 1);
}
