#include "paging/access_order.hpp"

#include "support/catch.hpp"

namespace hortator::paging {
namespace {

std::vector<int> next(const AccessOrder& order, std::size_t count) {
  std::vector<int> pages;
  for (std::size_t ahead = 1; ahead <= std::min(count, order.known_ahead()); ++ahead)
    pages.push_back(order.expected(ahead));
  return pages;
}

void use(AccessOrder& order, const std::vector<int>& pages) {
  for (const int page : pages) order.note(page);
}

// Forward, backward, and the optimizer's order of the parameters.
const std::vector<int> training_step = {0, 1, 2, 3, 2, 1, 0, 1, 2, 3};

}  // namespace

TEST_CASE("A boundary is expected where it was recorded, forwards and backwards", "[access_order]") {
  AccessOrder order(3);
  const int end = order.boundary();
  CHECK(next(order, 8) == std::vector<int>{0, 1, 2});
  for (int step = 0; step < 3; ++step) {
    use(order, {0, 1, 2, 1, 0});
    order.note_boundary();
    CHECK(order.last() == end);
  }
  use(order, {0, 1});
  CHECK(next(order, 5) == std::vector<int>{2, 1, 0, end, 0});
  use(order, {2, 1, 0});
  CHECK(next(order, 2) == std::vector<int>{end, 0});
}

TEST_CASE("Before the first use, pages are expected in the order of their numbers", "[access_order]") {
  AccessOrder order(4);
  CHECK(next(order, 8) == std::vector<int>{0, 1, 2, 3});
  use(order, {0, 1});
  CHECK(next(order, 4) == std::vector<int>{2, 3, 0, 1});
  CHECK(order.surprises() == 0);
}

TEST_CASE("Repeated forward passes are predicted", "[access_order]") {
  AccessOrder order(5);
  for (int pass = 0; pass < 3; ++pass) use(order, {0, 1, 2, 3, 4});
  CHECK(order.surprises() == 0);
  CHECK(order.distance_to(0) == 1);
  CHECK(order.distance_to(3) == 4);
}

TEST_CASE("The first backward pass is predicted once it has turned round", "[access_order]") {
  AccessOrder order(6);
  use(order, {0, 1, 2, 3, 4, 5, 4});
  CHECK(order.surprises() == 1);
  CHECK(next(order, 4) == std::vector<int>{3, 2, 1, 0});
  CHECK(order.distance_to(3) == 1);
  CHECK(order.distance_to(0) == 4);
  use(order, {3, 2, 1, 0});
  CHECK(order.surprises() == 1);
}

TEST_CASE("Whole training steps are learned", "[access_order]") {
  AccessOrder order(4);
  for (int step = 0; step < 3; ++step) use(order, training_step);
  const auto before = order.surprises();
  for (int step = 0; step < 5; ++step) {
    for (const int page : training_step) {
      CHECK(order.expected(1) == page);
      use(order, {page});
    }
  }
  CHECK(order.surprises() == before);
}

TEST_CASE("A new order is learned again", "[access_order]") {
  AccessOrder order(6);
  for (int pass = 0; pass < 4; ++pass) use(order, {0, 1, 2, 3, 4, 5});
  for (int pass = 0; pass < 2; ++pass) use(order, {4, 2, 0, 5, 3, 1});
  CHECK(order.surprises() > 0);
  const auto before = order.surprises();
  use(order, {4, 2, 0, 5, 3, 1});
  CHECK(order.surprises() == before);
  CHECK(next(order, 3) == std::vector<int>{4, 2, 0});
}

TEST_CASE("Uses of the page in use are not counted", "[access_order]") {
  AccessOrder order(3);
  CHECK(order.note(0));
  CHECK_FALSE(order.note(0));
  CHECK(order.expected(1) == 1);
}

TEST_CASE("A page that is not used is never expected", "[access_order]") {
  AccessOrder order(40);
  for (int pass = 0; pass < 10'000; ++pass) use(order, {0, 1, 2, 3});  // enough to forget the initial order
  CHECK(order.distance_to(30) == AccessOrder::never);
  CHECK(order.distance_to(2) == 3);
  CHECK(order.expected(1) == 0);
}

}  // namespace hortator::paging
