#include <filesystem>
#include <set>

#include "machine/device/device.hpp"
#include "machine/device/graph.hpp"
#include "machine/device/monitor.hpp"
#include "machine/device/stream.hpp"
#include "support/catch.hpp"
#include "support/gpu.hpp"

#include <c10/core/StreamGuard.h>

using namespace hortator;

namespace {

// A tensor of ones that takes the device some milliseconds to compute.
at::Tensor slow_ones() {
  constexpr int width = test::is_simulated ? 8 : 1024;
  auto data = at::ones({width, width}, test::accelerator_type);
  for (int i = 0; i < 40; ++i) data = at::mm(data, data).mul_(1.0 / width);
  return data;
}

}  // namespace

TEST_CASE("devices that are there have names and UUIDs of their own") {
  if (!test::has_hardware()) return;
  std::set<std::string> uuids;
  const auto devices = machine::visible_devices();
  for (const auto device : devices) {
    const auto [name, uuid, address] = machine::identify(device);
    CHECK_FALSE(name.empty());
    CHECK(uuid.size() == std::string("GPU-01234567-89ab-cdef-0123-456789abcdef").size());
    uuids.insert(uuid);
    CHECK(address.size() == std::string("0000:3b:00.0").size());
    if (std::filesystem::exists("/sys/bus/pci/devices"))
      CHECK(std::filesystem::exists("/sys/bus/pci/devices/" + address));
    CHECK_NOTHROW(machine::set_current(device));
  }
  CHECK(uuids.size() == devices.size());
  machine::set_current(devices.front());
}

TEST_CASE("the driver's own library knows the devices that CUDA sees") {
  if (!test::has_hardware()) return;
  for (const auto device : machine::visible_devices()) {
    const auto& library = *machine::kind_of(device)->monitor;
    const auto use = library.open(library.file, machine::identify(device))->look();
    REQUIRE(use);
    CHECK(use->total_bytes > 1ull << 30);
    CHECK(use->used_bytes <= use->total_bytes);
    CHECK((!use->busy || (*use->busy >= 0 && *use->busy <= 1)));
  }
}

TEST_CASE("a stream waits for the current stream, and the current stream for it") {
  if (!test::has_gpu()) return;
  const machine::Stream side({test::accelerator_type, 0});
  for (int i = 0; i < 20; ++i) {
    const auto made = slow_ones();
    at::Tensor doubled;
    side.follow_current();
    {
      const c10::StreamGuard there(side.get());
      doubled = made * 2;
      for (int k = 0; k < 20; ++k) doubled = doubled + slow_ones() * 0;
    }
    side.mark().hold_current_stream();
    CHECK((doubled + 1).eq(3).all().item<bool>());
  }
}

TEST_CASE("a graph replays recorded work on the present values of its inputs") {
  if (!test::has_gpu()) return;
  machine::Graph graph({test::accelerator_type, 0});
  const auto input = at::full({4}, 1.0, test::accelerator_type);
  at::Tensor output;
  const auto work = [&] { output = (input * 3).sin() + at::ones({4}, test::accelerator_type); };
  graph.rehearse(work);
  CHECK(at::allclose(output, (input * 3).sin() + 1));
  graph.record(work);
  for (const double value : {1.0, 2.0, -5.0}) {
    input.fill_(value);
    graph.replay();
    CHECK(at::allclose(output, (input * 3).sin() + 1));
  }
}

TEST_CASE("work that cannot be recorded throws, and the device stays usable") {
  if (!test::has_gpu()) return;
  const auto number = at::ones({}, test::accelerator_type);
  {
    machine::Graph graph({test::accelerator_type, 0});
    graph.rehearse([&] { number.add_(0); });
    CHECK_THROWS(graph.record([&] {
      static_cast<void>(at::rand({4}, test::accelerator_type));
      static_cast<void>(number.item<float>());
    }));
  }
  CHECK(number.item<float>() == 1);
  // Random numbers stay usable too, and can be recorded.
  const auto first = at::rand({64}, test::accelerator_type);
  CHECK_FALSE(at::equal(first, at::rand({64}, test::accelerator_type)));
  machine::Graph graph({test::accelerator_type, 0});
  at::Tensor drawn;
  const auto draw = [&] { drawn = at::rand({64}, test::accelerator_type); };
  graph.rehearse(draw);
  graph.record(draw);
  graph.replay();
  const auto replayed = drawn.clone();
  graph.replay();
  CHECK_FALSE(at::equal(replayed, drawn));
}
