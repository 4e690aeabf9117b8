#include "runtime/watchdog/time_limit.hpp"

#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::runtime {

std::chrono::milliseconds collective_timeout(std::optional<std::chrono::milliseconds> asked,
                                             const core::Variables& variables) {
  constexpr auto usual = std::chrono::minutes(10);
  const std::string why = "a collective that lasts longer ends the job with a report of who is missing";
  if (asked && asked->count() <= 0) {
    throw UsageError({.what = text::concat("collective_timeout is ", asked->count(), " ms"),
                      .why = why,
                      .hint = "give a time above zero, a very long one for no limit"});
  }
  if (asked) return *asked;
  const auto text = variables("HORTATOR_TIMEOUT");
  if (!text || text->empty()) return usual;
  const auto parsed = units::parse_duration(*text);
  if (parsed) return *parsed;
  throw UsageError({.what = text::concat("HORTATOR_TIMEOUT=", *text, " is not a time"),
                    .why = why,
                    .hint = "write a number with its unit: 30s, 10min, 2h"});
}

}  // namespace hortator::runtime
