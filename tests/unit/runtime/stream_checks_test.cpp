#include "runtime/stream_checks.hpp"

#include <hortator/error.hpp>
#include <optional>
#include <string>

#include "support/catch.hpp"

using namespace hortator;

namespace {

void check_on_cpu(const std::optional<std::string>& value) {
  runtime::check_streams_if_asked(c10::kCPU, [&](const char* name) {
    return std::string(name) == "HORTATOR_DEBUG_STREAMS" ? value : std::nullopt;
  });
}

}  // namespace

TEST_CASE("HORTATOR_DEBUG_STREAMS is an error where there is no device") {
  CHECK_NOTHROW(check_on_cpu({}));
  CHECK_NOTHROW(check_on_cpu("0"));
  CHECK_THROWS_AS(check_on_cpu("1"), UsageError);
  CHECK_THROWS_WITH(check_on_cpu("1"), ContainsSubstring("runs on the CPU"));
  CHECK_THROWS_WITH(check_on_cpu("perhaps"), ContainsSubstring("HORTATOR_DEBUG_STREAMS is 'perhaps'"));
}
