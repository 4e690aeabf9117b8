#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

TEST_CASE("a Parquet file is refused with a way to convert it where Arrow's library is missing") {
  CHECK_THROWS_WITH(LabelledTexts(write("train.parquet", "PAR1")), ContainsSubstring("orient='records', lines=True"));
  CHECK_THROWS_WITH(ArrowRows("nowhere.arrow"), ContainsSubstring("INSTALL"));
}
