#include "machine/cpu/device_choice.hpp"

#include <hortator/error.hpp>
#include <set>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using machine::DeviceKind;
using machine::DeviceRequest;

namespace {

using Devices = std::vector<std::string>;

std::vector<Devices> all_see(int ranks, int devices) {
  Devices visible;
  for (int i = 0; i < devices; ++i) visible.push_back(text::concat("GPU-", i));
  return std::vector<Devices>(static_cast<std::size_t>(ranks), visible);
}

int pick_device(const std::vector<Devices>& visible, int rank, machine::Sharing sharing = machine::Sharing::refused) {
  return machine::pick_device(machine::known_kinds().front(), visible, rank, sharing);
}

}  // namespace

TEST_CASE("every request gives one type of device") {
  constexpr DeviceKind far{.type = c10::kPrivateUse1, .name = "far"};
  const auto& cuda = machine::known_kinds().front();
  for (const bool cpu_asked : {false, true}) {
    for (const DeviceKind* kind : {static_cast<const DeviceKind*>(nullptr), &cuda, &far}) {
      for (const std::size_t visible : {0, 1, 4}) {
        if (kind == nullptr && visible > 0) continue;
        for (const std::string asked : {"", "cpu", "cuda", "far"}) {
          DeviceRequest request{.cpu_asked = cpu_asked, .kind = kind, .visible = visible};
          if (!asked.empty()) request.environment = asked;
          INFO("cpu " << cpu_asked << ", built for " << (kind ? kind->name : "cpu") << ", visible " << visible
                      << ", asked '" << asked << "'");
          const bool can = !cpu_asked && kind != nullptr && visible > 0;
          const bool names_kind = !asked.empty() && asked != "cpu";
          if (names_kind && !(can && kind->name == asked)) {
            CHECK_THROWS_AS(machine::wants_accelerator(request), UsageError);
          } else {
            CHECK(machine::wants_accelerator(request) == (can && asked != "cpu"));
          }
        }
      }
    }
  }
}

TEST_CASE("an unavailable kind of device is an error with the reason") {
  DeviceRequest request{.environment = "cuda"};
  CHECK_THROWS_WITH(machine::wants_accelerator(request),
                    ContainsSubstring("built without CUDA") && ContainsSubstring("HORTATOR_WITH_CUDA=ON"));
  CHECK_THROWS_WITH(machine::wants_accelerator({.environment = "rocm", .kind = &machine::known_kinds().front()}),
                    ContainsSubstring("built without ROCm") && ContainsSubstring("HORTATOR_WITH_ROCM=ON"));
  request.kind = &machine::known_kinds().front();
  CHECK_THROWS_WITH(machine::wants_accelerator(request),
                    ContainsSubstring("No CUDA device is visible") && ContainsSubstring("CUDA_VISIBLE_DEVICES"));
  request.visible = 1;
  request.cpu_asked = true;
  CHECK_THROWS_WITH(machine::wants_accelerator(request), ContainsSubstring("stays on the CPU"));
  request.environment = "gpu";
  CHECK_THROWS_WITH(machine::wants_accelerator(request),
                    ContainsSubstring("HORTATOR_DEVICE: expected cpu or cuda or rocm or xpu, got 'gpu'"));
  constexpr DeviceKind far{.type = c10::kPrivateUse1, .name = "far", .title = "Far", .visibility = "FAR_DEVICES"};
  request = {.environment = "far", .kind = &far};
  CHECK_THROWS_WITH(machine::wants_accelerator(request), ContainsSubstring("No Far device is visible") &&
                                                             ContainsSubstring("HORTATOR_DEVICE=far requests Far") &&
                                                             ContainsSubstring("check FAR_DEVICES"));
}

TEST_CASE("ranks that see all devices of the node take the one with their local rank") {
  for (int devices = 1; devices <= 8; ++devices) {
    for (int ranks = 1; ranks <= 10; ++ranks) {
      const auto visible = all_see(ranks, devices);
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank < devices) {
          CHECK(pick_device(visible, rank) == rank);
        } else {
          CHECK_THROWS_AS(pick_device(visible, rank), UsageError);
        }
      }
    }
  }
}

TEST_CASE("ranks that see only some devices take one that no other rank has") {
  const std::vector<std::vector<Devices>> cases = {
      {{"a"}, {"b"}, {"c"}},                 // one task, one card
      {{"a", "b"}, {"c", "d"}},              // one task, two cards
      {{"a", "b", "c"}, {"b", "c"}, {"c"}},  // overlapping
      {{"b", "a"}, {"a", "b"}},              // the same, numbered differently
  };
  for (const auto& visible : cases) {
    std::set<std::string> taken;
    for (int rank = 0; rank < static_cast<int>(visible.size()); ++rank) {
      const auto& mine = visible[static_cast<std::size_t>(rank)];
      taken.insert(mine.at(static_cast<std::size_t>(pick_device(visible, rank))));
    }
    CHECK(taken.size() == visible.size());
  }
}

TEST_CASE("with more ranks than devices the error says what to set") {
  const std::vector<Devices> same_card(4, Devices{"a"});
  CHECK_THROWS_WITH(pick_device(same_card, 3), ContainsSubstring("4 ranks on this node for 1 visible CUDA device"));
  CHECK_THROWS_WITH(pick_device(all_see(3, 2), 2),
                    ContainsSubstring("3 ranks on this node for 2 visible CUDA devices") &&
                        ContainsSubstring("--ntasks-per-node=2") && ContainsSubstring("HORTATOR_DEVICE=cpu"));
}

TEST_CASE("the distributed type follows from devices and ranks") {
  for (const auto type : {c10::kCPU, c10::kCUDA, c10::kPrivateUse1})
    CHECK(machine::distributed_type(type, 1) == DistributedType::no);
  CHECK(machine::distributed_type(c10::kCPU, 2) == DistributedType::multi_cpu);
  CHECK(machine::distributed_type(c10::kCUDA, 2) == DistributedType::multi_gpu);
  CHECK(machine::distributed_type(c10::kPrivateUse1, 2) == DistributedType::multi_gpu);
  CHECK(to_string(DistributedType::multi_gpu) == "multi_gpu");
}

TEST_CASE("with sharing as few ranks as possible use each device") {
  using machine::Sharing;
  const auto two = all_see(5, 2);
  std::vector<int> picked;
  for (int rank = 0; rank < 5; ++rank) picked.push_back(pick_device(two, rank, Sharing::allowed));
  CHECK(picked == std::vector<int>{0, 1, 0, 1, 0});
  CHECK_THROWS_AS(pick_device(all_see(2, 0), 0, Sharing::allowed), UsageError);
  const auto asked = [](const char* value) {
    return machine::asked_sharing([value](const char* name) -> std::optional<std::string> {
      if (std::string(name) != "HORTATOR_SHARE_DEVICES" || value == nullptr) return std::nullopt;
      return value;
    });
  };
  CHECK(asked(nullptr) == Sharing::refused);
  CHECK(asked("") == Sharing::refused);
  CHECK(asked("0") == Sharing::refused);
  CHECK(asked("1") == Sharing::allowed);
  CHECK_THROWS_WITH(asked("maybe"), ContainsSubstring("neither yes nor no"));
}

TEST_CASE("the CPU is requested by any spelling of yes") {
  const auto asked = [](const std::optional<std::string>& value) {
    return machine::asked_for_cpu(
        [&](const char* name) { return std::string(name) == "HORTATOR_CPU" ? value : std::nullopt; });
  };
  CHECK(asked("1"));
  CHECK_FALSE(asked("0"));
  CHECK_FALSE(asked(""));
  CHECK_FALSE(asked({}));
  CHECK_THROWS_WITH(asked("perhaps"), ContainsSubstring("HORTATOR_CPU: expected true or false, got 'perhaps'"));
  CHECK(machine::asked_for_cpu([](const char* name) {
    return std::string(name) == "ACCELERATE_USE_CPU" ? std::optional("true") : std::nullopt;
  }));
}
