#include <algorithm>
#include <hortator/datasets/examples.hpp>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::detail {

void require_column(const std::vector<std::string>& columns, const std::string& name) {
  if (std::ranges::find(columns, name) != columns.end()) return;
  throw UsageError({.what = text::concat("The data set has no column ", text::quote(name)),
                    .hint = text::suggestion(name, columns)});
}

void require_same_size(std::int64_t data, std::int64_t target) {
  if (data == target) return;
  throw UsageError({.what = text::concat("There are ", data, " samples of data and ", target, " targets"),
                    .why = "each sample has its own target"});
}

void throw_no_tensor(const std::string& column) {
  throw UsageError({.what = text::concat("The column ", text::quote(column), " is text"),
                    .why = "an example consists of tensors",
                    .hint = "choose another type for the column, or use the rows as they are"});
}

}  // namespace hortator::detail
