
#include <hortator/error.hpp>
#include <set>

#include "machine/device/device.hpp"
#include "support/catch.hpp"

using namespace hortator;

TEST_CASE("each kind of device has a name of its own, a type that LibTorch knows, and all that messages mention") {
  std::set<std::string_view> names;
  for (const auto& kind : machine::known_kinds()) {
    CHECK(kind.type != c10::kCPU);
    CHECK(kind.name != "cpu");
    CHECK(names.insert(kind.name).second);
    // LibTorch's name, but for ROCm, which it calls "cuda" as well
    CHECK(c10::Device(kind.name == "rocm" ? "cuda" : std::string(kind.name)).type() == kind.type);
    for (const auto text : {kind.title, kind.build_option, kind.visibility, kind.tool, kind.file_prefix})
      CHECK_FALSE(text.empty());
  }
}

TEST_CASE("only devices of this build's accelerator have a kind") {
  const auto* const kind = machine::accelerator_kind();
  CHECK(machine::kind_of(c10::kCPU) == nullptr);
  CHECK(machine::kind_of(c10::kMeta) == nullptr);
  for (const auto& known : machine::known_kinds()) {
    const bool is_built = kind != nullptr && kind->type == known.type;
    CHECK((machine::kind_of(c10::Device(known.type, 0)) == kind) == (is_built || kind == nullptr));
    CHECK((machine::kind_of(c10::Device(known.type, 3)) != nullptr) == is_built);
  }
}

TEST_CASE("a machine without devices has none, and no error") {
  CHECK_NOTHROW(machine::visible_devices());
  CHECK(machine::visible_uuids().size() == machine::visible_devices().size());
  if (machine::accelerator_kind() == nullptr) CHECK(machine::visible_devices().empty());
  if (machine::visible_devices().empty()) CHECK_FALSE(machine::is_in_use());
}

TEST_CASE("a missing device is an error") {
  const auto beyond = static_cast<c10::DeviceIndex>(machine::visible_devices().size());
  const c10::Device missing(machine::known_kinds().front().type, beyond);
  if (machine::accelerator_kind() == nullptr) {
    CHECK_THROWS_WITH(machine::identify(missing), ContainsSubstring("built without CUDA"));
  } else {
    CHECK_THROWS_WITH(machine::identify(missing),
                      ContainsSubstring("CUDA device") && ContainsSubstring("does not answer"));
    CHECK_THROWS_WITH(machine::free_memory(missing), ContainsSubstring("does not answer"));
  }
}
