#include <ATen/ATen.h>

#include <hortator/data.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::data_test;

namespace {

at::Tensor numbers(const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); }

}  // namespace

TEST_CASE("documents are packed one after the other, and positions and targets stay within them") {
  const PackedWindows windows({numbers({1, 2, 3}), numbers({4, 5}), numbers({6, 7, 8, 9})},
                              {.context = 4, .pad_token = 99});
  CHECK(windows.tokens() == 9);
  REQUIRE(windows.size() == 3);
  const auto batch = windows.get_batch(Samples{0, 1, 2});
  CHECK(at::equal(batch.ids, numbers({1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 99, 99}).view({3, 4})));
  CHECK(at::equal(batch.targets, numbers({2, 3, -100, 5, -100, 7, 8, 9, -100, -100, -100, -100}).view({3, 4})));
  CHECK(at::equal(batch.positions, numbers({0, 1, 2, 0, 0, 0, 1, 2, 0, 0, 1, 2}).view({3, 4})));
  CHECK(at::equal(batch.documents, numbers({0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1, 1}).view({3, 4})));
  CHECK(at::equal(windows.get(2).ids, batch.ids[2]));
  CHECK(at::equal(windows.get(2).documents, batch.documents[2]));
}

TEST_CASE("an end token closes each document, and empty ones are kept only with it") {
  const std::vector<at::Tensor> documents = {numbers({1}), numbers({}), numbers({2, 3})};
  const PackedWindows closed(documents, {.context = 6, .end_token = 0});
  CHECK(at::equal(closed.get(0).ids, numbers({1, 0, 0, 2, 3, 0})));
  CHECK(at::equal(closed.get(0).targets, numbers({0, -100, -100, 3, 0, -100})));
  CHECK(at::equal(closed.get(0).documents, numbers({0, 0, 1, 2, 2, 2})));
  CHECK(PackedWindows(documents, {.context = 2}).tokens() == 3);
}

TEST_CASE("each token but the first of a document is a target once, for any length of window") {
  at::manual_seed(1);
  std::vector<at::Tensor> documents;
  std::int64_t tokens = 0, count = 0;
  for (const std::int64_t length : {1, 7, 2, 30, 1, 1, 13, 8}) {
    documents.push_back(at::arange(tokens, tokens + length));
    tokens += length;
    ++count;
  }
  for (const std::int64_t context : {1, 2, 3, 5, 8, 62, 63, 64, 100}) {
    INFO(context);
    const PackedWindows windows(documents, {.context = context, .pad_token = -1});
    std::int64_t targets = 0, seen = 0;
    for (std::int64_t i = 0; i < windows.size(); ++i) {
      const auto one = windows.get(i);
      const auto is_target = one.targets.ge(0);
      CHECK(at::equal(one.targets.masked_select(is_target), one.ids.masked_select(is_target) + 1));
      CHECK(one.positions[0].item<int>() == 0);
      CHECK(one.documents[0].item<int>() == 0);
      targets += is_target.sum().item<std::int64_t>();
      seen += one.ids.ge(0).sum().item<std::int64_t>();
    }
    CHECK(seen == tokens);
    CHECK(targets == tokens - count);
  }
}

TEST_CASE("packed windows that cannot be are refused") {
  CHECK_THROWS_WITH(PackedWindows({numbers({1})}, {.context = 0}), ContainsSubstring("0 tokens"));
  CHECK_THROWS_WITH(PackedWindows({numbers({})}, {}), ContainsSubstring("all documents are empty"));
  CHECK_THROWS_WITH(PackedWindows({at::ones({2})}, {}), ContainsSubstring("whole numbers"));
  CHECK_THROWS_WITH(PackedWindows({numbers({1})}, {}).get(1), ContainsSubstring("no window 1"));
}

TEST_CASE("packed windows are the batches of a loader") {
  auto loader = data_loader(PackedWindows({numbers({1, 2, 3, 4, 5})}, {.context = 2}), {.batch_size = 2});
  std::vector<at::Tensor> ids;
  for (auto& batch : loader) ids.push_back(batch.ids);
  REQUIRE(ids.size() == 2);
  CHECK(at::equal(ids[0], numbers({1, 2, 3, 4}).view({2, 2})));
  CHECK(at::equal(ids[1], numbers({5, 0}).view({1, 2})));
}
