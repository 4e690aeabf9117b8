#include "runtime/debug_mode.hpp"

#include <hortator/error.hpp>
#include <optional>
#include <string>

#include "support/catch.hpp"

using namespace hortator;

namespace {

bool asked(const std::optional<std::string>& text) {
  return runtime::asked_for_debug_mode(
      [&](const char* name) { return std::string(name) == "HORTATOR_DEBUG" ? text : std::nullopt; });
}

}  // namespace

TEST_CASE("HORTATOR_DEBUG enables debug mode by any true value") {
  for (const auto* text : {"1", "yes", "true", "on"}) CHECK(asked(text));
  for (const auto* text : {"0", "no", "false", "off", ""}) CHECK_FALSE(asked(text));
  CHECK_FALSE(asked({}));
  CHECK_THROWS_WITH(asked("perhaps"), ContainsSubstring("HORTATOR_DEBUG: expected true or false, got 'perhaps'"));
}
