#include <hortator/error.hpp>
#include <hortator/training/schedules.hpp>

#include "core/text/text.hpp"

namespace hortator {

void PerGroup::check(std::size_t groups, std::string_view option) const {
  if (values_.size() == 1 || values_.size() == groups) return;
  throw UsageError({.what = text::concat(option, " has ", values_.size(), " numbers, but the optimizer has ",
                                         text::count(static_cast<long long>(groups), "parameter group")),
                    .why = "each group has its own value",
                    .hint = "give one number for all groups, or one for each group"});
}

}  // namespace hortator
