#include "machine/cpu/device_choice.hpp"

#include <hortator/error.hpp>
#include <set>

#include "core/text/text.hpp"
#include "support/catch.hpp"

using namespace hortator;
using machine::DeviceRequest;

namespace {

using Devices = std::vector<std::string>;

std::vector<Devices> all_see(int ranks, int devices) {
  Devices visible;
  for (int i = 0; i < devices; ++i) visible.push_back(text::concat("GPU-", i));
  return std::vector<Devices>(static_cast<std::size_t>(ranks), visible);
}

}  // namespace

TEST_CASE("every request gives one type of device") {
  for (const bool cpu_asked : {false, true}) {
    for (const bool built : {false, true}) {
      for (const int visible : {0, 1, 4}) {
        if (!built && visible > 0) continue;
        for (const char* asked : {"", "cpu", "cuda"}) {
          DeviceRequest request{.cpu_asked = cpu_asked, .is_built = built, .visible = visible};
          if (*asked) request.environment = asked;
          INFO("cpu " << cpu_asked << ", built " << built << ", visible " << visible << ", asked '" << asked << "'");
          const bool can = !cpu_asked && built && visible > 0;
          if (request.environment == "cuda" && !can) {
            CHECK_THROWS_AS(machine::wants_cuda(request), UsageError);
          } else {
            CHECK(machine::wants_cuda(request) == (can && request.environment != "cpu"));
          }
        }
      }
    }
  }
}

TEST_CASE("unavailable CUDA is an error with the reason") {
  DeviceRequest request{.environment = "cuda"};
  CHECK_THROWS_WITH(machine::wants_cuda(request),
                    ContainsSubstring("built without CUDA") && ContainsSubstring("HORTATOR_WITH_CUDA=ON"));
  request.is_built = true;
  CHECK_THROWS_WITH(machine::wants_cuda(request),
                    ContainsSubstring("No CUDA device is visible") && ContainsSubstring("CUDA_VISIBLE_DEVICES"));
  request.visible = 1;
  request.cpu_asked = true;
  CHECK_THROWS_WITH(machine::wants_cuda(request), ContainsSubstring("stays on the CPU"));
  request.environment = "gpu";
  CHECK_THROWS_WITH(machine::wants_cuda(request),
                    ContainsSubstring("HORTATOR_DEVICE: expected cpu or cuda, got 'gpu'"));
}

TEST_CASE("ranks that see all devices of the node take the one with their local rank") {
  for (int devices = 1; devices <= 8; ++devices) {
    for (int ranks = 1; ranks <= 10; ++ranks) {
      const auto visible = all_see(ranks, devices);
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank < devices) {
          CHECK(machine::pick_device(visible, rank) == rank);
        } else {
          CHECK_THROWS_AS(machine::pick_device(visible, rank), UsageError);
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
      taken.insert(mine.at(static_cast<std::size_t>(machine::pick_device(visible, rank))));
    }
    CHECK(taken.size() == visible.size());
  }
}

TEST_CASE("with more ranks than devices the error says what to set") {
  const std::vector<Devices> same_card(4, Devices{"a"});
  CHECK_THROWS_WITH(machine::pick_device(same_card, 3),
                    ContainsSubstring("4 ranks on this node for 1 visible CUDA device"));
  CHECK_THROWS_WITH(machine::pick_device(all_see(3, 2), 2),
                    ContainsSubstring("3 ranks on this node for 2 visible CUDA devices") &&
                        ContainsSubstring("--ntasks-per-node=2") && ContainsSubstring("HORTATOR_DEVICE=cpu"));
}

TEST_CASE("the distributed type follows from devices and ranks") {
  CHECK(machine::distributed_type(false, 1) == DistributedType::no);
  CHECK(machine::distributed_type(true, 1) == DistributedType::no);
  CHECK(machine::distributed_type(false, 2) == DistributedType::multi_cpu);
  CHECK(machine::distributed_type(true, 2) == DistributedType::multi_gpu);
  CHECK(to_string(DistributedType::multi_gpu) == "multi_gpu");
}

TEST_CASE("with sharing as few ranks as possible use each device") {
  using machine::Sharing;
  const auto two = all_see(5, 2);
  std::vector<int> picked;
  for (int rank = 0; rank < 5; ++rank) picked.push_back(machine::pick_device(two, rank, Sharing::allowed));
  CHECK(picked == std::vector<int>{0, 1, 0, 1, 0});
  CHECK_THROWS_AS(machine::pick_device(all_see(2, 0), 0, Sharing::allowed), UsageError);
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
  CHECK_THROWS_WITH(asked("perhaps"), ContainsSubstring("HORTATOR_CPU is 'perhaps'"));
}
