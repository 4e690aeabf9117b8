#pragma once

// LibTorch's logging defines its own CHECK, which ends the program: it is included first and undefined, so that Catch's
// is used.
#if __has_include(<c10/util/Logging.h>)
#include <c10/util/Logging.h>
#undef CHECK
#endif

// The only include of Catch2: version 2 (Debian 12) and version 3 (Debian 13, clusters) have different headers and
// names.
#ifdef HORTATOR_CATCH2_V2
#include <catch2/catch.hpp>
namespace Catch {
namespace Matchers {
inline auto ContainsSubstring(const std::string& part) { return Contains(part); }
}  // namespace Matchers
}  // namespace Catch
#else
#include <catch2/catch_approx.hpp>
#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
using Catch::Approx;  // version 2 exports it itself
#endif

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
